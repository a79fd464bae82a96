//! Packet errors of OFDM beside a decoder: what the closed form says, and what a Viterbi decoder makes of frames in white noise.

use meshpace_core::Rate;
use meshpace_core::Rng;
use meshpace_core::rng::Purpose;
use meshpace_mesh::radio::OfdmRate;
use meshpace_mesh::radio::bit_errors::Modulation;

/// dB at which a frame of `bytes` has the error rate `share`.
fn required_db(rate: OfdmRate, bytes: f64, share: f64) -> f64 {
    let (mut low, mut high) = (-10.0f64, 40.0f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        let success = rate.modulation().log_success(10f64.powf(middle / 10.0), 8.0 * bytes).exp();
        if 1.0 - success > share { low = middle } else { high = middle }
    }
    high
}

#[test]
fn faster_needs_more_and_more_than_the_minimum_sensitivity_says_is_never_needed() {
    // Table 19-23: minimum sensitivity at 20 MHz with 10 % errors of 4096 bytes, dBm; the standard reckons with noise of -101 dBm, 10 dB
    // of noise figure and 5 dB of losses in the receiver (17.3.10.2), -86 dBm in all. An ideal receiver needs less.
    let sensitivity = [-82.0, -79.0, -77.0, -74.0, -70.0, -66.0, -65.0, -64.0];
    let mut before = -10.0;
    for (mcs, dbm) in (0..8).zip(sensitivity) {
        let needed = required_db(OfdmRate::mcs(mcs, false).unwrap(), 4096.0, 0.1);
        let allowed = dbm + 86.0;
        assert!(
            needed > before && needed < allowed + 0.5 && needed > allowed - 4.0,
            "MCS {mcs}: {needed} dB, {allowed}"
        );
        before = needed;
        // Two streams share the power.
        let two = required_db(OfdmRate::mcs(mcs + 8, false).unwrap(), 4096.0, 0.1);
        assert!((two - needed - 3.01).abs() < 0.01, "MCS {}: {two}", mcs + 8);
    }
}

/// A frame error rate of QPSK at rate 1/2 by decoding frames of `bits` at `snr_db`: encoder, noise on each axis, soft Viterbi decoder.
fn decoded_errors(bits: usize, snr_db: f64, frames: u64) -> f64 {
    let parity = |register: usize, generator: usize| (register & generator).count_ones() & 1;
    // E_s/N_0 of a symbol with two coded bits: each axis has half of its energy, and noise of N_0/2.
    let amplitude = 10f64.powf(snr_db / 20.0);
    let mut rng = Rng::stream(1, Purpose::Test, 0);
    let mut lost = 0;
    for _ in 0..frames {
        // The zero word is as good as any: the code is linear and the channel symmetric.
        let mut metric = vec![f64::MIN; 64];
        metric[0] = 0.0;
        let mut errors = vec![false; 64];
        for bit in 0..bits + 6 {
            let radius = (-2.0 * (1.0 - rng.uniform()).ln()).sqrt();
            let angle = std::f64::consts::TAU * rng.uniform();
            let soft = [amplitude + radius * angle.cos(), amplitude + radius * angle.sin()];
            let (mut next, mut next_errors) = (vec![f64::MIN; 64], vec![false; 64]);
            for state in 0..64 {
                for input in 0..if bit < bits { 2 } else { 1 } {
                    let register = input << 6 | state;
                    let gain =
                        |at: usize, generator| if parity(register, generator) == 0 { soft[at] } else { -soft[at] };
                    let sum = metric[state] + gain(0, 0o133) + gain(1, 0o171);
                    if sum > next[register >> 1] {
                        next[register >> 1] = sum;
                        next_errors[register >> 1] = errors[state] || input == 1;
                    }
                }
            }
            (metric, errors) = (next, next_errors);
        }
        lost += u64::from(errors[0]);
    }
    lost as f64 / frames as f64
}

#[test]
fn a_viterbi_decoder_loses_as_many_frames() {
    // 500 bits of QPSK 1/2. A union bound is above, by less the rarer errors are; within 0.3 dB here.
    let qpsk = OfdmRate::non_ht(Rate::from_mbps(12)).unwrap().modulation();
    assert!(matches!(qpsk, Modulation::Coded(_)));
    let bound = |db: f64| 1.0 - qpsk.log_success(10f64.powf(db / 10.0), 500.0).exp();
    for (db, frames) in [(2.5, 400), (3.0, 800)] {
        let measured = decoded_errors(500, db, frames);
        println!("{db} dB: {measured}, closed form {} and 0.3 dB further {}", bound(db), bound(db + 0.3));
        assert!(
            measured < 1.1 * bound(db) && measured > 0.8 * bound(db + 0.3),
            "{db} dB: {measured}, bound {}",
            bound(db)
        );
    }
}

//! Compares packet errors of OFDM: the closed form, and a Viterbi decoder on frames in white noise.

use meshpace_core::Rate;
use meshpace_core::Rng;
use meshpace_core::rng::Purpose;
use meshpace_mesh::radio::OfdmRate;
use meshpace_mesh::radio::bit_errors::Modulation;

/// Signal-to-noise ratio in dB at which a frame of `bytes` has the error rate `share`.
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
    // Table 19-23: minimum sensitivity at 20 MHz with 10 % errors of 4096 bytes, dBm. The standard
    // assumes noise of -101 dBm, a noise figure of 10 dB and losses of 5 dB in the receiver
    // (17.3.10.2), -86 dBm in total. An ideal receiver needs less.
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

/// A modulation: the number of points on an axis, and the bits of the two coded streams that are
/// not punctured.
struct Sent {
    points: usize,
    sent: [&'static [bool]; 2],
}

const QPSK_HALF: Sent = Sent { points: 2, sent: [&[true], &[true]] };
const QAM16_THREE_QUARTERS: Sent = Sent { points: 4, sent: [&[true, true, false], &[true, false, true]] };
const QAM64_FIVE_SIXTHS: Sent =
    Sent { points: 8, sent: [&[true, true, false, true, false], &[true, false, true, false, true]] };

impl Sent {
    /// Metric of a decoder for a coded bit 0 on an axis at `snr` with noise of 1: the difference
    /// between the distances to the nearest point with a 1 and to the nearest point with a 0. The
    /// bit is at a random position of a random point, as behind a good interleaver, and may be
    /// inverted.
    fn soft(&self, snr: f64, rng: &mut Rng) -> f64 {
        let levels = self.points as f64;
        // The mean energy of an axis is the signal-to-noise ratio.
        let unit = (3.0 * snr / (levels * levels - 1.0)).sqrt();
        let place = |point: usize| unit * (2.0 * point as f64 - levels + 1.0);
        let gray = |point: usize| point ^ point >> 1;
        let bit = rng.below(u64::from(self.points.ilog2()));
        let point = rng.below(self.points as u64) as usize;
        let (radius, angle) = ((-2.0 * (1.0 - rng.uniform()).ln()).sqrt(), std::f64::consts::TAU * rng.uniform());
        let received = place(point) + radius * angle.cos();
        let nearest = |value: usize| {
            let points = (0..self.points).filter(|&point| gray(point) >> bit & 1 == value);
            points.map(|point| (received - place(point)).powi(2)).fold(f64::MAX, f64::min)
        };
        let is = gray(point) >> bit & 1;
        nearest(1 - is) - nearest(is)
    }

    /// Frame error rate from decoding frames of `bits` at `snr_db`: encoder, puncturing, noise on
    /// each axis, soft Viterbi decoder.
    fn decoded_errors(&self, bits: usize, snr_db: f64, frames: u64) -> f64 {
        let parity = |register: usize, generator: usize| (register & generator).count_ones() & 1;
        let snr = 10f64.powf(snr_db / 10.0);
        let mut rng = Rng::stream(1, Purpose::Test, 0);
        let mut lost = 0;
        for _ in 0..frames {
            // The all-zero word represents all words, because the code is linear and the channel
            // symmetric.
            let mut metric = vec![f64::MIN; 64];
            metric[0] = 0.0;
            let mut errors = vec![false; 64];
            for bit in 0..bits + 6 {
                let soft = self.sent.map(|sent| if sent[bit % sent.len()] { self.soft(snr, &mut rng) } else { 0.0 });
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
}

#[test]
fn a_viterbi_decoder_loses_as_many_frames() {
    // 500 bits. A union bound lies above, by less the rarer errors are. Here it is within 0.3 dB.
    let mbps = |mbps| OfdmRate::non_ht(Rate::from_mbps(mbps)).unwrap();
    let mcs = |mcs| OfdmRate::mcs(mcs, false).unwrap();
    for (name, rate, sent, frames) in [
        ("QPSK 1/2", mbps(12), QPSK_HALF, 800),
        ("16-QAM 3/4", mcs(4), QAM16_THREE_QUARTERS, 600),
        ("64-QAM 5/6", mcs(7), QAM64_FIVE_SIXTHS, 600),
    ] {
        let modulation = rate.modulation();
        assert!(matches!(modulation, Modulation::Coded(_)));
        let bound = |db: f64| 1.0 - modulation.log_success(10f64.powf(db / 10.0), 500.0).exp();
        for share in [0.2, 0.08] {
            let db = required_db(rate, 62.5, share);
            let measured = sent.decoded_errors(500, db, frames);
            let line = format!(
                "{name}, {db:.2} dB: {measured:.4}, closed form {:.4} and 0.3 dB further {:.4}",
                bound(db),
                bound(db + 0.3)
            );
            println!("{line}");
            assert!(measured < 1.1 * bound(db) && measured > 0.8 * bound(db + 0.3), "{line}");
        }
    }
}

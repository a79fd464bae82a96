//! Bit errors of the four modulations of IEEE 802.11b in white noise. Those of OFDM are in
//! [`super::coded`].
//!
//! S is the ratio of signal to noise and interference in the 22 MHz channel. A slower rate
//! therefore has more energy per bit: E_b/N_0 = S * 22 MHz / rate. The factor is called the
//! *processing gain*. Interference counts as noise.
//!
//! | Rate, Mbit/s | Modulation | Bit error rate | Source |
//! |---|---|---|---|
//! | 1 | DBPSK, Barker | 1/2 exp(-E_b/N_0), E_b/N_0 = 22 S | J. Proakis, "Digital Communications", 4th ed., eq. 5.2-69 |
//! | 2 | DQPSK, Barker | c x^-1/2 exp(-(2 - sqrt 2) x), x = E_b/N_0 = 11 S, c = (sqrt 2 + 1) / sqrt(8 pi sqrt 2) | G. Ferrari, G. Corazza, "Tight bounds and accurate approximations for DQPSK transmission bit error rate", Electronics Letters 40(20), 2004 |
//! | 5.5 | CCK, 16 code words | 8/15 of [14 Q(sqrt(8 S)) + Q(sqrt(16 S))] | IEEE Std 802.15.2-2003, 802.11b 5.5 Mbit/s |
//! | 11 | CCK, 256 code words | 128/255 of [24 Q(sqrt(4 S)) + 16 Q(sqrt(6 S)) + 174 Q(sqrt(8 S)) + 16 Q(sqrt(10 S)) + 24 Q(sqrt(12 S)) + Q(sqrt(16 S))] | IEEE Std 802.15.2-2003, 802.11b 11 Mbit/s |
//!
//! All error rates are limited to 1/2. The two rates of CCK are union bounds over the distances of
//! code words. Departure: 802.15.2 uses Q(sqrt(11 S)) and Q(sqrt(5.5 S)) for 1 and 2 Mbit/s, which
//! is some 3 dB to 6 dB pessimistic. ns-3 uses the formulas of this table.

use super::coded::Coded;
use meshpace_core::Rate;

/// Width of a channel of IEEE 802.11b, in Hz.
pub const CHANNEL_WIDTH_HZ: f64 = 22e6;
/// Ratio (20 dB) from which errors are rarer than one in 10^40 bits at every rate of 802.11b, so
/// that they are neglected.
const ERROR_FREE_RATIO: f64 = 100.0;

/// Modulation that belongs to a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Modulation {
    /// DBPSK at 1 Mbit/s.
    Dbpsk1,
    /// DQPSK at 2 Mbit/s.
    Dqpsk2,
    /// CCK at 5.5 Mbit/s.
    Cck5,
    /// CCK at 11 Mbit/s.
    Cck11,
    /// Modulation and code of an OFDM rate ([`super::coded`]).
    Coded(Coded),
}

impl Modulation {
    /// Returns the modulation of `rate`; `None` if `rate` is not one of the four rates of IEEE
    /// 802.11b.
    pub fn of(rate: Rate) -> Option<Modulation> {
        match rate.0 {
            1_000_000 => Some(Modulation::Dbpsk1),
            2_000_000 => Some(Modulation::Dqpsk2),
            5_500_000 => Some(Modulation::Cck5),
            11_000_000 => Some(Modulation::Cck11),
            _ => None,
        }
    }

    /// Bit rate in bits per second.
    pub fn bits_per_second(self) -> f64 {
        match self {
            Modulation::Dbpsk1 => 1e6,
            Modulation::Dqpsk2 => 2e6,
            Modulation::Cck5 => 5.5e6,
            Modulation::Cck11 => 11e6,
            Modulation::Coded(coded) => f64::from(coded.bits_per_second),
        }
    }

    /// Probability of a bit error at the ratio `sinr` over the width of the channel. `sinr` is a
    /// plain ratio (not dB) of 0 or more. Behind a code, it is the probability that an error event
    /// begins at a bit.
    pub fn bit_error_rate(self, sinr: f64) -> f64 {
        if sinr >= ERROR_FREE_RATIO && !matches!(self, Modulation::Coded(_)) {
            return 0.0;
        }
        let s = sinr;
        let rate = match self {
            Modulation::Dbpsk1 => 0.5 * libm::exp(-22.0 * s),
            Modulation::Dqpsk2 => {
                let root = core::f64::consts::SQRT_2;
                let x = 11.0 * s;
                let factor = (root + 1.0) / libm::sqrt(8.0 * core::f64::consts::PI * root);
                factor / libm::sqrt(x) * libm::exp(-(2.0 - root) * x)
            }
            Modulation::Cck5 => 8.0 / 15.0 * (14.0 * q(8.0 * s) + q(16.0 * s)),
            Modulation::Cck11 => {
                let words = [(24.0, 4.0), (16.0, 6.0), (174.0, 8.0), (16.0, 10.0), (24.0, 12.0), (1.0, 16.0)];
                let symbols: f64 = words.iter().map(|(count, distance)| count * q(distance * s)).sum();
                128.0 / 255.0 * symbols
            }
            Modulation::Coded(coded) => coded.error_rate(s),
        };
        // The limit also applies where the approximation of DQPSK becomes infinite.
        libm::fmin(rate, 0.5)
    }

    /// Natural logarithm of the probability that `bits` bits have no error at the ratio `sinr`,
    /// which is defined as in [`Self::bit_error_rate`].
    pub fn log_success(self, sinr: f64, bits: f64) -> f64 {
        if bits == 0.0 {
            return 0.0;
        }
        bits * libm::log1p(-self.bit_error_rate(sinr))
    }
}

/// Q(sqrt(x)): probability that a standard normal number exceeds sqrt(x).
fn q(x: f64) -> f64 {
    0.5 * libm::erfc(libm::sqrt(0.5 * x))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::power::ratio;

    #[test]
    fn tables_of_the_normal_distribution() {
        // Q(1), Q(2), Q(3) and Q(4) are in any statistics table.
        for (x, expected) in [(1.0, 0.158_655), (4.0, 0.022_750), (9.0, 1.349_90e-3), (16.0, 3.167_1e-5)] {
            assert!((q(x) / expected - 1.0).abs() < 1e-4, "{x}");
        }
    }

    #[test]
    fn dqpsk_and_dbpsk_at_textbook_points() {
        // DBPSK needs E_b/N_0 = 10.34 dB for one error in 10^5 bits (1/2 e^-x = 1e-5 at x = 10.82).
        // The gain used below is 13.42 dB.
        let one = Modulation::Dbpsk1.bit_error_rate(ratio(10.342 - 13.424));
        assert!((one / 1e-5 - 1.0).abs() < 0.01, "{one}");
        // DQPSK needs about 2.3 dB more energy per bit than coherent QPSK, which has 1e-5 at 9.59
        // dB. A bit at 2 Mbit/s has half the gain of a bit at 1 Mbit/s, 10.41 dB.
        let two = Modulation::Dqpsk2.bit_error_rate(ratio(9.59 + 2.3 - 10.414));
        assert!((2e-6..5e-5).contains(&two), "{two}");
    }

    #[test]
    fn cck_from_the_code_words_themselves() {
        // This check is independent of the formula: it builds all code words of IEEE 802.11-1999
        // (1999b), 18.4.6.5, from their four phases, and takes the union bound over the distances
        // from the first code word.
        use core::f64::consts::PI;
        let word = |p: [f64; 4]| {
            let [a, b, c, d] = p;
            [a + b + c + d, a + c + d, a + b + d, a + d + PI, a + b + c, a + c, a + b + PI, a]
        };
        // d^2 = |x - y|^2 for chips of energy 1. Two code words are confused with probability
        // Q(sqrt(d^2 E_c / (2 N_0))), where 802.15.2 uses E_c/N_0 = S for a chip.
        let bound = |words: &[[f64; 8]], s: f64| -> f64 {
            let first = words[0];
            words[1..]
                .iter()
                .map(|other| {
                    let d2: f64 = first.iter().zip(other).map(|(x, y)| 2.0 - 2.0 * libm::cos(x - y)).sum();
                    q(d2 * s / 2.0)
                })
                .sum()
        };
        let quarter = |n: usize| PI / 2.0 * n as f64;
        let fast: alloc::vec::Vec<[f64; 8]> = (0..256)
            .map(|n| word([quarter(n & 3), quarter(n >> 2 & 3), quarter(n >> 4 & 3), quarter(n >> 6)]))
            .collect();
        // At 5.5 Mbit/s, two bits choose the code word (phases d2 * pi + pi/2, 0, d3 * pi) and two
        // bits the phase of all chips.
        let slow: alloc::vec::Vec<[f64; 8]> = (0..16)
            .map(|n| word([quarter(n & 3), PI * (n >> 2 & 1) as f64 + PI / 2.0, 0.0, PI * (n >> 3) as f64]))
            .collect();
        for s in [1.0, 2.0, 4.0, 6.0] {
            let expected = 128.0 / 255.0 * bound(&fast, s);
            let found = Modulation::Cck11.bit_error_rate(s);
            assert!((found / expected.min(0.5) - 1.0).abs() < 1e-9, "11 Mbit/s at {s}: {found} {expected}");
            let expected = 8.0 / 15.0 * bound(&slow, s);
            let found = Modulation::Cck5.bit_error_rate(s);
            assert!((found / expected.min(0.5) - 1.0).abs() < 1e-9, "5.5 Mbit/s at {s}: {found} {expected}");
        }
    }

    #[test]
    fn slower_is_safer_and_stronger_is_safer() {
        let all = [Modulation::Dbpsk1, Modulation::Dqpsk2, Modulation::Cck5, Modulation::Cck11];
        for db in -20..25 {
            let s = ratio(f64::from(db));
            let rates = all.map(|modulation| modulation.bit_error_rate(s));
            assert!(rates.iter().all(|rate| (0.0..=0.5).contains(rate)), "{db} dB");
            for (one, next) in all.iter().zip(&rates) {
                assert!(one.bit_error_rate(s * 1.1) <= *next, "{db} dB");
            }
            // From this ratio on, frames of hundreds of bits begin to pass.
            if rates[3] < 1e-3 {
                assert!(rates[0] <= rates[1] && rates[1] <= rates[2] && rates[2] <= rates[3], "{db} dB: {rates:?}");
            }
        }
    }
}

//! Errors of the convolutional code of OFDM radios after bit interleaving, in white noise: a union
//! bound in closed form.
//!
//! Sources: IEEE Std 802.11-2016, 17.3.5.6 (code of constraint length 7, generators 133 and 171
//! octal, and its puncturing), 17.3.5.8 (Gray-mapped constellations); G. Caire, G. Taricco, E.
//! Biglieri, "Bit-Interleaved Coded Modulation", IEEE Trans. Inform. Theory 44(3), 1998, section V
//! (expurgated union bound: each bit of an error event has the distance to the nearest
//! constellation point at which this bit has the other value); M. K. Simon, M.-S. Alouini, "Digital
//! Communication over Fading Channels", eq. 4.2 (Craig's form of Q).
//!
//! ```text
//! P(an error begins at a bit) <= sum over d of a_d P_d
//! P_d = 1/pi integral over 0 < t < pi/2 of M(1 / sin^2 t)^d,    M(x) = sum over k of f_k exp(-x k^2 g)
//! ```
//!
//! P is the probability that an error event begins at a data bit, and a_d the number of error
//! events of weight d per data bit. k is the distance between constellation points in units of the
//! smallest distance, and f_k the share of bits with that distance. g = D^2 / (4 N_0), where D^2 =
//! 6 / (M - 1) of the energy of a symbol for M points, and 4 for BPSK. A frame of L bits is
//! received with probability (1 - P)^L.
//!
//! Assumptions: decoding is soft, and synchronisation and channel estimate are perfect. S is the
//! ratio of signal to noise over the channel. Two effects are left out: a fifth of the width of the
//! channel carries no data (0.6 dB for S), and pilots and a real receiver have losses. Two spatial
//! streams share the power equally and do not disturb each other. Each stream has S / 2, as over a
//! cable; this does not describe a fading channel.

/// Constellation of a subcarrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constellation {
    /// Two points.
    Bpsk,
    /// Four points.
    Qpsk,
    /// Sixteen points.
    Qam16,
    /// Sixty-four points.
    Qam64,
}

/// Code rate: number of data bits divided by the number of coded bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeRate {
    /// Rate 1/2.
    Half,
    /// Rate 2/3.
    TwoThirds,
    /// Rate 3/4.
    ThreeQuarters,
    /// Rate 5/6.
    FiveSixths,
}

/// Modulation together with its convolutional code and its number of streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coded {
    /// Constellation of each subcarrier.
    pub constellation: Constellation,
    /// Rate of the convolutional code.
    pub code: CodeRate,
    /// Number of spatial streams, 1 or 2.
    pub streams: u8,
    /// Data rate in bit/s.
    pub bits_per_second: u32,
}

/// Number of steps of the numerical integral. The integrand is a smooth periodic function, so few
/// steps suffice.
const STEPS: usize = 16;
/// Exponent from which the error rate, about e to the minus this number, is neglected.
const ERROR_FREE_EXPONENT: f64 = 60.0;
/// Exponent up to which the error rate is taken as 1/2.
const LOST_EXPONENT: f64 = 1.0;

impl Constellation {
    /// The quantity g of the head of this file, for a ratio S of 1.
    fn g_per_ratio(self) -> f64 {
        match self {
            Constellation::Bpsk => 1.0,
            Constellation::Qpsk => 1.5 / 3.0,
            Constellation::Qam16 => 1.5 / 15.0,
            Constellation::Qam64 => 1.5 / 63.0,
        }
    }

    /// The shares f_1, f_2 and so on of the head of this file.
    fn shares(self) -> &'static [f64] {
        // The shares are averages over the bits of an axis with 2, 4 or 8 points. With 4 points,
        // the outer bit has the distances 1, 2 and the inner bit 1, 1. With 8 points, the three
        // bits have the distances 1, 2, 3, 4; then 1, 1, 2, 2; and 1, 1, 1, 1.
        match self {
            Constellation::Bpsk | Constellation::Qpsk => &[1.0],
            Constellation::Qam16 => &[3.0 / 4.0, 1.0 / 4.0],
            Constellation::Qam64 => &[7.0 / 12.0, 3.0 / 12.0, 1.0 / 12.0, 1.0 / 12.0],
        }
    }
}

impl CodeRate {
    /// Weight spectrum of the code: the least weight of an error event, the number of data bits in
    /// a puncturing period, and the number of error events of the least weight and of each
    /// following weight that begin within a period. A test counts them.
    const fn spectrum(self) -> (u32, f64, &'static [f64]) {
        match self {
            CodeRate::Half => (10, 1.0, &[11.0, 0.0, 38.0, 0.0, 193.0, 0.0, 1331.0, 0.0, 7275.0]),
            CodeRate::TwoThirds => (6, 2.0, &[1.0, 16.0, 48.0, 158.0, 642.0, 2435.0, 9174.0]),
            CodeRate::ThreeQuarters => (5, 3.0, &[8.0, 31.0, 160.0, 892.0, 4512.0, 23297.0]),
            CodeRate::FiveSixths => (4, 5.0, &[14.0, 69.0, 654.0, 4996.0, 39677.0]),
        }
    }
}

impl Coded {
    /// Probability that an error event begins at a bit at the ratio `sinr`, which is a plain ratio
    /// (not dB) of 0 or more. At most 1/2.
    pub fn error_rate(self, sinr: f64) -> f64 {
        let g = sinr / f64::from(self.streams) * self.constellation.g_per_ratio();
        let (least, period, events) = self.code.spectrum();
        let exponent = f64::from(least) * g;
        if exponent >= ERROR_FREE_EXPONENT {
            return 0.0;
        }
        if exponent <= LOST_EXPONENT {
            return 0.5;
        }
        let mut sum = 0.0;
        for step in 0..STEPS {
            let sine = libm::sin((step as f64 + 0.5) * core::f64::consts::FRAC_PI_2 / STEPS as f64);
            let x = g / (sine * sine);
            let shares = self.constellation.shares().iter().zip(1u32..);
            let of_a_bit: f64 = shares.map(|(share, k)| share * libm::exp(-x * f64::from(k * k))).sum();
            let mut of_an_event = libm::pow(of_a_bit, f64::from(least));
            for count in events {
                sum += count * of_an_event;
                of_an_event *= of_a_bit;
            }
        }
        libm::fmin(sum / (2.0 * STEPS as f64 * period), 0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    /// Tells which outputs of the two generators are sent, by step of a puncturing period
    /// (17.3.5.6, figures 17-8 and 17-9; 19.3.11.6).
    fn sent(code: CodeRate) -> (&'static [u32], &'static [u32]) {
        match code {
            CodeRate::Half => (&[1], &[1]),
            CodeRate::TwoThirds => (&[1, 1], &[1, 0]),
            CodeRate::ThreeQuarters => (&[1, 1, 0], &[1, 0, 1]),
            CodeRate::FiveSixths => (&[1, 1, 0, 1, 0], &[1, 0, 1, 0, 1]),
        }
    }

    /// Counts the paths through the trellis that leave the zero state within a period and return to
    /// it, by weight up to `most`.
    fn count(code: CodeRate, most: u32) -> BTreeMap<u32, u64> {
        let (first, second) = sent(code);
        let weight = |register: u32, phase: usize| {
            let parity = |generator: u32| (register & generator).count_ones() & 1;
            first[phase] * parity(0o133) + second[phase] * parity(0o171)
        };
        let mut events = BTreeMap::new();
        for start in 0..first.len() {
            let mut paths = BTreeMap::from([((1u32 << 5, weight(1 << 6, start)), 1u64)]);
            let mut phase = start;
            while !paths.is_empty() {
                phase = (phase + 1) % first.len();
                let mut longer = BTreeMap::new();
                for (&(state, so_far), &number) in &paths {
                    for input in 0..2 {
                        let register = input << 6 | state;
                        let (next, weight) = (register >> 1, so_far + weight(register, phase));
                        if weight <= most {
                            let count = match next {
                                0 => events.entry(weight).or_insert(0),
                                _ => longer.entry((next, weight)).or_insert(0),
                            };
                            *count += number;
                        }
                    }
                }
                paths = longer;
            }
        }
        events
    }

    #[test]
    fn the_error_events_of_the_code() {
        for code in [CodeRate::Half, CodeRate::TwoThirds, CodeRate::ThreeQuarters, CodeRate::FiveSixths] {
            let (least, period, events) = code.spectrum();
            assert_eq!(period, sent(code).0.len() as f64);
            let most = least + events.len() as u32 - 1;
            let counted = count(code, most);
            let found: Vec<f64> = (least..=most).map(|d| counted.get(&d).copied().unwrap_or(0) as f64).collect();
            assert_eq!(found, events, "{code:?}");
        }
    }
}

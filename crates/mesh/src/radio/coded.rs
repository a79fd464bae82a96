//! Errors of the convolutional code of OFDM radios behind bit interleaving, in white noise: a union bound in closed form.
//!
//! Sources: IEEE Std 802.11-2016, 17.3.5.6 (code of constraint length 7, generators 133 and 171 octal, and its puncturing),
//! 17.3.5.8 (Gray-mapped constellations); G. Caire, G. Taricco, E. Biglieri, "Bit-Interleaved Coded Modulation", IEEE Trans. Inform.
//! Theory 44(3), 1998, section V (expurgated union bound: each bit of an error event has the distance to the nearest
//! point whose bit is the other one); M. K. Simon, M.-S. Alouini, "Digital Communication over Fading Channels", eq. 4.2 (Craig's form of Q).
//!
//! ```text
//! P(an error begins at a bit) <= sum over d of a_d P_d
//! P_d = 1/pi integral over 0 < t < pi/2 of M(1 / sin^2 t)^d,    M(x) = sum over k of f_k exp(-x k^2 g)
//! ```
//!
//! a_d: error events of weight d for each data bit. k: distance between points in units of the smallest, f_k: how often a bit
//! has it; g = D^2 / (4 N_0), where D^2 = 6 / (M - 1) of a symbol's energy for M points, 4 for BPSK. A frame of L bits passes with
//! (1 - P)^L. Decoding is soft, synchronisation and channel estimate are perfect. S is the ratio over the channel; that a fifth of its width
//! carries no data (0.6 dB for S) and what pilots and a real receiver lose are left out on both sides. Two streams
//! share the power equally and do not disturb each other: each has S / 2, as over a cable, not over a fading channel.

/// The points of a subcarrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Constellation {
    /// Two.
    Bpsk,
    /// Four.
    Qpsk,
    /// Sixteen.
    Qam16,
    /// Sixty-four.
    Qam64,
}

/// Data bits by coded bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeRate {
    /// 1/2.
    Half,
    /// 2/3.
    TwoThirds,
    /// 3/4.
    ThreeQuarters,
    /// 5/6.
    FiveSixths,
}

/// A modulation with its code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coded {
    /// The points.
    pub constellation: Constellation,
    /// The code.
    pub code: CodeRate,
    /// Spatial streams, 1 or 2.
    pub streams: u8,
    /// Data bits per second.
    pub bits_per_second: u32,
}

/// Steps of the integral, which is of a smooth periodic function.
const STEPS: usize = 16;
/// e to the minus this is nothing.
const CLEAN: f64 = 60.0;
/// With less of it a bit is as good as lost.
const HOPELESS: f64 = 1.0;

impl Constellation {
    /// g for a ratio of 1.
    fn half_distance(self) -> f64 {
        match self {
            Constellation::Bpsk => 1.0,
            Constellation::Qpsk => 1.5 / 3.0,
            Constellation::Qam16 => 1.5 / 15.0,
            Constellation::Qam64 => 1.5 / 63.0,
        }
    }

    /// f_1 and following.
    fn shares(self) -> &'static [f64] {
        // Of the bits of an axis with 2, 4 or 8 points: the outer bit of 4 points has the distances 1, 2, the inner one 1, 1; of 8
        // points 1, 2, 3, 4; 1, 1, 2, 2 and 1, 1, 1, 1.
        match self {
            Constellation::Bpsk | Constellation::Qpsk => &[1.0],
            Constellation::Qam16 => &[3.0 / 4.0, 1.0 / 4.0],
            Constellation::Qam64 => &[7.0 / 12.0, 3.0 / 12.0, 1.0 / 12.0, 1.0 / 12.0],
        }
    }
}

impl CodeRate {
    /// The least weight of an error event, data bits of a puncturing period, and error events of that and the following
    /// weights that begin within a period. A test counts them.
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
    /// The probability that a bit begins an error at the ratio `sinr` (a number, not dB; 0 or more), 1/2 at most.
    pub fn error_rate(self, sinr: f64) -> f64 {
        let g = sinr / f64::from(self.streams) * self.constellation.half_distance();
        let (least, period, events) = self.code.spectrum();
        let exponent = f64::from(least) * g;
        if exponent >= CLEAN {
            return 0.0;
        }
        if exponent <= HOPELESS {
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

    /// Which outputs of the two generators are sent, by step of a puncturing period (17.3.5.6, figures 17-8 and 17-9; 19.3.11.6).
    fn sent(code: CodeRate) -> (&'static [u32], &'static [u32]) {
        match code {
            CodeRate::Half => (&[1], &[1]),
            CodeRate::TwoThirds => (&[1, 1], &[1, 0]),
            CodeRate::ThreeQuarters => (&[1, 1, 0], &[1, 0, 1]),
            CodeRate::FiveSixths => (&[1, 1, 0, 1, 0], &[1, 0, 1, 0, 1]),
        }
    }

    /// Paths through the trellis that leave the zero state in a period and come back, by weight up to `most`.
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

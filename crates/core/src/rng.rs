//! Seeded random streams, one per (seed, purpose, index), where the index is a node, a flow or a
//! pair of nodes. They are equal on every machine.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number
//! generators", ACM TOMS 47, 2021), with its state initialised by SplitMix64. Both the algorithm
//! and the mappings to ranges are fixed here, because a change would change every result.

/// Purpose of a random stream. Streams of different purposes are independent, so that an additional
/// draw in one place leaves the others as they were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub enum Purpose {
    /// Backoff slots of DCF; one stream per node.
    Backoff = 1,
    /// Jitter of forwarded routing broadcasts; one stream per node.
    RoutingJitter = 2,
    /// Jitter of the start times of flows; one stream per flow.
    FlowStart = 3,
    /// Traffic (file sizes, pauses); one stream per flow.
    Traffic = 4,
    /// Placement of the nodes of a topology.
    Topology = 5,
    /// Movement; one stream per node.
    Mobility = 6,
    /// Reception errors and fading; one stream per node.
    Radio = 7,
    /// Random marks and drops of queues; one stream per node.
    Marking = 8,
    /// Random choices of a transport endpoint (initial sequence numbers); one stream per flow.
    Transport = 9,
    /// Shadowing; one stream per pair of nodes.
    Shadowing = 11,
    /// Randomised tests of the project.
    Test = 10,
    /// Random delay that is not caused by a queue; one stream per flow.
    Jitter = 12,
}

/// Random stream: a xoshiro256++ generator.
#[derive(Clone, Debug)]
pub struct Rng {
    s: [u64; 4],
}

fn splitmix(x: &mut u64) -> u64 {
    *x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *x;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// Creates the stream of `seed` for `purpose` at `index` (a node, a flow or a pair of nodes).
    pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Rng {
        let mut x = seed;
        let mut key = splitmix(&mut x) ^ (purpose as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        key = splitmix(&mut key) ^ index.wrapping_mul(0xa076_1d64_78bd_642f);
        let s = [splitmix(&mut key), splitmix(&mut key), splitmix(&mut key), splitmix(&mut key)];
        Rng { s }
    }

    /// Draws 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let out = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        out
    }

    /// Draws a whole number uniformly from `0..n`. Returns 0 if `n` is 0. The bias is below n /
    /// 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Draws a number uniformly from [0, 1). The number is a multiple of 2^-53.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Draws a number uniformly from [low, high).
    #[inline]
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Draws an exponentially distributed number with the given mean: -mean ln(1 - u).
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log1p(-self.uniform())
    }
}

/// Maps `u`, uniform on [0, 1), to a Pareto-distributed number: scale (1 - u)^(-1 / shape). The
/// scale is chosen so that the mean is `mean`. `shape` must be above 1, because there is no mean
/// otherwise.
pub fn pareto(mean: f64, shape: f64, u: f64) -> f64 {
    mean * (shape - 1.0) / shape * libm::pow(1.0 - u, -1.0 / shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_is_xoshiro256plusplus() {
        // The expected values are the first outputs of the authors' reference program for the state
        // {1, 2, 3, 4}.
        let mut rng = Rng { s: [1, 2, 3, 4] };
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        for value in expected {
            assert_eq!(rng.next_u64(), value);
        }
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_index() {
        let first = |seed, purpose, index| Rng::stream(seed, purpose, index).next_u64();
        let base = first(1, Purpose::Backoff, 0);
        assert_eq!(base, first(1, Purpose::Backoff, 0));
        assert_ne!(base, first(2, Purpose::Backoff, 0));
        assert_ne!(base, first(1, Purpose::RoutingJitter, 0));
        assert_ne!(base, first(1, Purpose::Backoff, 1));
    }

    #[test]
    fn mappings_stay_in_range_with_the_right_mean() {
        let mut rng = Rng::stream(1, Purpose::Test, 0);
        let n = 100_000;
        let (mut slots, mut exp) = (0u64, 0.0);
        for _ in 0..n {
            let slot = rng.below(31);
            assert!(slot < 31);
            slots += slot;
            exp += rng.exponential(0.1);
        }
        // The means must lie within 5 standard errors. The standard deviation of 0..30 is 8.94;
        // that of the exponential distribution is its mean.
        let se = libm::sqrt(f64::from(n));
        assert!((slots as f64 / f64::from(n) - 15.0).abs() < 5.0 * 8.944 / se);
        assert!((exp / f64::from(n) - 0.1).abs() < 5.0 * 0.1 / se);
    }
}

//! Estimate of the drift between the clocks of the two ends.
//!
//! A forward delay is a difference of two clocks; a round trip is not. Both together give the
//! offset of the clocks up to a constant. The result is best where the round trip is least, which
//! is also what NTP uses (RFC 5905, section 10):
//!
//! ```text
//! offset_k = forward_k - rtt_k / 2
//! skew     = slope of offset over time, each sample weighted by exp(-(rtt_k - least rtt) / unit)
//! ```
//!
//! The slope comes from weighted least squares whose history decays with the time constant
//! `MEMORY`. A `PRIOR` of no skew keeps the estimate near zero until there are enough samples, or
//! while no round trip is near the least one. In the latter case queues hide the drift of the
//! clocks, and their effect is larger. The result is limited to `LIMIT`.

/// Time constant with which the history decays, in seconds.
const MEMORY: f64 = 300.0;
/// Weight times squared spread of the prior: 20 samples, 40 s from their mean. Samples every second
/// have as much weight after 73 s.
const PRIOR: f64 = 20.0 * 40.0 * 40.0;
/// Largest skew that is accepted; no crystal exceeds it.
const LIMIT: f64 = 3e-4;

/// Weighted sums of the regression.
#[derive(Clone, Copy, Debug, Default)]
pub struct Skew {
    at: f64,
    weight: f64,
    mean_time: f64,
    mean_offset: f64,
    time_time: f64,
    time_offset: f64,
}

impl Skew {
    /// Adds a sample: at `now` the offset of the clocks was `offset` seconds, plus a constant.
    /// `weight` is from 0 to 1.
    pub fn add(&mut self, now: f64, offset: f64, weight: f64) {
        let fade = libm::exp(-(now - self.at).max(0.0) / MEMORY);
        self.at = now;
        self.weight = self.weight * fade + weight;
        if self.weight <= 0.0 {
            return;
        }
        let share = weight / self.weight;
        let late = now - self.mean_time;
        let above = offset - self.mean_offset;
        self.mean_time += share * late;
        self.mean_offset += share * above;
        self.time_time = self.time_time * fade + weight * late * (now - self.mean_time);
        self.time_offset = self.time_offset * fade + weight * late * (offset - self.mean_offset);
    }

    /// Drift of the peer's clock relative to the local clock, in seconds per second. Positive if
    /// the peer's clock is faster.
    pub fn get(&self) -> f64 {
        let spread = self.time_time + PRIOR;
        (self.time_offset / spread).clamp(-LIMIT, LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drift_is_found_and_noise_is_not_taken_for_one() {
        for drift in [-1e-4, 0.0, 1e-4] {
            let mut skew = Skew::default();
            let mut state = 7_u64;
            for k in 0..300 {
                let now = f64::from(k);
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Half of an extra delay there enters the offset: exponential, 4 ms in the mean.
                let extra = -4e-3 * libm::log(((state >> 33) as f64 + 1.0) / 2_f64.powi(31));
                skew.add(now, 5.0 + drift * now + extra / 2.0, libm::exp(-extra / 3e-3));
            }
            assert!((skew.get() - drift).abs() < 1e-5, "{drift}: {}", skew.get());
        }
    }

    #[test]
    fn little_is_believed_at_first() {
        let mut skew = Skew::default();
        assert_eq!(skew.get(), 0.0);
        skew.add(1.0, 0.0, 1.0);
        skew.add(2.0, 0.01, 1.0);
        assert!(skew.get() < 5e-5, "{}", skew.get());
    }
}

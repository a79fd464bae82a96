//! Means with 95 % intervals, of our runs and of the reference.

use crate::statistics::{estimate, student_t};

/// Confidence level of all intervals of the comparison.
const LEVEL: f64 = 0.95;

/// A mean over seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// The mean.
    pub mean: f64,
    /// Half width of the 95 % confidence interval of the mean. NaN if it is not known.
    pub half_width: f64,
    /// Number of runs.
    pub n: usize,
}

impl Sample {
    /// Mean of `values` and its interval by Student's t.
    pub fn of(values: &[f64]) -> Sample {
        let estimate = estimate(values, LEVEL);
        Sample { mean: estimate.mean, half_width: estimate.half_width, n: estimate.count }
    }

    /// Share of `n` runs in which something happened, with the normal approximation of its binomial
    /// interval.
    pub fn share(happened: usize, n: usize) -> Sample {
        let share = happened as f64 / n as f64;
        Sample { mean: share, half_width: 1.96 * (share * (1.0 - share) / n as f64).sqrt(), n }
    }

    /// Half width of the interval in which 95 % of single further runs fall (the prediction
    /// interval).
    pub fn spread(values: &[f64]) -> f64 {
        let n = values.len();
        student_t(LEVEL, n) * estimate(values, LEVEL).deviation * (1.0 + 1.0 / n as f64).sqrt()
    }

    /// A single measured value without an interval.
    pub fn single(value: f64) -> Sample {
        Sample { mean: value, half_width: f64::NAN, n: 1 }
    }

    /// Error of this mean relative to `reference`, in per cent of the reference.
    pub fn error_pct(&self, reference: &Sample) -> f64 {
        100.0 * (self.mean - reference.mean) / reference.mean
    }

    /// True if the two means lie inside the joined interval: |a - b| <= sqrt(wa^2 + wb^2), where wa
    /// and wb are the half widths of the two 95 % intervals. False if one of the half widths is not
    /// known.
    pub fn joins(&self, other: &Sample) -> bool {
        (self.mean - other.mean).abs() <= self.half_width.hypot(other.half_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_of_single_runs_is_wider_than_the_interval_of_their_mean() {
        let batches = [310.0, 302.0, 318.0, 295.0, 307.0, 312.0, 299.0, 304.0, 315.0, 301.0];
        // t(0.975, 9) = 2.262157, s = 7.39444: 2.262157 * 7.39444 * sqrt(1 + 1/10).
        assert!((Sample::spread(&batches) - 17.5438).abs() < 1e-3, "{}", Sample::spread(&batches));
    }

    #[test]
    fn share_of_runs() {
        // 27 of 100: 1.96 * sqrt(0.27 * 0.73 / 100) = 0.0870.
        let share = Sample::share(27, 100);
        assert_eq!(share.mean, 0.27);
        assert!((share.half_width - 0.0870).abs() < 1e-4);
    }

    #[test]
    fn joined_intervals() {
        let a = Sample { mean: 100.0, half_width: 3.0, n: 5 };
        let near = Sample { mean: 105.0, half_width: 4.0, n: 5 };
        let far = Sample { mean: 105.1, half_width: 4.0, n: 5 };
        assert!(a.joins(&near) && near.joins(&a));
        assert!(!a.joins(&far));
        assert!(!a.joins(&Sample::single(100.0)), "without an interval nothing can be said");
    }
}

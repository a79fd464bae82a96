//! Means with 95 % intervals, of our runs and of the reference.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// The mean.
    pub mean: f64,
    /// Half width of the 95 % confidence interval of the mean; NaN if it is not known.
    pub half_width: f64,
    /// Runs behind it.
    pub n: usize,
}

/// The two-sided 95 % quantile of Student's t with `freedom` degrees of freedom.
fn t95(freedom: usize) -> f64 {
    StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::NAN, |t| t.inverse_cdf(0.975))
}

impl Sample {
    /// The mean of `values` and its interval by Student's t.
    pub fn of(values: &[f64]) -> Sample {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        Sample { mean, half_width: t95(n.saturating_sub(1)) * deviation(values, mean) / (n as f64).sqrt(), n }
    }

    /// Half the width of the interval in which 95 % of single further runs fall.
    pub fn spread(values: &[f64]) -> f64 {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        t95(n.saturating_sub(1)) * deviation(values, mean) * (1.0 + 1.0 / n as f64).sqrt()
    }

    /// A single measured value without an interval.
    pub fn single(value: f64) -> Sample {
        Sample { mean: value, half_width: f64::NAN, n: 1 }
    }

    /// The error of this mean against `reference`, in per cent of the reference.
    pub fn error_pct(&self, reference: &Sample) -> f64 {
        100.0 * (self.mean - reference.mean) / reference.mean
    }

    /// Whether the two means lie inside the joined interval: |a - b| <= sqrt(wa^2 + wb^2), with wa and wb the half
    /// widths of the 95 % intervals; false if one of them is not known.
    pub fn joins(&self, other: &Sample) -> bool {
        (self.mean - other.mean).abs() <= self.half_width.hypot(other.half_width)
    }
}

/// Standard deviation with divisor N - 1.
fn deviation(values: &[f64], mean: f64) -> f64 {
    (values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_of_the_batch_means_example() {
        let batches = [310.0, 302.0, 318.0, 295.0, 307.0, 312.0, 299.0, 304.0, 315.0, 301.0];
        let sample = Sample::of(&batches);
        assert!((sample.mean - 306.3).abs() < 1e-9);
        assert!((sample.half_width - 5.28967).abs() < 1e-4, "{}", sample.half_width);
        assert!((Sample::spread(&batches) - 2.262157 * 7.39444 * 1.1f64.sqrt()).abs() < 1e-4);
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

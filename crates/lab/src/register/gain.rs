//! Gain of one transport over another: the ratio of two means with its confidence interval.
//!
//! Method of [`Gain::of`]: s, m and n are the standard deviation, the mean and the count of one
//! number per run, for the values (index 1) and for the baseline (index 0). By the delta method,
//! the logarithm of the ratio has the variance (s1/m1)^2/n1 + (s0/m0)^2/n0. The formula of Welch
//! and Satterthwaite gives its degrees of freedom (B. L. Welch, Biometrika 34, 1947).
//!
//! A run is a simulation of one transport with one seed, and both sides have the same seeds. If the
//! nodes have fixed places, a seed determines only the jitter of starts and the random numbers. Two
//! transports use these random numbers at different times, so two runs of one seed are hardly
//! correlated. Pairs would then cost half of the degrees of freedom without making the variance
//! smaller.
//!
//! If the seed also draws the places of the nodes, runs are compared in pairs ([`Gain::of_pairs`]).
//! For each pair of values a and b, d = a/m1 - b/m0. The variance of the logarithm is that of the
//! mean of d, with n - 1 degrees of freedom.

use crate::statistics::{estimate, student_t};

/// Ratio of two means, as in "84 % more than the baseline", with the uncertainty of its logarithm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// Natural logarithm of the mean divided by the baseline's mean.
    log: f64,
    /// Estimated variance of `log`.
    variance: f64,
    /// Degrees of freedom of that variance.
    degrees_of_freedom: f64,
}

impl Gain {
    /// Gain of `values` over `baseline`. `None` if a side has fewer than two runs or a mean that is
    /// not above zero.
    pub fn of(values: &[f64], baseline: &[f64]) -> Option<Gain> {
        let (a, b) = (estimate(values, 0.95), estimate(baseline, 0.95));
        let usable = |count: usize, mean: f64| count >= 2 && mean > 0.0;
        if !usable(a.count, a.mean) || !usable(b.count, b.mean) {
            return None;
        }
        let variance_of = |count: usize, mean: f64, deviation: f64| (deviation / mean).powi(2) / count as f64;
        let variances = [variance_of(a.count, a.mean, a.deviation), variance_of(b.count, b.mean, b.deviation)];
        let freedom = [a.count - 1, b.count - 1];
        Some(Gain::from_variances((a.mean / b.mean).ln(), &variances, &freedom.map(|freedom| freedom as f64)))
    }

    /// Gain of the first values over the second values, by the differences within pairs. `None`
    /// with fewer than two pairs, or if a mean is not above zero.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Option<Gain> {
        let count = pairs.len() as f64;
        let (a, b) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0 / count, sum.1 + pair.1 / count));
        let is_usable = pairs.len() >= 2 && a > 0.0 && b > 0.0;
        let differences: Vec<f64> = pairs.iter().map(|pair| pair.0 / a - pair.1 / b).collect();
        let variance = estimate(&differences, 0.95).deviation.powi(2) / count;
        is_usable.then(|| Gain { log: (a / b).ln(), variance, degrees_of_freedom: count - 1.0 })
    }

    /// This ratio divided by the ratio `other`. The two variances are added. If both ratios have
    /// the same baseline, they are positively correlated, and the interval is then too wide.
    pub fn divided_by(&self, other: &Gain) -> Gain {
        let freedom = [self.degrees_of_freedom, other.degrees_of_freedom];
        Gain::from_variances(self.log - other.log, &[self.variance, other.variance], &freedom)
    }

    /// Gain whose variance is the sum of two variances. The degrees of freedom follow from the
    /// formula of Welch and Satterthwaite.
    fn from_variances(log: f64, variances: &[f64; 2], freedom: &[f64; 2]) -> Gain {
        let variance = variances[0] + variances[1];
        let denominator: f64 = variances.iter().zip(freedom).map(|(part, freedom)| part * part / freedom).sum();
        Gain {
            log,
            variance,
            degrees_of_freedom: if denominator > 0.0 {
                variance * variance / denominator
            } else {
                freedom[0].min(freedom[1])
            },
        }
    }

    /// Gain in per cent: 84 means 1.84 times as much.
    pub fn pct(&self) -> f64 {
        100.0 * (self.log.exp() - 1.0)
    }

    /// Natural logarithm of the ratio. The logarithms of ratios that are multiplied add up.
    pub fn ln(&self) -> f64 {
        self.log
    }

    /// 95 % confidence interval of the gain, in per cent. The degrees of freedom are rounded down,
    /// which widens the interval.
    pub fn interval_pct(&self) -> (f64, f64) {
        // `student_t` takes the number of values, which is one more than the degrees of freedom.
        let values = self.degrees_of_freedom.floor().max(1.0) as usize + 1;
        let half_width = student_t(0.95, values) * self.variance.sqrt();
        (100.0 * ((self.log - half_width).exp() - 1.0), 100.0 * ((self.log + half_width).exp() - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_means_is_that_computed_by_hand() {
        // Means 200 and 100, both s = 10, n = 5. Variance of the logarithm: (0.05^2 + 0.1^2)/5 = 0.0025; degrees of
        // freedom 0.0025^2 / ((0.0005^2 + 0.002^2)/4) = 5.88, so t(5) = 2.5706; half width 0.12853.
        let with_mean = |mean: f64| [-1.0, -1.0, 0.0, 1.0, 1.0].map(|x| mean + 10.0 * x);
        let gain = Gain::of(&with_mean(200.0), &with_mean(100.0)).unwrap();
        assert!((gain.pct() - 100.0).abs() < 1e-9);
        let (low, high) = gain.interval_pct();
        assert!((low - 100.0 * (2.0 * (-0.12853f64).exp() - 1.0)).abs() < 0.01, "{low}");
        assert!((high - 100.0 * (2.0 * 0.12853f64.exp() - 1.0)).abs() < 0.01, "{high}");
    }

    #[test]
    fn the_interval_of_pairs_is_that_computed_by_hand() {
        // Means 200 and 100. d = 0, -0.1, 0.1: s = 0.1, n = 3; t(2) = 4.3027, half width 0.24842.
        let gain = Gain::of_pairs(&[(160.0, 80.0), (180.0, 100.0), (260.0, 120.0)]).unwrap();
        assert!((gain.pct() - 100.0).abs() < 1e-9);
        let (low, high) = gain.interval_pct();
        assert!((low - 100.0 * (2.0 * (-0.24842f64).exp() - 1.0)).abs() < 0.01, "{low}");
        assert!((high - 100.0 * (2.0 * 0.24842f64.exp() - 1.0)).abs() < 0.01, "{high}");
        assert_eq!(Gain::of_pairs(&[(1.0, 2.0)]), None);
        assert_eq!(Gain::of_pairs(&[]), None);
    }

    #[test]
    fn factors_multiply() {
        let total = Gain::of(&[300.0, 302.0], &[100.0, 101.0]).unwrap();
        let part = Gain::of(&[150.0, 151.0], &[100.0, 101.0]).unwrap();
        let rest = total.divided_by(&part);
        assert!(((1.0 + rest.pct() / 100.0) * (1.0 + part.pct() / 100.0) - (1.0 + total.pct() / 100.0)).abs() < 1e-12);
        let width = |gain: &Gain| gain.interval_pct().1 - gain.interval_pct().0;
        assert!(width(&rest) > 0.0);
    }

    #[test]
    fn no_gain_of_too_few_runs_or_a_mean_of_zero() {
        assert_eq!(Gain::of(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(Gain::of(&[1.0, 2.0], &[0.0, 0.0]), None);
    }
}

//! The ratio of two means with its confidence interval.
//!
//! The logarithm of the ratio has, by the delta method, the variance (s1/m1)^2/n1 + (s0/m0)^2/n0; Welch and Satterthwaite
//! give its degrees of freedom (B. L. Welch, Biometrika 34, 1947). Runs are treated as independent although both sides
//! use the same seeds: on fixed places a seed fixes the start jitter and the streams of random numbers, which two
//! transports consume at different times, so that pairing would halve the degrees of freedom for nothing. Where a seed
//! draws the places of the nodes, runs are compared in pairs: with d = a/m1 - b/m0 for each pair, the variance is that of
//! the mean of d, with n - 1 degrees of freedom.

use crate::statistics::{estimate, student_t};

/// A ratio of two means and the uncertainty of its logarithm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gain {
    /// ln(mean / baseline mean).
    log: f64,
    /// Variance of it.
    variance: f64,
    /// Degrees of freedom of that variance.
    freedom: f64,
}

impl Gain {
    /// The gain of `values` over `baseline`; None with fewer than two runs on a side or a mean that is not above zero.
    pub fn of(values: &[f64], baseline: &[f64]) -> Option<Gain> {
        let (a, b) = (estimate(values, 0.95), estimate(baseline, 0.95));
        let usable = |count: usize, mean: f64| count >= 2 && mean > 0.0;
        if !usable(a.count, a.mean) || !usable(b.count, b.mean) {
            return None;
        }
        let part = |count: usize, mean: f64, deviation: f64| (deviation / mean).powi(2) / count as f64;
        let parts = [part(a.count, a.mean, a.deviation), part(b.count, b.mean, b.deviation)];
        let freedom = [a.count - 1, b.count - 1];
        Some(Gain::from_parts((a.mean / b.mean).ln(), &parts, &freedom.map(|freedom| freedom as f64)))
    }

    /// The gain of the first over the second of each pair; None with fewer than two pairs or a mean that is not above zero.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Option<Gain> {
        let count = pairs.len() as f64;
        let (a, b) = pairs.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0 / count, sum.1 + pair.1 / count));
        let is_usable = pairs.len() >= 2 && a > 0.0 && b > 0.0;
        let spread: Vec<f64> = pairs.iter().map(|pair| pair.0 / a - pair.1 / b).collect();
        let variance = estimate(&spread, 0.95).deviation.powi(2) / count;
        is_usable.then(|| Gain { log: (a / b).ln(), variance, freedom: count - 1.0 })
    }

    /// This gain divided by `other`, which is independent of it: the factor that is left.
    pub fn over(&self, other: &Gain) -> Gain {
        Gain::from_parts(self.log - other.log, &[self.variance, other.variance], &[self.freedom, other.freedom])
    }

    fn from_parts(log: f64, parts: &[f64; 2], freedom: &[f64; 2]) -> Gain {
        let variance = parts[0] + parts[1];
        let weight: f64 = parts.iter().zip(freedom).map(|(part, freedom)| part * part / freedom).sum();
        Gain {
            log,
            variance,
            freedom: if weight > 0.0 { variance * variance / weight } else { freedom[0].min(freedom[1]) },
        }
    }

    /// The gain in per cent: 84 means 1.84 times as much.
    pub fn pct(&self) -> f64 {
        100.0 * (self.log.exp() - 1.0)
    }

    /// Its natural logarithm: the gains of independent causes add up in it.
    pub fn ln(&self) -> f64 {
        self.log
    }

    /// Its 95 % confidence interval in per cent. Degrees of freedom are rounded down, which widens it.
    pub fn interval_pct(&self) -> (f64, f64) {
        let half = student_t(0.95, self.freedom.floor().max(1.0) as usize + 1) * self.variance.sqrt();
        (100.0 * ((self.log - half).exp() - 1.0), 100.0 * ((self.log + half).exp() - 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_ratio() {
        // Means 200 and 100, both s = 10, n = 5. Variance of the logarithm: (0.05^2 + 0.1^2)/5 = 0.0025; degrees of
        // freedom 0.0025^2 / ((0.0005^2 + 0.002^2)/4) = 5.88, so t(5) = 2.5706; half width 0.12853.
        let around = |mean: f64| [-1.0, -1.0, 0.0, 1.0, 1.0].map(|x| mean + 10.0 * x);
        let gain = Gain::of(&around(200.0), &around(100.0)).unwrap();
        assert!((gain.pct() - 100.0).abs() < 1e-9);
        let (low, high) = gain.interval_pct();
        assert!((low - 100.0 * (2.0 * (-0.12853f64).exp() - 1.0)).abs() < 0.01, "{low}");
        assert!((high - 100.0 * (2.0 * 0.12853f64.exp() - 1.0)).abs() < 0.01, "{high}");
    }

    #[test]
    fn a_worked_ratio_of_pairs() {
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
        let left = total.over(&part);
        assert!(((1.0 + left.pct() / 100.0) * (1.0 + part.pct() / 100.0) - (1.0 + total.pct() / 100.0)).abs() < 1e-12);
        let width = |gain: &Gain| gain.interval_pct().1 - gain.interval_pct().0;
        assert!(width(&left) > 0.0);
    }

    #[test]
    fn too_little_to_say() {
        assert_eq!(Gain::of(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(Gain::of(&[1.0, 2.0], &[0.0, 0.0]), None);
    }
}

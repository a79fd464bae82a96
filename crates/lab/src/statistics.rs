//! The metrics and intervals that the papers report.
//!
//! Definitions: Jain, Chiu, Hawe, DEC TR-301, 1984 (fairness); Law, "Simulation Modeling and Analysis", section 9.5
//! (replications and batch means). Sample deviations divide by n - 1.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with the half width of its confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Mean of the values; NaN without values.
    pub mean: f64,
    /// Sample standard deviation; NaN with fewer than two values.
    pub deviation: f64,
    /// Half width of the interval; NaN with fewer than two values.
    pub half_width: f64,
    /// Number of values.
    pub count: usize,
}

/// The mean of independent values (one per seed, or one per batch) and its interval by Student's t; `level` is 0.95 or
/// 0.90, say. Values that are NaN (nothing was measured) make the result NaN.
pub fn estimate(values: &[f64], level: f64) -> Estimate {
    let count = values.len();
    let mean = values.iter().sum::<f64>() / count as f64;
    let deviation = if count > 1 {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / (count - 1) as f64).sqrt()
    } else {
        f64::NAN
    };
    let half_width = student_t(level, count) * deviation / (count as f64).sqrt();
    Estimate { mean, deviation, half_width, count }
}

/// As many digits as mean something; a dash for what could not be measured.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    match value.abs() {
        size if size == 0.0 || size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// The two-sided quantile of Student's t for `count` values; NaN with fewer than two.
pub fn student_t(level: f64, count: usize) -> f64 {
    if count < 2 {
        return f64::NAN;
    }
    match StudentsT::new(0.0, 1.0, (count - 1) as f64) {
        Ok(distribution) => distribution.inverse_cdf(0.5 + level / 2.0),
        Err(_) => f64::NAN,
    }
}

/// Spearman's coefficient of rank correlation (American Journal of Psychology 15, 1904); equal values share the mean of their ranks. None where all of one side are the same.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let x = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let y = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let middle = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    let r = product(&x, &y) / (product(&x, &x) * product(&y, &y)).sqrt();
    r.is_finite().then_some(r.clamp(-1.0, 1.0))
}

/// Ranks from 1.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; values.len()];
    for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let before = order.partition_point(|&other| values[other] < values[group[0]]);
        for &place in group {
            ranks[place] = before as f64 + (group.len() as f64 + 1.0) / 2.0;
        }
    }
    ranks
}

/// Half width of the interval of the difference of two independent means (B. L. Welch, Biometrika 34, 1947).
pub fn difference(a: &Estimate, b: &Estimate, level: f64) -> f64 {
    let part = |e: &Estimate| e.deviation.powi(2) / e.count as f64;
    let (va, vb) = (part(a), part(b));
    let variance = va + vb;
    if variance == 0.0 {
        return 0.0;
    }
    let freedom = variance.powi(2) / (va.powi(2) / (a.count as f64 - 1.0) + vb.powi(2) / (b.count as f64 - 1.0));
    student_t(level, freedom.floor().max(1.0) as usize + 1) * variance.sqrt()
}

/// Jain's index of fairness: 1 if all shares are equal, 1/n if one has everything, NaN if nobody has anything.
pub fn jain(shares: &[f64]) -> f64 {
    meshpace_sim::outcome::jain(shares).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
    }

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert_eq!(spearman(&[(1.0, 5.0), (2.0, 5.0)]), None);
    }

    #[test]
    fn jain_of_known_shares() {
        for (shares, expected) in [
            (&[1.0, 1.0][..], 1.0),
            (&[9.0, 1.0], 0.609_756),
            (&[0.875, 0.125], 0.64),
            (&[3.0, 2.0], 0.961_538),
            (&[5.0, 4.0, 3.0, 2.0, 1.0], 0.818_182),
            (&[12.0, 1.0, 1.0, 1.0, 1.0, 12.0], 0.447_489),
            (&[10.0, 10.0, 1.0, 1.0, 1.0, 1.0], 0.470_588),
        ] {
            assert_near(jain(shares), expected, 5e-7);
        }
        assert!(jain(&[0.0, 0.0]).is_nan());
    }

    const BATCHES: [f64; 10] = [310.0, 302.0, 318.0, 295.0, 307.0, 312.0, 299.0, 304.0, 315.0, 301.0];

    #[test]
    fn intervals_of_known_batches() {
        let wide = estimate(&BATCHES, 0.95);
        assert_near(wide.mean, 306.3, 1e-9);
        assert_near(wide.deviation, 7.394_44, 5e-6);
        assert_near(wide.half_width, 5.289_67, 5e-6);
        assert_near(estimate(&BATCHES, 0.90).half_width, 4.286_42, 5e-6);
    }

    #[test]
    fn quantiles_of_the_printed_tables() {
        // Two-sided 95 % and 90 % values as any table of Student's t prints them.
        for (level, count, expected) in [(0.95, 2, 12.706), (0.95, 5, 2.776), (0.95, 10, 2.262), (0.90, 5, 2.132)] {
            assert_near(student_t(level, count), expected, 5e-4);
        }
    }

    #[test]
    fn one_value_has_no_interval() {
        let one = estimate(&[5.0], 0.95);
        assert_eq!((one.mean, one.count), (5.0, 1));
        assert!(one.half_width.is_nan());
    }
}

//! Metrics and confidence intervals that the papers report.
//!
//! Definitions: Jain, Chiu, Hawe, DEC TR-301, 1984 (fairness); Law, "Simulation Modeling and
//! Analysis", section 9.5 (replications and batch means). Sample deviations divide by n - 1.

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

/// Mean of independent values (one per seed, or one per batch) with its interval by Student's t.
/// `level` is the confidence level, such as 0.95 or 0.90. A value of NaN (nothing was measured)
/// makes the result NaN.
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

/// Text of a number: one decimal from 10 on and for zero, two from 1 on, three below 1. A dash
/// stands for a value that could not be measured.
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

/// Two-sided quantile of Student's t for `count` values. NaN with fewer than two values.
pub fn student_t(level: f64, count: usize) -> f64 {
    if count < 2 {
        return f64::NAN;
    }
    match StudentsT::new(0.0, 1.0, (count - 1) as f64) {
        Ok(distribution) => distribution.inverse_cdf(0.5 + level / 2.0),
        Err(_) => f64::NAN,
    }
}

/// Spearman's coefficient of rank correlation (American Journal of Psychology 15, 1904). Equal
/// values share the mean of their ranks. `None` if all values of one side are equal.
pub fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let x = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<_>>());
    let y = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<_>>());
    let middle = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    let r = product(&x, &y) / (product(&x, &x) * product(&y, &y)).sqrt();
    r.is_finite().then_some(r.clamp(-1.0, 1.0))
}

/// Rank of each value, from 1.
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

/// Half width of the interval of the difference of two independent means (B. L. Welch, Biometrika
/// 34, 1947).
pub fn difference(a: &Estimate, b: &Estimate, level: f64) -> f64 {
    let (error, freedom) = welch(a, b);
    if error == 0.0 { 0.0 } else { student_t(level, freedom as usize + 1) * error }
}

/// Standard error of the difference of two independent means, and its degrees of freedom, rounded
/// down.
fn welch(a: &Estimate, b: &Estimate) -> (f64, f64) {
    let part = |e: &Estimate| e.deviation.powi(2) / e.count as f64;
    let (va, vb) = (part(a), part(b));
    let variance = va + vb;
    let freedom = variance.powi(2) / (va.powi(2) / (a.count as f64 - 1.0) + vb.powi(2) / (b.count as f64 - 1.0));
    (variance.sqrt(), freedom.floor().max(1.0))
}

/// Two-sided p-value of the hypothesis that the mean of paired differences is zero. It is below
/// `1 - level` if the interval of [`estimate`] excludes zero.
pub fn paired_p(differences: &Estimate) -> f64 {
    let error = differences.deviation / (differences.count as f64).sqrt();
    two_sided(differences.mean, error, differences.count as f64 - 1.0)
}

/// Two-sided p-value of the hypothesis that two independent means are equal. The test is the one
/// that belongs to the interval of [`difference`].
pub fn welch_p(a: &Estimate, b: &Estimate) -> f64 {
    let (error, freedom) = welch(a, b);
    two_sided(b.mean - a.mean, error, freedom)
}

/// Two-sided p-value of a difference with its standard error. If the values do not vary at all, the
/// p-value is 1 without a difference and 0 with one. NaN if an argument is not known.
fn two_sided(difference: f64, error: f64, freedom: f64) -> f64 {
    match StudentsT::new(0.0, 1.0, freedom) {
        _ if difference.is_nan() || error.is_nan() => f64::NAN,
        _ if error == 0.0 => f64::from(u8::from(difference == 0.0)),
        Ok(distribution) => 2.0 * distribution.cdf(-(difference / error).abs()),
        Err(_) => f64::NAN,
    }
}

/// Two-sided p-value of "in all runs of one side and in none of the other", with `runs` runs on
/// each side (G. A. Barnard, Biometrika 34, 1947). It is the largest probability of this event over
/// all probabilities that both sides could have in common. The maximum is at one half.
pub fn all_or_none_p(runs: usize) -> f64 {
    2.0 * 0.25_f64.powi(i32::try_from(runs).unwrap_or(i32::MAX))
}

/// p-values corrected for their number (S. Holm, Scandinavian Journal of Statistics 6, 1979). If
/// corrected values of at most 0.05 are called significant, the probability of calling any true
/// hypothesis of the family false is at most 0.05.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let mut corrected = vec![0.0; values.len()];
    let mut largest = 0.0_f64;
    for (place, &number) in order.iter().enumerate() {
        largest = largest.max((values.len() - place) as f64 * values[number]).min(1.0);
        corrected[number] = largest;
    }
    corrected
}

/// Jain's index of fairness: 1 if all n shares are equal, 1/n if one flow has everything, NaN if
/// all shares are zero.
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

    /// The values are those of scipy 1.17: `ttest_rel(b, a)`; `t.sf` with Welch's degrees of freedom
    /// rounded down from 7.02, and `barnard_exact([[n, 0], [0, n]], pooled=True)`.
    #[test]
    fn p_values_are_those_of_scipy() {
        let other = [312.0, 309.0, 317.0, 301.0, 311.0, 318.0, 298.0, 309.0, 321.0, 304.0];
        let differences: Vec<f64> = BATCHES.iter().zip(other).map(|(a, b)| b - a).collect();
        assert_near(paired_p(&estimate(&differences, 0.95)), 0.003_001_083_145_011_037, 1e-12);
        let (a, b) = (&BATCHES[..5], [330.0, 341.0, 309.0, 352.0, 316.0, 299.0]);
        assert_near(welch_p(&estimate(a, 0.95), &estimate(&b, 0.95)), 0.086_144_746_906_123_42, 1e-12);
        for (runs, expected) in [(3, 0.031_25), (4, 0.007_812_5), (5, 0.001_953_125)] {
            assert_near(all_or_none_p(runs), expected, 1e-15);
        }
    }

    #[test]
    fn what_does_not_vary_leaves_no_doubt() {
        let p = |values: &[f64]| paired_p(&estimate(values, 0.95));
        assert_eq!((p(&[0.0; 3]), p(&[1.0; 3])), (1.0, 0.0));
        assert!(p(&[1.0]).is_nan() && p(&[f64::INFINITY, 1.0, 1.0]).is_nan());
    }

    /// The interval excludes zero exactly if the p-value is below 0.05.
    #[test]
    fn p_values_and_intervals_agree() {
        let mut clear = 0;
        for shift in -40..40 {
            let other: Vec<f64> = BATCHES.iter().rev().map(|value| value + 0.5 * f64::from(shift)).collect();
            let differences: Vec<f64> = BATCHES.iter().zip(&other).map(|(a, b)| b - a).collect();
            let paired = estimate(&differences, 0.95);
            assert_eq!(paired_p(&paired) < 0.05, paired.mean.abs() > paired.half_width, "{shift}");
            let (a, b) = (estimate(&BATCHES, 0.95), estimate(&other[..7], 0.95));
            let is_clear = (b.mean - a.mean).abs() > difference(&a, &b, 0.95);
            assert_eq!(welch_p(&a, &b) < 0.05, is_clear, "{shift}");
            clear += usize::from(is_clear);
        }
        assert!((10..70).contains(&clear), "both answers occur: {clear}");
    }

    /// The values are those of statsmodels 0.15: `multipletests(values, method="holm")[1]`.
    #[test]
    fn corrected_p_values_are_those_of_statsmodels() {
        for (values, expected) in [
            (&[0.001, 0.2, 0.013, 0.04, 0.04, 1.0, 0.011][..], &[0.007, 0.4, 0.066, 0.16, 0.16, 1.0, 0.066][..]),
            (&[0.01, 0.0102, 0.5], &[0.03, 0.03, 0.5]),
            (&[0.03], &[0.03]),
            (&[], &[]),
        ] {
            let corrected = holm(values);
            assert_eq!(corrected.len(), expected.len());
            corrected.iter().zip(expected).for_each(|(value, expected)| assert_near(*value, *expected, 1e-12));
        }
    }
}

//! Rank correlation: whether a quantity falls or rises along x as a whole, however its neighbouring values stand.
//!
//! C. Spearman, American Journal of Psychology 15, 1904; the interval by Fisher's z with the standard error
//! sqrt((1 + r^2/2)/(n - 3)) of D. G. Bonett and T. A. Wright, Psychometrika 65, 2000.

/// A rank correlation with the ends of its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Correlation {
    /// From -1 (falls throughout) to 1 (rises throughout).
    pub r: f64,
    /// The lower end.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

/// Two-sided 95 % quantile of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// The rank correlation of pairs; zero where all of one side are the same. None with fewer than four pairs.
pub fn correlation(pairs: &[(f64, f64)]) -> Option<Correlation> {
    let n = pairs.len();
    if n < 4 {
        return None;
    }
    let Some(r) = spearman(pairs) else { return Some(Correlation { r: 0.0, low: 0.0, high: 0.0 }) };
    // Fisher's z of 1 is infinite: the interval is then a point.
    let z = r.atanh();
    let error = NORMAL * ((1.0 + r * r / 2.0) / (n - 3) as f64).sqrt();
    Some(Correlation { r, low: (z - error).tanh(), high: (z + error).tanh() })
}

/// Spearman's coefficient; equal values share the mean of their ranks. None where all of one side are the same.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_coefficient() {
        // Ranks 1 2 3 4 5 against 2 1 4 3 5: the squared differences add up to 4, r = 1 - 6*4/(5*24) = 0.8.
        let pairs = [(10.0, 2.0), (20.0, 1.0), (30.0, 4.0), (40.0, 3.0), (50.0, 5.0)];
        let found = correlation(&pairs).unwrap();
        assert!((found.r - 0.8).abs() < 1e-12);
        // atanh 0.8 = 1.098612; 1.959964 * sqrt(1.32/2) = 1.592281: tanh(-0.493669), tanh(2.690893).
        assert!((found.low + 0.457_12).abs() < 1e-4 && (found.high - 0.990_84).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn equal_values_share_a_rank_and_a_constant_has_no_trend() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert_eq!(spearman(&[(1.0, 5.0), (2.0, 5.0)]), None);
        assert_eq!(correlation(&[(1.0, 5.0); 4]), Some(Correlation { r: 0.0, low: 0.0, high: 0.0 }));
        assert_eq!(correlation(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]), None, "three pairs have no interval");
        let whole = correlation(&[(1.0, 9.0), (2.0, 7.0), (3.0, 5.0), (4.0, 1.0)]).unwrap();
        assert_eq!((whole.r, whole.low, whole.high), (-1.0, -1.0, -1.0));
    }
}

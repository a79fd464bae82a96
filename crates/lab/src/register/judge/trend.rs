//! Rank correlation: whether a quantity falls or rises along x as a whole, whatever the order of
//! neighbouring values.
//!
//! The confidence interval uses Fisher's z with the standard error sqrt((1 + r^2/2)/(n - 3)) of D.
//! G. Bonett and T. A. Wright, Psychometrika 65, 2000. r is the correlation and n is the number of
//! pairs.

use crate::statistics::spearman;

/// Rank correlation with the ends of its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Correlation {
    /// Correlation, from -1 (falls throughout) to 1 (rises throughout).
    pub r: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Two-sided 95 % quantile of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// Rank correlation of pairs. It is zero if all values of one side are equal. `None` with fewer
/// than four pairs.
pub fn correlation(pairs: &[(f64, f64)]) -> Option<Correlation> {
    let n = pairs.len();
    if n < 4 {
        return None;
    }
    let Some(r) = spearman(pairs) else { return Some(Correlation { r: 0.0, low: 0.0, high: 0.0 }) };
    // Fisher's z of 1 is infinite. The interval is then a single point.
    let z = r.atanh();
    let error = NORMAL * ((1.0 + r * r / 2.0) / (n - 3) as f64).sqrt();
    Some(Correlation { r, low: (z - error).tanh(), high: (z + error).tanh() })
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
    fn a_constant_has_no_trend() {
        assert_eq!(correlation(&[(1.0, 5.0); 4]), Some(Correlation { r: 0.0, low: 0.0, high: 0.0 }));
        assert_eq!(correlation(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]), None, "three pairs have no interval");
        let whole = correlation(&[(1.0, 9.0), (2.0, 7.0), (3.0, 5.0), (4.0, 1.0)]).unwrap();
        assert_eq!((whole.r, whole.low, whole.high), (-1.0, -1.0, -1.0));
    }
}

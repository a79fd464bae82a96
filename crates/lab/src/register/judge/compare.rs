//! One quantity against another: their ratio, or, where one is zero and there is none, the sign of their difference.

use crate::register::gain::Gain;
use crate::register::observations::Sample;
use crate::statistics::{Estimate, estimate, student_t};

/// How much more the first is than the second, per cent, with a 95 % interval. Infinite where the second is zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Comparison {
    /// The difference.
    pub pct: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Comparison {
    /// The comparison of two samples; None with fewer than two values on a side.
    pub fn of(values: &[f64], baseline: &[f64]) -> Option<Comparison> {
        if let Some(gain) = Gain::of(values, baseline) {
            let (low, high) = gain.interval_pct();
            return Some(Comparison { pct: gain.pct(), low, high });
        }
        let (a, b) = (estimate(values, 0.95), estimate(baseline, 0.95));
        if a.count < 2 || b.count < 2 {
            return None;
        }
        let half = half_width(&a, &b);
        let infinite = |difference: f64| {
            if difference == 0.0 { 0.0 } else { difference.signum() * f64::INFINITY }
        };
        let difference = a.mean - b.mean;
        // A mean of zero is 100 % below anything.
        let pct = if a.mean == 0.0 && b.mean > 0.0 { -100.0 } else { infinite(difference) };
        let low = if pct == -100.0 { -100.0 } else { infinite(difference - half) };
        let high = if pct == -100.0 && difference + half < 0.0 { -100.0 } else { infinite(difference + half) };
        Some(Comparison { pct, low, high })
    }
}

/// Half width of the 95 % interval of the difference of two means (B. L. Welch, Biometrika 34, 1947).
fn half_width(a: &Estimate, b: &Estimate) -> f64 {
    let part = |e: &Estimate| e.deviation.powi(2) / e.count as f64;
    let (va, vb) = (part(a), part(b));
    let variance = va + vb;
    if variance == 0.0 {
        return 0.0;
    }
    let freedom = variance.powi(2) / (va.powi(2) / (a.count - 1) as f64 + vb.powi(2) / (b.count - 1) as f64);
    student_t(0.95, freedom.floor().max(1.0) as usize + 1) * variance.sqrt()
}

/// Two samples at each x that both have; a sample at a single x stands against every x of the other if its own is fixed.
pub fn pairs(of: Vec<Sample>, over: Vec<Sample>, fixed: (bool, bool)) -> Vec<(Sample, Sample)> {
    match (&of[..], &over[..], fixed) {
        ([one], [other], _) => vec![(one.clone(), other.clone())],
        ([one], _, (true, false)) => {
            over.iter().map(|other| (Sample { x: other.x.clone(), ..one.clone() }, other.clone())).collect()
        }
        (_, [other], (false, true)) => of.iter().map(|one| (one.clone(), other.clone())).collect(),
        _ => of
            .into_iter()
            .filter_map(|one| over.iter().find(|other| other.x == one.x).map(|other| (one.clone(), other.clone())))
            .collect(),
    }
}

/// A percentage: "+12.3 %", or that there is no ratio.
pub fn percent(pct: f64) -> String {
    if pct == f64::INFINITY {
        "more, where the other has nothing".to_owned()
    } else if pct == f64::NEG_INFINITY {
        "less, where the other has nothing".to_owned()
    } else {
        format!("{pct:+.1} %")
    }
}

/// A comparison in words: "+101.0 % (+85.0 to +119.0)".
pub fn told(comparison: &Comparison) -> String {
    let Comparison { pct, low, high } = comparison;
    if pct.is_finite() && low.is_finite() && high.is_finite() {
        format!("{pct:+.1} % ({low:+.1} to {high:+.1})")
    } else {
        percent(*pct)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_at_all_can_be_compared_with_something() {
        let compare = |a: &[f64], b: &[f64]| Comparison::of(a, b).unwrap();
        assert!(compare(&[5.0, 5.5, 6.0], &[0.0; 3]).low > 0.0, "clearly more than nothing");
        assert!(compare(&[0.0, 9.0], &[0.0, 0.0]).low < 0.0, "not clearly");
        let none = compare(&[0.0; 3], &[5.0, 5.5, 6.0]);
        assert_eq!((none.pct, none.high), (-100.0, -100.0));
        assert_eq!(compare(&[0.0, 0.0], &[0.0, 0.0]), Comparison { pct: 0.0, low: 0.0, high: 0.0 });
        assert_eq!(Comparison::of(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn a_worked_difference() {
        // Means 2 and 0, deviations 1 and 0, three runs each: 2 degrees of freedom, t = 4.303, half width 2.484.
        let (a, b) = (estimate(&[1.0, 2.0, 3.0], 0.95), estimate(&[0.0; 3], 0.95));
        assert!((half_width(&a, &b) - 2.484).abs() < 1e-3);
    }
}

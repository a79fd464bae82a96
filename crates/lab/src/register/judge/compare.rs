//! Comparison of one quantity with another: their ratio, or the sign of their difference if one of
//! them is zero and there is no ratio.

use crate::register::gain::Gain;
use crate::register::observations::Sample;
use crate::statistics::{difference, estimate};

/// Excess of the first quantity over the second in per cent, with a 95 % interval. Infinite if the
/// second one is zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Comparison {
    /// The excess.
    pub pct: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

impl Comparison {
    /// Compares two samples, seed by seed if both have seeds. `None` with fewer than two values on
    /// a side.
    pub fn of(one: &Sample, other: &Sample) -> Option<Comparison> {
        match (&one.seeds, &other.seeds) {
            (Some(seeds), Some(others)) => {
                let beside = |seed: &u64| others.binary_search(seed).ok().map(|place| other.values[place]);
                let pairs = seeds.iter().zip(&one.values);
                Comparison::of_pairs(
                    &pairs.filter_map(|(seed, value)| Some((*value, beside(seed)?))).collect::<Vec<_>>(),
                )
            }
            _ => Comparison::of_independent(&one.values, &other.values),
        }
    }

    /// Compares values that are independent of each other.
    pub fn of_independent(values: &[f64], baseline: &[f64]) -> Option<Comparison> {
        if let Some(gain) = Gain::of(values, baseline) {
            return Some(Comparison::of_gain(&gain));
        }
        let (a, b) = (estimate(values, 0.95), estimate(baseline, 0.95));
        (a.count >= 2 && b.count >= 2).then(|| Comparison::of_means(a.mean, b.mean, difference(&a, &b, 0.95)))
    }

    /// Compares values in pairs.
    fn of_pairs(pairs: &[(f64, f64)]) -> Option<Comparison> {
        if let Some(gain) = Gain::of_pairs(pairs) {
            return Some(Comparison::of_gain(&gain));
        }
        let mean = |side: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(side).sum::<f64>() / pairs.len() as f64;
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
        let half = estimate(&differences, 0.95).half_width;
        (pairs.len() >= 2).then(|| Comparison::of_means(mean(&|pair| pair.0), mean(&|pair| pair.1), half))
    }

    fn of_gain(gain: &Gain) -> Comparison {
        let (low, high) = gain.interval_pct();
        Comparison { pct: gain.pct(), low, high }
    }

    /// Comparison without a ratio, because one of the means is zero. `half` is the half width of
    /// the difference of the means.
    fn of_means(a: f64, b: f64, half: f64) -> Comparison {
        let infinite = |difference: f64| {
            if difference == 0.0 { 0.0 } else { difference.signum() * f64::INFINITY }
        };
        let difference = a - b;
        // A mean of zero is 100 % below any positive mean.
        let pct = if a == 0.0 && b > 0.0 { -100.0 } else { infinite(difference) };
        let low = if pct == -100.0 { -100.0 } else { infinite(difference - half) };
        let high = if pct == -100.0 && difference + half < 0.0 { -100.0 } else { infinite(difference + half) };
        Comparison { pct, low, high }
    }
}

/// Pairs the samples of two terms that have the same x. A single sample whose term fixes its x is
/// paired with every x of the other term.
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

/// Text of a percentage, such as "+12.3 %", or a text that says that there is no ratio.
pub fn percent(pct: f64) -> String {
    if pct == f64::INFINITY {
        "more, where the other has nothing".to_owned()
    } else if pct == f64::NEG_INFINITY {
        "less, where the other has nothing".to_owned()
    } else {
        format!("{pct:+.1} %")
    }
}

/// Text of a comparison, such as "+101.0 % (+85.0 to +119.0)".
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
        let compare = |a: &[f64], b: &[f64]| Comparison::of_independent(a, b).unwrap();
        assert!(compare(&[5.0, 5.5, 6.0], &[0.0; 3]).low > 0.0, "clearly more than nothing");
        assert!(compare(&[0.0, 9.0], &[0.0, 0.0]).low < 0.0, "not clearly");
        let none = compare(&[0.0; 3], &[5.0, 5.5, 6.0]);
        assert_eq!((none.pct, none.high), (-100.0, -100.0));
        assert_eq!(compare(&[0.0, 0.0], &[0.0, 0.0]), Comparison { pct: 0.0, low: 0.0, high: 0.0 });
        assert_eq!(Comparison::of_independent(&[1.0], &[1.0, 2.0]), None);
    }

    #[test]
    fn runs_of_one_seed_stand_against_each_other() {
        let sample = |values: &[f64], seeds: Option<&[u64]>| Sample {
            x: crate::register::select::X { value: 0.0, text: String::new() },
            values: values.to_vec(),
            seeds: seeds.map(<[u64]>::to_vec),
        };
        // Every one tenth above the other on placements that differ by a factor of four.
        let (one, other) = ([110.0, 220.0, 440.0], [100.0, 200.0, 400.0]);
        let seeds: &[u64] = &[1, 2, 3];
        let paired = Comparison::of(&sample(&one, Some(seeds)), &sample(&other, Some(seeds))).unwrap();
        assert!((paired.pct - 10.0).abs() < 1e-9 && (paired.low - 10.0).abs() < 1e-6, "{paired:?}");
        let apart = Comparison::of(&sample(&one, None), &sample(&other, None)).unwrap();
        assert!(apart.low < 0.0, "{apart:?}");
        // Only seeds that both have count, whatever their place.
        let fewer = Comparison::of(&sample(&one, Some(seeds)), &sample(&[200.0, 400.0], Some(&[2, 3]))).unwrap();
        assert!((fewer.low - 10.0).abs() < 1e-6, "{fewer:?}");
        assert_eq!(Comparison::of(&sample(&one, Some(seeds)), &sample(&[200.0], Some(&[2]))), None);
        // Worked: differences 1, 2, 3 of means 2 and 0: s = 1, half width 4.303/sqrt(3) = 2.484.
        let more = Comparison::of(&sample(&[1.0, 2.0, 3.0], Some(seeds)), &sample(&[0.0; 3], Some(seeds))).unwrap();
        assert_eq!((more.pct, more.low), (f64::INFINITY, f64::NEG_INFINITY));
    }

    #[test]
    fn a_worked_difference() {
        // Means 2 and 0, deviations 1 and 0, three runs each: 2 degrees of freedom, t = 4.303, half width 2.484.
        let (a, b) = (estimate(&[1.0, 2.0, 3.0], 0.95), estimate(&[0.0; 3], 0.95));
        assert!((difference(&a, &b, 0.95) - 2.484).abs() < 1e-3);
    }
}

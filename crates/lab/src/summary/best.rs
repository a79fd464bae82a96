//! Choice of the best among several candidates, if one can be called best.

use super::{LEAST, LEVEL};
use crate::statistics::{Estimate, estimate, paired_p};
use std::collections::BTreeMap;

/// A candidate: a transport, a variant, a line of a plot.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Candidate {
    /// Values by seed. A value is infinite for "none" and NaN if it was not measured.
    pub values: BTreeMap<u64, f64>,
    /// True if a flow was starved in one of its runs.
    pub starves: bool,
}

impl Candidate {
    /// Mean of the values. Infinite if a value is infinite; NaN if a value is not known or there
    /// are no values.
    pub fn mean(&self) -> f64 {
        self.values.values().sum::<f64>() / self.values.len() as f64
    }
}

/// Index of the best candidate: the one with the best mean. `None` if that candidate starves a
/// flow, if a mean is not known, or if it is not clearly better than every other one. It is not
/// clearly better if both means look the same as `shown`, or if the interval of the difference
/// contains zero ([`is_clear`]). With too few pairs of runs for an interval, the means decide.
pub fn best(candidates: &[Candidate], more_is_better: bool, shown: impl Fn(f64) -> String) -> Option<usize> {
    let takes_part = |number: &usize| candidates[*number].values.values().any(|value| !value.is_nan());
    let all: Vec<(usize, f64)> =
        (0..candidates.len()).filter(takes_part).map(|number| (number, candidates[number].mean())).collect();
    // The mean of a candidate that was not measured in all its runs is not known, so no candidate
    // can be shown to be better than it.
    if all.len() < 2 || all.iter().any(|(_, mean)| mean.is_nan()) {
        return None;
    }
    let rank = |mean: f64| if more_is_better { -mean } else { mean };
    let &(first, most) = all.iter().min_by(|a, b| rank(a.1).total_cmp(&rank(b.1)))?;
    let beats = |&(other, mean): &(usize, f64)| {
        other == first
            || mean.is_infinite()
            || shown(most) != shown(mean)
                && is_clear(&candidates[first].values, &candidates[other].values) != Some(false)
    };
    (most.is_finite() && all.iter().all(beats) && !candidates[first].starves).then_some(first)
}

/// True if two sets of values differ by more than chance: the 95 % interval of the difference, over
/// pairs of equal seeds, excludes zero. `None` with fewer than three pairs.
pub fn is_clear(a: &BTreeMap<u64, f64>, b: &BTreeMap<u64, f64>) -> Option<bool> {
    differences(a, b).map(|found| found.mean.abs() > found.half_width)
}

/// The p-value of the test of [`is_clear`]. NaN if one of the values is infinite.
pub fn p_of_pairs(a: &BTreeMap<u64, f64>, b: &BTreeMap<u64, f64>) -> Option<f64> {
    differences(a, b).map(|found| paired_p(&found))
}

fn differences(a: &BTreeMap<u64, f64>, b: &BTreeMap<u64, f64>) -> Option<Estimate> {
    let differences: Vec<f64> = a.iter().filter_map(|(seed, a)| b.get(seed).map(|b| a - b)).collect();
    (differences.len() >= LEAST).then(|| estimate(&differences, LEVEL))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(values: &[f64], starves: bool) -> Candidate {
        Candidate { values: (1..).zip(values.iter().copied()).collect(), starves }
    }

    fn most(candidates: &[Candidate]) -> Option<usize> {
        best(candidates, true, |value| format!("{value:.1}"))
    }

    #[test]
    fn the_best_is_clear_of_all_others() {
        let (low, high) = (candidate(&[1.0, 5.0, 9.0], false), candidate(&[2.0, 6.0, 10.0], false));
        assert_eq!(most(&[low.clone(), high.clone()]), Some(1), "in pairs, whatever the seeds do");
        assert_eq!(best(&[low.clone(), high.clone()], false, |value| value.to_string()), Some(0));
        assert_eq!(most(&[low.clone(), high.clone(), high.clone()]), None, "a tie");
        assert_eq!(most(&[low.clone(), candidate(&[0.0, 7.0, 11.0], false)]), None, "chance");
        assert_eq!(most(&[low]), None, "nobody to be better than");
    }

    #[test]
    fn what_looks_the_same_ties() {
        let near = [candidate(&[1.01, 1.01, 1.01], false), candidate(&[1.02, 1.02, 1.02], false)];
        assert_eq!(most(&near), None);
        assert_eq!(best(&near, true, |value| format!("{value:.2}")), Some(1));
        // One seed has no interval: what is shown decides.
        assert_eq!(most(&[candidate(&[1.0], false), candidate(&[2.0], false)]), Some(1));
        assert_eq!(most(&[candidate(&[1.01], false), candidate(&[1.02], false)]), None);
    }

    #[test]
    fn who_starves_a_flow_is_not_best_and_leaves_the_place_empty() {
        let (honest, greedy) = (candidate(&[1.0, 2.0, 3.0], false), candidate(&[11.0, 12.0, 13.0], true));
        assert_eq!(most(&[honest.clone(), greedy]), None);
        let none = candidate(&[0.1, f64::INFINITY, 0.1], true);
        assert_eq!(
            best(&[honest.clone(), none.clone()], false, |value| value.to_string()),
            Some(0),
            "above any number"
        );
        assert_eq!(best(&[none.clone(), none], false, |value| value.to_string()), None);
        assert_eq!(
            most(&[honest, candidate(&[0.0, 1.0, 2.0], true)]),
            Some(0),
            "that the last starves does not matter"
        );
    }

    #[test]
    fn what_was_measured_in_some_runs_only_is_not_best_and_lets_nobody_be() {
        let (whole, partly) = (candidate(&[5.0, 6.0, 7.0], false), candidate(&[9.0, f64::NAN, f64::NAN], false));
        assert_eq!(most(&[whole.clone(), partly]), None);
        // What is nowhere measured takes no part.
        assert_eq!(
            most(&[whole.clone(), candidate(&[1.0, 2.0, 3.0], false), candidate(&[f64::NAN; 3], false)]),
            Some(0)
        );
    }
}

//! Which of several candidates is called best, if one can be.

use super::{LEAST, LEVEL};
use crate::statistics::{Estimate, estimate, paired_p};
use std::collections::BTreeMap;

/// A candidate for the best: a transport, a variant, a line of a plot.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Candidate {
    /// Its values by seed: infinite for "none", NaN where nothing was measured.
    pub values: BTreeMap<u64, f64>,
    /// True if some flow was starved in one of its runs.
    pub starves: bool,
}

impl Candidate {
    /// The mean of its values; infinite if one is, NaN if one is not known or there is none.
    pub fn mean(&self) -> f64 {
        self.values.values().sum::<f64>() / self.values.len() as f64
    }
}

/// The number of the best candidate. None is, if the one with the best mean starves a flow, was not measured in all of its runs, or is not clear of
/// every other: where both look the same as `shown`, or the interval of the difference has a zero in it ([`is_clear`]).
pub fn best(candidates: &[Candidate], more_is_better: bool, shown: impl Fn(f64) -> String) -> Option<usize> {
    let takes_part = |number: &usize| candidates[*number].values.values().any(|value| !value.is_nan());
    let all: Vec<(usize, f64)> =
        (0..candidates.len()).filter(takes_part).map(|number| (number, candidates[number].mean())).collect();
    // Of one that was not measured in all its runs the mean is not known, so nobody can be shown to be better.
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

/// True if two sets of values differ by more than chance: the 95 % interval of the difference, in pairs of equal seeds, has no zero in it. None with
/// fewer than three pairs.
pub fn is_clear(a: &BTreeMap<u64, f64>, b: &BTreeMap<u64, f64>) -> Option<bool> {
    differences(a, b).map(|found| found.mean.abs() > found.half_width)
}

/// The p-value of the same test; NaN where one of the values is infinite.
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

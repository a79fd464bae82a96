//! Rankings: variants in the order of their means.

use super::{Counts, Metric, Numbered, by_seed, compared};
use crate::record::excerpt::Excerpt;
use crate::statistics::holm;
use crate::summary::{self, LEVEL, Mean};
use std::collections::BTreeMap;

/// A place in a ranking.
#[derive(Clone, PartialEq, Debug)]
pub struct Rank {
    /// The transports of the flows, or whatever else is ranked.
    pub name: String,
    /// The mean over the runs.
    pub mean: Mean,
    /// True if there is no clear difference from the one before it, after the correction for all metrics.
    pub ties: bool,
    /// Runs in which a flow was starved, and all runs.
    pub starved: (usize, usize),
}

impl Rank {
    /// Sign before the name. A variant that starves a flow in some run has "✗" and no place. Others
    /// have their place, which is one more than `index`. "=" says that the variant does not clearly
    /// differ from the one before it.
    pub fn sign(&self, index: usize) -> String {
        match (self.ties, self.starved.0 > 0) {
            (true, true) => "= ✗".to_owned(),
            (true, false) => "=".to_owned(),
            (false, true) => "✗".to_owned(),
            (false, false) => format!("{}.", index + 1),
        }
    }
}

/// The transports in all of `runs`, those with the best mean first, for each metric that says something and tells them apart. Those that starve a
/// flow come after those that do not.
pub fn ranking(runs: &[&Excerpt]) -> Vec<(&'static Metric, Vec<Rank>)> {
    let mut groups: BTreeMap<String, Vec<&Excerpt>> = BTreeMap::new();
    for run in runs {
        groups.entry(run.transports()).or_default().push(*run);
    }
    ranking_of(&groups.into_iter().collect::<Vec<_>>())
}

/// The same of groups of runs that have these names.
pub fn ranking_of(groups: &[(String, Vec<&Excerpt>)]) -> Vec<(&'static Metric, Vec<Rank>)> {
    if groups.len() < 2 {
        return Vec::new();
    }
    let mut found: Vec<(Numbered, Vec<Rank>)> = Vec::new();
    // For each metric, the p-values of the differences from the one before.
    let mut p_values: Vec<Vec<Option<f64>>> = Vec::new();
    for (number, metric) in compared().enumerate() {
        let metric = Numbered { number, metric };
        let ranked = ranked(metric, groups);
        if ranked.len() > 1 {
            p_values.push(ranked.windows(2).map(|pair| summary::p_of_pairs(&pair[0].0, &pair[1].0)).collect());
            found.push((metric, ranked.into_iter().map(|(_, rank)| rank).collect()));
        }
    }
    for number in 1..groups.len() {
        let ps: Vec<Option<f64>> = p_values.iter().map(|ps| ps.get(number - 1).copied().flatten()).collect();
        let known: Vec<f64> = ps.iter().copied().flatten().filter(|p| !p.is_nan()).collect();
        let mut corrected = holm(&known).into_iter();
        for ((_, ranks), p) in found.iter_mut().zip(ps) {
            let is_clear = match p {
                // Too few runs for a test.
                None => true,
                // What is none in both is the same.
                Some(p) if p.is_nan() => false,
                Some(_) => corrected.next().is_some_and(|p| p <= 1.0 - LEVEL),
            };
            if let Some(rank) = ranks.get_mut(number) {
                rank.ties = !is_clear || rank.mean.mean().is_infinite();
            }
        }
    }
    let all = || groups.iter().flat_map(|group| &group.1);
    let is_silent = all().any(|run| run.has_silence());
    let says_something = |Numbered { number, metric }: Numbered| {
        !metric.is_fact && (is_silent || !metric.is_of_silence) && all().all(|run| run.says(number))
    };
    found.retain(|(metric, _)| says_something(*metric));
    found.into_iter().map(|(Numbered { metric, .. }, ranks)| (metric, ranks)).collect()
}

/// The groups in the order of one metric, each with its values by seed.
fn ranked(
    Numbered { number, metric }: Numbered,
    groups: &[(String, Vec<&Excerpt>)],
) -> Vec<(BTreeMap<u64, f64>, Rank)> {
    let one = |(name, runs): &(String, Vec<&Excerpt>)| {
        let values = by_seed(number, runs);
        let counts = Counts::of(number, runs);
        let mean = Mean::of(&values.values().copied().collect::<Vec<_>>())?;
        let starved = (counts.starved_runs, counts.runs);
        Some((values, Rank { name: name.clone(), mean, ties: false, starved }))
    };
    let mut ranks: Vec<_> = groups.iter().filter_map(one).collect();
    let sign = if metric.more_is_better { -1.0 } else { 1.0 };
    let place = |rank: &Rank| sign * rank.mean.mean();
    ranks.sort_by(|(_, a), (_, b)| {
        (a.starved.0 > 0).cmp(&(b.starved.0 > 0)).then_with(|| place(a).total_cmp(&place(b)))
    });
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_of_a_variant_says_both_that_it_starves_and_that_it_does_not_differ() {
        let rank = |ties, starved| {
            let mean = Mean::of(&[1.0, 2.0]).unwrap();
            Rank { name: "cubic".to_owned(), mean, ties, starved: (starved, 20) }
        };
        let signs = [(false, 0), (true, 0), (false, 3), (true, 3)].map(|(ties, starved)| rank(ties, starved).sign(1));
        assert_eq!(signs, ["2.", "=", "✗", "= ✗"]);
    }
}

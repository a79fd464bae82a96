//! Two sets of records against each other: for each metric the difference of the second from the first, seed by seed where both
//! have the same seeds and the same points.

use crate::record::Record;
use crate::record::excerpt::{Excerpt, Excerpts};
use crate::record::metrics::STARVED;
pub use crate::record::metrics::{Metric, compared, metric};
mod points;
mod ranking;
mod silent;
mod table;
mod words;

pub use points::{AtPoint, at_points, disagreeing, over, place};
pub use ranking::{Rank, ranking, ranking_of};
use silent::silent_flows;
pub use silent::{FlowLine, head as silent_head};
pub use table::{LEGEND, MOST_ROWS, Table, table};
pub use words::{Sentences, amount, cell, mean, words};

use crate::statistics::{all_or_none_p, difference, estimate, holm, paired_p, welch_p};
pub use crate::summary::LEAST;
use crate::summary::LEVEL;
use crate::summary::mean as mean_of;
use crate::variants::swept;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The better side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// Result of one metric.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// Its name.
    pub metric: &'static str,
    /// The mean of the first.
    pub a: f64,
    /// The mean of the second.
    pub b: f64,
    /// Difference, second less first.
    pub difference: f64,
    /// The ends of the 95 % interval of the difference; none with fewer than three runs on a side.
    pub interval: Option<[f64; 2]>,
    /// Seeds that were compared, or runs of the side with fewer of them.
    pub seeds: usize,
    /// The better side by this metric alone, if the interval says so.
    pub better: Option<Side>,
    /// True if runs of the same seed were compared with each other.
    pub paired: bool,
    /// Of the seeds, those in which the second is better.
    pub b_wins: usize,
    /// Counts of the runs of both sides.
    pub counts: [Counts; 2],
    /// Two-sided p-value of the test that the interval belongs to. Where one side has no value in any
    /// run and the other has one in every run, it is that of Barnard's test. `None` without either.
    pub p: Option<f64>,
    /// The p-value after Holm's correction for all metrics of this comparison at this point.
    pub p_holm: Option<f64>,
    /// The better side, if it is still clear after that correction. Sentences for people say this.
    pub better_in_family: Option<Side>,
    /// The same metric at each point of the keys that are swept, if there are several points. All other
    /// fields of this line are then of the means over the points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<AtPoint>,
    /// Hash of the fingerprints of all runs of both sides; `None` if a run has none.
    #[serde(skip)]
    pub runs: Option<u64>,
    /// True if it is shown to people: Jain's index of files beside other traffic is not.
    #[serde(skip)]
    pub is_shown: bool,
    /// The flows that were silent on a side; only of the share of starved flows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowLine>,
}

impl Line {
    /// The better side, if it starves no flow. [`Line::better`] is one that starves flows where both do.
    pub fn better_for_all(&self) -> Option<Side> {
        self.better.filter(|side| self.feeds_all(*side))
    }

    /// The same after the correction for all metrics of the comparison.
    pub fn better_for_all_in_family(&self) -> Option<Side> {
        self.better_in_family.filter(|side| self.feeds_all(*side))
    }

    fn feeds_all(&self, side: Side) -> bool {
        self.counts[side as usize].starved_runs == 0
    }

    /// The side that is clearly ahead, even if it starves a flow or was not measured in all runs.
    pub fn ahead(&self) -> Option<Side> {
        let metric = metric(self.metric)?;
        ahead(self.interval, self.counts, self.seeds, metric.more_is_better)
    }

    /// The same after the correction for all metrics of the comparison.
    pub fn ahead_in_family(&self) -> Option<Side> {
        self.ahead().filter(|_| self.is_clear_in_family())
    }

    fn is_clear_in_family(&self) -> bool {
        self.p_holm.is_some_and(|p| p <= 1.0 - LEVEL)
    }
}

/// Corrects the p-values of the metrics of one comparison at one point for their number.
fn correct(lines: &mut [Line]) {
    let values: Vec<f64> = lines.iter().filter_map(|line| line.p).collect();
    let tested = lines.iter_mut().filter(|line| line.p.is_some());
    for (line, corrected) in tested.zip(holm(&values)) {
        line.p_holm = Some(corrected);
        line.better_in_family = line.better.filter(|_| line.is_clear_in_family());
    }
}

/// Counts of the runs of a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Their number.
    pub runs: usize,
    /// Those in which a flow was starved.
    pub starved_runs: usize,
    /// Those in which no path connected the ends of a flow at any time.
    pub without_path: usize,
    /// Those in which the metric is none that a number could stand for.
    pub none: usize,
    /// Those in which it was not measured.
    pub missing: usize,
}

impl Counts {
    /// Of the metric that has this number among those of the excerpts.
    fn of(metric: usize, runs: &[&Excerpt]) -> Counts {
        let values = || runs.iter().map(|run| run.value(metric));
        Counts {
            runs: runs.len(),
            starved_runs: runs.iter().filter(|run| run.starves()).count(),
            without_path: runs.iter().filter(|run| run.lacks_path).count(),
            none: values().flatten().filter(|value| value.is_infinite()).count(),
            missing: values().filter(Option::is_none).count(),
        }
    }
}

/// Compares `b` with `a`, metric by metric; those that either side has not measured are left out. A side that starves a flow in any run is not
/// called better than one that starves none, but for metrics of starvation; none is where the metric was not measured in all runs of both; and
/// a side is not where flows have no path in more runs than on the other.
/// Where records sweep keys, each line is of the means over the points, and has a line of its own for each point.
///
/// # Errors
/// If the two have no points in common, with what they have instead.
pub fn compare(a: &[Record], b: &[Record]) -> Result<Vec<Line>, String> {
    compare_by(&compared().collect::<Vec<_>>(), a, b)
}

/// The same in the metrics of these names only: they are the family whose p-values are corrected.
///
/// # Errors
/// As for [`compare`].
pub fn compare_in(names: &[&str], a: &[Record], b: &[Record]) -> Result<Vec<Line>, String> {
    compare_by(&compared().filter(|metric| names.contains(&metric.name)).collect::<Vec<_>>(), a, b)
}

fn compare_by(metrics: &[&'static Metric], a: &[Record], b: &[Record]) -> Result<Vec<Line>, String> {
    let mut excerpts = Excerpts::with(metrics);
    let [a, b] = [a, b].map(|side| side.iter().map(|record| excerpts.of(record)).collect::<Vec<_>>());
    compare_runs(metrics, &a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>())
}

/// The same of excerpts with the metrics that [`compare`] compares.
///
/// # Errors
/// As for [`compare`].
pub fn compare_excerpts(a: &[&Excerpt], b: &[&Excerpt]) -> Result<Vec<Line>, String> {
    compare_runs(&compared().collect::<Vec<_>>(), a, b)
}

/// The same of excerpts with these metrics.
fn compare_runs(metrics: &[&'static Metric], a: &[&Excerpt], b: &[&Excerpt]) -> Result<Vec<Line>, String> {
    // A key that has one value on each side says what the side is: newreno here, tcp-ap there.
    let keys: BTreeSet<&str> = keys(a).chain(keys(b)).collect();
    let (one, other) = (points::by_point(a, &keys), points::by_point(b, &keys));
    let common: Vec<&String> = one.order.iter().filter(|point| other.of.contains_key(*point)).collect();
    if common.is_empty() {
        let shown = |points: &points::ByPoint<'_>| points.of.keys().next().cloned().unwrap_or_default();
        return Err(format!(
            "the two sides sweep different values: one has the point {}, the other {}; give both the same [sweep], or use --set on one scenario",
            shown(&one),
            shown(&other)
        ));
    }
    let runs = |point: usize| [&one, &other].map(|side| side.runs(point, common[point]));
    let [a, b] = [&one, &other].map(|side| -> Vec<Run<'_>> {
        common.iter().enumerate().flat_map(|(point, name)| side.runs(point, name)).collect()
    });
    // What was measured in real time has seeds, but they repeat nothing.
    let is_paired = a.iter().chain(&b).all(|run| run.of.is_simulated);
    let mut lines = family(metrics, &a, &b, is_paired);
    if common.len() > 1 {
        for point in 0..common.len() {
            let [a, b] = runs(point);
            let values = points::values(a[0].of, &keys);
            points::attach(&mut lines, &values, family(metrics, &a, &b, is_paired));
        }
        lines.iter_mut().for_each(|line| line.points.shrink_to_fit());
    }
    Ok(lines)
}

/// A run of a side.
#[derive(Clone, Copy)]
struct Run<'a> {
    /// Number of its point among those that both sides have.
    point: usize,
    of: &'a Excerpt,
}

/// The lines of these runs, which are one family: their p-values are corrected together.
fn family(metrics: &[&'static Metric], a: &[Run<'_>], b: &[Run<'_>], is_paired: bool) -> Vec<Line> {
    let runs = hash_of_runs(a, b);
    let line = |(number, metric): (usize, &&'static Metric)| {
        Some(Line { runs, ..line(Numbered { number, metric }, a, b, is_paired)? })
    };
    let mut lines: Vec<Line> = metrics.iter().enumerate().filter_map(line).collect();
    correct(&mut lines);
    lines
}

/// Hash of the fingerprints of the runs of both sides, whatever their order; `None` if a run has none.
fn hash_of_runs(a: &[Run<'_>], b: &[Run<'_>]) -> Option<u64> {
    let key = |side: usize| move |run: &Run<'_>| (side, run.point, run.of.seed, run.of.fingerprint);
    let mut runs: Vec<_> = a.iter().map(key(0)).chain(b.iter().map(key(1))).collect();
    if runs.iter().any(|(.., fingerprint)| fingerprint.is_none()) {
        return None;
    }
    runs.sort_unstable();
    let mut hasher = DefaultHasher::new();
    runs.hash(&mut hasher);
    Some(hasher.finish())
}

/// A metric with its number among those of the excerpts.
#[derive(Clone, Copy)]
struct Numbered {
    number: usize,
    metric: &'static Metric,
}

/// The keys of which runs have two values or more.
fn keys<'a>(runs: &[&'a Excerpt]) -> impl Iterator<Item = &'a str> {
    swept(&runs.iter().map(|run| &*run.point).collect::<Vec<_>>()).into_iter()
}

/// The mean over the points, by seed: infinite where it is none.
fn by_seed(metric: usize, runs: &[&Excerpt]) -> BTreeMap<u64, f64> {
    means(runs.iter().filter_map(|run| Some((run.seed, run.value(metric)?))))
}

/// The same of both sides, over the runs whose point and seed both sides have measured.
fn by_common_seed(metric: usize, a: &[Run<'_>], b: &[Run<'_>]) -> Vec<(f64, f64)> {
    let values = |runs: &[Run<'_>]| -> BTreeMap<(u64, usize), f64> {
        runs.iter().filter_map(|run| Some(((run.of.seed, run.point), run.of.value(metric)?))).collect()
    };
    let (a, b) = (values(a), values(b));
    let common = |own: &BTreeMap<(u64, usize), f64>, other: &BTreeMap<(u64, usize), f64>| {
        let both = own.iter().filter(|(run, _)| other.contains_key(run));
        means(both.map(|((seed, _), value)| (*seed, *value)))
    };
    common(&a, &b).into_values().zip(common(&b, &a).into_values()).collect()
}

/// The mean of the values of each seed.
fn means(values: impl Iterator<Item = (u64, f64)>) -> BTreeMap<u64, f64> {
    let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for (seed, value) in values {
        let sum = sums.entry(seed).or_default();
        *sum = (sum.0 + value, sum.1 + 1.0);
    }
    sums.into_iter().map(|(seed, (sum, count))| (seed, sum / count)).collect()
}

fn line(Numbered { number, metric }: Numbered, a: &[Run<'_>], b: &[Run<'_>], is_paired: bool) -> Option<Line> {
    let [of_a, of_b] = [a, b].map(|runs| runs.iter().map(|run| run.of).collect::<Vec<&Excerpt>>());
    let counts = [&of_a, &of_b].map(|runs| Counts::of(number, runs));
    let all = || of_a.iter().chain(&of_b);
    let is_there = || all().any(|run| run.has_silence() && run.value(number).is_some_and(|value| value > 0.0));
    let is_told = all().all(|run| run.says(number)) && !metric.is_fact;
    let is_shown = is_told && (!metric.is_of_silence || is_there());
    let flows = if metric.name == STARVED { silent_flows(&of_a, &of_b, is_paired) } else { Vec::new() };
    let pairs = if is_paired { by_common_seed(number, a, b) } else { Vec::new() };
    let paired = !pairs.is_empty();
    let (a, b): (Vec<f64>, Vec<f64>) = if paired {
        pairs.iter().copied().unzip()
    } else {
        let values = |runs: &[&Excerpt]| by_seed(number, runs).into_values().collect();
        (values(&of_a), values(&of_b))
    };
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let (half, p) = if paired {
        let differences = estimate(&pairs.iter().map(|(a, b)| b - a).collect::<Vec<_>>(), LEVEL);
        (differences.half_width, paired_p(&differences))
    } else {
        let (a, b) = (estimate(&a, LEVEL), estimate(&b, LEVEL));
        (difference(&a, &b, LEVEL), welch_p(&a, &b))
    };
    let seeds = a.len().min(b.len());
    let difference = mean_of(&b) - mean_of(&a);
    let interval = (seeds >= LEAST && half.is_finite()).then_some([difference - half, difference + half]);
    let ahead = ahead(interval, counts, seeds, metric.more_is_better);
    let p = if interval.is_some() { Some(p) } else { ahead.map(|_| all_or_none_p(seeds)) };
    let may_starve = metric.is_of_silence || counts.iter().all(|of| of.starved_runs > 0);
    let is_fair =
        |side: &Side| (may_starve || counts[*side as usize].starved_runs == 0) && !lacks_more_paths(counts, *side);
    let better = ahead.filter(|side| !metric.is_fact && is_fair(side) && counts.iter().all(|of| of.missing == 0));
    let wins = |(a, b): &&(f64, f64)| if metric.more_is_better { b > a } else { b < a };
    let b_wins = if paired { pairs.iter().filter(wins).count() } else { 0 };
    let (a, b) = (mean_of(&a), mean_of(&b));
    Some(Line {
        metric: metric.name,
        a,
        b,
        difference,
        interval,
        seeds,
        better,
        paired,
        b_wins,
        counts,
        p,
        p_holm: None,
        better_in_family: None,
        points: Vec::new(),
        runs: None,
        is_shown,
        flows,
    })
}

/// True if flows of a side have no path in more runs than those of the other.
fn lacks_more_paths(counts: [Counts; 2], side: Side) -> bool {
    counts[side as usize].without_path > counts[1 - side as usize].without_path
}

/// The side that is clearly ahead, even if it starves a flow: by the interval of the difference; or where one has no value in any run and the other has one in
/// every run.
fn ahead(interval: Option<[f64; 2]>, counts: [Counts; 2], seeds: usize, more_is_better: bool) -> Option<Side> {
    if let Some([low, high]) = interval {
        let is_clear = low > 0.0 || high < 0.0;
        return is_clear.then_some(if (low > 0.0) == more_is_better { Side::B } else { Side::A });
    }
    match counts.map(|of| (of.none == of.runs, of.none == 0)) {
        _ if seeds < LEAST => None,
        [(true, _), (_, true)] => Some(Side::B),
        [(_, true), (true, _)] => Some(Side::A),
        _ => None,
    }
}

#[cfg(test)]
mod family_tests;
#[cfg(test)]
mod tests;

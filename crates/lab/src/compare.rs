//! Two sets of records against each other: for each metric the difference of the second from the first, seed by seed where both
//! have the same seeds and the same points.

use crate::record::metrics::STARVED;
pub use crate::record::metrics::{Metric, compared, metric};
use crate::record::{Record, starvation};
mod silent;

pub use silent::FlowLine;
use silent::silent_flows;

use crate::statistics::{difference, estimate};
pub use crate::summary::LEAST;
use crate::summary::LEVEL;
use crate::summary::{self, Mean};
use crate::variants::swept;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

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
    /// The better side, if the interval says so.
    pub better: Option<Side>,
    /// True if runs of the same seed were compared with each other.
    pub paired: bool,
    /// Of the seeds, those in which the second is better.
    pub b_wins: usize,
    /// Counts of the runs of both sides.
    pub counts: [Counts; 2],
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
        self.better.filter(|side| self.counts[*side as usize].starved_runs == 0)
    }

    /// The side that is clearly ahead, even if it starves a flow or was not measured in all runs.
    pub fn ahead(&self) -> Option<Side> {
        let metric = metric(self.metric)?;
        ahead(self.interval, self.counts, self.seeds, metric.more_is_better)
    }
}

/// Counts of the runs of a side.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Their number.
    pub runs: usize,
    /// Those in which a flow was starved.
    pub starved_runs: usize,
    /// Those in which the metric is none that a number could stand for.
    pub none: usize,
    /// Those in which it was not measured.
    pub missing: usize,
}

impl Counts {
    fn of(metric: &Metric, records: &[&Record]) -> Counts {
        let values = || records.iter().map(|record| (metric.of)(record).unwrap_or(f64::NAN));
        Counts {
            runs: records.len(),
            starved_runs: records.iter().filter(|record| starvation::starves(record)).count(),
            none: values().filter(|value| value.is_infinite()).count(),
            missing: values().filter(|value| value.is_nan()).count(),
        }
    }
}

/// Compares `b` with `a`, metric by metric; those that either side has not measured are left out. A side that starves a flow in any run is not
/// called better than one that starves none, but for metrics of starvation; and none is where the metric was not measured in all runs of both.
///
/// # Errors
/// If the two have no points in common, with what they have instead.
pub fn compare(a: &[Record], b: &[Record]) -> Result<Vec<Line>, String> {
    compare_by(compared(), a, b)
}

/// The same in these metrics.
fn compare_by(metrics: impl Iterator<Item = &'static Metric>, a: &[Record], b: &[Record]) -> Result<Vec<Line>, String> {
    // A key that has one value on each side says what the side is: newreno here, tcp-ap there.
    let keys: BTreeSet<&str> = keys(a).chain(keys(b)).collect();
    let point = |record: &Record| point(&record.point, &keys);
    let points = |records: &[Record]| records.iter().map(point).collect::<BTreeSet<String>>();
    let (one, other) = (points(a), points(b));
    let common: BTreeSet<&String> = one.intersection(&other).collect();
    if common.is_empty() {
        let shown = |points: &BTreeSet<String>| points.iter().next().cloned().unwrap_or_default();
        return Err(format!(
            "the two sweep different values: one has the point {}, the other {}; give both the same [sweep], or use --set on one scenario",
            shown(&one),
            shown(&other)
        ));
    }
    let has = |record: &&Record| common.contains(&point(record));
    let (a, b): (Vec<&Record>, Vec<&Record>) = (a.iter().filter(has).collect(), b.iter().filter(has).collect());
    // What was measured in real time has seeds, but they repeat nothing.
    let is_simulated = |record: &&Record| record.real_time.is_none() && !record.fingerprint.is_empty();
    let is_paired = a.iter().all(is_simulated) && b.iter().all(is_simulated);
    Ok(metrics.filter_map(|metric| line(metric, &a, &b, is_paired)).collect())
}

/// The keys of which records have two values or more.
fn keys(records: &[Record]) -> impl Iterator<Item = &str> {
    swept(&records.iter().map(|record| &record.point).collect::<Vec<_>>()).into_iter()
}

/// The values that a point has for `keys`.
fn point(point: &Map<String, Value>, keys: &BTreeSet<&str>) -> String {
    let value = |key: &&str| Some(format!("{key} = {}", point.get(*key)?));
    keys.iter().filter_map(value).collect::<Vec<_>>().join(", ")
}

/// The mean over the points, by seed: infinite where it is none.
fn by_seed(metric: &Metric, records: &[&Record]) -> BTreeMap<u64, f64> {
    let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for record in records {
        if let Some(value) = (metric.of)(record).filter(|value| !value.is_nan()) {
            let sum = sums.entry(record.seed).or_default();
            *sum = (sum.0 + value, sum.1 + 1.0);
        }
    }
    sums.into_iter().map(|(seed, (sum, count))| (seed, sum / count)).collect()
}

fn line(metric: &Metric, a: &[&Record], b: &[&Record], is_paired: bool) -> Option<Line> {
    let counts = [a, b].map(|records| Counts::of(metric, records));
    let all = || a.iter().chain(b);
    let is_there = || all().any(|record| record.has_silence() && (metric.of)(record).is_some_and(|value| value > 0.0));
    let is_shown = all().all(|record| (metric.says)(record)) && (!metric.is_of_silence || is_there());
    let flows = if metric.name == STARVED { silent_flows(a, b, is_paired) } else { Vec::new() };
    let (of_a, of_b) = (by_seed(metric, a), by_seed(metric, b));
    let pairs: Vec<(f64, f64)> = of_a.iter().filter_map(|(seed, a)| of_b.get(seed).map(|b| (*a, *b))).collect();
    let paired = is_paired && !pairs.is_empty();
    let (a, b): (Vec<f64>, Vec<f64>) = if paired {
        pairs.iter().copied().unzip()
    } else {
        (of_a.into_values().collect(), of_b.into_values().collect())
    };
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let half = if paired {
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
        estimate(&differences, LEVEL).half_width
    } else {
        difference(&estimate(&b, LEVEL), &estimate(&a, LEVEL), LEVEL)
    };
    let seeds = a.len().min(b.len());
    let difference = summary::mean(&b) - summary::mean(&a);
    let interval = (seeds >= LEAST && half.is_finite()).then_some([difference - half, difference + half]);
    let ahead = ahead(interval, counts, seeds, metric.more_is_better);
    let may_starve = metric.is_of_silence || counts.iter().all(|of| of.starved_runs > 0);
    let is_fair = |side: &Side| may_starve || counts[*side as usize].starved_runs == 0;
    let better = ahead.filter(|side| is_fair(side) && counts.iter().all(|of| of.missing == 0));
    let wins = |(a, b): &&(f64, f64)| if metric.more_is_better { b > a } else { b < a };
    let b_wins = if paired { pairs.iter().filter(wins).count() } else { 0 };
    let (a, b) = (summary::mean(&a), summary::mean(&b));
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
        is_shown,
        flows,
    })
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

/// The mean of the first side in words.
pub fn mean(line: &Line) -> String {
    let Some(metric) = metric(line.metric) else { return String::new() };
    let (unit, scale) = metric.unit;
    let value = scale * line.a;
    if value.is_infinite() {
        return format!("{} none", metric.noun);
    }
    let digits = digits(value.abs().max(1e-9));
    format!("{} {value:.digits$} {unit}", metric.noun).trim_end().to_owned()
}

/// Distance between the two, with the interval: "12.3 ± 4.0 kbit/s"; none where there is no interval.
pub fn amount(line: &Line) -> Option<String> {
    let metric = metric(line.metric)?;
    let [low, high] = line.interval?;
    let (unit, scale) = metric.unit;
    let digits = digits(scale * line.difference.abs().clamp(1e-9, 1e9));
    let (size, half) = (scale * line.difference.abs(), scale * (high - low) / 2.0);
    Some(format!("{size:.digits$} ± {half:.digits$} {unit}").trim_end().to_owned())
}

/// The second less the first, for a column of a table whose head has the unit: "+12.3 ± 4.0". What is said where a side has none: `none`, for both, for
/// the first and for the second.
pub fn cell(line: &Line, none: [&str; 3]) -> String {
    match line.counts.map(|of| of.none > 0) {
        [true, true] => return none[0].to_owned(),
        [true, false] => return none[1].to_owned(),
        [false, true] => return none[2].to_owned(),
        [false, false] => {}
    }
    let scale = metric(line.metric).map_or(1.0, |metric| metric.unit.1);
    let digits = if scale * line.a.abs() < 10.0 { 3 } else { 1 };
    let difference = scale * line.difference;
    match line.interval {
        Some([low, high]) => format!("{difference:+.digits$} ± {:.digits$}", scale * (high - low) / 2.0),
        None => format!("{difference:+.digits$}, too few seeds"),
    }
}

/// A line in plain words: which of `names` is better, by how much, in how many seeds.
pub fn words(line: &Line, names: [&str; 2]) -> String {
    let Some(metric) = metric(line.metric) else { return String::new() };
    let (unit, scale) = metric.unit;
    let size = if line.difference.is_finite() { line.difference } else { line.a.min(line.b) };
    let digits = digits(scale * size.abs().clamp(1e-9, 1e9));
    let number = |value: f64| {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        format!("{:.digits$}{unit}", scale * value)
    };
    let sides = [(line.a, line.counts[0]), (line.b, line.counts[1])].map(|(value, counts)| match counts {
        Counts { none, runs, .. } if none > 0 => format!("none (a flow was starved in {none} of {runs} runs)"),
        Counts { missing, runs, .. } if missing > 0 => {
            format!("{} (measured in {} of {runs} runs)", number(value), runs - missing)
        }
        _ => number(value),
    });
    let both = format!("{} for {}, {} for {}", sides[0], names[0], sides[1], names[1]);
    let (noun, praise) = (metric.noun, metric.praise);
    let ahead = ahead(line.interval, line.counts, line.seeds, metric.more_is_better);
    let half = line.interval.map(|[low, high]| (high - low) / 2.0);
    let by = half.map(|half| format!("{:.digits$} ± {}", scale * line.difference.abs(), number(half)));
    let text = match (ahead, line.better, by) {
        (_, _, None) if line.seeds < LEAST => {
            let runs = if line.seeds == 1 { "1 run".to_owned() } else { format!("{} runs", line.seeds) };
            format!("{noun}: {both}; with {runs} nothing can be said of the difference, use --seeds {LEAST} or more")
        }
        (Some(_), Some(side), None) => format!("{} is {praise} ({noun}: {both})", names[side as usize]),
        (_, _, None) => format!("{noun}: {both}"),
        (None, _, Some(by)) => format!("no clear difference in {noun}: {both} (a difference of {by})"),
        (Some(side), None, Some(by)) => {
            let why = match line.counts[side as usize].starved_runs {
                _ if line.counts.iter().any(|counts| counts.missing > 0) => {
                    "it was not measured in all runs".to_owned()
                }
                starved => {
                    format!(
                        "{} starves a flow in {starved} of {} runs",
                        names[side as usize], line.counts[side as usize].runs
                    )
                }
            };
            format!("neither is called {praise}, because {why} ({noun}: {both}, a difference of {by})")
        }
        (Some(_), Some(side), Some(by)) => {
            let winner = names[side as usize];
            let wins = if side == Side::A { line.seeds - line.b_wins } else { line.b_wins };
            let seeds = if line.paired { format!(" in {wins} of {} seeds", line.seeds) } else { String::new() };
            format!("{winner} is {praise} by {by}{seeds} ({noun}: {both})")
        }
    };
    text + &both_starve(line, names)
}

/// The fact that both sides starve flows, beside a metric of something else; nothing if one of them does not, or if a delay says it.
fn both_starve(line: &Line, names: [&str; 2]) -> String {
    let is_of_silence = metric(line.metric).is_some_and(|metric| metric.is_of_silence);
    if is_of_silence || line.counts.iter().any(|counts| counts.starved_runs == 0 || counts.none > 0) {
        return String::new();
    }
    let in_runs = |side: usize| {
        let counts = line.counts[side];
        format!("{} in {} of {} runs", names[side], counts.starved_runs, counts.runs)
    };
    format!("; both starve a flow: {}, {}", in_runs(0), in_runs(1))
}

/// Digits behind the point with which a number has three that mean something.
fn digits(value: f64) -> usize {
    (2 - value.log10().floor() as i32).clamp(0, 4) as usize
}

/// A place in a ranking.
#[derive(Clone, PartialEq, Debug)]
pub struct Rank {
    /// The transports of the flows, or whatever else is ranked.
    pub name: String,
    /// The mean over the runs.
    pub mean: Mean,
    /// True if there is no clear difference from the one before it.
    pub ties: bool,
    /// Runs in which a flow was starved, and all runs.
    pub starved: (usize, usize),
}

/// The transports in all of `records`, those with the best mean first, for each metric that says something and tells them apart. Those that starve a
/// flow come after those that do not.
pub fn ranking(records: &[&Record]) -> Vec<(&'static Metric, Vec<Rank>)> {
    let mut groups: BTreeMap<String, Vec<&Record>> = BTreeMap::new();
    for record in records {
        groups.entry(transports(record)).or_default().push(record);
    }
    ranking_of(&groups.into_iter().collect::<Vec<_>>())
}

/// The same of groups of records that have these names.
pub fn ranking_of(groups: &[(String, Vec<&Record>)]) -> Vec<(&'static Metric, Vec<Rank>)> {
    if groups.len() < 2 {
        return Vec::new();
    }
    let says_something =
        |metric: &&'static Metric| groups.iter().flat_map(|group| &group.1).all(|record| (metric.says)(record));
    let mut rankings = Vec::new();
    for metric in compared().filter(says_something) {
        let mut ranks: Vec<(BTreeMap<u64, f64>, Rank)> = groups
            .iter()
            .filter_map(|(name, records)| {
                let values = by_seed(metric, records);
                let counts = Counts::of(metric, records);
                let mean = Mean::of(&values.values().copied().collect::<Vec<_>>())?;
                let starved = (counts.starved_runs, counts.runs);
                Some((values, Rank { name: name.clone(), mean, ties: false, starved }))
            })
            .collect();
        let sign = if metric.more_is_better { -1.0 } else { 1.0 };
        let place = |rank: &Rank| sign * rank.mean.mean();
        ranks.sort_by(|(_, a), (_, b)| {
            (a.starved.0 > 0).cmp(&(b.starved.0 > 0)).then_with(|| place(a).total_cmp(&place(b)))
        });
        for number in 1..ranks.len() {
            let [(before, _), (values, rank)] = &ranks[number - 1..=number] else { continue };
            // What is none in both is the same.
            let is_clear = summary::is_clear(before, values).unwrap_or(true) && !rank.mean.mean().is_infinite();
            ranks[number].1.ties = !is_clear;
        }
        if ranks.len() > 1 {
            rankings.push((metric, ranks.into_iter().map(|(_, rank)| rank).collect()));
        }
    }
    rankings
}

/// The transports of a record's flows, each once.
fn transports(record: &Record) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in record.flows.iter().map(|flow| flow.transport.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::metrics::PLAIN;
    use crate::record::{CompletionRecord, FlowRecord};
    use serde_json::json;

    fn record(transport: &str, seed: u64, hops: u64, goodput: f64, jain: f64) -> Record {
        let flow = json!({"transport": transport, "timeouts": seed, "rtt_mean_s": null});
        crate::record::record(
            json!({"seed": seed, "point": {"topology.hops": hops}, "fingerprint": "f", "aggregate_goodput_bps": goodput,
                   "jain": jain, "flows": [flow, flow]}),
        )
    }

    /// Seeds differ far more from each other than the sides do.
    fn sides() -> (Vec<Record>, Vec<Record>) {
        let spread = [100.0, 300.0, 200.0, 500.0];
        let side = |name: &'static str, more: f64| {
            let each =
                spread.iter().zip(1..).map(move |(base, seed)| record(name, seed, 4, base + more + seed as f64, 0.5));
            each.collect::<Vec<_>>()
        };
        (side("newreno", 0.0), side("tcp-ap", 10.0))
    }

    #[test]
    fn runs_of_the_same_seed_are_compared_with_each_other() {
        let (a, b) = sides();
        let lines = compare(&a, &b).unwrap();
        let goodput = &lines[0];
        assert_eq!(
            (goodput.metric, goodput.seeds, goodput.b_wins, goodput.better),
            ("aggregate_goodput_bps", 4, 4, Some(Side::B))
        );
        assert!((goodput.difference - 10.0).abs() < 1e-9 && goodput.paired);
        assert!(lines.iter().all(|line| line.metric != "rtt_mean_s"), "not measured");
        let jain = lines.iter().find(|line| line.metric == "jain").unwrap();
        assert_eq!((jain.difference, jain.better), (0.0, None));
        assert!(words(goodput, ["a", "b"]).starts_with("b is faster by 0.0100"), "{}", words(goodput, ["a", "b"]));
        // The same the other way round.
        assert_eq!(compare(&b, &a).unwrap()[0].better, Some(Side::A));
    }

    #[test]
    fn a_metric_that_is_added_is_compared() {
        const ADDED: Metric = Metric {
            name: "twice_bps",
            praise: "twice as fast",
            of: |run| Some(2.0 * run.aggregate_goodput_bps),
            more_is_better: true,
            ..PLAIN
        };
        let (a, b) = sides();
        let lines = compare_by([&ADDED].into_iter(), &a, &b).unwrap();
        assert_eq!((lines[0].metric, lines[0].better), ("twice_bps", Some(Side::B)));
        assert!((lines[0].difference - 20.0).abs() < 1e-9, "{lines:?}");
    }

    #[test]
    fn what_was_measured_in_real_time_is_never_paired() {
        let (a, mut b) = sides();
        for record in &mut b {
            record.real_time = Some(json!({}));
        }
        let goodput = &compare(&a, &b).unwrap()[0];
        assert!(!goodput.paired && goodput.better.is_none(), "the spread of the seeds hides it: {goodput:?}");
    }

    #[test]
    fn two_seeds_have_no_interval_and_nothing_in_common_is_refused() {
        let (a, b) = sides();
        let goodput = &compare(&a[..2], &b[..2]).unwrap()[0];
        assert_eq!((goodput.interval, goodput.better, goodput.seeds), (None, None, 2));
        assert!(words(goodput, ["a", "b"]).contains("--seeds 3"));
        let mut far = b.clone();
        far.push(record("tcp-ap", 1, 8, 1.0, 1.0));
        far.iter_mut()
            .take(4)
            .for_each(|record| record.point = Map::from_iter([("topology.hops".to_owned(), json!(6))]));
        assert!(compare(&a, &far).unwrap_err().contains("different values"));
    }

    #[test]
    fn keys_that_do_not_vary_within_a_side_do_not_part_the_points() {
        let with = |transport: &str, hops: &[u64]| -> Vec<Record> {
            let runs = hops.iter().flat_map(|hops| (1..=3).map(move |seed| (*hops, seed)));
            let one = |(hops, seed): (u64, u64)| {
                let mut record = record(transport, seed, hops, 100.0 * hops as f64, 0.5);
                let point = [("topology.hops", json!(hops)), ("flow.transport", json!(transport))];
                record.point = point.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                record
            };
            runs.map(one).collect()
        };
        // Sides that were selected from one sweep over transports and hops: the 2 hops that only one of them has count on neither.
        let lines = compare(&with("newreno", &[2, 4, 7]), &with("tcp-ap", &[4, 7])).unwrap();
        assert_eq!((lines[0].a, lines[0].b, lines[0].seeds), (550.0, 550.0, 3));
        assert!(compare(&with("newreno", &[2, 4]), &with("tcp-ap", &[5, 7])).unwrap_err().contains("different values"));
    }

    #[test]
    fn transports_are_ranked_by_each_metric() {
        let (mut all, b) = sides();
        all.extend(b);
        let records: Vec<&Record> = all.iter().collect();
        let rankings = ranking(&records);
        assert_eq!(rankings[0].1[0].name, "tcp-ap");
        assert!(rankings[0].1[0].mean.numbers.half_width > 0.0 && rankings[0].1[0].starved == (0, 4));
    }

    /// Sides as before, of which the second starves its second flow in `starved` runs, and has a delay for the first.
    fn starving(starved: usize) -> (Vec<Record>, Vec<Record>) {
        let (mut a, mut b) = sides();
        let flow = |bytes: u64| FlowRecord {
            transport: "t".to_owned(),
            delivered_bytes: Some(bytes),
            timeouts: Some(0),
            delay_p95_s: Some(if bytes > 0 { 0.01 + bytes as f64 } else { f64::NAN }),
            ..FlowRecord::default()
        };
        a.iter_mut().for_each(|record| record.flows = vec![flow(2), flow(3)]);
        for (number, record) in b.iter_mut().enumerate() {
            record.flows = vec![flow(1), flow(u64::from(number >= starved))];
        }
        (a, b)
    }

    #[test]
    fn a_side_that_starves_a_flow_is_not_better_in_anything() {
        let (a, b) = starving(0);
        let of = |lines: &[Line], name: &str| lines.iter().find(|line| line.metric == name).cloned().unwrap();
        let lines = compare(&a, &b).unwrap();
        assert_eq!((lines[0].better, of(&lines, "delay_p95_s").better), (Some(Side::B), Some(Side::B)));
        let (a, b) = starving(1);
        let lines = compare(&a, &b).unwrap();
        assert_eq!((lines[0].better, lines[0].counts[1].starved_runs), (None, 1));
        let told = words(&lines[0], ["a", "b"]);
        assert!(told.contains("because b starves a flow in 1 of 4 runs") && !told.contains("b is faster"), "{told}");
        // One run without a delay: no number stands for it, and nobody is quicker.
        let delay = of(&lines, "delay_p95_s");
        assert_eq!((delay.better, delay.b, delay.counts[1].none), (None, f64::INFINITY, 1));
        let told = words(&delay, ["a", "b"]);
        assert!(told.contains("none (a flow was starved in 1 of 4 runs) for b") && !told.contains("inf"), "{told}");
        // No delay in any run: the other side is quicker.
        let (a, b) = starving(4);
        let delay = of(&compare(&a, &b).unwrap(), "delay_p95_s");
        assert_eq!(delay.better, Some(Side::A));
        assert!(words(&delay, ["a", "b"]).starts_with("a is quicker to deliver ("), "{}", words(&delay, ["a", "b"]));
        assert!(serde_json::to_value(&delay).unwrap()["b"].is_null());
    }

    #[test]
    fn where_both_starve_a_flow_they_are_compared_with_that_fact_beside() {
        let (a, b) = starving(1);
        let mut both = a.clone();
        both.iter_mut().for_each(|record| record.flows[1].delivered_bytes = Some(0));
        let lines = compare(&both, &b).unwrap();
        assert_eq!((lines[0].metric, lines[0].better), ("aggregate_goodput_bps", Some(Side::B)));
        let told = words(&lines[0], ["a", "b"]);
        assert!(told.starts_with("b is faster by"), "{told}");
        assert!(told.ends_with("; both starve a flow: a in 4 of 4 runs, b in 1 of 4 runs"), "{told}");
        // Flow 1 of two starves in four runs and in one: half of the flows against an eighth.
        let starved = lines.iter().find(|line| line.metric == STARVED).unwrap();
        assert_eq!((starved.a, starved.b, starved.counts[1].starved_runs), (0.5, 0.125, 1));
        assert_eq!((starved.flows.len(), starved.flows[0].a.starved_runs, starved.flows[0].b.starved_runs), (1, 4, 1));
        assert!(starved.is_shown && starved.interval.is_some());
        // Who starves one flow in every run, and who starves nobody.
        let lines = compare(&both, &a).unwrap();
        let starved = lines.iter().find(|line| line.metric == STARVED).unwrap();
        assert_eq!(starved.better, Some(Side::B), "a side that starves flows can be compared in that");
        let nobody = compare(&a, &a).unwrap();
        assert!(nobody.iter().all(|line| line.metric != STARVED || !line.is_shown), "nothing to tell");
    }

    #[test]
    fn who_starves_a_flow_is_ranked_behind_and_a_tie_is_told() {
        let (mut all, b) = starving(1);
        all.iter_mut().for_each(|record| record.flows[0].transport = "honest".to_owned());
        all.extend(b);
        let rankings = ranking(&all.iter().collect::<Vec<_>>());
        let goodput = &rankings[0].1;
        assert_eq!((goodput[0].name.as_str(), goodput[1].starved), ("honest + t", (1, 4)));
        let (metric, jain) = rankings.iter().find(|(metric, _)| metric.name == "jain").unwrap();
        assert!(jain[1].ties, "{}: both have 0.5", metric.name);
    }

    #[test]
    fn what_was_not_measured_in_all_runs_is_not_better() {
        let (a, b) = sides();
        let with = |mut side: Vec<Record>, index: [f64; 4]| {
            side.iter_mut().zip(index).for_each(|(record, index)| record.retransmission_index = index);
            side
        };
        let a = with(a, [0.1, 0.11, 0.12, 0.1]);
        let b = with(b, [0.0, 0.0, 0.0, f64::NAN]);
        let lines = compare(&a, &b).unwrap();
        let line = lines.iter().find(|line| line.metric == "retransmission_index").unwrap();
        assert_eq!((line.better, line.counts[1].missing), (None, 1), "a NaN is not the least");
        let told = words(line, ["a", "b"]);
        assert!(told.contains("measured in 3 of 4 runs") && told.starts_with("neither is called"), "{told}");
    }

    #[test]
    fn files_beside_a_transfer_have_a_time_and_no_index_for_people() {
        let (a, b) = sides();
        let mixed = |mut side: Vec<Record>, seconds: f64| {
            let files = [(1.0, 1.0 + seconds), (5.0, 99.0), (5.0, 5.1)];
            let files = files.map(|(start_s, end_s)| CompletionRecord { start_s, end_s, bytes: 0 });
            side.iter_mut().for_each(|record| record.flows[1].completions = Some(files.to_vec()));
            side
        };
        let lines = compare(&mixed(a.clone(), 2.0), &mixed(b.clone(), 1.0)).unwrap();
        let of = |name: &str| lines.iter().find(|line| line.metric == name).unwrap();
        assert!(!of("jain").is_shown && of("aggregate_goodput_bps").is_shown, "it stays in JSON");
        let files = of("completion_median_s");
        assert_eq!((files.a, files.b, files.better), (2.0, 1.0, Some(Side::B)));
        assert!(compare(&a, &b).unwrap().iter().all(|line| line.metric != "completion_median_s"));
    }
}

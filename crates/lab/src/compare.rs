//! Two sets of records against each other: for each metric the difference of the second from the first, seed by seed where both
//! have the same seeds and the same points.

use crate::statistics::{difference, estimate};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Confidence level of every interval.
const LEVEL: f64 = 0.95;
/// Runs on each side below which an interval would say nothing: Student's t for two values is 12.7.
pub const LEAST: usize = 3;

/// A quantity and how people speak of it.
#[derive(Debug)]
pub struct Metric {
    /// Its name, that of the record's field.
    pub name: &'static str,
    /// What is said of the side that has more, or less, of it, whichever is better.
    pub praise: &'static str,
    /// Its noun.
    pub noun: &'static str,
    /// What people read it in, and the factor.
    pub unit: (&'static str, f64),
    /// Whether more of it is better.
    pub more_is_better: bool,
    of: fn(&Value) -> Option<f64>,
}

/// What is compared.
pub const METRICS: [Metric; 8] = [
    Metric {
        name: "aggregate_goodput_bps",
        praise: "faster",
        noun: "goodput",
        unit: ("kbit/s", 1e-3),
        more_is_better: true,
        of: |record| field(record, "aggregate_goodput_bps"),
    },
    Metric {
        name: "jain",
        praise: "fairer",
        noun: "Jain's index",
        unit: ("", 1.0),
        more_is_better: true,
        of: |record| shared(record, "jain"),
    },
    Metric {
        name: "jain_2s",
        praise: "fairer over 2 s",
        noun: "Jain's index over 2 s",
        unit: ("", 1.0),
        more_is_better: true,
        of: |record| shared(record, "jain_2s"),
    },
    Metric {
        name: "retransmission_index",
        praise: "more sparing with retransmissions",
        noun: "retransmissions",
        unit: ("%", 100.0),
        more_is_better: false,
        of: |record| field(record, "retransmission_index"),
    },
    Metric {
        name: "loss_ratio",
        praise: "more sparing with datagrams",
        noun: "lost datagrams",
        unit: ("%", 100.0),
        more_is_better: false,
        of: |record| flows(record, "loss_ratio").map(|values| values.iter().sum::<f64>() / values.len() as f64),
    },
    Metric {
        name: "timeouts",
        praise: "less often in timeouts",
        noun: "timeouts",
        unit: ("", 1.0),
        more_is_better: false,
        of: |record| flows(record, "timeouts").map(|values| values.iter().sum()),
    },
    Metric {
        name: "rtt_mean_s",
        praise: "quicker to answer",
        noun: "mean RTT",
        unit: ("ms", 1e3),
        more_is_better: false,
        of: |record| flows(record, "rtt_mean_s").map(|values| values.iter().sum::<f64>() / values.len() as f64),
    },
    Metric {
        name: "delay_p95_s",
        praise: "quicker to deliver",
        noun: "95th percentile of the delay",
        unit: ("ms", 1e3),
        more_is_better: false,
        of: |record| flows(record, "delay_p95_s").map(|values| values.iter().copied().fold(0.0, f64::max)),
    },
];

fn field(record: &Value, name: &str) -> Option<f64> {
    record.get(name)?.as_f64()
}

/// A field that says something only of several flows.
fn shared(record: &Value, name: &str) -> Option<f64> {
    let several = record.get("flows")?.as_array()?.len() > 1;
    several.then(|| field(record, name)).flatten()
}

/// A field of the flows that have it.
fn flows(record: &Value, name: &str) -> Option<Vec<f64>> {
    let flows = record.get("flows")?.as_array()?;
    let values: Vec<f64> = flows.iter().filter_map(|flow| flow.get(name)?.as_f64()).collect();
    (!values.is_empty()).then_some(values)
}

/// Which side is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// What came of one metric.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// Its name.
    pub metric: &'static str,
    /// The mean of the first.
    pub a: f64,
    /// The mean of the second.
    pub b: f64,
    /// How much more the second has.
    pub difference: f64,
    /// The ends of the 95 % interval of the difference; none with fewer than three runs on a side.
    pub interval: Option<[f64; 2]>,
    /// Seeds that were compared, or runs of the side with fewer of them.
    pub seeds: usize,
    /// Which side is better, if the interval says so.
    pub better: Option<Side>,
    /// Whether runs of the same seed were compared with each other.
    pub paired: bool,
    /// Of the seeds, those in which the second is better.
    pub b_wins: usize,
}

/// Compares `b` with `a`, metric by metric; those that either side has not measured are left out.
///
/// # Errors
/// If the two have no points in common, with what they have instead.
pub fn compare(a: &[Value], b: &[Value]) -> Result<Vec<Line>, String> {
    let (one, other) = (points(a), points(b));
    let single = one.len() == 1 && other.len() == 1;
    let common: BTreeSet<&String> = one.intersection(&other).collect();
    if !single && common.is_empty() {
        let shown = |points: &BTreeSet<String>| points.iter().next().cloned().unwrap_or_default();
        return Err(format!(
            "the two sweep different values: one has the point {}, the other {}; give both the same [sweep], or use --set on one scenario",
            shown(&one),
            shown(&other)
        ));
    }
    let has = |record: &&Value| single || common.contains(&point(record));
    let (a, b): (Vec<&Value>, Vec<&Value>) = (a.iter().filter(has).collect(), b.iter().filter(has).collect());
    // What was measured in real time has seeds, but they repeat nothing.
    let is_simulated = |record: &&Value| {
        record.get("real_time").is_none()
            && record.get("fingerprint").and_then(Value::as_str).is_some_and(|f| !f.is_empty())
    };
    let is_paired = a.iter().all(is_simulated) && b.iter().all(is_simulated);
    Ok(METRICS.iter().filter_map(|metric| line(metric, &a, &b, is_paired)).collect())
}

fn point(record: &Value) -> String {
    record.get("point").map(Value::to_string).unwrap_or_default()
}

fn points(records: &[Value]) -> BTreeSet<String> {
    records.iter().map(point).collect()
}

/// The mean over the points, by seed.
fn by_seed(metric: &Metric, records: &[&Value]) -> BTreeMap<u64, f64> {
    let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for record in records {
        let seed = record.get("seed").and_then(Value::as_u64).unwrap_or(0);
        if let Some(value) = (metric.of)(record).filter(|value| value.is_finite()) {
            let sum = sums.entry(seed).or_default();
            *sum = (sum.0 + value, sum.1 + 1.0);
        }
    }
    sums.into_iter().map(|(seed, (sum, count))| (seed, sum / count)).collect()
}

fn line(metric: &Metric, a: &[&Value], b: &[&Value], is_paired: bool) -> Option<Line> {
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
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let half = if paired {
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
        estimate(&differences, LEVEL).half_width
    } else {
        difference(&estimate(&b, LEVEL), &estimate(&a, LEVEL), LEVEL)
    };
    let seeds = a.len().min(b.len());
    let difference = mean(&b) - mean(&a);
    let interval = (seeds >= LEAST && half.is_finite()).then_some([difference - half, difference + half]);
    let better = interval
        .filter(|[low, high]| *low > 0.0 || *high < 0.0)
        .map(|[low, _]| if (low > 0.0) == metric.more_is_better { Side::B } else { Side::A });
    let wins = |(a, b): &&(f64, f64)| if metric.more_is_better { b > a } else { b < a };
    let b_wins = if paired { pairs.iter().filter(wins).count() } else { 0 };
    Some(Line { metric: metric.name, a: mean(&a), b: mean(&b), difference, interval, seeds, better, paired, b_wins })
}

/// The mean of the first side in words.
pub fn mean(line: &Line) -> String {
    let Some(metric) = METRICS.iter().find(|metric| metric.name == line.metric) else { return String::new() };
    let (unit, scale) = metric.unit;
    let value = scale * line.a;
    let digits = digits(value.abs().max(1e-9));
    format!("{} {value:.digits$} {unit}", metric.noun).trim_end().to_owned()
}

/// A line in plain words: which of `names` is better, by how much, in how many seeds.
pub fn words(line: &Line, names: [&str; 2]) -> String {
    let Some(metric) = METRICS.iter().find(|metric| metric.name == line.metric) else { return String::new() };
    let (unit, scale) = metric.unit;
    let digits = digits(scale * line.difference.abs().max(1e-9));
    let number = |value: f64| {
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        format!("{:.digits$}{unit}", scale * value)
    };
    let Some([low, high]) = line.interval else {
        return format!(
            "{}: {} for {}, {} for {}; with {} run{} nothing can be said of the difference, use --seeds {LEAST} or more",
            metric.noun,
            number(line.a),
            names[0],
            number(line.b),
            names[1],
            line.seeds,
            if line.seeds == 1 { "" } else { "s" }
        );
    };
    let half = (high - low) / 2.0;
    let by = format!("{:.digits$} ± {}", scale * line.difference.abs(), number(half));
    match line.better {
        None => format!(
            "no clear difference in {}: {} for {}, {} for {} ({by})",
            metric.noun,
            number(line.a),
            names[0],
            number(line.b),
            names[1]
        ),
        Some(side) => {
            let (winner, wins) = match side {
                Side::A => (names[0], line.seeds - line.b_wins),
                Side::B => (names[1], line.b_wins),
            };
            let seeds = if line.paired { format!(" in {wins} of {} seeds", line.seeds) } else { String::new() };
            format!(
                "{winner} is {} by {by}{seeds} ({}: {} and {})",
                metric.praise,
                metric.noun,
                number(line.a),
                number(line.b)
            )
        }
    }
}

/// Digits behind the point with which a number has three that mean something.
fn digits(value: f64) -> usize {
    (2 - value.log10().floor() as i32).clamp(0, 4) as usize
}

/// A place in a ranking.
#[derive(Clone, PartialEq, Debug)]
pub struct Rank {
    /// The transports of the flows.
    pub transport: String,
    /// The mean.
    pub mean: f64,
    /// The half width of its interval; NaN with fewer than three runs.
    pub half_width: f64,
}

/// The transports in all of `records`, the best first, for each metric that tells them apart.
pub fn ranking(records: &[&Value]) -> Vec<(&'static Metric, Vec<Rank>)> {
    let mut groups: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for record in records {
        groups.entry(transports(record)).or_default().push(record);
    }
    if groups.len() < 2 {
        return Vec::new();
    }
    let mut rankings = Vec::new();
    for metric in &METRICS {
        let mut ranks: Vec<Rank> = groups
            .iter()
            .filter_map(|(transport, records)| {
                let values: Vec<f64> = by_seed(metric, records).into_values().collect();
                let estimate = estimate(&values, LEVEL);
                let half_width = if values.len() < LEAST { f64::NAN } else { estimate.half_width };
                estimate.mean.is_finite().then(|| Rank {
                    transport: transport.clone(),
                    mean: estimate.mean,
                    half_width,
                })
            })
            .collect();
        let sign = if metric.more_is_better { -1.0 } else { 1.0 };
        ranks.sort_by(|a, b| (sign * a.mean).total_cmp(&(sign * b.mean)));
        if ranks.len() > 1 {
            rankings.push((metric, ranks));
        }
    }
    rankings
}

/// The transports of a record's flows, each once.
fn transports(record: &Value) -> String {
    let flows = record.get("flows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut names: Vec<&str> = Vec::new();
    for name in flows.iter().filter_map(|flow| flow.get("transport")?.as_str()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn record(transport: &str, seed: u64, hops: u64, goodput: f64, jain: f64) -> Value {
        let flow = json!({"transport": transport, "timeouts": seed, "rtt_mean_s": null});
        json!({"seed": seed, "point": {"topology.hops": hops}, "fingerprint": "f", "aggregate_goodput_bps": goodput,
               "jain": jain, "flows": [flow, flow]})
    }

    /// Seeds differ far more from each other than the sides do.
    fn sides() -> (Vec<Value>, Vec<Value>) {
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
    fn what_was_measured_in_real_time_is_never_paired() {
        let (a, mut b) = sides();
        for record in &mut b {
            record["real_time"] = json!({});
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
        far.iter_mut().take(4).for_each(|record| record["point"] = json!({"topology.hops": 6}));
        assert!(compare(&a, &far).unwrap_err().contains("different values"));
    }

    #[test]
    fn transports_are_ranked_by_each_metric() {
        let (mut all, b) = sides();
        all.extend(b);
        let records: Vec<&Value> = all.iter().collect();
        let rankings = ranking(&records);
        assert_eq!(rankings[0].1[0].transport, "tcp-ap");
        assert!(rankings[0].1[0].half_width > 0.0);
    }
}

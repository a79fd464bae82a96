//! The flows that were silent on a side of a comparison: how often each was, and by how much that differs.

use super::{Line, at_points};
use crate::record::excerpt::Excerpt;
use crate::record::starvation::{Silence, Starved};
use crate::statistics::{difference, estimate};
use crate::summary::{LEAST, LEVEL, mean};
use crate::words::part;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A flow that was silent on a side.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowLine {
    /// Its number.
    pub flow: usize,
    /// Its part, in a campaign of several scenarios.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Its name for people, with its part.
    pub name: String,
    /// Its runs on the first side.
    pub a: FlowCounts,
    /// Its runs on the second side.
    pub b: FlowCounts,
    /// Difference of the shares of runs in which it was starved, second less first.
    pub difference: f64,
    /// The ends of the 95 % interval of the difference; none with fewer than three runs on a side.
    pub interval: Option<[f64; 2]>,
}

/// The runs of a flow on a side.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct FlowCounts {
    /// Their number.
    pub runs: usize,
    /// Those in which others starved it.
    pub starved_runs: usize,
    /// Those of them in which it delivered nothing.
    pub nothing_runs: usize,
    /// The longest gap in the others of them, seconds; 0 without.
    pub longest_gap_s: f64,
    /// Runs in which it was silent because it had no path.
    pub runs_without_path: usize,
}

/// The head of the column of flows in a table of [`FlowLine`]s, which counts the runs at all points.
pub fn head(lines: &[Line]) -> &'static str {
    if at_points(lines).is_empty() { "starved flow" } else { "starved flow, all points together" }
}

/// All flows that were silent on one of the sides, by their part and their number. `is_paired`: runs of equal seeds are compared with each other.
pub fn silent_flows<'r>(a: &[&'r Excerpt], b: &[&'r Excerpt], is_paired: bool) -> Vec<FlowLine> {
    let ids: BTreeSet<(&str, usize)> =
        a.iter().chain(b).flat_map(|run| run.silent().map(|flow| (part(&run.point), flow))).collect();
    let line = |(of, flow): (&str, usize)| {
        let runs = |side: &[&'r Excerpt]| -> Vec<&'r Excerpt> {
            side.iter().copied().filter(|run| part(&run.point) == of && run.has_flow(flow)).collect()
        };
        line(of, flow, [&runs(a), &runs(b)], is_paired)
    };
    ids.into_iter().map(line).collect()
}

/// The line of a flow of a part, from the runs of the part that have the flow.
fn line(part: &str, flow: usize, [a, b]: [&[&Excerpt]; 2], is_paired: bool) -> FlowLine {
    let part = (!part.is_empty()).then(|| part.to_owned());
    let named = a.iter().chain(b).find_map(|run| run.name(flow)).map(str::to_owned);
    let (of_a, of_b) = (shares(flow, a), shares(flow, b));
    let pairs: Vec<f64> = of_a.iter().filter_map(|(seed, a)| Some(of_b.get(seed)? - a)).collect();
    let values = |of: &BTreeMap<u64, f64>| of.values().copied().collect::<Vec<f64>>();
    let (found, half, runs) = if is_paired && !pairs.is_empty() {
        (mean(&pairs), estimate(&pairs, LEVEL).half_width, pairs.len())
    } else {
        let (a, b) = (values(&of_a), values(&of_b));
        let half = difference(&estimate(&b, LEVEL), &estimate(&a, LEVEL), LEVEL);
        (mean(&b) - mean(&a), half, a.len().min(b.len()))
    };
    let name = named.unwrap_or_else(|| format!("flow {flow}"));
    FlowLine {
        flow,
        name: part.iter().fold(name, |name, part| format!("{part}: {name}")),
        part,
        a: counts(flow, a),
        b: counts(flow, b),
        difference: found,
        interval: (runs >= LEAST && half.is_finite()).then_some([found - half, found + half]),
    }
}

/// By seed, the share of the points at which the flow was starved.
fn shares(flow: usize, runs: &[&Excerpt]) -> BTreeMap<u64, f64> {
    let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for run in runs {
        let is_starved = run.starved(flow).is_some();
        by_seed.entry(run.seed).or_default().push(f64::from(u8::from(is_starved)));
    }
    by_seed.into_iter().map(|(seed, values)| (seed, mean(&values))).collect()
}

fn counts(flow: usize, runs: &[&Excerpt]) -> FlowCounts {
    let mut counts = FlowCounts::default();
    for run in runs {
        counts.runs += 1;
        match run.silence(flow) {
            Some(Silence::Starved(starved)) => {
                counts.starved_runs += 1;
                match starved {
                    Starved::Nothing => counts.nothing_runs += 1,
                    Starved::Gap(gap) => counts.longest_gap_s = counts.longest_gap_s.max(gap),
                }
            }
            Some(Silence::NoPath(_)) => counts.runs_without_path += 1,
            None => {}
        }
    }
    counts
}

impl FlowCounts {
    /// "11 of 20 runs (up to 31.2 s)", "3 of 20 runs (nothing delivered in 2), no path in 4".
    pub fn told(&self) -> String {
        let mut details = Vec::new();
        if self.nothing_runs > 0 {
            details.push(format!("nothing delivered in {}", self.nothing_runs));
        }
        if self.longest_gap_s > 0.0 {
            details.push(format!("silent for up to {:.1} s", self.longest_gap_s));
        }
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        let path = match self.runs_without_path {
            0 => String::new(),
            runs => format!("; no path for long in {runs}"),
        };
        format!("{} of {} runs{details}{path}", self.starved_runs, self.runs)
    }
}

impl FlowLine {
    /// The difference in per cent with its interval: "-45 ± 23 %".
    pub fn difference_told(&self) -> String {
        match self.interval {
            Some([low, high]) => format!("{:+.0} ± {:.0}", 1e2 * self.difference, 1e2 * (high - low) / 2.0),
            None => format!("{:+.0}", 1e2 * self.difference),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::excerpt::Excerpts;
    use serde_json::json;

    fn runs(starved: &[bool]) -> Vec<Excerpt> {
        let record = |(seed, is_starved): (u64, &bool)| {
            let gap = if *is_starved { 30.0 } else { 1.0 };
            crate::record::record(json!({
                "seed": seed, "fingerprint": "f", "duration_s": 100.0, "warmup_s": 0.0, "flows": [
                    {"delivered_bytes": 9, "longest_gap_s": 1.0},
                    {"name": "row", "delivered_bytes": 9, "longest_gap_s": gap},
                ],
            }))
        };
        Excerpts::of_all(&(1..).zip(starved).map(record).collect::<Vec<_>>())
    }

    #[test]
    fn a_silent_flow_has_its_counts_and_the_difference_of_the_shares() {
        let (a, b) = (runs(&[true; 4]), runs(&[true, false, false, false]));
        let lines = silent_flows(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>(), true);
        assert_eq!(lines.len(), 1, "the other flow was never silent");
        let line = &lines[0];
        assert_eq!((line.name.as_str(), line.a.starved_runs, line.b.starved_runs), ("row", 4, 1));
        // Differences 0, -1, -1, -1: mean -0.75, deviation 0.5, Student's t for four values 3.182.
        let half = 3.182_446 * 0.5 / 2.0;
        assert!((line.difference + 0.75).abs() < 1e-12);
        assert!((line.interval.unwrap()[1] - line.interval.unwrap()[0] - 2.0 * half).abs() < 1e-5, "{line:?}");
        assert_eq!(line.a.told(), "4 of 4 runs (silent for up to 30.0 s)");
        assert_eq!(line.difference_told(), "-75 ± 80");
    }

    #[test]
    fn flows_of_different_parts_have_a_line_each() {
        let of_part = |part: &str, starved: &[bool]| {
            let mut runs = runs(starved);
            for run in &mut runs {
                run.point = std::sync::Arc::new(serde_json::Map::from_iter([("part".to_owned(), json!(part))]));
            }
            runs
        };
        let (a, b) = (of_part("grid", &[true, false]), of_part("chain", &[true, true, true]));
        let runs: Vec<&Excerpt> = a.iter().chain(&b).collect();
        let lines = silent_flows(&runs, &runs[..2], true);
        let told: Vec<_> = lines.iter().map(|line| (line.name.as_str(), line.a.told(), line.b.runs)).collect();
        assert_eq!(
            told,
            [
                ("chain: row", "3 of 3 runs (silent for up to 30.0 s)".to_owned(), 0),
                ("grid: row", "1 of 2 runs (silent for up to 30.0 s)".to_owned(), 2),
            ]
        );
    }
}

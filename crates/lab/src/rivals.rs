//! Comparison of one value of a swept key with every other value, point by point. It tells which
//! transport is better than a given one, and in which metric.

use crate::compare::{self, Line, Side, compare_excerpts};
use crate::record::excerpt::Excerpt;
use crate::record::metrics::{GOODPUT, JAIN_2S};
use crate::record::plain;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Metrics in which a rival must be better.
const BOTH: [&str; 2] = [GOODPUT, JAIN_2S];

/// Another value of the key, at one point of the other keys. The given value is the first side of
/// its lines.
#[derive(Clone, PartialEq, Debug)]
pub struct Rival {
    /// Other keys with their values.
    pub point: Map<String, Value>,
    /// Value of the key.
    pub value: String,
    /// Comparison of each metric.
    pub lines: Vec<Line>,
}

impl Rival {
    /// Point in words, such as "topology.hops = 10". Empty without other keys.
    pub fn place(&self) -> String {
        compare::place(&self.point)
    }

    /// Line of a metric, if it was measured.
    pub fn line(&self, metric: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.metric == metric)
    }

    /// True if the rival is better in `metric`, after the correction for all metrics at its point,
    /// and starves no flow.
    pub fn is_better(&self, metric: &str) -> bool {
        self.line(metric).and_then(Line::better_for_all_in_family) == Some(Side::B)
    }

    /// True if the rival is better in both goodput and Jain's index over 2 s.
    pub fn is_better_in_both(&self) -> bool {
        BOTH.iter().all(|metric| self.is_better(metric))
    }
}

/// A point of the other keys: the values of the compared key at this point, with the runs of each.
type AtPoint<'a> = (Map<String, Value>, Vec<(String, Vec<&'a Excerpt>)>);

/// Compares `value` of `key` with every other value of the key. This is done at each point of the
/// other keys, in the order of the records.
///
/// # Errors
/// The records do not have the key or the value. The message says what they have instead.
pub fn rivals(runs: &[Excerpt], key: &str, value: &str) -> Result<Vec<Rival>, String> {
    let mut points: Vec<AtPoint<'_>> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for run in runs {
        let mut point = (*run.point).clone();
        let Some(own) = point.remove(key) else {
            let keys: Vec<&str> = point.keys().map(String::as_str).collect();
            let way = if keys.is_empty() { "; --against needs a key that the scenario sweeps ([sweep])" } else { "" };
            return Err(format!("the records do not sweep {key}; they sweep {}{way}", listed(&keys)));
        };
        let sorted: BTreeMap<&String, &Value> = point.iter().collect();
        let text = serde_json::to_string(&sorted).unwrap_or_default();
        let number = *numbers.entry(text).or_insert(points.len());
        if number == points.len() {
            points.push((point, Vec::new()));
        }
        let (own, values) = (plain(&own), &mut points[number].1);
        match values.iter_mut().find(|(known, _)| *known == own) {
            Some((_, of)) => of.push(run),
            None => values.push((own, vec![run])),
        }
    }
    let mut found = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (point, values) in &points {
        for (value, _) in values {
            if !seen.contains(&value.as_str()) {
                seen.push(value);
            }
        }
        let Some((_, given)) = values.iter().find(|(own, _)| own == value) else { continue };
        for (other, runs) in values.iter().filter(|(other, _)| other != value) {
            let lines = compare_excerpts(given, runs)?;
            found.push(Rival { point: point.clone(), value: other.clone(), lines });
        }
    }
    if found.is_empty() {
        return Err(format!(
            "the records have no point with {key} = {value} and another value of it; they have {}",
            listed(&seen)
        ));
    }
    Ok(found)
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::record::excerpt::Excerpts;
    use serde_json::json;

    /// Records of four seeds. The seeds differ far more from each other than the transports do.
    fn records(hops: u64, transport: &str, more: f64, fairer: f64) -> Vec<Record> {
        let flow = json!({"transport": transport});
        let one = |seed: u64| {
            let noise = seed as f64 / 100.0;
            crate::record::record(json!({
                "seed": seed, "point": {"topology.hops": hops, "flow.transport": transport}, "fingerprint": "f",
                "aggregate_goodput_bps": 1e5 * seed as f64 + more + noise, "jain_2s": 0.1 * seed as f64 + fairer,
                "flows": [flow, flow],
            }))
        };
        (1..=4).map(one).collect()
    }

    #[test]
    fn who_is_better_in_both_is_found_at_its_point_only() {
        let all = [
            records(4, "ours", 0.0, 0.0),
            records(4, "faster", 50.0, -0.05),
            records(10, "ours", 0.0, 0.0),
            records(10, "faster", 50.0, 0.05),
            records(10, "fairer", -50.0, 0.05),
        ]
        .concat();
        let found = rivals(&Excerpts::of_all(&all), "flow.transport", "ours").unwrap();
        let of = |rival: &Rival| (rival.place(), rival.value.clone(), rival.is_better_in_both());
        let [four, ten] = ["topology.hops = 4", "topology.hops = 10"].map(str::to_owned);
        assert_eq!(
            found.iter().map(of).collect::<Vec<_>>(),
            [
                (four, "faster".to_owned(), false),
                (ten.clone(), "faster".to_owned(), true),
                (ten, "fairer".to_owned(), false)
            ],
            "in the order of the sweep, 4 before 10"
        );
        assert!(found[0].is_better("aggregate_goodput_bps") && !found[0].is_better("jain_2s"));
        assert!(found[2].is_better("jain_2s") && found[2].line("aggregate_goodput_bps").unwrap().difference < 0.0);
    }

    #[test]
    fn a_key_or_value_that_is_not_there_is_told() {
        let all = Excerpts::of_all(&records(4, "ours", 0.0, 0.0));
        assert!(rivals(&all, "flow.window", "4").unwrap_err().contains("flow.transport"));
        assert!(rivals(&all, "flow.transport", "theirs").unwrap_err().contains("they have ours"));
        assert!(rivals(&all, "flow.transport", "ours").unwrap_err().contains("and another value"));
    }
}

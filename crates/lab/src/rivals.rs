//! One value of a swept key against every other one, point by point: which transport is better than a given one, and in what.

use crate::compare::{Line, Side, compare};
use serde_json::Value;
use std::collections::BTreeMap;

/// What was to be better in both.
const BOTH: [&str; 2] = ["aggregate_goodput_bps", "jain_2s"];

/// Another value of the key at one point of the other keys. Its lines have the given value as the first side.
#[derive(Clone, PartialEq, Debug)]
pub struct Rival {
    /// The other keys and their values, as JSON; `{}` without any.
    pub point: String,
    /// The value of the key.
    pub value: String,
    /// Metric by metric.
    pub lines: Vec<Line>,
}

impl Rival {
    /// The line of a metric, if it was measured.
    pub fn line(&self, metric: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.metric == metric)
    }

    /// Whether it is better by `metric`, the interval of the difference says so.
    pub fn is_better(&self, metric: &str) -> bool {
        self.line(metric).is_some_and(|line| line.better == Some(Side::B))
    }

    /// Whether it is better in both goodput and Jain's index over 2 s.
    pub fn is_better_in_both(&self) -> bool {
        BOTH.iter().all(|metric| self.is_better(metric))
    }
}

/// Compares `value` of `key` with every other value of it, at each point of the other keys.
///
/// # Errors
/// If the records have no such key or value, with what they have instead.
pub fn rivals(records: &[Value], key: &str, value: &str) -> Result<Vec<Rival>, String> {
    let mut points: BTreeMap<String, BTreeMap<String, Vec<Value>>> = BTreeMap::new();
    for record in records {
        let Some(mut point) = record.get("point").and_then(Value::as_object).cloned() else { continue };
        let Some(own) = point.remove(key) else {
            let keys: Vec<&str> = point.keys().map(String::as_str).collect();
            return Err(format!("the records do not sweep {key}; they sweep {}", listed(&keys)));
        };
        let point = Value::Object(point).to_string();
        points.entry(point).or_default().entry(text(&own)).or_default().push(record.clone());
    }
    let mut found = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (point, values) in &points {
        seen.extend(values.keys().filter(|value| !seen.contains(value)).cloned().collect::<Vec<_>>());
        let Some(given) = values.get(value) else { continue };
        for (other, records) in values.iter().filter(|(other, _)| *other != value) {
            let lines = compare(given, records)?;
            found.push(Rival { point: point.clone(), value: other.clone(), lines });
        }
    }
    if found.is_empty() {
        let seen: Vec<&str> = seen.iter().map(String::as_str).collect();
        return Err(format!("the records have no {key} = {value} beside another one; they have {}", listed(&seen)));
    }
    Ok(found)
}

/// A value of a key: a string as it is, anything else as JSON.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Four seeds; seeds differ far more than transports do.
    fn records(hops: u64, transport: &str, more: f64, fairer: f64) -> Vec<Value> {
        let flow = json!({"transport": transport});
        let one = |seed: u64| {
            let noise = seed as f64 / 100.0;
            json!({"seed": seed, "point": {"topology.hops": hops, "flow.transport": transport}, "fingerprint": "f",
                   "aggregate_goodput_bps": 1e5 * seed as f64 + more + noise, "jain_2s": 0.1 * seed as f64 + fairer,
                   "flows": [flow, flow]})
        };
        (1..=4).map(one).collect()
    }

    #[test]
    fn who_is_better_in_both_is_found_at_its_point_only() {
        let all = [
            records(4, "ours", 0.0, 0.0),
            records(4, "faster", 50.0, -0.05),
            records(7, "ours", 0.0, 0.0),
            records(7, "faster", 50.0, 0.05),
            records(7, "fairer", -50.0, 0.05),
        ]
        .concat();
        let found = rivals(&all, "flow.transport", "ours").unwrap();
        let of = |rival: &Rival| (rival.point.clone(), rival.value.clone(), rival.is_better_in_both());
        let four = r#"{"topology.hops":4}"#.to_owned();
        let seven = r#"{"topology.hops":7}"#.to_owned();
        assert_eq!(
            found.iter().map(of).collect::<Vec<_>>(),
            [
                (four, "faster".to_owned(), false),
                (seven.clone(), "fairer".to_owned(), false),
                (seven, "faster".to_owned(), true)
            ]
        );
        assert!(found[0].is_better("aggregate_goodput_bps") && !found[0].is_better("jain_2s"));
        assert!(found[1].is_better("jain_2s") && found[1].line("aggregate_goodput_bps").unwrap().difference < 0.0);
    }

    #[test]
    fn a_key_or_value_that_is_not_there_is_told() {
        let all = records(4, "ours", 0.0, 0.0);
        assert!(rivals(&all, "flow.window", "4").unwrap_err().contains("flow.transport"));
        assert!(rivals(&all, "flow.transport", "theirs").unwrap_err().contains("they have ours"));
        assert!(rivals(&all, "flow.transport", "ours").unwrap_err().contains("beside another one"));
    }
}

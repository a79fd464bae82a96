//! Rules of every summary for people: starved flows come first, delays of the starved are no numbers, what ties or starves is not best,
//! and shares of different kinds of traffic have no index.

mod best;
mod mean;
pub mod starvation;

pub use best::{Candidate, best, is_clear};
pub use mean::Mean;

use serde_json::Value;

/// The confidence level of the intervals.
pub const LEVEL: f64 = 0.95;
/// Meaning of the sign in numbers for people.
pub const PLUS_MINUS: &str = "±: half the width of the 95 % confidence interval";
/// Runs below which an interval would say nothing: Student's t for two values is 12.7.
pub const LEAST: usize = 3;

/// True if Jain's index is meaningful for a run: it has several flows, and not short files beside other traffic, whose shares nobody wants to
/// be equal.
pub fn has_shares(record: &Value) -> bool {
    let flows = flows(record);
    let files = flows.iter().filter(|flow| flow.get("completions").is_some_and(Value::is_array)).count();
    flows.len() > 1 && (files == 0 || files == flows.len())
}

/// The largest value of a delay over the flows of a run, by its field, or what `of` makes of the values instead. A starved flow has none that any
/// number could stand for: then it is infinite. None where that delay is not measured.
pub fn delay(record: &Value, field: &str, of: impl Fn(&[f64]) -> f64) -> Option<f64> {
    let flows = flows(record);
    if !flows.iter().any(|flow| flow.get(field).is_some()) {
        return None;
    }
    if starvation::starves(record) {
        return Some(f64::INFINITY);
    }
    let values: Vec<f64> = flows.iter().filter_map(|flow| flow.get(field)?.as_f64()).collect();
    (!values.is_empty()).then(|| of(&values))
}

/// The largest of several values.
pub fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Their mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The one in the middle; none of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some((values[low] + values[high]) / 2.0)
}

/// The flows of a record.
pub fn flows(record: &Value) -> &[Value] {
    record.get("flows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_beside_a_transfer_have_no_index_of_shares() {
        let (bulk, files) = (json!({"delivered_bytes": 9}), json!({"delivered_bytes": 9, "completions": []}));
        let of = |flows: &[&Value]| has_shares(&json!({"flows": flows}));
        assert!(of(&[&bulk, &bulk]) && of(&[&files, &files]));
        assert!(!of(&[&bulk, &files]) && !of(&[&bulk]) && !of(&[]));
    }

    #[test]
    fn the_delay_of_a_starved_flow_outranks_every_number() {
        let flow = |bytes: u64, p95: Value| json!({"delivered_bytes": bytes, "delay_p95_s": p95});
        let of = |flows: Value| delay(&json!({"duration_s": 10.0, "flows": flows}), "delay_p95_s", largest);
        assert_eq!(of(json!([flow(1, 0.2.into()), flow(1, 0.3.into())])), Some(0.3));
        assert_eq!(of(json!([flow(1, 0.2.into()), flow(0, Value::Null)])), Some(f64::INFINITY));
        assert_eq!(of(json!([flow(0, Value::Null)])), Some(f64::INFINITY));
        assert_eq!(of(json!([{"delivered_bytes": 0}])), None, "nobody measures it there");
    }
}

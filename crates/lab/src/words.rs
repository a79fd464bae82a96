//! Points of sweeps in words.

use serde_json::{Map, Value};

/// A sweep value as people read it: strings without quotes.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// The point of a record in words: "tcp-ap, hops 4"; empty without a sweep.
pub fn told(record: &Value) -> String {
    told_values(record.get("point").and_then(Value::as_object), |_| true)
}

/// Those values of a point whose keys `is_shown` takes, in words: texts as they are, other values behind the last part of their key.
pub fn told_values(point: Option<&Map<String, Value>>, is_shown: impl Fn(&str) -> bool) -> String {
    let told = |(key, value): (&String, &Value)| match value {
        Value::String(text) => text.clone(),
        value => format!("{} {}", key.rsplit('.').next().unwrap_or(key), plain(value)),
    };
    let shown = point.into_iter().flatten().filter(|(key, _)| is_shown(key));
    shown.map(told).collect::<Vec<_>>().join(", ")
}

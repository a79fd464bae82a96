//! Values and points of sweeps in words.

use meshpace_scenario::PART;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Text of a sweep value, as in the columns of records: strings without quotes, tables as JSON.
pub fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Text of a sweep value for people. A table has its name and its settings, such as "tcp-ap (alpha
/// 0.5)"; any other value is as it is.
pub fn spoken(value: &Value) -> String {
    called(value, &BTreeSet::new())
}

/// Texts of the values of one key for people, reduced to what differs: settings that all tables of
/// one name have in common are left out.
pub fn spoken_together(values: &[Value]) -> Vec<String> {
    let shared = |value: &Value| -> BTreeSet<String> {
        let name = name(value);
        let alike: Vec<Vec<String>> =
            values.iter().filter(|other| name.is_some() && self::name(other) == name).map(settings).collect();
        match &alike[..] {
            [first, others @ ..] if !others.is_empty() => {
                first.iter().filter(|setting| others.iter().all(|other| other.contains(setting))).cloned().collect()
            }
            _ => BTreeSet::new(),
        }
    };
    values.iter().map(|value| called(value, &shared(value))).collect()
}

fn called(value: &Value, left_out: &BTreeSet<String>) -> String {
    if !value.is_object() {
        return plain(value);
    }
    let mut settings = settings(value);
    settings.retain(|setting| !left_out.contains(setting));
    match (name(value), settings.is_empty()) {
        (Some(name), true) => name.to_owned(),
        (Some(name), false) => format!("{name} ({})", settings.join(", ")),
        (None, _) => settings.join(", "),
    }
}

/// Name of a table, or the text itself if the value is a text.
fn name(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("name")?.as_str())
}

/// Settings of a table without its name, including those of nested tables, such as "alpha 0.5".
fn settings(value: &Value) -> Vec<String> {
    let of = |(key, value): (&String, &Value)| match value {
        Value::Object(_) => {
            let name = name(value).map(|name| format!("{key} {name}"));
            name.into_iter().chain(settings(value)).collect()
        }
        value => vec![format!("{key} {}", plain(value))],
    };
    value.as_object().into_iter().flatten().filter(|(key, _)| *key != "name").flat_map(of).collect()
}

/// A point in words, such as "tcp-ap, hops 4". Empty without a sweep.
pub fn told(point: &Map<String, Value>) -> String {
    told_values(point, |_| true)
}

/// Each value of a point as "key=value", in the form that the options `--point` and `--where` take.
pub fn values(point: &Map<String, Value>) -> Vec<String> {
    let one = |(key, value): (&String, &Value)| match value {
        // A comma separates values, unless it is in quotes.
        Value::String(text) if text.contains(',') => format!("{key}={value}"),
        value => format!("{key}={}", plain(value)),
    };
    point.iter().map(one).collect()
}

/// Name of the part of a point in a campaign of several scenarios; empty in any other campaign.
pub fn part(point: &Map<String, Value>) -> &str {
    point.get(PART).and_then(Value::as_str).unwrap_or_default()
}

/// The values of a point except its part, in words.
pub fn within_part(point: &Map<String, Value>) -> String {
    told_values(point, |key| key != PART)
}

/// The values of a point whose keys `is_shown` accepts, in words. Texts and tables have their
/// names; other values stand behind the last part of their key.
pub fn told_values(point: &Map<String, Value>, is_shown: impl Fn(&str) -> bool) -> String {
    let told = |(key, value): (&String, &Value)| match value {
        Value::String(_) | Value::Object(_) => spoken(value),
        value => format!("{} {}", key.rsplit('.').next().unwrap_or(key), plain(value)),
    };
    let shown = point.iter().filter(|(key, _)| is_shown(key));
    shown.map(told).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_table_is_called_by_its_name_and_by_what_it_sets() {
        let paced = |alpha: f64| json!({"name": "tcp-ap", "pacing": {"alpha": alpha, "history": 50}});
        assert_eq!(spoken(&paced(0.5)), "tcp-ap (alpha 0.5, history 50)");
        assert_eq!(spoken(&json!({"pacing": {"name": "adaptive", "alpha": 1}})), "pacing adaptive, alpha 1");
        let point = json!({"flow.transport": paced(0.5), "topology.hops": 4});
        assert_eq!(told(point.as_object().unwrap()), "tcp-ap (alpha 0.5, history 50), hops 4");
        assert_eq!(plain(&json!({"a": 1})), "{\"a\":1}", "columns of records stay as they are");
    }

    #[test]
    fn beside_each_other_tables_say_what_differs() {
        let paced = |alpha: f64| json!({"name": "tcp-ap", "pacing": {"alpha": alpha, "history": 50}});
        assert_eq!(
            spoken_together(&[json!("newreno"), paced(0.3), paced(0.5)]),
            ["newreno", "tcp-ap (alpha 0.3)", "tcp-ap (alpha 0.5)"]
        );
        // One that is there beside the plain name differs from it in everything that it sets.
        assert_eq!(spoken_together(&[json!("tcp-ap"), paced(0.3)]), ["tcp-ap", "tcp-ap (alpha 0.3, history 50)"]);
        assert_eq!(spoken_together(&[json!(2), json!("9 dBm")]), ["2", "9 dBm"]);
    }
}

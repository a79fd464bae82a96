//! The fields of a record, from the types that make it: names, types and meanings.

use super::Record;
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// What has fields of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    /// The run.
    Run,
    /// A flow of it.
    Flow,
    /// A flow in the time series.
    Series,
    /// A watched link in the time series.
    Link,
    /// A node, with `--per-node`.
    Node,
}

/// The JSON Schema of a record's line.
pub fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = schemars::schema_for!(Record).to_value();
        allow_null(&mut schema);
        schema
    })
}

/// A number that could not be measured is `null`.
fn allow_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("format").and_then(Value::as_str) == Some("double") && object["type"] == "number" {
                object.insert("type".to_owned(), serde_json::json!(["number", "null"]));
            }
            object.values_mut().for_each(allow_null);
        }
        Value::Array(items) => items.iter_mut().for_each(allow_null),
        _ => {}
    }
}

/// The properties of a part.
pub fn properties(of: Of) -> Option<&'static Map<String, Value>> {
    let part = match of {
        Of::Run => schema(),
        Of::Flow => &schema()["$defs"]["FlowRecord"],
        Of::Series => &schema()["$defs"]["FlowSeries"],
        Of::Link => &schema()["$defs"]["LinkSeries"],
        Of::Node => &schema()["$defs"]["NodeRecord"],
    };
    part.get("properties")?.as_object()
}

/// The fields of a part that are numbers, or lists of numbers.
pub fn numeric(of: Of) -> impl Iterator<Item = &'static str> {
    let is_number = |schema: &Value| match &schema["type"] {
        Value::String(kind) => kind == "number" || kind == "integer",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "number" || kind == "integer"),
        _ => false,
    };
    let fields = properties(of).into_iter().flatten();
    fields.filter(move |(_, schema)| is_number(schema) || is_number(&schema["items"])).map(|(name, _)| name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_numbers_and_every_field_its_meaning() {
        for (of, there, not) in [
            (Of::Run, "idle_windows", "flows"),
            (Of::Flow, "goodput_bps", "transport"),
            (Of::Series, "cov_rtt", "jain"),
            (Of::Link, "air_time", "rtt_mean_s"),
            (Of::Node, "airtime_share", "air_time"),
        ] {
            let names: Vec<&str> = numeric(of).collect();
            assert!(names.contains(&there) && !names.contains(&not), "{of:?}: {names:?}");
            for (name, schema) in properties(of).unwrap() {
                let meaning = schema.get("description").and_then(Value::as_str).unwrap_or_default();
                assert!(!meaning.is_empty(), "{of:?} {name}: no meaning");
            }
        }
    }
}

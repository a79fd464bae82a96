//! Names, types and meanings of the fields of a record, taken from the JSON Schema of the record's
//! types.

use super::Record;
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// Part of a record that has numeric fields of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Of {
    /// The run itself.
    Run,
    /// A flow of the run.
    Flow,
    /// A flow in the time series.
    Series,
    /// A watched link in the time series.
    Link,
    /// A node, with `--per-node`.
    Node,
}

/// Returns the JSON Schema of a record's line.
fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = schemars::schema_for!(Record).to_value();
        allow_null(&mut schema);
        schema
    })
}

/// Extends the schema so that every floating-point number can also be `null`, which stands for a
/// value that could not be measured.
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

/// Returns the fields of a part of the record with their schemas.
fn properties(of: Of) -> Option<&'static Map<String, Value>> {
    let part = match of {
        Of::Run => schema(),
        Of::Flow => &schema()["$defs"]["FlowRecord"],
        Of::Series => &schema()["$defs"]["FlowSeries"],
        Of::Link => &schema()["$defs"]["LinkSeries"],
        Of::Node => &schema()["$defs"]["NodeRecord"],
    };
    part.get("properties")?.as_object()
}

/// Returns the names of the fields of a part that are numbers or lists of numbers.
pub fn numeric(of: Of) -> impl Iterator<Item = &'static str> {
    let is_number = |schema: &Value| match &schema["type"] {
        Value::String(kind) => kind == "number" || kind == "integer",
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "number" || kind == "integer"),
        _ => false,
    };
    let fields = properties(of).into_iter().flatten();
    fields.filter(move |(_, schema)| is_number(schema) || is_number(&schema["items"])).map(|(name, _)| name.as_str())
}

const HEAD: &str = "\
# Fields of a record

A record is the results of a run: one JSON object on a line, as `meshpace run --format json` prints it and `records.jsonl` of a directory has it. A number that could not be
measured is `null`; a field that is there only for some runs or flows is not there otherwise. `records.csv`, `records.parquet` and `--format csv` have a row for
each flow with every field of the run and of the flow that is one value; a field that both have is called `flow_...` where it is the flow's.
`meshpace send`, `recv` and `emulate --out` write the same fields of what they measured. Fields are added from version to version; none gets another name or meaning.
This page is written by the program.
";

/// Parts of a record that have fields of their own: the title for readers, and the name of the type
/// in the schema. The empty name is the record itself.
const PARTS: [(&str, &str); 10] = [
    ("The run", ""),
    ("`flows`: each flow", "FlowRecord"),
    ("`flows.pacing`: the estimator of adaptive pacing", "PacingRecord"),
    ("`flows.completions`: each file", "CompletionRecord"),
    ("`series`: the run in windows of time", "SeriesRecord"),
    ("`series.flows`: each flow, a list of the windows", "FlowSeries"),
    ("`series.links`: each watched link, a list of the windows", "LinkSeries"),
    ("`batches`: each batch", "BatchRecord"),
    ("`batches.flows`: each flow of a batch", "FlowPiece"),
    ("`nodes`: each node, with `--per-node`", "NodeRecord"),
];

/// Generates the page `docs/records.md`.
pub fn page() -> String {
    let mut text = HEAD.to_owned();
    for (title, name) in PARTS {
        text.push_str(&format!("\n## {title}\n\n| Field | Type | Meaning |\n|---|---|---|\n"));
        let part = if name.is_empty() { schema() } else { &schema()["$defs"][name] };
        for (name, field) in part["properties"].as_object().into_iter().flatten() {
            let meaning = field.get("description").and_then(Value::as_str).unwrap_or_default();
            // The comments in the code link these constants; the page shows their values instead.
            let meaning = meaning.replace("[`line::FORMAT`]", &super::line::FORMAT.to_string());
            let meaning =
                meaning.replace("[`meshpace_sim::MODEL_REVISION`]", &meshpace_sim::MODEL_REVISION.to_string());
            text.push_str(&format!("| `{name}` | {} | {meaning} |\n", kind(field)));
        }
        if name.is_empty() {
            text.push_str("| `check` | text | CRC-32 of the line before it, in hexadecimal |\n");
        }
    }
    text
}

/// Name of a field's type in one word or two.
fn kind(field: &Value) -> &'static str {
    let of = |name: &str| match name {
        "integer" => Some("whole number"),
        "number" => Some("number"),
        "string" => Some("text"),
        "array" => Some("list"),
        "object" => Some("object"),
        _ => None,
    };
    match &field["type"] {
        Value::String(name) => of(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).find_map(of),
        _ => None,
    }
    .unwrap_or("object")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_page_of_records_has_every_part() {
        let page = page();
        meshpace_testing::generated::hold("docs/records.md", &page);
        assert!(page.contains("| `loss_ratio` | number | Share of the datagrams"), "{page}");
        for name in schema()["$defs"].as_object().unwrap().keys() {
            assert!(PARTS.iter().any(|(_, part)| part == name), "{name}: no part of the page");
        }
    }

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

//! Records as CSV: one row per flow of each run, the run's own columns repeated, the sweep's keys as columns.

use super::{Record, plain};
use crate::summary::starvation::{self, Starved};
use serde_json::Value;
use std::io;

/// Columns of the run, as the record names them.
const RUN: [&str; 7] =
    ["duration_s", "aggregate_goodput_bps", "jain", "jain_2s", "idle_windows", "retransmission_index", "frames"];
/// Columns that were added later, behind those that programs may count: the delay and the longest gap of the flow, "nothing" or "gap" if it was
/// starved, the starved flows of the run, and the name of the flow.
const ADDED: [&str; 5] = ["delay_p95_s", "longest_gap_s", "starved", "starved_flows", "name"];
/// Columns of the flow; the record calls the first "id".
const FLOW: [&str; 13] = [
    "flow",
    "from",
    "to",
    "hops",
    "transport",
    "goodput_bps",
    "delivered_bytes",
    "segments_sent",
    "retransmissions",
    "timeouts",
    "rtt_mean_s",
    "cov_rtt",
    "loss_ratio",
];

/// The rows of a record, with the header if `header` is set. A value that could not be measured is an empty cell.
///
/// # Errors
/// None are known: it writes to memory.
pub fn rows(record: &Record, header: bool) -> io::Result<String> {
    rows_of(&serde_json::to_value(record)?, header)
}

/// The rows of a record as it was read from a file.
///
/// # Errors
/// None are known: it writes to memory.
pub fn rows_of(record: &Value, header: bool) -> io::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if header {
        writer.write_record(header_of(record))?;
    }
    for row in values_of(record) {
        writer.write_record(row.iter().map(cell))?;
    }
    let bytes = writer.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// The names of the columns.
pub fn header_of(record: &Value) -> Vec<String> {
    let keys = point(record).into_iter().flat_map(|point| point.keys().map(String::as_str));
    ["scenario", "seed"].into_iter().chain(keys).chain(RUN).chain(FLOW).chain(ADDED).map(str::to_owned).collect()
}

/// The values of each row, by column.
pub fn values_of(record: &Value) -> Vec<Vec<Value>> {
    let field = |object: &Value, name: &str| object.get(name).cloned().unwrap_or(Value::Null);
    let flows = record.get("flows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let starved = starvation::of_record(record);
    let how = |id: usize| match starved.iter().find(|(other, _)| *other == id) {
        Some((_, Starved::Nothing)) => Value::from("nothing"),
        Some((_, Starved::Gap(_))) => Value::from("gap"),
        None => Value::Null,
    };
    let row = |(id, flow): (usize, &Value)| {
        let keys = point(record).into_iter().flat_map(|point| point.values().cloned());
        let of_run = ["scenario", "seed"].map(|name| field(record, name)).into_iter().chain(keys);
        let of_flow = FLOW.map(|name| field(flow, if name == "flow" { "id" } else { name }));
        let added = [field(flow, ADDED[0]), field(flow, ADDED[1]), how(id), starved.len().into(), field(flow, "name")];
        of_run.chain(RUN.map(|name| field(record, name))).chain(of_flow).chain(added).collect()
    };
    flows.iter().enumerate().map(row).collect()
}

fn point(record: &Value) -> Option<&serde_json::Map<String, Value>> {
    record.get("point").and_then(Value::as_object)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or(f64::NAN).to_string(),
        value => plain(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn starved_flows_have_columns_behind_the_others() {
        let record = json!({
            "scenario": "s", "seed": 1, "point": {}, "duration_s": 100.0, "warmup_s": 0.0, "flows": [
                {"id": 0, "name": "long, or not", "delivered_bytes": 0, "longest_gap_s": 99.0, "delay_p95_s": null},
                {"id": 1, "delivered_bytes": 9, "longest_gap_s": 10.5, "delay_p95_s": 0.25},
                {"id": 2, "delivered_bytes": 9, "longest_gap_s": 9.5, "delay_p95_s": 0.25},
            ],
        });
        let text = rows_of(&record, true).unwrap();
        let ends: Vec<String> =
            text.lines().map(|line| line.splitn(24, ',').skip(22).collect::<Vec<_>>().join(",")).collect();
        assert_eq!(
            ends,
            [
                "delay_p95_s,longest_gap_s,starved,starved_flows,name",
                ",99,nothing,2,\"long, or not\"",
                "0.25,10.5,gap,2,",
                "0.25,9.5,,2,"
            ]
        );
        assert!(text.starts_with("scenario,seed,duration_s,"), "{text}");
    }
}

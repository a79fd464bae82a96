//! Records as CSV: one row per flow of each run, the run's own columns repeated, the sweep's keys as columns.

use super::{Record, plain};
use serde_json::Value;
use std::io;

/// Columns of the run, as the record names them.
const RUN: [&str; 7] =
    ["duration_s", "aggregate_goodput_bps", "jain", "jain_2s", "idle_windows", "retransmission_index", "frames"];
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
    ["scenario", "seed"].into_iter().chain(keys).chain(RUN).chain(FLOW).map(str::to_owned).collect()
}

/// The values of each row, by column.
pub fn values_of(record: &Value) -> Vec<Vec<Value>> {
    let field = |object: &Value, name: &str| object.get(name).cloned().unwrap_or(Value::Null);
    let flows = record.get("flows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let row = |flow: &Value| {
        let keys = point(record).into_iter().flat_map(|point| point.values().cloned());
        let of_run = ["scenario", "seed"].map(|name| field(record, name)).into_iter().chain(keys);
        let of_flow = FLOW.map(|name| field(flow, if name == "flow" { "id" } else { name }));
        of_run.chain(RUN.map(|name| field(record, name))).chain(of_flow).collect()
    };
    flows.iter().map(row).collect()
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

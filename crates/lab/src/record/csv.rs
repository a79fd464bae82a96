//! Records as CSV: one row per flow of each run, the run's own columns repeated, the sweep's keys as columns.

use super::{Record, plain};
use serde_json::Value;
use std::io;

/// Columns of the run, as the record names them.
const RUN: [&str; 7] =
    ["duration_s", "aggregate_goodput_bps", "jain", "jain_2s", "idle_windows", "retransmission_index", "frames"];
/// Columns of the flow; the record calls the first "id".
const FLOW: [&str; 12] = [
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
    let empty = serde_json::Map::new();
    let point = record.get("point").and_then(Value::as_object).unwrap_or(&empty);
    if header {
        writer.write_record(
            ["scenario", "seed"].into_iter().chain(point.keys().map(String::as_str)).chain(RUN).chain(FLOW),
        )?;
    }
    for flow in record.get("flows").and_then(Value::as_array).into_iter().flatten() {
        let mut row = vec![cell(record, "scenario"), cell(record, "seed")];
        row.extend(point.values().map(plain));
        row.extend(RUN.map(|column| cell(record, column)));
        row.extend(FLOW.map(|column| cell(flow, if column == "flow" { "id" } else { column })));
        writer.write_record(row)?;
    }
    let bytes = writer.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

fn cell(object: &Value, field: &str) -> String {
    match object.get(field) {
        None | Some(Value::Null) => String::new(),
        Some(Value::Number(number)) if number.is_f64() => number.as_f64().unwrap_or(f64::NAN).to_string(),
        Some(value) => plain(value),
    }
}

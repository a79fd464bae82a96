//! Records as CSV: one row per flow of each run, the run's own columns repeated, the sweep's keys as columns.

use super::{Record, plain};
use std::io;

/// The rows of a record, with the header if `header` is set. A value that could not be measured is an empty cell.
///
/// # Errors
/// None are known: it writes to memory.
pub fn rows(record: &Record, header: bool) -> io::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let keys = record.point.keys().map(String::as_str);
    if header {
        let fixed = [
            "duration_s",
            "aggregate_goodput_bps",
            "jain",
            "jain_2s",
            "idle_windows",
            "retransmission_index",
            "frames",
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
        writer.write_record(["scenario", "seed"].into_iter().chain(keys).chain(fixed))?;
    }
    for flow in &record.flows {
        let mut row = vec![record.scenario.clone(), record.seed.to_string()];
        row.extend(record.point.values().map(plain));
        row.extend([
            number(record.duration_s),
            number(record.aggregate_goodput_bps),
            number(record.jain),
            number(record.jain_2s),
            record.idle_windows.to_string(),
            number(record.retransmission_index),
            record.frames.to_string(),
            flow.id.to_string(),
            flow.from.to_string(),
            flow.to.to_string(),
            flow.hops.to_string(),
            flow.transport.clone(),
            number(flow.goodput_bps),
            flow.delivered_bytes.to_string(),
            flow.segments_sent.to_string(),
            flow.retransmissions.to_string(),
            flow.timeouts.to_string(),
            number(flow.rtt_mean_s),
            number(flow.cov_rtt),
        ]);
        writer.write_record(row)?;
    }
    let bytes = writer.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

fn number(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

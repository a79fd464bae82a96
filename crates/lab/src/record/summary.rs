//! Records as means and intervals for programs: one JSON object, on one line, for each point.

use super::column::Columns;
use super::starvation::{self, Starved};
use super::{FlowRecord, Record};
use crate::statistics::estimate;
use crate::summary::{LEAST, LEVEL};
use serde_json::{Map, Value, json};

/// Format of a line.
const FORMAT: u32 = 1;
/// Numeric fields of a record that are not measurements.
const NAMES: [&str; 6] = ["seed", "format", "model", "id", "from", "to"];

/// Returns a line for each point. The records must be in the order of their points.
pub fn render(records: &[Record]) -> String {
    let groups = records.chunk_by(|a, b| a.point == b.point);
    groups.map(|group| format!("{}\n", line(group))).collect()
}

fn line(group: &[Record]) -> Value {
    let starved: Vec<Vec<(usize, Starved)>> = group.iter().map(starvation::of_record).collect();
    let runs = |is: &dyn Fn(&(usize, Starved)) -> bool| starved.iter().filter(|run| run.iter().any(is)).count();
    let flows: Vec<Value> = (0..group[0].flows.len())
        .map(|id| {
            let of_flow: Vec<&FlowRecord> = group.iter().filter_map(|record| record.flows.get(id)).collect();
            // Ends that are drawn for each seed differ between runs, and are reported as null.
            let (from, to) = (same(&of_flow, |flow| flow.from), same(&of_flow, |flow| flow.to));
            let transport = same(&of_flow, |flow| flow.transport.clone());
            let nothing = runs(&|(other, starved)| *other == id && *starved == Starved::Nothing);
            let silent = runs(&|(other, starved)| *other == id && matches!(starved, Starved::Gap(_)));
            json!({
                "id": id, "from": from, "to": to, "transport": transport, "metrics": metrics(&of_flow),
                "nothing_runs": nothing, "gap_runs": silent,
            })
        })
        .collect();
    json!({
        "scenario": group[0].scenario, "point": group[0].point, "seeds": group.len(), "format": FORMAT, "model": group[0].model,
        "metrics": metrics(&group.iter().collect::<Vec<_>>()), "flows": flows,
        "starved_runs": runs(&|_| true),
    })
}

/// Returns the value if it is the same in all runs.
fn same<T: PartialEq>(flows: &[&FlowRecord], of: impl Fn(&FlowRecord) -> T) -> Option<T> {
    let first = flows.first().map(|flow| of(flow))?;
    flows.iter().all(|flow| of(flow) == first).then_some(first)
}

/// Returns mean, confidence interval and count of every numeric field that was measured.
fn metrics<R: Columns>(records: &[&R]) -> Map<String, Value> {
    let mut found = Map::new();
    for column in R::COLUMNS.iter().filter(|column| !NAMES.contains(&column.name)) {
        let numbers: Vec<f64> = records.iter().filter_map(|record| (column.of)(record).as_f64()).collect();
        if numbers.is_empty() {
            continue;
        }
        let ours = estimate(&numbers, LEVEL);
        let interval = (numbers.len() >= LEAST && ours.half_width.is_finite())
            .then_some([ours.mean - ours.half_width, ours.mean + ours.half_width]);
        found.insert(column.name.to_owned(), json!({"mean": ours.mean, "interval": interval, "count": numbers.len()}));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seed: u64, hops: u64, bps: f64) -> Record {
        let flow = json!({
            "id": 0, "from": 0, "to": seed, "hops": hops, "transport": "newreno", "goodput_bps": bps, "delivered_bytes": 1,
            "segments_sent": 1, "retransmissions": 0, "timeouts": 0, "retransmission_index": 0.0, "rtt_mean_s": null,
            "cov_rtt": null, "pacing": null,
        });
        serde_json::from_value(json!({
            "scenario": "s", "seed": seed, "point": {"topology.hops": hops}, "duration_s": 10.0, "aggregate_goodput_bps": bps,
            "jain": 1.0, "jain_2s": 1.0, "idle_windows": 0, "retransmission_index": 0.0, "frames": 1, "flows": [flow],
            "warmup_s": 1.0, "fingerprint": "", "format": 2, "model": 1,
        }))
        .unwrap()
    }

    #[test]
    fn a_point_is_a_line_with_means_and_intervals() {
        let records =
            [record(1, 2, 10.0), record(2, 2, 20.0), record(3, 2, 30.0), record(1, 4, 5.0), record(2, 4, 7.0)];
        let lines: Vec<Value> = render(&records).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        let goodput = &lines[0]["metrics"]["aggregate_goodput_bps"];
        assert_eq!((goodput["mean"].as_f64(), goodput["count"].as_u64()), (Some(20.0), Some(3)));
        // Student's t for three values is 4.303; the deviation of 10, 20, 30 is 10.
        let half = 4.302_652_73 * 10.0 / 3f64.sqrt();
        assert!((goodput["interval"][1].as_f64().unwrap() - 20.0 - half).abs() < 1e-4, "{goodput}");
        assert_eq!(lines[1]["metrics"]["aggregate_goodput_bps"]["interval"], Value::Null, "two say nothing");
        assert_eq!(lines[0]["starved_runs"], 0);
        let mut dead = record(3, 2, 0.0);
        dead.flows[0].delivered_bytes = Some(0);
        let line: Value = serde_json::from_str(&render(&[record(1, 2, 1.0), dead])).unwrap();
        let flow = &line["flows"][0];
        assert_eq!(
            (&line["starved_runs"], &flow["nothing_runs"], &flow["gap_runs"]),
            (&json!(1), &json!(1), &json!(0))
        );
        let flow = &lines[0]["flows"][0];
        assert_eq!((&flow["from"], &flow["to"]), (&json!(0), &Value::Null), "its end is another with every seed");
        assert!(flow["metrics"].get("rtt_mean_s").is_none() && lines[0]["metrics"].get("seed").is_none());
    }
}

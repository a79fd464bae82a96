//! Records as CSV: one row for each flow of each run. Every row repeats the columns of the run, and
//! each key of the sweep is a column.

use super::column::{Column, Columns, Kind, PACING, POINT};
use super::{FlowRecord, PacingRecord, Record, plain};
use serde_json::Value;
use std::io;

/// Column of the CSV table.
struct Cells {
    place: Option<u8>,
    name: String,
    from: From,
}

/// Source of the values of a column.
enum From {
    Run(fn(&Record) -> Value),
    Flow(fn(&FlowRecord) -> Value),
    Pacing(fn(&PacingRecord) -> Value),
}

impl Cells {
    /// Returns the value of the column for one flow of a run.
    fn of(&self, run: &Record, flow: &FlowRecord) -> Value {
        match self.from {
            From::Run(of) => of(run),
            From::Flow(of) => of(flow),
            From::Pacing(of) => flow.pacing.as_ref().map_or(Value::Null, of),
        }
    }
}

/// Returns all columns except those of the sweep.
fn columns() -> Vec<Cells> {
    columns_of(Record::COLUMNS, FlowRecord::COLUMNS)
}

/// Makes the columns of these fields. Columns that have a place come first, in the order of places;
/// all others follow in the order of the declaration.
fn columns_of(run: &[Column<Record>], flow: &[Column<FlowRecord>]) -> Vec<Cells> {
    let is_single = |kind: Kind| kind != Kind::Nested;
    let of_run = run.iter().filter(|column| is_single(column.kind)).map(|column| Cells {
        place: column.place,
        name: column.name.to_owned(),
        from: From::Run(column.of),
    });
    let of_flow = flow.iter().filter(|column| is_single(column.kind)).map(|column| Cells {
        place: column.place,
        name: flow_name(column),
        from: From::Flow(column.of),
    });
    let of_pacing = PacingRecord::COLUMNS.iter().map(|column| Cells {
        place: column.place,
        name: format!("{PACING}.{}", column.name),
        from: From::Pacing(column.of),
    });
    let mut columns: Vec<Cells> = of_run.chain(of_flow).chain(of_pacing).collect();
    columns.sort_by_key(|column| column.place.unwrap_or(u8::MAX));
    columns
}

/// Name of a flow's column: the name of the field, with the prefix `flow_` if the run has a column
/// of the same name.
fn flow_name(column: &Column<FlowRecord>) -> String {
    match column.heading() {
        name if Record::column(name).is_some() => format!("flow_{name}"),
        name => name.to_owned(),
    }
}

/// Returns the rows of a record as CSV text, with the header line if `header` is set. `keys` are
/// the keys of the sweep. A value that could not be measured is an empty cell, and so is a key that
/// the record's point does not have.
///
/// # Errors
/// No error is known, because the function writes to memory only.
pub fn rows(record: &Record, keys: &[String], header: bool) -> io::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if header {
        writer.write_record(header_of(keys))?;
    }
    for row in values_of(record, keys) {
        writer.write_record(row.iter().map(cell))?;
    }
    let bytes = writer.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Returns the names of the columns. `keys` are the keys of the sweep.
pub fn header_of(keys: &[String]) -> Vec<String> {
    names(&columns(), keys)
}

/// Returns the values of each row, in the order of the columns.
pub fn values_of(record: &Record, keys: &[String]) -> Vec<Vec<Value>> {
    values(&columns(), record, keys)
}

fn names(columns: &[Cells], keys: &[String]) -> Vec<String> {
    let mut names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    names.splice(POINT..POINT, keys.iter().cloned());
    names
}

fn values(columns: &[Cells], record: &Record, keys: &[String]) -> Vec<Vec<Value>> {
    let key = |key: &String| record.point.get(key).cloned().unwrap_or_default();
    let row = |flow: &FlowRecord| {
        let mut row: Vec<Value> = columns.iter().map(|column| column.of(record, flow)).collect();
        row.splice(POINT..POINT, keys.iter().map(key));
        row
    };
    record.flows.iter().map(row).collect()
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
        let record = crate::record::record(json!({
            "scenario": "s", "seed": 1, "point": {}, "duration_s": 100.0, "warmup_s": 0.0, "flows": [
                {"id": 0, "name": "long, or not", "delivered_bytes": 0, "longest_gap_s": 99.0, "delay_p95_s": null},
                {"id": 1, "delivered_bytes": 9, "longest_gap_s": 10.5, "delay_p95_s": 0.25},
                {"id": 2, "delivered_bytes": 9, "longest_gap_s": 9.5, "delay_p95_s": 0.25},
            ],
        }));
        let header = header_of(&[]);
        assert_eq!(header[22..27], ["delay_p95_s", "longest_gap_s", "starved", "starved_flows", "name"]);
        let text = rows(&record, &[], true).unwrap();
        assert!(text.starts_with("scenario,seed,duration_s,"), "{text}");
        let ends: Vec<Vec<String>> =
            values_of(&record, &[]).iter().map(|row| row[22..27].iter().map(cell).collect()).collect();
        assert_eq!(
            ends,
            [
                ["", "99", "nothing", "2", "long, or not"],
                ["0.25", "10.5", "gap", "2", ""],
                ["0.25", "9.5", "", "2", ""]
            ]
        );
        assert!(text.contains(",99,nothing,2,\"long, or not\","), "{text}");
    }

    #[test]
    fn points_of_several_scenarios_have_a_column_for_each_of_their_keys() {
        let record =
            crate::record::record(json!({"point": {"part": "grid", "topology.rows": 3}, "flows": [{"id": 0}]}));
        let keys = ["part", "topology.hops", "topology.rows"].map(str::to_owned);
        let names: Vec<String> = header_of(&keys).into_iter().skip(POINT).take(3).collect();
        assert_eq!(names, keys);
        assert_eq!(values_of(&record, &keys)[0][POINT..POINT + 3], [json!("grid"), Value::Null, json!(3)]);
    }

    /// The first columns, on which programs that count columns rely, as they were before others
    /// were added.
    #[test]
    fn the_first_columns_keep_their_names_and_places() {
        assert_eq!(
            header_of(&["topology.hops".to_owned()])[..28].join(","),
            "scenario,seed,topology.hops,duration_s,aggregate_goodput_bps,jain,jain_2s,idle_windows,retransmission_index,frames,\
             flow,from,to,hops,transport,goodput_bps,delivered_bytes,segments_sent,retransmissions,timeouts,rtt_mean_s,cov_rtt,\
             loss_ratio,delay_p95_s,longest_gap_s,starved,starved_flows,name"
        );
    }

    #[test]
    fn a_field_that_is_added_to_the_table_has_a_column() {
        let twice = |flow: &FlowRecord| json!(2.0 * flow.goodput_bps);
        let added = Column { name: "twice_bps", kind: Kind::Number, of: twice, place: None };
        let columns = columns_of(Record::COLUMNS, &[FlowRecord::COLUMNS, &[added]].concat());
        let flow = FlowRecord { goodput_bps: 3.0, ..FlowRecord::default() };
        let record = Record { flows: vec![flow], ..Record::default() };
        let number = names(&columns, &[]).iter().position(|name| name == "twice_bps").unwrap();
        assert_eq!(values(&columns, &record, &[])[0][number], json!(6.0));
        let before = header_of(&[]);
        assert_eq!(names(&columns, &[]).len(), before.len() + 1);
        assert_eq!(names(&columns, &[])[..28], before[..28], "the columns that programs may count stay");
    }

    #[test]
    fn every_single_value_of_the_table_has_a_column_and_no_two_have_one_name() {
        let mut names = header_of(&[]);
        let is_there = |name: &str| names.iter().any(|other| other == name);
        for column in Record::COLUMNS.iter().filter(|column| column.kind != Kind::Nested) {
            assert!(is_there(column.name), "{}", column.name);
        }
        for column in FlowRecord::COLUMNS.iter().filter(|column| column.kind != Kind::Nested) {
            assert!(is_there(&flow_name(column)), "{}", column.name);
        }
        names.sort();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    }
}

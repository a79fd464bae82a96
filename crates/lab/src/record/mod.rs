//! Record of a run: its results as JSON, as CSV, or as a row of a table.

pub mod archive;
pub mod column;
mod columns;
pub mod csv;
pub mod directory;
pub mod excerpt;
pub mod fields;
pub mod given;
pub mod kept;
pub mod kind;
pub mod line;
pub mod merge;
pub mod metrics;
pub mod nodes;
pub mod pack;
pub mod parquet;
mod pieces;
mod places;
pub mod points;
pub mod rules;
pub mod silence;
pub mod starvation;
pub mod store;
pub mod summary;
pub mod table;
pub mod tally;
mod write;

pub use crate::words::{plain, told, told_values, values};
pub use column::{Column, Columns, Kind};
pub use columns::{CompletionRecord, FlowRecord, PacingRecord, Record};
pub use nodes::NodeRecord;
pub use pieces::{BatchRecord, FlowPiece, FlowSeries, LinkSeries, SeriesRecord};
pub use write::{is_kept, make_directory, write_whole, write_whole_by};

/// Name of the file with the records as a table for spreadsheets.
pub const TABLE: &str = "records.csv";
/// Name of the file with the same table with typed columns, for analysis.
pub const PARQUET: &str = "records.parquet";

impl Record {
    /// Returns the line of JSON with its checksum and its newline.
    pub fn json_line(&self) -> String {
        line::seal(&serde_json::to_string(self).expect("a record has nothing that JSON lacks"))
    }

    /// Parses a line without its newline, after checking its checksum and its format.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the line.
    pub fn from_line(line: &str) -> Result<Record, String> {
        line::check(line).map_err(str::to_owned)?;
        let record = Record::read(line).map_err(|error| format!("does not have this format: {error}"))?;
        match record.format {
            line::FORMAT => Ok(record),
            other => Err(format!("has format {other}, but this program reads {}", line::FORMAT)),
        }
    }

    /// Parses a line whose checksum was checked before.
    ///
    /// # Errors
    /// If the line is no record.
    pub fn read(line: &str) -> serde_json::Result<Record> {
        serde_json::from_str(line).map(Record::judged)
    }
}

impl FlowRecord {
    /// Name of the flow in messages: its own name if it has one, or for example "flow 3".
    pub fn told(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("flow {}", self.id))
    }
}

impl CompletionRecord {
    /// Duration of the transfer, seconds.
    pub fn time_s(&self) -> f64 {
        self.end_s - self.start_s
    }
}

/// Returns the keys that occur in any of these points, in the order of their first occurrence.
pub fn keys_of<K: AsRef<str>>(points: impl Iterator<Item = impl Iterator<Item = K>>) -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    for key in points.flatten() {
        if !keys.iter().any(|known| known == key.as_ref()) {
            keys.push(key.as_ref().to_owned());
        }
    }
    keys
}

/// Returns the value, or `None` if it was not measured.
fn measured(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

/// Creates a record for tests. Fields that the object lacks were not measured.
#[cfg(test)]
pub(crate) fn record(object: serde_json::Value) -> Record {
    serde_json::from_value::<Record>(object).unwrap().judged()
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_scenario::{Scenario, Source};
    use std::path::Path;

    #[test]
    fn a_record_comes_back_from_its_line_to_the_bit() {
        // A flow that delivers, one whose answers are lost on the way, a series, watched links, batches.
        let text = "duration = '6 s'\nseries = '1 s'\nwatch = [{ node = 0, toward = 2 }]\ntopology.hops = 3\n\
            batches = { packets = 5, count = 3 }\n[[flow]]\nfrom = 0\nto = 3\ntransport = 'tcp-ap'\n[[flow]]\nfrom = 3\n\
            to = 0\ntraffic = 'http'\npause = '1 s'\nstart = '5.99 s'\n";
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        let scenario =
            Scenario::read(source, Path::new("."), "test").unwrap_or_else(|why| panic!("{}", why.render(false)));
        let outcome = meshpace_sim::run(&scenario.points[0].config, 1);
        let record = Record::new(&scenario, &scenario.points[0], 1, &outcome);
        let line = record.json_line();
        assert!(line.contains("null"), "something was not measured: {line}");
        let back = Record::from_line(line.trim_end()).unwrap();
        assert_eq!(back.json_line(), line);
    }
}

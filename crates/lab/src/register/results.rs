//! Goodput by panel, transport and hop count, from records.

use super::Published;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What is needed of a record.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// The seed.
    pub seed: u64,
    /// The values of the sweep.
    pub point: Map<String, Value>,
    /// Sum of the flows' goodputs, bit/s.
    pub aggregate_goodput_bps: f64,
}

/// Goodputs in kbit/s, one per seed, by panel, transport and hop count.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Values by (panel number, transport, hops).
    values: BTreeMap<(usize, String, u64), Vec<f64>>,
    /// Records that belong to no panel.
    pub strangers: usize,
}

impl Results {
    /// Reads the lines of a file of records.
    ///
    /// # Errors
    /// The number of the line that is no record, and why.
    pub fn read(lines: &str, published: &Published) -> Result<Results, String> {
        let mut results = Results::default();
        for (number, line) in lines.lines().enumerate() {
            let row: Row = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
            results.add(&row, published);
        }
        Ok(results)
    }

    fn add(&mut self, row: &Row, published: &Published) {
        let panel = published.panels.iter().position(|panel| row.point.get("routing") == Some(&panel.point));
        let transport = row.point.get("flow.transport").and_then(Value::as_str);
        let hops = row.point.get("topology.hops").and_then(Value::as_u64);
        match (panel, transport, hops) {
            (Some(panel), Some(transport), Some(hops)) => {
                let key = (panel, transport.to_owned(), hops);
                self.values.entry(key).or_default().push(row.aggregate_goodput_bps / 1e3);
            }
            _ => self.strangers += 1,
        }
    }

    /// The goodputs of a transport at a hop count, kbit/s; empty if there are none.
    pub fn goodputs(&self, panel: usize, transport: &str, hops: u64) -> &[f64] {
        self.values.get(&(panel, transport.to_owned(), hops)).map_or(&[], Vec::as_slice)
    }

    /// All hop counts there are, ascending.
    pub fn hops(&self) -> Vec<u64> {
        let mut hops: Vec<u64> = self.values.keys().map(|(_, _, hops)| *hops).collect();
        hops.sort_unstable();
        hops.dedup();
        hops
    }

    /// All transports there are.
    pub fn transports(&self) -> Vec<String> {
        let mut names: Vec<String> = self.values.keys().map(|(_, name, _)| name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Runs per point: the smallest and the largest number.
    pub fn runs_per_point(&self) -> (usize, usize) {
        let counts = self.values.values().map(Vec::len);
        (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0))
    }

    /// Adds made-up goodputs.
    #[cfg(test)]
    pub fn put(&mut self, panel: usize, transport: &str, hops: u64, kbps: &[f64]) {
        self.values.insert((panel, transport.to_owned(), hops), kbps.to_vec());
    }
}

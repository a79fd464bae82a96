//! Reads a scenario for the page from its text and its files. No file system is needed.

use crate::playback::Playback;
use meshpace_scenario::{Scenario, Source};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Largest number of nodes that are drawn.
pub const MAX_NODES: usize = 1_000;

/// Files that a scenario names, by the names that it uses.
pub type Files = BTreeMap<String, Vec<u8>>;

/// A scenario that was read.
pub struct Loaded {
    scenario: Scenario,
}

impl Loaded {
    /// Reads the scenario `text` with the `--set` arguments `sets`.
    ///
    /// # Errors
    /// All errors of the scenario, as text for people.
    pub fn read(name: &str, text: &str, sets: Vec<String>, files: &Files) -> Result<Loaded, String> {
        let source = Source { name: name.to_owned(), text: text.to_owned(), sets };
        let load = |wanted: &str| {
            let missing =
                || format!("{wanted}: the view has no file of this name; `meshpace view FILE` takes it along");
            files.get(wanted).cloned().ok_or_else(missing)
        };
        let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".toml");
        let scenario = Scenario::read_with(source, &load, stem).map_err(|refusal| refusal.render(false))?;
        if scenario.points.iter().all(|point| point.config.flows.is_empty()) {
            return Err("the scenario has no flow; run its programs with `meshpace emulate`".to_owned());
        }
        Ok(Loaded { scenario })
    }

    /// Name of the scenario, its points with the values of the sweep, and its warnings.
    pub fn describe(&self) -> Value {
        let points = self.scenario.points.iter().map(|point| {
            let values: Vec<Value> = point.values.iter().map(|(key, value)| json!([key, value])).collect();
            json!({ "values": values, "transports": point.transports, "names": point.names })
        });
        json!({
            "name": self.scenario.name,
            "points": points.collect::<Vec<_>>(),
            "warnings": self.scenario.warnings,
        })
    }

    /// Starts the run of a point.
    ///
    /// # Errors
    /// If the point does not exist, if there are too many nodes, or if no placement is found for
    /// this seed.
    pub fn play(&self, point: usize, seed: u64) -> Result<Playback, String> {
        let points = self.scenario.points.len();
        let chosen = self.scenario.points.get(point);
        let chosen =
            chosen.ok_or_else(|| format!("there is no point {point}: the scenario has {points}, from 0 on"))?;
        let nodes = chosen.config.positions.len();
        if nodes > MAX_NODES {
            return Err(format!(
                "the scenario has {nodes} nodes and a view draws at most {MAX_NODES}: make the topology smaller to look at it, or \
                 measure it as it is with `meshpace run`"
            ));
        }
        let drawn = chosen.drawn(seed).map_err(|unplaced| unplaced.to_string())?;
        Ok(Playback::new(&drawn, seed))
    }
}

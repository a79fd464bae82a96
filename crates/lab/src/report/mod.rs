//! Reports of records on disk: one self-contained page per experiment.

mod page;
pub mod palette;
pub mod plot;
mod table_page;
mod write;

pub use page::Page;
pub use table_page::TablePage;
pub use write::write_whole;

use crate::record::directory::{MANIFEST, RECORDS};
use crate::register::{Account, EXPERIMENTS, Experiment, Results, table};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The page.
pub const PAGE: &str = "index.html";
/// The records as a table for spreadsheets.
pub const TABLE: &str = "records.csv";

/// How the records of a directory came to be: what a report needs of its manifest.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
pub struct Provenance {
    /// The scenario's name.
    pub scenario: String,
    /// SHA-256 of everything the scenario was read from.
    pub scenario_sha256: String,
    /// Version of meshpace.
    pub version: String,
    /// The first seed.
    pub first_seed: u64,
    /// Seeds per point.
    pub seeds: u64,
    /// Points of the sweep.
    pub points: usize,
    /// Runs that failed and have no record.
    pub failed_runs: usize,
}

/// Seeds of the two qualities.
pub const QUICK_SEEDS: u64 = 5;
/// As many as the reference measurements have.
pub const PAPER_SEEDS: u64 = 20;

impl Provenance {
    /// Reads the manifest of a directory.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn read(directory: &Path) -> Result<Provenance, String> {
        let path = directory.join(MANIFEST);
        let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// The command that makes these records again.
    pub fn command(&self, id: &str) -> String {
        match self.seeds {
            QUICK_SEEDS => format!("meshpace reproduce {id} --quality quick"),
            PAPER_SEEDS => format!("meshpace reproduce {id} --quality paper"),
            seeds => format!("meshpace reproduce {id} --seeds {seeds}"),
        }
    }
}

/// The experiment whose records a directory holds: the one with the title its manifest names.
///
/// # Errors
/// If there is no manifest, or it is of no registered experiment.
pub fn experiment_of(directory: &Path) -> Result<(&'static Experiment, Provenance), String> {
    let provenance = Provenance::read(directory)?;
    let titled =
        |experiment: &&Experiment| experiment.read().is_ok_and(|scenario| scenario.name == provenance.scenario);
    match EXPERIMENTS.iter().find(titled) {
        Some(experiment) => Ok((experiment, provenance)),
        None => Err(format!(
            "{}: these are records of \"{}\", which is no registered experiment; a report can be made of those",
            directory.display(),
            provenance.scenario
        )),
    }
}

/// Writes the report of the records in `directory`, replacing the one that is there. Returns its path.
///
/// # Errors
/// If the records cannot be read or the page cannot be written.
pub fn write(directory: &Path) -> Result<PathBuf, String> {
    let (experiment, provenance) = experiment_of(directory)?;
    let path = directory.join(RECORDS);
    let shown = |error| format!("{}: {error}", path.display());
    let lines = std::fs::read_to_string(&path).map_err(|error| shown(error.to_string()))?;
    let page = match experiment.account() {
        Account::Figure(published) => {
            let results = Results::read(&lines, &published).map_err(shown)?;
            Page { published: &published, results: &results, provenance: &provenance }.render()
        }
        Account::Tables(tables) => {
            let records = table::read(&lines).map_err(shown)?;
            let command = provenance.command(experiment.id);
            TablePage { tables: &tables, records: &records, provenance: &provenance, command: &command }.render()
        }
    };
    write_whole(directory, PAGE, &page).map_err(|error| format!("{}: {error}", directory.join(PAGE).display()))?;
    Ok(directory.join(PAGE))
}

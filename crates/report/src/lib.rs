//! Reports of records on disk: one self-contained page for everything in a directory.

mod book;
mod compact;
mod decomposition;
mod figure;
pub mod palette;
mod parts;
pub mod plot;

pub use book::{Book, Chapter};

use meshpace_lab::record::directory::{MANIFEST, RECORDS};
use meshpace_lab::record::write_whole;
use meshpace_lab::register::{Register, observations};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The page.
pub const PAGE: &str = "index.html";
/// The records as a table for spreadsheets.
pub const TABLE: &str = "records.csv";
/// The same with types, for analysis.
pub const PARQUET: &str = "records.parquet";

/// How the records of a directory came to be: what a report needs of its manifest.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Provenance {
    /// The scenario's name.
    pub scenario: String,
    /// SHA-256 of everything the scenario was read from.
    pub scenario_sha256: String,
    /// Version of meshpace.
    pub version: String,
    /// Revision of the model; 0 before there were revisions.
    #[serde(default)]
    pub model: u32,
    /// The first seed.
    pub first_seed: u64,
    /// Seeds per point.
    pub seeds: u64,
    /// Points of the sweep.
    pub points: usize,
    /// Runs that failed and have no record.
    pub failed_runs: usize,
    /// The registered experiment that the runs belong to.
    #[serde(default)]
    pub experiment: Option<String>,
    /// How much was run: "quick" or "paper"; none if the seeds were given.
    #[serde(default)]
    pub quality: Option<String>,
    /// Whether all runs have been made.
    #[serde(default = "yes")]
    pub complete: bool,
    /// Time the campaign took, seconds.
    #[serde(default)]
    pub wall_time_s: f64,
}

fn yes() -> bool {
    true
}

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

    /// The command that makes these records again and shows `id`.
    pub fn command(&self, id: &str) -> String {
        match &self.quality {
            Some(quality) => format!("meshpace reproduce {id} --quality {quality}"),
            None => format!("meshpace reproduce {id} --seeds {}", self.seeds),
        }
    }
}

/// Writes the report of everything in `root`, a directory of records or one that has such directories in it, replacing the
/// one that is there. It goes into that directory, or to `page`, without links to the records then: it is read elsewhere.
/// Returns its path.
///
/// # Errors
/// If there are no records, they cannot be read, or the page cannot be written.
pub fn write(root: &Path, register: &Register, page: Option<&Path>) -> Result<PathBuf, String> {
    let mut chapters = Vec::new();
    for directory in campaigns(root)? {
        let made = Provenance::read(&directory)?;
        let Some(owner) = owner(&made, register) else {
            if directory == root {
                return Err(format!(
                    "{}: these are records of \"{}\", which is no registered experiment; a report can be made of those",
                    root.display(),
                    made.scenario
                ));
            }
            continue;
        };
        let path = directory.join(RECORDS);
        let shown = |error: String| format!("{}: {error}", path.display());
        // A campaign that has begun and not ended has no records yet.
        if !made.complete && !path.exists() {
            continue;
        }
        let lines = std::fs::read_to_string(&path).map_err(|error| shown(error.to_string()))?;
        let records = Arc::new(observations::parse(&lines).map_err(shown)?);
        let place = page.is_none().then(|| directory.strip_prefix(root).unwrap_or(Path::new("")).to_owned());
        chapters.push(Chapter { runs: owner, records, made, place });
    }
    if chapters.is_empty() {
        return Err(format!(
            "{}: no {MANIFEST} here or one directory down, so there is nothing to report",
            root.display()
        ));
    }
    let text = Book { register, chapters: &chapters }.render();
    let path = page.map_or_else(|| root.join(PAGE), Path::to_owned);
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(format!("{}: this is no name of a file", path.display()));
    };
    let directory = if directory == Path::new("") { Path::new(".") } else { directory };
    write_whole(directory, name, &text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// The directory itself if it has a manifest, or those in it that have one, by name.
fn campaigns(root: &Path) -> Result<Vec<PathBuf>, String> {
    let has_manifest = |directory: &Path| directory.join(MANIFEST).is_file();
    if has_manifest(root) {
        return Ok(vec![root.to_owned()]);
    }
    let shown = |error: std::io::Error| format!("{}: {error}", root.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root).map_err(shown)? {
        let path = entry.map_err(shown)?.path();
        if has_manifest(&path) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The experiment that runs belong to: the one the manifest names, or the one whose scenario has that title.
fn owner(made: &Provenance, register: &Register) -> Option<String> {
    let titled = || {
        let experiments = register.experiments.iter().filter(|experiment| experiment.scenario.is_some());
        let found = experiments
            .filter_map(|experiment| register.runs(experiment, meshpace_lab::register::Effort::Paper).ok()?);
        found.into_iter().find(|runs| runs.scenario.name == made.scenario).map(|runs| runs.id)
    };
    made.experiment.clone().filter(|id| register.find(id).is_some()).or_else(titled)
}

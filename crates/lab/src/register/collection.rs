//! Records on disk and the experiments they belong to.

use super::library::{Effort, Register};
use crate::record::Record;
use crate::record::archive::Archive;
use crate::record::directory::{self, Manifest};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The records of one campaign.
#[derive(Clone, Debug)]
pub struct Collection {
    /// The experiment whose runs they are; none for a scenario that is no registered experiment's.
    pub runs: Option<String>,
    /// The records.
    pub records: Arc<Vec<Record>>,
    /// Manifest of the runs.
    pub made: Manifest,
    /// Where they are.
    pub directory: PathBuf,
    /// What a reader should know of them, a sentence each.
    pub notes: Vec<String>,
}

/// The campaigns in `root` of which there are records, a directory of records or one that has such directories in it.
///
/// # Errors
/// If there is none, or one cannot be trusted: the file and line, and what to do.
pub fn collect(root: &Path, register: &Register) -> Result<Vec<Collection>, String> {
    let directories = directory::campaigns(root)?;
    if directories.is_empty() {
        let why = format!("no {} here or one directory down, so there is nothing to report", directory::MANIFEST);
        return Err(format!("{}: {why}; {}", root.display(), directory::MADE_BY));
    }
    let mut found = Vec::new();
    for directory in directories {
        let Some(Archive { manifest, records, notes, .. }) = Archive::read(&directory)? else { continue };
        let runs = owner(&manifest, register);
        found.push(Collection { runs, records: Arc::new(records), made: manifest, directory, notes });
    }
    if found.is_empty() {
        return Err(format!("{}: no run here is finished; the command that began it goes on", root.display()));
    }
    Ok(found)
}

/// The experiment that runs belong to: the one the manifest names, or the one whose scenario has that title.
fn owner(made: &Manifest, register: &Register) -> Option<String> {
    let titled = || {
        let experiments = register.experiments.iter().filter(|experiment| experiment.scenario.is_some());
        let found = experiments.filter_map(|experiment| register.runs(experiment, Effort::Paper).ok()?);
        found.into_iter().find(|runs| runs.scenario.name == made.scenario).map(|runs| runs.id)
    };
    made.experiment.clone().filter(|id| register.find(id).is_some()).or_else(titled)
}

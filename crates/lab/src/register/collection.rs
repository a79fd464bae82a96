//! Campaigns of records on disk, each with the experiment that its runs belong to.

use super::library::{Effort, Register};
use crate::record::Record;
use crate::record::archive::Archive;
use crate::record::directory::{self, Manifest};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The records of one campaign.
#[derive(Clone, Debug)]
pub struct Collection {
    /// Id of the experiment that the runs belong to. `None` if the scenario belongs to no
    /// registered experiment.
    pub runs: Option<String>,
    /// Records of the campaign.
    pub records: Arc<Vec<Record>>,
    /// Manifest of the campaign.
    pub made: Manifest,
    /// Directory of the records.
    pub directory: PathBuf,
    /// Notes for the reader of a report, one sentence each.
    pub notes: Vec<String>,
}

/// Reads the campaigns in `root` that have records. `root` is a directory of records, or a
/// directory that contains such directories.
///
/// # Errors
/// There is no campaign, or one of them cannot be trusted. The message names the file and line and
/// says what to do.
pub fn collect(root: &Path, register: &Register) -> Result<Vec<Collection>, String> {
    let directories = directory::campaigns(root)?;
    if directories.is_empty() {
        let why = format!(
            "there is nothing to report: neither this directory nor its subdirectories have a {}",
            directory::MANIFEST
        );
        return Err(format!("{}: {why}; {}", root.display(), directory::MADE_BY));
    }
    let mut found = Vec::new();
    for directory in directories {
        let Some(Archive { manifest, records, notes, .. }) = Archive::read(&directory)? else { continue };
        let runs = owner(&manifest, register);
        found.push(Collection { runs, records: Arc::new(records), made: manifest, directory, notes });
    }
    if found.is_empty() {
        return Err(format!(
            "{}: no run in this directory is complete; the command that began it continues",
            root.display()
        ));
    }
    Ok(found)
}

/// Experiment that the runs belong to: the one that the manifest names, or else the first one whose
/// scenario has the manifest's title.
fn owner(made: &Manifest, register: &Register) -> Option<String> {
    let titled = || {
        let experiments = register.experiments.iter().filter(|experiment| experiment.scenario.is_some());
        let found = experiments.filter_map(|experiment| register.runs(experiment, Effort::Paper).ok()?);
        found.into_iter().find(|runs| runs.scenario.name == made.scenario).map(|runs| runs.id)
    };
    made.experiment.clone().filter(|id| register.find(id).is_some()).or_else(titled)
}

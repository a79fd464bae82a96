//! Check of a directory of records from somebody else: nothing is damaged, and runs that are made
//! again give the same results.

use crate::record::kept;
use crate::rerun::{self, Compared, Directory};
use std::collections::BTreeSet;
use std::path::Path;

/// Result of a check.
#[derive(Clone, PartialEq, Debug)]
pub struct Checked {
    /// Number of records. Each of them is undamaged and belongs to a scenario of the directory.
    pub records: usize,
    /// Number of files that the scenarios name. Each of them exists.
    pub files: usize,
    /// Descriptions of the runs that were made again, each with its comparison.
    pub made: Vec<(String, Compared)>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// Checks a directory and makes `runs` of its runs again. The number `draw` determines which ones
/// are drawn. Runs that need a pacing rule in Python are not drawn.
///
/// # Errors
/// The first thing that is damaged or missing, or the reason why a run could not be made.
pub fn check(path: &Path, runs: usize, draw: u64) -> Result<Checked, String> {
    let mut directory = Directory::open(path)?;
    let mut files = BTreeSet::new();
    for given in directory.sources() {
        for (name, digest) in &given.files {
            kept::read(path, digest).map_err(|why| format!("{}: the file {name}: {why}", path.display()))?;
            files.insert(digest.clone());
        }
    }
    directory.belong()?;
    let (records, notes) = (directory.archive().records.len(), directory.archive().notes.clone());
    let mut made = Vec::new();
    for record in directory.draw(runs, draw) {
        let told = format!("seed {} at {}", record.seed, rerun::key(&record));
        let compared = directory.make(&record).map_err(|why| format!("{told}: {why}"))?;
        made.push((told, compared));
    }
    Ok(Checked { records, files: files.len(), made, notes })
}

//! A directory of records: `records.jsonl` and `manifest.json`, each written whole or not at all.

use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The records, one line of JSON each.
pub const RECORDS: &str = "records.jsonl";
/// What made them.
pub const MANIFEST: &str = "manifest.json";

/// What made a directory of records.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The scenario's name.
    pub scenario: String,
    /// SHA-256 of the scenario with its `--set` arguments and the files it names.
    pub scenario_sha256: String,
    /// The scenario as it was read.
    pub scenario_text: String,
    /// The `--set` arguments.
    pub set: Vec<String>,
    /// Version of meshpace.
    pub version: String,
    /// Revision of the model, [`meshpace_sim::MODEL_REVISION`]; 0 before there were revisions.
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
    /// Threads.
    pub jobs: usize,
    /// Name of the machine.
    pub host: String,
    /// Time the campaign took, seconds.
    pub wall_time_s: f64,
    /// The registered experiment that the runs belong to.
    pub experiment: Option<String>,
    /// How much was run: "quick" or "paper"; none if the seeds were given.
    pub quality: Option<String>,
    /// Whether all runs have been made.
    pub complete: bool,
}

/// A directory being written. Dropping it without [`Writer::finish`] leaves no file behind.
#[derive(Debug)]
pub struct Writer {
    directory: PathBuf,
    records: io::BufWriter<NamedTempFile>,
    force: bool,
}

impl Writer {
    /// Prepares `directory`, creating it if need be.
    ///
    /// # Errors
    /// `AlreadyExists` if it has records or a manifest and `force` is not set; whatever the file system refuses.
    pub fn create(directory: &Path, force: bool) -> io::Result<Writer> {
        if !force {
            for name in [RECORDS, MANIFEST] {
                let path = directory.join(name);
                if path.symlink_metadata().is_ok() {
                    let message = format!("{} is there already; --force replaces it", path.display());
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
                }
            }
        }
        std::fs::create_dir_all(directory)?;
        let records = io::BufWriter::new(temporary(directory)?);
        Ok(Writer { directory: directory.to_owned(), records, force })
    }

    /// Adds a record's line.
    ///
    /// # Errors
    /// Whatever the file system refuses.
    pub fn add(&mut self, line: &str) -> io::Result<()> {
        self.records.write_all(line.as_bytes())
    }

    /// Puts both files in place: the records first, so that a manifest always has its records.
    ///
    /// # Errors
    /// Whatever the file system refuses, and `AlreadyExists` if somebody else has put files there meanwhile.
    pub fn finish(self, manifest: &Manifest) -> io::Result<()> {
        let records = self.records.into_inner().map_err(io::IntoInnerError::into_error)?;
        let mut text = serde_json::to_vec_pretty(manifest)?;
        text.push(b'\n');
        let mut file = temporary(&self.directory)?;
        file.write_all(&text)?;
        persist(records, &self.directory.join(RECORDS), self.force)?;
        persist(file, &self.directory.join(MANIFEST), self.force)?;
        // The new names survive a power cut only when the directory itself is on the disk.
        std::fs::File::open(&self.directory)?.sync_all()
    }
}

fn temporary(directory: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".meshpace-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // Readable by others as usual (the umask still applies), not private as temporary files are.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(directory)
}

fn persist(file: NamedTempFile, path: &Path, force: bool) -> io::Result<()> {
    file.as_file().sync_all()?;
    let outcome = if force { file.persist(path) } else { file.persist_noclobber(path) };
    outcome.map(drop).map_err(|error| error.error)
}

//! `--record`: writes the stream of one run into a file.

use meshpace_lab::campaign::{Campaign, Run};
use meshpace_lab::stream;
use meshpace_scenario::Point;
use meshpace_sim::Outcome;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Error message for a file that already exists and must not be replaced.
pub fn is_there(path: &Path) -> String {
    format!("--record: {} already exists; --force replaces it", path.display())
}

/// Creates the file of a stream. It must not exist, unless `replace` is set.
///
/// # Errors
/// A sentence for people.
pub fn create(path: &Path, replace: bool) -> Result<File, String> {
    let mut options = File::options();
    options.write(true);
    if replace {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => is_there(path),
        _ => format!("--record: {}: {error}", path.display()),
    })
}

/// Recording of one run: the file of the stream, and the error if writing failed.
pub struct Recording {
    path: PathBuf,
    scenario: String,
    /// The file is opened before the run, so that a path that is not writable is reported first.
    file: Mutex<Option<File>>,
    failure: Mutex<Option<String>>,
}

impl Recording {
    /// Prepares a stream of the only run of `campaign` in `path`. The file must not exist, unless
    /// `replace` is set.
    ///
    /// # Errors
    /// A sentence for people.
    pub fn new(path: &Path, campaign: &Campaign, replace: bool) -> Result<Recording, String> {
        if campaign.runs() != 1 {
            let runs = campaign.runs();
            return Err(format!(
                "--record takes a single run, and these are {runs} runs: select one with --set, --seed and --seeds 1"
            ));
        }
        let file = create(path, replace)?;
        Ok(Recording {
            path: path.to_owned(),
            scenario: campaign.scenario.name.clone(),
            file: Mutex::new(Some(file)),
            failure: Mutex::default(),
        })
    }

    /// Makes the run and records it. The outcome of the run is valid even if writing the stream
    /// fails.
    pub fn run(&self, point: &Point, run: Run) -> Outcome {
        let Some(file) = self.file.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return meshpace_sim::run(&point.config, run.seed);
        };
        let (outcome, written) = stream::record(&self.scenario, point, run.seed, BufWriter::new(file));
        if let Err(error) = written {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            *failure = Some(format!("--record: {}: {error}", self.path.display()));
        }
        outcome
    }

    /// Returns the reason why the stream is incomplete. Later calls return `None`.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

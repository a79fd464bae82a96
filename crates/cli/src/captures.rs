//! `--pcap`: writes the captures of every run, and reports whether that succeeded.

use meshpace_capture::{CaptureError, PcapProbe};
use meshpace_lab::campaign::{Campaign, Run};
use meshpace_lab::record::make_directory;
use meshpace_scenario::Point;
use meshpace_sim::Outcome;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Longest name of a subdirectory before the seed is appended, in bytes. File systems allow 255.
const MAX_NAME: usize = 200;

/// Captures of a campaign.
pub struct Captures {
    directory: PathBuf,
    /// True if every run has a subdirectory of its own.
    several: bool,
    replace: bool,
    /// First failure; `None` once it was reported.
    failure: Mutex<Option<CaptureError>>,
}

impl Captures {
    /// Prepares the captures in `directory`, which is created. Returns an error if a file of the
    /// campaign's captures exists, unless `replace` is set.
    pub fn new(directory: &Path, campaign: &Campaign, replace: bool) -> io::Result<Captures> {
        let captures = Captures {
            directory: directory.to_owned(),
            several: campaign.runs() > 1,
            replace,
            failure: Mutex::new(None),
        };
        if !replace {
            for run in campaign.all() {
                // A point that cannot be built is not run, so it has no captures.
                let Ok(point) = campaign.point(run) else { continue };
                let nodes = point.config.positions.len();
                if let Some(path) = PcapProbe::existing(&captures.directory_of(&point, run), nodes) {
                    let message = format!("{} already exists; --force replaces it", path.display());
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
                }
            }
        }
        make_directory(directory)?;
        Ok(captures)
    }

    /// Makes one run and captures it. The outcome of the run is valid even if writing the captures
    /// fails.
    pub fn run(&self, point: &Point, run: Run) -> Outcome {
        let captured = PcapProbe::create(&self.directory_of(point, run), &point.config, self.replace);
        let (outcome, captured) = match captured {
            Ok(mut probe) => {
                let outcome = meshpace_sim::run_with(&point.config, run.seed, &mut probe);
                (outcome, probe.finish())
            }
            Err(error) => (meshpace_sim::run(&point.config, run.seed), Err(error)),
        };
        if let Err(error) = captured {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
        outcome
    }

    /// Returns the first failure of a capture. Later calls return `None`.
    pub fn failure(&self) -> Option<CaptureError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn directory_of(&self, point: &Point, run: Run) -> PathBuf {
        if self.several { self.directory.join(name(point, run)) } else { self.directory.clone() }
    }
}

/// Name of the subdirectory of a run: its number, the values of its point and its seed. The number
/// alone makes the name unique.
fn name(point: &Point, run: Run) -> String {
    let mut name = format!("{:04}", run.index + 1);
    for (key, value) in &point.values {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        name.push_str(&format!("_{key}={value}"));
    }
    let harmless = |c: char| if c.is_ascii_alphanumeric() || "._=-".contains(c) { c } else { '-' };
    let mut name: String = name.chars().map(harmless).collect();
    name.truncate(MAX_NAME);
    name + &format!("_seed={}", run.seed)
}

//! `--pcap`: where the captures of every run are written, and whether that succeeded.

use meshpace_capture::{CaptureError, PcapProbe};
use meshpace_lab::campaign::{Campaign, Run};
use meshpace_lab::record::make_directory;
use meshpace_scenario::Point;
use meshpace_sim::Outcome;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Longest name of a subdirectory in bytes; file systems take 255.
const MAX_NAME: usize = 200;

/// The captures of a campaign.
pub struct Captures {
    directory: PathBuf,
    /// True if every run has a subdirectory.
    several: bool,
    replace: bool,
    /// The first failure, until it is told.
    failure: Mutex<Option<CaptureError>>,
}

impl Captures {
    /// Captures into `directory`, which is created. Refused if one of the campaign's files is there, unless `replace`.
    pub fn new(directory: &Path, campaign: &Campaign, replace: bool) -> io::Result<Captures> {
        let captures = Captures {
            directory: directory.to_owned(),
            several: campaign.runs() > 1,
            replace,
            failure: Mutex::new(None),
        };
        if !replace {
            for run in campaign.all() {
                // A point that is refused has no captures.
                let Ok(point) = campaign.point(run) else { continue };
                let nodes = point.config.positions.len();
                if let Some(path) = PcapProbe::existing(&captures.directory_of(&point, run), nodes) {
                    let message = format!("{} is there already; --force replaces it", path.display());
                    return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
                }
            }
        }
        make_directory(directory)?;
        Ok(captures)
    }

    /// Makes one run and captures it. The run's outcome is good even if its captures are not.
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

    /// The first capture that failed, once.
    pub fn failure(&self) -> Option<CaptureError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn directory_of(&self, point: &Point, run: Run) -> PathBuf {
        if self.several { self.directory.join(name(point, run)) } else { self.directory.clone() }
    }
}

/// The subdirectory of a run: its number, the values of its point, its seed. The number alone makes it unique.
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

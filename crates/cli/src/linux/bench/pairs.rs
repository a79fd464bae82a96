//! Alternating runs of two programs, measured by their CPU time.

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use std::fmt::Write as _;
use std::io;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Our own program in a comparison.
pub struct Own {
    /// Command to run. It prints one JSON object.
    pub command: Command,
    /// Simulated time of a run, seconds.
    pub simulated_s: f64,
    /// Record that the last run printed.
    pub last: Value,
}

impl Own {
    /// Makes one run and returns its CPU time, seconds. It is an error if its fingerprint differs
    /// from that of the run before.
    fn run(&mut self) -> io::Result<f64> {
        let (seconds, line) = cpu_seconds(&mut self.command)?;
        let record: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
        if !self.last.is_null() && self.last["fingerprint"] != record["fingerprint"] {
            return Err(io::Error::other("two runs of the same scenario differ"));
        }
        self.last = record;
        Ok(seconds)
    }
}

/// Program of another simulator in a comparison.
pub struct Rival {
    /// Name of the simulator.
    pub name: &'static str,
    /// Command to run. It prints one line of key=value pairs.
    pub command: Command,
    /// Simulated time of a run, seconds.
    pub simulated_s: f64,
    /// Directory of the files that the command reads. It is deleted when this value is dropped.
    pub _files: TempDir,
}

/// Measurements of the pairs of runs.
#[derive(Default)]
pub struct Series {
    /// CPU time of each of our runs, seconds.
    pub ours: Vec<f64>,
    /// CPU time of each run of the other program, seconds.
    pub others: Vec<f64>,
    /// CPU time per simulated second of the other program, divided by ours, for each pair.
    pub ratios: Vec<f64>,
    /// Line that the last run of the other program printed.
    printed: String,
}

impl Series {
    /// Returns the number that the other program printed for `key`.
    pub fn printed(&self, key: &str) -> Option<f64> {
        let value = self.printed.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value.and_then(|value| value.parse().ok())
    }
}

/// Runs both programs alternately `pairs` times, or only `own` if there is no rival. `said` is
/// called with a line about each pair.
pub fn run(own: &mut Own, mut rival: Option<&mut Rival>, pairs: u16, said: impl Fn(&str)) -> io::Result<Series> {
    let mut series = Series::default();
    for pair in 1..=pairs {
        let mine = own.run()?;
        series.ours.push(mine);
        let mut line = format!("{pair}: {mine:.3} s CPU");
        if let Some(rival) = &mut rival {
            let (theirs, printed) = cpu_seconds(&mut rival.command)?;
            let ratio = (theirs / rival.simulated_s) / (mine / own.simulated_s);
            let _ = write!(line, ", {} {theirs:.3} s", rival.name);
            if rival.simulated_s < own.simulated_s {
                let _ = write!(line, " for {} of {} simulated s", rival.simulated_s, own.simulated_s);
            }
            let _ = write!(line, ", ratio {ratio:.2}");
            series.others.push(theirs);
            series.ratios.push(ratio);
            series.printed = printed;
        }
        said(&line);
    }
    Ok(series)
}

/// Median of the values, of which there must be at least one.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// Runs `command` until it ends. Returns its CPU time in seconds, and its output.
fn cpu_seconds(command: &mut Command) -> io::Result<(f64, String)> {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
        Ok::<f64, io::Error>(seconds(usage.user_time()) + seconds(usage.system_time()))
    };
    let before = used()?;
    let output = command.stderr(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{command:?} ended with {}", output.status)));
    }
    Ok((used()? - before, String::from_utf8_lossy(&output.stdout).into_owned()))
}

//! Runs of two programs in turn, by CPU time.

use nix::sys::resource::{UsageWho, getrusage};
use serde_json::Value;
use std::fmt::Write as _;
use std::io;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Our part.
pub struct Own {
    /// Command to run; it prints one JSON object.
    pub command: Command,
    /// Simulated time of a run, s.
    pub simulated_s: f64,
    /// Record that the last run printed.
    pub last: Value,
}

impl Own {
    /// One run; its CPU time, s. Two runs that differ are an error.
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

/// Another simulator's part.
pub struct Rival {
    /// The simulator.
    pub name: &'static str,
    /// Command to run; it prints one line of key=value pairs.
    pub command: Command,
    /// Simulated time of a run, s.
    pub simulated_s: f64,
    /// Keeps the files that the command reads.
    pub _files: TempDir,
}

/// Measurements of the pairs of runs.
#[derive(Default)]
pub struct Series {
    /// CPU time of our runs, s.
    pub ours: Vec<f64>,
    /// That of the other's, s.
    pub others: Vec<f64>,
    /// CPU time per simulated second, the other's by ours, pair by pair.
    pub ratios: Vec<f64>,
    /// Line that the other's last run printed.
    printed: String,
}

impl Series {
    /// The number that the other printed after `key`.
    pub fn printed(&self, key: &str) -> Option<f64> {
        let value = self.printed.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value.and_then(|value| value.parse().ok())
    }
}

/// Runs both in turn `pairs` times, or `own` alone; tells `said` of each.
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

/// The median of at least one value.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

/// Runs `command` to its end; its CPU seconds and what it printed.
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

//! Repeats and judges published experiments.

use crate::errors;
use crate::progress::Progress;
use crate::workers::backend;
use meshpace_lab::campaign::Work;
use meshpace_lab::register::reproduction::Reproduction;
use meshpace_lab::register::{Effort, Register, collection, verdicts};
use meshpace_lab::session::Broken;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Id and title of every experiment of the register.
#[pyfunction]
pub fn experiments() -> Vec<(String, String)> {
    let told = |experiment: meshpace_lab::register::Experiment| {
        (experiment.published.id.clone(), experiment.published.title.clone())
    };
    Register::embedded().experiments.into_iter().map(told).collect()
}

/// Reason why there are no verdicts.
enum Failure {
    /// A Python exception, or an error of the file system.
    Io(io::Error),
    /// A message.
    Words(String),
}

/// Makes the runs of experiments and writes the report. Returns the verdicts as the text of
/// `verdicts.json`, and messages for people. Without a directory, the records are deleted
/// afterwards.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options of the command, each with its name in Python")]
pub fn reproduce(
    py: Python<'_>,
    ids: Vec<String>,
    paper: bool,
    readings: bool,
    seeds: Option<u64>,
    out: Option<PathBuf>,
    force: bool,
    jobs: usize,
    progress: Option<Py<PyAny>>,
    carrier: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let made = py.detach(|| match out {
        Some(out) => make(&ids, paper, readings, seeds, &out, force, jobs, progress, carrier),
        None => {
            let scratch = tempfile::tempdir().map_err(Failure::Io)?;
            make(&ids, paper, readings, seeds, scratch.path(), force, jobs, progress, carrier)
        }
    });
    made.map_err(|failure| match failure {
        Failure::Io(error) => errors::of_io(py, error),
        Failure::Words(why) => errors::records(py, why),
    })
}

#[expect(clippy::too_many_arguments, reason = "as above")]
fn make(
    ids: &[String],
    paper: bool,
    readings: bool,
    seeds: Option<u64>,
    out: &Path,
    force: bool,
    jobs: usize,
    progress: Option<Py<PyAny>>,
    carrier: Option<Py<PyAny>>,
) -> Result<(String, Vec<String>), Failure> {
    let register = Register::embedded();
    let chosen = register.choose(ids).map_err(Failure::Words)?;
    let effort = match (paper, readings) {
        (true, _) => Effort::Paper,
        (false, true) => Effort::QuickWithReadings,
        (false, false) => Effort::Quick,
    };
    let plans = register.plans(&chosen, effort, seeds).map_err(Failure::Words)?;
    let wanted: BTreeSet<&str> = chosen.iter().map(|experiment| experiment.published.id.as_str()).collect();
    let mut all = Work::default();
    plans.iter().for_each(|runs| all += runs.work());
    let stop = Arc::default();
    let mut backend = backend(carrier, jobs, None, &stop);
    let mut progress = Progress::new(progress, all, Work::default(), &stop);
    let mut failed = 0;
    for runs in plans {
        let quality = seeds.is_none().then_some(if paper { "paper" } else { "quick" });
        let directory = out.join(&runs.id);
        let reproduction = Reproduction { directory, register: &register, quality, force, jobs };
        let made = reproduction.make(runs, &mut *backend, &mut progress);
        if let Some(raised) = progress.raised.take() {
            return Err(Failure::Io(raised));
        }
        failed += made.map_err(|broken| match broken {
            Broken::Stopped { kept } => Failure::Words(format!("stopped; {kept} runs are kept")),
            Broken::Io(error) => Failure::Io(error),
        })?;
    }
    let collections = collection::collect(out, &register).map_err(Failure::Words)?;
    meshpace_report::write(out, &collections, &register, None, None).map_err(Failure::Words)?;
    let mut entries = verdicts::of(&register, &collections);
    verdicts::write(out, &entries).map_err(Failure::Words)?;
    if failed > 0 {
        progress.said.push(format!("{failed} runs failed"));
    }
    entries.retain(|entry| wanted.contains(entry.experiment.as_str()));
    Ok((verdicts::text(&entries), progress.said))
}

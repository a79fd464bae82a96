//! Published experiments, run again and judged.

use crate::errors;
use crate::progress::Progress;
use crate::workers::Remote;
use meshpace_lab::backend::{Backend, Threads};
use meshpace_lab::campaign::{Campaign, Run, Work};
use meshpace_lab::register::reproduction::{Broken, Listener, Reproduction};
use meshpace_lab::register::{Effort, Register, collection, verdicts};
use meshpace_lab::workers::Workers;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Id and title of every experiment of the register.
#[pyfunction]
pub fn experiments() -> Vec<(String, String)> {
    let told = |experiment: meshpace_lab::register::Experiment| {
        (experiment.published.id.clone(), experiment.published.title.clone())
    };
    Register::embedded().experiments.into_iter().map(told).collect()
}

/// Why there are no verdicts.
enum Failure {
    /// The exception of Python, or an error of files.
    Io(io::Error),
    /// In words.
    Words(String),
}

/// Makes the runs of experiments, writes the report, and gives back the verdicts as the text of `verdicts.json`, and sentences for
/// people. Without a directory the records are gone afterwards.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "the options of the command, each with its name in Python")]
pub fn reproduce(
    py: Python<'_>,
    ids: Vec<String>,
    paper: bool,
    seeds: Option<u64>,
    out: Option<PathBuf>,
    force: bool,
    jobs: usize,
    progress: Option<Py<PyAny>>,
    carrier: Option<Py<PyAny>>,
) -> PyResult<(String, Vec<String>)> {
    let made = py.detach(|| match out {
        Some(out) => make(&ids, paper, seeds, &out, force, jobs, progress, carrier),
        None => {
            let scratch = tempfile::tempdir().map_err(Failure::Io)?;
            make(&ids, paper, seeds, scratch.path(), force, jobs, progress, carrier)
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
    seeds: Option<u64>,
    out: &Path,
    force: bool,
    jobs: usize,
    progress: Option<Py<PyAny>>,
    carrier: Option<Py<PyAny>>,
) -> Result<(String, Vec<String>), Failure> {
    let register = Register::embedded();
    let chosen = register.choose(ids).map_err(Failure::Words)?;
    let effort = if paper { Effort::Paper } else { Effort::Quick };
    let plans = register.plans(&chosen, effort, seeds).map_err(Failure::Words)?;
    let wanted: BTreeSet<&str> = chosen.iter().map(|experiment| experiment.published.id.as_str()).collect();
    let mut all = Work::default();
    plans.iter().for_each(|runs| all += runs.work());
    let stop = Arc::new(AtomicBool::new(false));
    let mut threads;
    let mut workers;
    let backend: &mut dyn Backend = match carrier {
        None => {
            threads = Threads { jobs, stop: &stop };
            &mut threads
        }
        Some(carrier) => {
            workers = Workers { carrier: Remote(carrier), stop: &stop, chunk_s: None };
            &mut workers
        }
    };
    let progress = Progress::new(progress, all, Work::default());
    let mut told = Told { progress, stop: &stop, raised: None, said: Vec::new() };
    let mut failed = 0;
    for runs in plans {
        let quality = seeds.is_none().then_some(if paper { "paper" } else { "quick" });
        let directory = out.join(&runs.id);
        let reproduction = Reproduction { directory, register: &register, quality, force, jobs };
        let made = reproduction.make(runs, backend, &mut told);
        if let Some(raised) = told.raised.take() {
            return Err(Failure::Io(raised));
        }
        failed += made.map_err(|broken| match broken {
            Broken::Stopped { kept } => Failure::Words(format!("stopped; {kept} runs are kept")),
            Broken::Store(error) => Failure::Io(error),
        })?;
    }
    let collections = collection::collect(out, &register).map_err(Failure::Words)?;
    meshpace_report::write(out, &collections, &register, None, None).map_err(Failure::Words)?;
    let mut entries = verdicts::of(&register, &collections);
    verdicts::write(out, &entries).map_err(Failure::Words)?;
    if failed > 0 {
        told.said.push(format!("{failed} runs failed"));
    }
    entries.retain(|entry| wanted.contains(entry.experiment.as_str()));
    Ok((verdicts::text(&entries), told.said))
}

/// Python's progress, and what is said.
struct Told<'a> {
    progress: Progress,
    stop: &'a Arc<AtomicBool>,
    raised: Option<io::Error>,
    said: Vec<String>,
}

impl Told<'_> {
    fn heed(&mut self, looked: io::Result<()>) {
        if let Err(exception) = looked {
            self.raised.get_or_insert(exception);
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Listener for Told<'_> {
    fn on_known(&mut self, work: Work) {
        let looked = self.progress.done(work);
        self.heed(looked);
    }

    fn on_more(&mut self, work: Work) {
        self.progress.add(work);
    }

    fn on_run(&mut self, campaign: &Campaign, run: Run, cost_s: f64, failure: Option<&str>) {
        if let Some(why) = failure {
            self.said.push(format!("{} failed: {why}", campaign.describe(run)));
        }
        let looked = self.progress.done(Work { runs: 1, cost_s });
        self.heed(looked);
    }

    fn on_idle(&mut self) {
        let looked = self.progress.look(false);
        self.heed(looked);
    }

    fn say(&mut self, sentence: &str) {
        self.said.push(sentence.to_owned());
    }
}

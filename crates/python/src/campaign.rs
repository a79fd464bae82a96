//! Campaigns. The runs are made here or by workers, and their records are kept in memory or in a
//! directory.

use crate::errors;
use crate::pacing::Raised;
use crate::progress::Progress;
use crate::records::Records;
use crate::scenario::Scenario;
use crate::workers::backend;
use meshpace_lab::campaign::{Campaign as Runs, Run};
use meshpace_lab::record::directory::RECORDS;
use meshpace_lab::record::line::{self, Key};
use meshpace_lab::session::{Broken, Session};
use meshpace_lab::until::{Growing, Until};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

struct State {
    session: Session,
    /// Damaged records that were found in the directory, one sentence each.
    damaged: Vec<String>,
    /// Numbers of seeds of the points; `None` unless each point gets as many seeds as its interval
    /// requires.
    growing: Option<Growing>,
    /// Points whose interval is still wider than required, one sentence each.
    wide: Vec<String>,
}

/// A scenario with its seeds, and the runs made so far.
#[pyclass(frozen, module = "meshpace._native")]
pub struct Campaign {
    runs: Arc<Runs>,
    directory: Option<PathBuf>,
    state: Mutex<State>,
    /// Exceptions of the scenario's Python pacing rules.
    rules: Vec<Raised>,
}

/// Suppresses the default message about panics, unless `RUST_BACKTRACE` is set. A panic in a run is
/// reported with the run.
pub fn silence_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::env::var_os("RUST_BACKTRACE").is_some() {
            usual(panic);
        }
    }));
}

#[pymethods]
impl Campaign {
    /// Creates a campaign with `seeds` seeds per point, starting at `seed`. With a directory, every
    /// record is written to the disk as soon as its run is finished, and records of an earlier
    /// start are reused.
    ///
    /// `identity` is the digest of the scenario with its Python rules, and these rules as JSON.
    /// `until` is a rule by which points get more seeds, with the largest number of seeds of a
    /// point.
    #[new]
    #[pyo3(signature = (scenario, seed, seeds, directory, force, identity, until=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of the class in Python")]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        seed: u64,
        seeds: u64,
        directory: Option<PathBuf>,
        force: bool,
        identity: (String, Vec<String>),
        until: Option<(String, u64)>,
    ) -> PyResult<Campaign> {
        let (digest, rules) = identity;
        let until = until.map(|(rule, most)| Until::parse(&rule, Some(seeds), most)).transpose();
        let until = until.map_err(|why| PyValueError::new_err(format!("until: {why}")))?;
        let (first, most) = until.map_or((seeds, seeds), |until| (until.first(), until.most()));
        if seed.checked_add(most - 1).is_none() {
            return Err(PyValueError::new_err(format!("seeds: {most} seeds from {seed} on cannot be had")));
        }
        let runs = Runs { scenario: scenario.read.clone(), first_seed: seed, seeds: first };
        let manifest = runs.manifest(1);
        let runs = Arc::new(Runs { seeds: most, ..runs });
        let rules: Result<_, _> = rules.iter().map(|rule| serde_json::from_str(rule)).collect();
        let rules = rules.map_err(|error| errors::records(py, error.to_string()))?;
        let mut session = match &directory {
            None => Session::in_memory(Arc::clone(&runs)),
            Some(directory) => {
                let manifest = manifest.with_rules(rules, digest);
                let session = py.detach(|| Session::open(Arc::clone(&runs), directory, &manifest, force));
                session.map_err(|error| errors::of_io(py, error))?
            }
        };
        // The directory is locked only while runs are made, and not during the whole lifetime of
        // this Python object.
        session.release();
        let damaged = session.store().map(|store| store.damaged().to_vec()).unwrap_or_default();
        let growing = until.map(|until| Growing::new(until, &runs));
        let state = Mutex::new(State { session, damaged, growing, wide: Vec::new() });
        Ok(Campaign { runs, directory, state, rules: scenario.raised() })
    }

    /// Number of runs. If points get as many seeds as they need, the number of runs so far.
    #[getter]
    fn total(&self, py: Python<'_>) -> PyResult<usize> {
        let state = self.state(py)?;
        Ok(state.growing.as_ref().map_or_else(|| self.runs.runs(), |growing| growing.runs(&self.runs).count()))
    }

    /// Points that have the largest number of seeds and an interval that is wider than the rule
    /// requires, one sentence each.
    fn wide(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.state(py)?.wide.clone())
    }

    /// Number of finished runs.
    fn done(&self, py: Python<'_>) -> PyResult<usize> {
        let state = self.state(py)?;
        Ok(match &state.growing {
            Some(growing) => growing.runs(&self.runs).filter(|run| state.session.has(*run)).count(),
            None => self.runs.all().filter(|run| state.session.has(*run)).count(),
        })
    }

    /// Damaged records that were found in the directory, one sentence each. Their runs are made
    /// again.
    fn damaged(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.state(py)?.damaged.clone())
    }

    /// Failed runs, each with its description and the reason.
    fn failed(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let state = self.state(py)?;
        let told = |(index, why): (&usize, &String)| (self.runs.describe(self.runs.run(*index)), why.clone());
        Ok(state.session.failed().iter().map(told).collect())
    }

    /// Makes the missing runs, on `jobs` threads or by the workers behind `carrier`, in chunks of
    /// `chunk_s` seconds. `progress` is called with the number of finished runs, the number of all
    /// runs, and the share of the cost that is finished.
    fn run(
        &self,
        py: Python<'_>,
        jobs: usize,
        progress: Option<Py<PyAny>>,
        carrier: Option<Py<PyAny>>,
        chunk_s: Option<f64>,
    ) -> PyResult<()> {
        let mut state = self.state(py)?;
        let State { session, growing, wide, .. } = &mut *state;
        let made = py.detach(move || {
            session.resume()?;
            let made = self.make(session, growing.as_mut(), jobs, progress, carrier, chunk_s);
            session.release();
            made.map(|told| *wide = told)
        });
        drop(state);
        made.map_err(|error| errors::of_io(py, error))
    }

    /// Existing records of the campaign's runs, in the campaign's order.
    fn records(&self, py: Python<'_>) -> PyResult<Records> {
        let state = self.state(py)?;
        match (state.session.store(), &self.directory) {
            // Without a store, the session has finished its directory.
            (None, Some(directory)) => self.finished(&state.session, directory),
            _ => state.session.lines().map(Records::of),
        }
        .map_err(|error: io::Error| errors::of_io(py, error))
    }
}

impl Campaign {
    /// Records of the campaign's runs in the file of a finished directory, which may contain other
    /// runs.
    fn finished(&self, session: &Session, directory: &Path) -> io::Result<Records> {
        let all = Records::in_file(directory.join(RECORDS))?;
        if all.len() == self.runs.runs() - session.failed().len() {
            return Ok(all);
        }
        let keys: BTreeSet<Key> = self.runs.all().map(|run| run.key(session.keys())).collect();
        let is_own = |line: &io::Result<String>| {
            let Ok(line) = line else { return true };
            line::open(line).ok().and_then(|record| line::key_of(&record)).is_some_and(|key| keys.contains(&key))
        };
        all.all()?.filter(is_own).collect::<io::Result<_>>().map(Records::of)
    }

    fn state(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => Err(errors::records(py, "another thread is running this campaign")),
        }
    }

    /// Makes the missing runs. Returns a sentence for each point whose interval remains too wide.
    fn make(
        &self,
        session: &mut Session,
        growing: Option<&mut Growing>,
        jobs: usize,
        progress: Option<Py<PyAny>>,
        carrier: Option<Py<PyAny>>,
        chunk_s: Option<f64>,
    ) -> io::Result<Vec<String>> {
        let all: Vec<Run> = match &growing {
            Some(growing) => growing.runs(&self.runs).collect(),
            None => self.runs.all().collect(),
        };
        let work = session.work(&all);
        let (known, todo) = session.partition(all);
        let stop = Arc::default();
        // Discards exceptions of an earlier campaign of this scenario.
        self.rules.iter().for_each(|raised| drop(raised.take()));
        let mut progress = Progress::new(progress, work, session.work(&known), &stop).and_rules(&self.rules);
        let mut wide = Vec::new();
        let made = match growing {
            // A directory that this session has finished contains all its runs.
            Some(_) if session.is_finished() => Ok(0),
            Some(growing) => {
                let made = growing.make(session, &mut *backend(carrier, jobs, chunk_s, &stop), &mut progress);
                wide = growing.told(session)?;
                made
            }
            None if todo.is_empty() => Ok(0),
            None => session.make(todo, &mut *backend(carrier, jobs, chunk_s, &stop), &mut progress),
        };
        progress.ask_rules();
        match (progress.raised.take(), made) {
            (Some(raised), _) | (None, Err(Broken::Io(raised))) => Err(raised),
            (None, Err(Broken::Stopped { .. })) => Err(io::Error::other("the campaign was stopped")),
            (None, Ok(_)) => session.finish(jobs).map(|()| wide),
        }
    }
}

//! A campaign: its runs, made here or by workers, kept in memory or in a directory.

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
    /// Damaged records that were found in the directory, a sentence each.
    damaged: Vec<String>,
    /// The seeds of each point, if they are as many as an interval needs.
    growing: Option<Growing>,
    /// Points that have not got the interval, a sentence each.
    wide: Vec<String>,
}

/// A scenario with its seeds, and what has been made of it.
#[pyclass(frozen, module = "meshpace._native")]
pub struct Campaign {
    runs: Arc<Runs>,
    directory: Option<PathBuf>,
    state: Mutex<State>,
    /// Where the pacing rules of Python leave what they raise.
    rules: Vec<Raised>,
}

/// Panics in runs are told with their runs, not by the default hook.
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
    /// Of so many seeds per point, from `seed` on. With a directory every record is on the disk as soon as it is there, and those
    /// of an earlier start are taken over. `identity` is the digest of the scenario with its rules of Python, and these rules as JSON. `until` is a
    /// rule by which points get more seeds, with the most that a point may get.
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
        // The directory is locked while runs are made, and not for as long as Python keeps this object.
        session.release();
        let damaged = session.store().map(|store| store.damaged().to_vec()).unwrap_or_default();
        let growing = until.map(|until| Growing::new(until, &runs));
        let state = Mutex::new(State { session, damaged, growing, wide: Vec::new() });
        Ok(Campaign { runs, directory, state, rules: scenario.raised() })
    }

    /// Number of runs; where points get as many seeds as they need, those so far.
    #[getter]
    fn total(&self, py: Python<'_>) -> PyResult<usize> {
        let state = self.state(py)?;
        Ok(state.growing.as_ref().map_or_else(|| self.runs.runs(), |growing| growing.runs(&self.runs).count()))
    }

    /// Points whose interval is wider than the rule says, though they have the most seeds; a sentence each.
    fn wide(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.state(py)?.wide.clone())
    }

    /// Number of runs that are made.
    fn done(&self, py: Python<'_>) -> PyResult<usize> {
        let state = self.state(py)?;
        Ok(match &state.growing {
            Some(growing) => growing.runs(&self.runs).filter(|run| state.session.has(*run)).count(),
            None => self.runs.all().filter(|run| state.session.has(*run)).count(),
        })
    }

    /// The damaged records that were found in the directory, a sentence each; their runs are made again.
    fn damaged(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.state(py)?.damaged.clone())
    }

    /// The runs that failed, each with what it was and why.
    fn failed(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let state = self.state(py)?;
        let told = |(index, why): (&usize, &String)| (self.runs.describe(self.runs.run(*index)), why.clone());
        Ok(state.session.failed().iter().map(told).collect())
    }

    /// Makes the runs that are missing, on `jobs` threads or by the workers behind `carrier`, in chunks of `chunk_s` seconds. `progress` is called with the runs
    /// made, all runs, and the share of the cost that is behind.
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

    /// The records of its runs that are there, in the order of the campaign.
    fn records(&self, py: Python<'_>) -> PyResult<Records> {
        let state = self.state(py)?;
        match (state.session.store(), &self.directory) {
            // A session without its directory has finished it.
            (None, Some(directory)) => self.finished(&state.session, directory),
            _ => state.session.lines().map(Records::of),
        }
        .map_err(|error: io::Error| errors::of_io(py, error))
    }
}

impl Campaign {
    /// The records of its runs in the finished file of a directory, which may have others.
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

    /// Makes the runs that are missing; a sentence for each point whose interval stays too wide.
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
        // What an earlier campaign of this scenario left there is not of this one.
        self.rules.iter().for_each(|raised| drop(raised.take()));
        let mut progress = Progress::new(progress, work, session.work(&known), &stop).and_rules(&self.rules);
        let mut wide = Vec::new();
        let made = match growing {
            // A directory that this session has finished has all its runs.
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

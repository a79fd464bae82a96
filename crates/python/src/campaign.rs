//! A campaign: its runs, made here or by workers, kept in memory or in a directory.

use crate::errors;
use crate::progress::Progress;
use crate::records::Records;
use crate::scenario::Scenario;
use crate::workers::Remote;
use meshpace_lab::backend::{Backend, Threads, Watch};
use meshpace_lab::campaign::{Campaign as Runs, End, Run, Work};
use meshpace_lab::record::Record;
use meshpace_lab::record::directory::{Manifest, RECORDS};
use meshpace_lab::record::line::Key;
use meshpace_lab::record::store::Store;
use meshpace_lab::workers::Workers;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Instant;

/// Where records are.
enum Kept {
    Memory(BTreeMap<Key, String>),
    Open(Box<Store>),
    /// The directory has them all.
    Finished,
}

impl Kept {
    fn has(&self, key: &Key) -> bool {
        match self {
            Kept::Memory(lines) => lines.contains_key(key),
            Kept::Open(store) => store.has(key),
            Kept::Finished => true,
        }
    }

    fn add(&mut self, key: Key, record: &Record) -> io::Result<()> {
        let line = record.json_line();
        match self {
            Kept::Memory(lines) => {
                lines.insert(key, line.trim_end().to_owned());
                Ok(())
            }
            Kept::Open(store) => store.add(key, &line),
            Kept::Finished => Ok(()),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        match self {
            Kept::Open(store) => store.sync(),
            Kept::Memory(_) | Kept::Finished => Ok(()),
        }
    }
}

struct State {
    kept: Kept,
    /// Why runs failed, by their places.
    failed: BTreeMap<usize, String>,
    /// What was found damaged in the directory.
    damaged: Vec<String>,
}

/// A scenario with its seeds, and what has been made of it.
#[pyclass(frozen, module = "meshpace._native")]
pub struct Campaign {
    runs: Arc<Runs>,
    keys: Vec<String>,
    directory: Option<PathBuf>,
    state: Mutex<State>,
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
    /// of an earlier start are taken over.
    #[new]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        seed: u64,
        seeds: u64,
        directory: Option<PathBuf>,
        force: bool,
    ) -> PyResult<Campaign> {
        let runs = Runs { scenario: scenario.read.clone(), first_seed: seed, seeds };
        let mut damaged = Vec::new();
        let kept = match &directory {
            None => Kept::Memory(BTreeMap::new()),
            Some(directory) => {
                let manifest = Manifest::of(&runs, 1);
                let store = py.detach(|| Store::open(directory, &manifest, force));
                let store = store.map_err(|error| errors::of_io(py, error))?;
                damaged.extend_from_slice(store.damaged());
                Kept::Open(Box::new(store))
            }
        };
        let keys = runs.keys();
        let state = Mutex::new(State { kept, failed: BTreeMap::new(), damaged });
        Ok(Campaign { runs: Arc::new(runs), keys, directory, state })
    }

    /// How many runs there are.
    #[getter]
    fn total(&self) -> usize {
        self.runs.runs()
    }

    /// How many are made.
    fn done(&self, py: Python<'_>) -> PyResult<usize> {
        let state = self.state(py)?;
        Ok(self.all().filter(|run| state.kept.has(&run.key(&self.keys))).count())
    }

    /// What was found damaged in the directory and is run again.
    fn damaged(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.state(py)?.damaged.clone())
    }

    /// The runs that failed, each with what it was and why.
    fn failed(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        let state = self.state(py)?;
        let told = |(index, why): (&usize, &String)| (self.runs.describe(self.runs.run(*index)), why.clone());
        Ok(state.failed.iter().map(told).collect())
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
        let held = &mut *state;
        let made = py.detach(move || self.make(held, jobs, progress, carrier, chunk_s));
        drop(state);
        made.map_err(|error| errors::of_io(py, error))
    }

    /// The records that are there, in the order of the campaign.
    fn records(&self, py: Python<'_>) -> PyResult<Records> {
        let state = self.state(py)?;
        match (&state.kept, &self.directory) {
            (Kept::Finished, Some(directory)) => Records::in_file(directory.join(RECORDS)),
            (Kept::Open(store), _) => {
                let line = |run: Run| store.line(&run.key(&self.keys)).transpose();
                self.all().filter_map(line).collect::<io::Result<_>>().map(Records::of)
            }
            (Kept::Memory(lines), _) => {
                let line = |run: Run| lines.get(&run.key(&self.keys)).cloned();
                Ok(Records::of(self.all().filter_map(line).collect()))
            }
            (Kept::Finished, None) => Ok(Records::of(Vec::new())),
        }
        .map_err(|error: io::Error| errors::of_io(py, error))
    }
}

impl Campaign {
    fn all(&self) -> impl Iterator<Item = Run> + '_ {
        (0..self.runs.runs()).map(|index| self.runs.run(index))
    }

    fn state(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Ok(state),
            Err(TryLockError::Poisoned(state)) => Ok(state.into_inner()),
            Err(TryLockError::WouldBlock) => Err(errors::records(py, "another thread is running this campaign")),
        }
    }

    fn make(
        &self,
        state: &mut State,
        jobs: usize,
        progress: Option<Py<PyAny>>,
        carrier: Option<Py<PyAny>>,
        chunk_s: Option<f64>,
    ) -> io::Result<()> {
        #[expect(clippy::disallowed_methods, reason = "wall time for the manifest, never for a record")]
        let begun = Instant::now();
        let costs = self.runs.costs();
        let (there, todo): (Vec<Run>, Vec<Run>) = self.all().partition(|run| state.kept.has(&run.key(&self.keys)));
        let all = Work::of(there.iter().chain(&todo), &costs);
        let progress = Progress::new(progress, all, Work::of(&there, &costs));
        let stop = Arc::new(AtomicBool::new(false));
        state.failed.clear();
        if !todo.is_empty() {
            let mut keeper = Keeper { campaign: self, state, costs: &costs, progress, stop: &stop, raised: None };
            let end = match carrier {
                None => Threads { jobs, stop: &stop }.make(&self.runs, todo, &mut keeper),
                Some(carrier) => {
                    Workers { carrier: Remote(carrier), stop: &stop, chunk_s }.make(&self.runs, todo, &mut keeper)
                }
            };
            // Threads that are in the middle of a run begin no other.
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            match (keeper.raised.take(), end?) {
                (Some(raised), _) => return Err(raised),
                (None, End::Stopped) => return Err(io::Error::other("the campaign was stopped")),
                (None, End::Complete { .. }) => {}
            }
        }
        self.finish(state, jobs, begun.elapsed().as_secs_f64())
    }

    fn finish(&self, state: &mut State, jobs: usize, wall_time_s: f64) -> io::Result<()> {
        if !matches!(&state.kept, Kept::Open(_)) {
            return Ok(());
        }
        let Kept::Open(store) = std::mem::replace(&mut state.kept, Kept::Finished) else { return Ok(()) };
        if store.is_finished() {
            return Ok(());
        }
        let manifest = Manifest { failed_runs: state.failed.len(), wall_time_s, ..Manifest::of(&self.runs, jobs) };
        store.finish(&self.keys, &manifest)
    }
}

/// Keeps what is made.
struct Keeper<'a> {
    campaign: &'a Campaign,
    state: &'a mut State,
    costs: &'a [f64],
    progress: Progress,
    stop: &'a Arc<AtomicBool>,
    /// An exception that came while nothing was to be kept.
    raised: Option<io::Error>,
}

impl Watch for Keeper<'_> {
    fn on_runs(&mut self, made: Vec<(Run, Result<Record, String>)>) -> io::Result<()> {
        let work = Work::of(made.iter().map(|(run, _)| run), self.costs);
        for (run, result) in made {
            match result {
                Ok(record) => self.state.kept.add(run.key(&self.campaign.keys), &record)?,
                Err(why) => drop(self.state.failed.insert(run.index, why)),
            }
        }
        self.state.kept.sync()?;
        self.progress.done(work)
    }

    fn on_idle(&mut self) {
        if let Err(exception) = self.progress.look(false) {
            self.raised.get_or_insert(exception);
            self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

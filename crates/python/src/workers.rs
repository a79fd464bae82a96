//! Runs made by other processes: the side of the campaign, and the side of the worker. A Python
//! object carries jobs and results between them.

use crate::errors;
use meshpace_lab::backend::{Backend, Threads};
use meshpace_lab::record::line::{FORMAT, Key};
use meshpace_lab::workers::{Carrier, Job, Made, Worker, Workers};
use pyo3::prelude::*;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// Last job and its worker, since successive chunks usually belong to the same campaign.
static LAST: Mutex<Option<(String, Arc<Worker>)>> = Mutex::new(None);

/// Makes the runs of a chunk and returns their results. Job, chunk and results are JSON.
#[pyfunction]
pub fn work(py: Python<'_>, job: String, chunk: &str) -> PyResult<String> {
    let keys: Vec<Key> = serde_json::from_str(chunk).map_err(|why| errors::worker(py, why.to_string()))?;
    let made = py.detach(|| -> Result<String, String> {
        let worker = {
            let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
            match &*last {
                Some((known, worker)) if *known == job => Arc::clone(worker),
                _ => {
                    let read: Job = serde_json::from_str(&job)
                        .map_err(|why| format!("the job is of another version of meshpace: {why}"))?;
                    let worker = Arc::new(Worker::new(&read)?);
                    *last = Some((job, Arc::clone(&worker)));
                    worker
                }
            }
        };
        serde_json::to_string(&worker.make(keys)).map_err(|why| why.to_string())
    });
    made.map_err(|why| errors::worker(py, why))
}

/// Version, revision of the model, format of records, and fingerprint of the common reference run.
#[pyfunction]
pub fn identity(py: Python<'_>) -> (&'static str, u32, u32, &'static str) {
    (env!("CARGO_PKG_VERSION"), meshpace_sim::MODEL_REVISION, FORMAT, py.detach(meshpace_lab::reference::common))
}

/// Returns a backend: the workers behind `carrier`, with chunks of `chunk_s` seconds, or threads of
/// this process if there is no carrier.
pub fn backend(
    carrier: Option<Py<PyAny>>,
    jobs: usize,
    chunk_s: Option<f64>,
    stop: &Arc<AtomicBool>,
) -> Box<dyn Backend + '_> {
    match carrier {
        Some(carrier) => Box::new(Workers::new(Remote(carrier), stop, chunk_s)),
        None => Box::new(Threads::new(jobs, stop)),
    }
}

/// Carrier implemented in Python, with the methods `workers`, `send` and `receive` of
/// `meshpace._remote.Carrier`.
struct Remote(Py<PyAny>);

impl Remote {
    fn ask<R>(&self, ask: impl FnOnce(Python<'_>, &Py<PyAny>) -> PyResult<R>) -> io::Result<R> {
        Python::attach(|py| {
            py.check_signals()?;
            ask(py, &self.0)
        })
        .map_err(io::Error::other)
    }
}

impl Carrier for Remote {
    fn workers(&self) -> usize {
        self.ask(|py, carrier| carrier.call_method0(py, "workers")?.extract(py)).unwrap_or(1)
    }

    fn send(&mut self, job: &Job, chunks: &[Vec<Key>]) -> io::Result<()> {
        let job = serde_json::to_string(job)?;
        let chunks = chunks.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        self.ask(|py, carrier| carrier.call_method1(py, "send", (job, chunks)).map(drop))
    }

    fn receive(&mut self) -> io::Result<Option<Vec<Made>>> {
        let made: Option<String> = self.ask(|py, carrier| carrier.call_method0(py, "receive")?.extract(py))?;
        let read = |text: String| serde_json::from_str(&text).map_err(io::Error::from);
        made.map(read).transpose()
    }
}

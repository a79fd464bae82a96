//! What Python hears while runs are made: how far they are, and Ctrl-C.

use pyo3::prelude::*;
use std::io;
use std::time::{Duration, Instant};

/// The least time between two looks at Python, so that short runs do not wait for its lock.
const PAUSE: Duration = Duration::from_millis(50);

/// A callable of Python that is told how far a campaign is.
pub struct Progress {
    told: Option<Py<PyAny>>,
    /// Runs, and their estimated costs in seconds.
    done: (usize, f64),
    total: (usize, f64),
    looked: Option<Instant>,
}

impl Progress {
    /// For so many runs of that cost in all, of which some are there.
    pub fn new(told: Option<Py<PyAny>>, total: (usize, f64), done: (usize, f64)) -> Progress {
        Progress { told, done, total, looked: None }
    }

    /// So many more are needed.
    pub fn add(&mut self, runs: usize, cost_s: f64) {
        self.total = (self.total.0 + runs, self.total.1 + cost_s);
    }

    /// So many runs have ended.
    pub fn done(&mut self, runs: usize, cost_s: f64) -> io::Result<()> {
        self.done = (self.done.0 + runs, self.done.1 + cost_s);
        self.look(self.done.0 >= self.total.0)
    }

    /// Tells Python if it is time, and asks whether it has been interrupted: an error then is Python's exception.
    pub fn look(&mut self, at_once: bool) -> io::Result<()> {
        if !at_once && self.looked.is_some_and(|looked| looked.elapsed() < PAUSE) {
            return Ok(());
        }
        self.looked = Some(now());
        Python::attach(|py| {
            py.check_signals()?;
            let Some(told) = &self.told else { return Ok(()) };
            let share = if self.total.1 > 0.0 { (self.done.1 / self.total.1).min(1.0) } else { 1.0 };
            told.call1(py, (self.done.0, self.total.0, share)).map(drop)
        })
        .map_err(|exception: PyErr| io::Error::other(exception))
    }
}

#[expect(clippy::disallowed_methods, reason = "how often Python is asked, never what a run does")]
fn now() -> Instant {
    Instant::now()
}

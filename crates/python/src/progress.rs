//! What happens in Python while runs are made: reports of progress, and checks for Ctrl-C.

use meshpace_lab::campaign::Work;
use pyo3::prelude::*;
use std::io;
use std::time::{Duration, Instant};

/// The least time between two looks at Python, so that short runs do not wait for its lock.
const PAUSE: Duration = Duration::from_millis(50);

/// A callable of Python that is told how far a campaign is.
pub struct Progress {
    told: Option<Py<PyAny>>,
    done: Work,
    total: Work,
    looked: Option<Instant>,
}

impl Progress {
    /// For so much work in all, of which some is done.
    pub fn new(told: Option<Py<PyAny>>, total: Work, done: Work) -> Progress {
        Progress { told, done, total, looked: None }
    }

    /// So many more are needed.
    pub fn add(&mut self, work: Work) {
        self.total += work;
    }

    /// So much is done.
    pub fn done(&mut self, work: Work) -> io::Result<()> {
        self.done += work;
        self.look(self.done.runs >= self.total.runs)
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
            let (done, total) = (self.done, self.total);
            let share = if total.cost_s > 0.0 { (done.cost_s / total.cost_s).min(1.0) } else { 1.0 };
            told.call1(py, (done.runs, total.runs, share)).map(drop)
        })
        .map_err(|exception: PyErr| io::Error::other(exception))
    }
}

#[expect(clippy::disallowed_methods, reason = "how often Python is asked, never what a run does")]
fn now() -> Instant {
    Instant::now()
}

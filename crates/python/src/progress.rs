//! Calls of Python while runs are made: reports of progress, and checks for Ctrl-C.

use crate::pacing::Raised;
use meshpace_lab::campaign::{Campaign, Run, Work};
use meshpace_lab::record::Record;
use meshpace_lab::register::reproduction::Listener;
use meshpace_lab::session::{Observer, Session};
use pyo3::prelude::*;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Shortest time between two calls of Python, so that short runs do not wait for Python's global
/// lock.
const PAUSE: Duration = Duration::from_millis(50);

/// Observer that reports the progress of a campaign to a Python callable. An exception in the
/// callable, or Ctrl-C, stops the campaign.
pub struct Progress<'a> {
    told: Option<Py<PyAny>>,
    done: Work,
    total: Work,
    looked: Option<Instant>,
    /// True after a run has failed.
    has_failed: bool,
    stop: &'a Arc<AtomicBool>,
    /// Exceptions of the Python pacing rules.
    rules: &'a [Raised],
    /// Exception that stopped the campaign.
    pub raised: Option<io::Error>,
    /// Messages for people, including one for each failed run.
    pub said: Vec<String>,
}

impl<'a> Progress<'a> {
    /// Creates an observer for `total` work, of which `done` is finished. The observer sets `stop`
    /// to stop the campaign.
    pub fn new(told: Option<Py<PyAny>>, total: Work, done: Work, stop: &'a Arc<AtomicBool>) -> Progress<'a> {
        let (looked, raised, said) = (None, None, Vec::new());
        Progress { told, done, total, looked, has_failed: false, stop, rules: &[], raised, said }
    }

    /// Adds pacing rules. An exception of one of them also stops the campaign.
    pub fn and_rules(self, rules: &'a [Raised]) -> Self {
        Progress { rules, ..self }
    }

    /// Stops the campaign if a pacing rule has raised an exception.
    pub fn ask_rules(&mut self) {
        if let Some(exception) = self.rules.iter().find_map(Raised::take) {
            self.end(exception);
        }
    }

    fn end(&mut self, exception: PyErr) {
        self.raised.get_or_insert(io::Error::other(exception));
        self.stop.store(true, Ordering::Relaxed);
    }

    fn done(&mut self, work: Work) {
        self.done += work;
        self.look(self.done.runs >= self.total.runs);
    }

    /// Calls Python if enough time has passed or if `at_once` is set: checks for Ctrl-C and reports
    /// the progress.
    fn look(&mut self, at_once: bool) {
        if !at_once && self.looked.is_some_and(|looked| looked.elapsed() < PAUSE) {
            return;
        }
        self.looked = Some(now());
        let looked = Python::attach(|py| {
            py.check_signals()?;
            let Some(told) = &self.told else { return Ok(()) };
            let (done, total) = (self.done, self.total);
            let share = if total.cost_s > 0.0 { (done.cost_s / total.cost_s).min(1.0) } else { 1.0 };
            told.call1(py, (done.runs, total.runs, share)).map(drop)
        });
        if let Err(exception) = looked {
            self.end(exception);
        }
    }
}

impl Observer for Progress<'_> {
    fn on_made(&mut self, campaign: &Campaign, made: &[(Run, Result<Record, String>)]) -> io::Result<()> {
        let failed = |(run, result): &(Run, Result<Record, String>)| {
            Some(format!("{} failed: {}", campaign.describe(*run), result.as_ref().err()?))
        };
        self.said.extend(made.iter().filter_map(failed));
        self.has_failed |= made.iter().any(|(_, result)| result.is_err());
        Ok(())
    }

    fn on_kept(&mut self, _session: &mut Session, _runs: &[Run], work: Work) -> io::Result<()> {
        // The exception of a rule is known before the record of its run arrives. It ends the
        // campaign only after a run has failed, so that the failed run is among the messages.
        if self.has_failed {
            self.ask_rules();
        }
        self.done(work);
        Ok(())
    }

    fn on_idle(&mut self) {
        self.look(false);
    }
}

impl Listener for Progress<'_> {
    fn on_known(&mut self, work: Work) {
        self.done(work);
    }

    fn on_more(&mut self, work: Work) {
        self.total += work;
    }

    fn say(&mut self, sentence: &str) {
        self.said.push(sentence.to_owned());
    }
}

#[expect(clippy::disallowed_methods, reason = "how often Python is asked, never what a run does")]
fn now() -> Instant {
    Instant::now()
}

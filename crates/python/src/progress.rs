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

/// The least time between two looks at Python, so that short runs do not wait for its lock.
const PAUSE: Duration = Duration::from_millis(50);

/// A callable of Python that is told how far a campaign is; an exception in it, or Ctrl-C, stops the campaign.
pub struct Progress<'a> {
    told: Option<Py<PyAny>>,
    done: Work,
    total: Work,
    looked: Option<Instant>,
    /// True once a run has failed.
    has_failed: bool,
    stop: &'a Arc<AtomicBool>,
    /// Where pacing rules of Python leave what they raise.
    rules: &'a [Raised],
    /// The exception.
    pub raised: Option<io::Error>,
    /// Sentences for people, and the runs that failed.
    pub said: Vec<String>,
}

impl<'a> Progress<'a> {
    /// For so much work in all, of which some is done; sets `stop` to stop.
    pub fn new(told: Option<Py<PyAny>>, total: Work, done: Work, stop: &'a Arc<AtomicBool>) -> Progress<'a> {
        let (looked, raised, said) = (None, None, Vec::new());
        Progress { told, done, total, looked, has_failed: false, stop, rules: &[], raised, said }
    }

    /// The same, which an exception of one of these pacing rules stops, too.
    pub fn and_rules(self, rules: &'a [Raised]) -> Self {
        Progress { rules, ..self }
    }

    /// Stops if a pacing rule has raised an exception.
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

    /// Tells Python if it is time, and asks whether it has been interrupted.
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
        // A rule may have raised in a run that is still to come: it ends the campaign once that run is among those that failed.
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

//! Runs a campaign, for all commands that have one: on a pool, with progress, each record stored as soon as its run ends.

use crate::output::complain;
use crate::progress::Progress;
use crate::{FAILED, INTERRUPTED, REFUSED};
use meshpace_lab::backend::{self, Backend, Watch};
use meshpace_lab::campaign::{Campaign, End, Run, Work};
use meshpace_lab::record::Record;
use meshpace_lab::record::directory::Manifest;
use meshpace_lab::record::store::Store;
use meshpace_lab::workers::{Carrier, Workers};
use meshpace_scenario::Point;
use meshpace_sim::Outcome;
use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// An exit status and what is said with it.
pub type Failure = (u8, String);

/// Makes runs.
pub struct Runner<'a> {
    /// Runs at a time.
    pub jobs: usize,
    /// Set to stop.
    pub stop: &'a Arc<AtomicBool>,
    /// Goes on with every run.
    pub progress: &'a Progress,
}

impl Runner<'_> {
    /// Makes the runs of `todo`; `keep` gets records as they are there, in any order, those together that were ready together.
    /// A run that fails is told on standard error.
    pub fn make(
        &self,
        campaign: &Arc<Campaign>,
        todo: Vec<Run>,
        simulate: impl Fn(&Point, Run) -> Outcome + Send + Sync + 'static,
        keep: impl FnMut(Vec<(Run, Option<Record>)>) -> io::Result<()>,
    ) -> io::Result<End> {
        let keeper = RefCell::new(Keeper { runner: self, campaign, costs: campaign.costs(), keep });
        campaign.each(
            self.jobs,
            self.stop,
            todo,
            simulate,
            |ended| keeper.borrow_mut().on_runs(backend::records(campaign, ended)),
            || keeper.borrow_mut().on_idle(),
        )
    }

    /// The same on the workers behind `carrier`.
    pub fn hand_out(
        &self,
        carrier: impl Carrier,
        campaign: &Arc<Campaign>,
        todo: Vec<Run>,
        keep: impl FnMut(Vec<(Run, Option<Record>)>) -> io::Result<()>,
    ) -> io::Result<End> {
        let mut keeper = Keeper { runner: self, campaign, costs: campaign.costs(), keep };
        Workers { carrier, stop: self.stop, chunk_s: None }.make(campaign, todo, &mut keeper)
    }
}

/// What a runner does with each run.
struct Keeper<'a, K> {
    runner: &'a Runner<'a>,
    campaign: &'a Campaign,
    costs: Vec<f64>,
    keep: K,
}

impl<K: FnMut(Vec<(Run, Option<Record>)>) -> io::Result<()>> Watch for Keeper<'_, K> {
    fn on_runs(&mut self, made: Vec<(Run, Result<Record, String>)>) -> io::Result<()> {
        let progress = self.runner.progress;
        let work = Work::of(made.iter().map(|(run, _)| run), &self.costs);
        let told = |(run, result): (Run, Result<Record, String>)| {
            let failed = |why| complain(&format!("{} failed: {why}", self.campaign.describe(run)));
            (run, result.map_err(failed).ok())
        };
        progress.suspend(|| (self.keep)(made.into_iter().map(told).collect()))?;
        progress.done(work);
        Ok(())
    }

    fn on_idle(&mut self) {
        self.runner.progress.tick();
    }
}

/// Opens a campaign's directory and tells what in it is damaged.
///
/// # Errors
/// As [`Store::open`], with the exit status.
pub fn open(directory: &Path, manifest: &Manifest, force: bool) -> Result<Store, Failure> {
    // Nothing was run yet: whatever it is, the command is refused.
    let store = Store::open(directory, manifest, force).map_err(|error| (REFUSED, error.to_string()))?;
    store.damaged().iter().for_each(|what| complain(what));
    Ok(store)
}

/// The exit status of a store that cannot be opened or written.
pub fn broken(error: &io::Error) -> Failure {
    let is_refusal = matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::WouldBlock);
    (if is_refusal { REFUSED } else { FAILED }, error.to_string())
}

/// What is said when a campaign that keeps its records is interrupted.
pub fn interrupted(kept: usize, directory: &Path) -> Failure {
    let place = directory.display();
    (INTERRUPTED, format!("interrupted; {kept} runs are kept in {place}, and the same command goes on from there"))
}

/// A panic in a run is told in one line with its run; the default hook would print it a second time without.
pub fn silence_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::env::var_os("RUST_BACKTRACE").is_some() || std::thread::current().name() == Some("main") {
            usual(panic);
        }
    }));
}

/// A flag that Ctrl-C and SIGTERM set, so that the line being written is finished. A second one does not wait for that.
pub fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        complain(&format!("Ctrl-C will end this without ceremony: {error}"));
    }
    stop
}

/// Processors that runs can be spread over.
pub fn processors() -> u16 {
    std::thread::available_parallelism().map_or(1, |count| u16::try_from(count.get()).unwrap_or(u16::MAX))
}

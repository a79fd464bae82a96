//! The one way in which campaigns are run: on a pool, with progress, each record kept as soon as it is there.

use crate::output::{complain, is_quiet};
use crate::{FAILED, INTERRUPTED, REFUSED};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use meshpace_lab::backend::{Backend, Watch};
use meshpace_lab::campaign::{Campaign, End, Run};
use meshpace_lab::record::Record;
use meshpace_lab::record::directory::Manifest;
use meshpace_lab::record::store::Store;
use meshpace_lab::workers::{Carrier, Workers};
use meshpace_scenario::Point;
use meshpace_sim::Outcome;
use std::cell::RefCell;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An exit status and what is said with it.
pub type Failure = (u8, String);

/// Makes runs.
pub struct Runner<'a> {
    /// Runs at a time.
    pub jobs: usize,
    /// Set to stop.
    pub stop: &'a Arc<AtomicBool>,
    /// Goes on by one with every run.
    pub progress: &'a ProgressBar,
}

impl Runner<'_> {
    /// Makes the runs of `todo`; `keep` gets each record as it is there, in any order. A run that fails is told on standard
    /// error.
    pub fn make(
        &self,
        campaign: &Arc<Campaign>,
        todo: Vec<Run>,
        simulate: impl Fn(&Point, Run) -> Outcome + Send + Sync + 'static,
        keep: impl FnMut(Run, Option<Record>) -> io::Result<()>,
    ) -> io::Result<End> {
        let keeper = RefCell::new(Keeper { runner: self, campaign, keep });
        campaign.each(
            self.jobs,
            self.stop,
            todo,
            simulate,
            |run, result| {
                let record =
                    result.map(|outcome| Record::new(&campaign.scenario, campaign.point(run), run.seed, &outcome));
                keeper.borrow_mut().on_run(run, record)
            },
            || keeper.borrow_mut().on_idle(),
        )
    }

    /// The same on the workers behind `carrier`.
    pub fn hand_out(
        &self,
        carrier: impl Carrier,
        campaign: &Arc<Campaign>,
        todo: Vec<Run>,
        keep: impl FnMut(Run, Option<Record>) -> io::Result<()>,
    ) -> io::Result<End> {
        let mut keeper = Keeper { runner: self, campaign, keep };
        Workers { carrier, stop: self.stop, chunk_s: None }.make(campaign, todo, &mut keeper)
    }
}

/// What a runner does with each run.
struct Keeper<'a, K> {
    runner: &'a Runner<'a>,
    campaign: &'a Campaign,
    keep: K,
}

impl<K: FnMut(Run, Option<Record>) -> io::Result<()>> Watch for Keeper<'_, K> {
    fn on_run(&mut self, run: Run, result: Result<Record, String>) -> io::Result<()> {
        let progress = self.runner.progress;
        let told = |why| progress.suspend(|| complain(&format!("{} failed: {why}", self.campaign.describe(run))));
        let record = result.map_err(told).ok();
        progress.suspend(|| (self.keep)(run, record))?;
        progress.inc(1);
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
    let store = Store::open(directory, manifest, force).map_err(|error| broken(&error))?;
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

/// Time between two lines of progress where there is no terminal.
const LINE: Duration = Duration::from_secs(10);
/// Processor time, or else time by the clock, before the first of them: what is short says nothing, on a busy machine neither.
const LONG: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(120));

/// Progress on standard error: a bar with the time left if that is a terminal and there is more than one run, or else a line every
/// 10 s of what takes long.
pub fn progress(runs: u64) -> ProgressBar {
    let is_terminal = io::stderr().is_terminal();
    let target = if runs > 1 && is_terminal && !is_quiet() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {elapsed} gone, {eta} left");
    let bar = ProgressBar::with_draw_target(Some(runs), target).with_style(style.expect("the template is right"));
    if !is_terminal && !is_quiet() {
        let watched = bar.downgrade();
        std::thread::spawn(move || {
            loop {
                #[expect(clippy::disallowed_methods, reason = "a thread that tells people how far it is")]
                std::thread::sleep(LINE);
                match watched.upgrade() {
                    Some(bar) if !bar.is_finished() => tell(&bar),
                    _ => return,
                }
            }
        });
    }
    bar
}

/// A line of progress.
fn tell(bar: &ProgressBar) {
    let gone = bar.elapsed();
    let used = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).map_or(gone, Duration::from);
    if used >= LONG.0 || gone >= LONG.1 {
        complain(&line(bar.position(), bar.length().unwrap_or(0), gone.as_secs()));
    }
}

fn line(done: u64, all: u64, gone_s: u64) -> String {
    let left = (gone_s * all.saturating_sub(done)).checked_div(done);
    let left = left.map_or_else(String::new, |left| format!(", about {left} s left"));
    format!("{done} of {all} runs, {gone_s} s gone{left}")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_line_says_what_is_left() {
        assert_eq!(line(0, 40, 10), "0 of 40 runs, 10 s gone");
        assert_eq!(line(10, 40, 20), "10 of 40 runs, 20 s gone, about 60 s left");
    }
}

//! Frame of all commands that make runs: who makes them, what is told meanwhile, and how it ends.

use crate::dask::Bridge;
use crate::output::{Failure, complain, note};
use crate::progress::Progress;
use crate::{FAILED, INTERRUPTED, REFUSED};
use meshpace_lab::backend::{Backend, Threads};
use meshpace_lab::campaign::{Campaign, Run, Simulate, Work};
use meshpace_lab::record::Record;
use meshpace_lab::record::directory::Manifest;
use meshpace_lab::register::reproduction::Listener;
use meshpace_lab::session::{Broken, Observer, Session};
use meshpace_lab::workers::Workers;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The workers of a Dask scheduler, if there is its address, or else threads of this process.
///
/// # Errors
/// As [`Bridge::start`].
pub fn backend<'a>(
    dask: Option<&str>,
    jobs: usize,
    stop: &'a Arc<AtomicBool>,
    simulate: Arc<Simulate>,
) -> Result<Box<dyn Backend + 'a>, Failure> {
    Ok(match dask {
        Some(address) => Box::new(Workers::new(Bridge::start(address)?, stop, None)),
        None => Box::new(Threads { jobs, stop, simulate }),
    })
}

/// The bar and standard error: every run goes into the progress, and one that fails is told.
pub struct Told<'a>(pub &'a Progress);

impl Observer for Told<'_> {
    fn on_made(&mut self, campaign: &Campaign, made: &[(Run, Result<Record, String>)]) -> io::Result<()> {
        for (run, result) in made {
            if let Err(why) = result {
                self.0.suspend(|| complain(&format!("{} failed: {why}", campaign.describe(*run))));
            }
        }
        Ok(())
    }

    fn on_kept(&mut self, _session: &mut Session, _runs: &[Run], work: Work) -> io::Result<()> {
        self.0.done(work);
        Ok(())
    }

    fn on_idle(&mut self) {
        self.0.tick();
    }
}

impl Listener for Told<'_> {
    fn on_known(&mut self, work: Work) {
        self.0.known(work);
    }

    fn on_more(&mut self, work: Work) {
        self.0.more(work);
    }

    fn say(&mut self, sentence: &str) {
        self.0.suspend(|| note(sentence));
    }
}

/// Opens a campaign's directory, or a session in memory without one, and tells what in the directory is damaged.
///
/// # Errors
/// As [`Session::open`], with the exit status.
pub fn open(
    campaign: &Arc<Campaign>,
    directory: Option<&Path>,
    manifest: &Manifest,
    force: bool,
) -> Result<Session, Failure> {
    let campaign = Arc::clone(campaign);
    let Some(directory) = directory else { return Ok(Session::in_memory(campaign)) };
    // Nothing was run yet: whatever it is, the command is refused.
    let session = Session::open(campaign, directory, manifest, force);
    let session = session.map_err(|error| (REFUSED, error.to_string()))?;
    session.store().iter().flat_map(|store| store.damaged()).for_each(|what| complain(what));
    Ok(session)
}

/// The exit status of a session that did not come to its end, and what is said: where its records are, if they are kept in a directory.
pub fn broken(broken: Broken, directory: Option<&Path>) -> Failure {
    match (broken, directory) {
        (Broken::Stopped { kept }, Some(directory)) => {
            let place = directory.display();
            (
                INTERRUPTED,
                format!("interrupted; {kept} runs are kept in {place}, and the same command goes on from there"),
            )
        }
        (Broken::Stopped { .. }, None) => (INTERRUPTED, "interrupted".to_owned()),
        (Broken::Io(error), _) => {
            let is_refusal = matches!(
                error.kind(),
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory | io::ErrorKind::WouldBlock
            );
            (if is_refusal { REFUSED } else { FAILED }, error.to_string())
        }
    }
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

/// Processors that runs can be spread over.
pub fn processors() -> u16 {
    std::thread::available_parallelism().map_or(1, |count| u16::try_from(count.get()).unwrap_or(u16::MAX))
}

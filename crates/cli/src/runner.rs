//! Common frame of all commands that make runs: the choice of the backend, the messages during the
//! runs, and the exit status.

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

/// Returns the workers of a Dask scheduler if its address is given, and threads of this process
/// otherwise.
///
/// # Errors
/// The errors of [`Bridge::start`].
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

/// Observer that updates the progress bar, and reports each failed run on standard error.
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

/// Opens the directory of a campaign, or a session in memory if there is no directory. Reports
/// damaged records in the directory.
///
/// # Errors
/// The errors of [`Session::open`], with the exit status.
pub fn open(
    campaign: &Arc<Campaign>,
    directory: Option<&Path>,
    manifest: &Manifest,
    force: bool,
) -> Result<Session, Failure> {
    let campaign = Arc::clone(campaign);
    let Some(directory) = directory else { return Ok(Session::in_memory(campaign)) };
    // No run has been made yet, so every error is a refusal of the command.
    let session = Session::open(campaign, directory, manifest, force);
    let session = session.map_err(|error| (REFUSED, error.to_string()))?;
    session.store().iter().flat_map(|store| store.damaged()).for_each(|what| complain(what));
    Ok(session)
}

/// Exit status and message of a session that did not complete. The message says where the records
/// are, if a directory keeps them.
pub fn broken(broken: Broken, directory: Option<&Path>) -> Failure {
    match (broken, directory) {
        (Broken::Stopped { kept }, Some(directory)) => {
            let place = directory.display();
            (
                INTERRUPTED,
                format!("interrupted; {kept} finished runs are in {place}, and the same command continues from there"),
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

/// Suppresses the default message of a panic in a run. The panic is reported in one line together
/// with its run, and the default hook would print it a second time.
pub fn silence_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::env::var_os("RUST_BACKTRACE").is_some() || std::thread::current().name() == Some("main") {
            usual(panic);
        }
    }));
}

/// Number of processors over which runs can be spread.
pub fn processors() -> u16 {
    std::thread::available_parallelism().map_or(1, |count| u16::try_from(count.get()).unwrap_or(u16::MAX))
}

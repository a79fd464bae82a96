//! The running ends of a process: starts and ends them, reports on them, and applies changes of
//! their file.

use super::End;
use super::Reporting;
use super::file::{self, Entry, File};
use super::live::{self, TICK};
use super::log::{self, Level};
use super::metrics::{self, Board};
use meshpace_command::INTERRUPTED;
use meshpace_command::interrupt::stop_on_interrupt;
use meshpace_command::output::results;
use meshpace_core::{Duration, Time};
use meshpace_live::Clock;
use meshpace_live::tunnel::Totals;
use nix::sys::signal::{SigSet, Signal};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

/// Interval at which the process checks whether it has to end, and whether an end has to be started
/// again.
const LOOK: Duration = Duration::from_millis(200);

/// Number of failed attempts in a row that are not reported if the port is in use: the port of an
/// end that has just ended may not be free yet.
const QUIETLY: u32 = 10;

/// Interval between attempts to start an end after that.
const AGAIN: Duration = Duration::from_secs(5);

/// Time that far ends have to learn that this end ends.
const FAREWELL: std::time::Duration = std::time::Duration::from_millis(300);

/// A configured end, whether it runs or not.
struct Running {
    entry: Entry,
    end: Option<End>,
    /// Number of failed attempts in a row.
    tries: u32,
    /// Time of the next attempt; `None` if the end runs with its current settings.
    due: Option<Time>,
    /// Totals that were reported last.
    before: Totals,
}

impl Running {
    fn new(entry: Entry) -> Running {
        Running { entry, end: None, tries: 0, due: Some(Time::ZERO), before: Totals::default() }
    }

    /// Starts the end if it does not run, and applies its settings. A failure is logged, except if
    /// `is_last` says that the process ends with it.
    fn attempt(&mut self, is_last: bool) -> io::Result<()> {
        let done = match &mut self.end {
            Some(end) => end.adjust(&self.entry),
            None => End::start(&self.entry).and_then(|end| self.end.insert(end).adjust(&self.entry)),
        };
        match &done {
            Ok(()) => (self.tries, self.due) = (0, None),
            Err(error) => {
                self.tries += 1;
                let is_quiet = self.tries < QUIETLY && error.kind() == io::ErrorKind::AddrInUse;
                self.due = Some(Clock.now() + if is_quiet { LOOK } else { AGAIN });
                if !is_quiet && !is_last {
                    let message = format!("{error}; trying again every {} s", AGAIN.as_secs_f64());
                    log::say(Level::Error, &self.entry.name, &message);
                }
            }
        }
        done
    }

    /// Ends it. All streams are reset, and the far ends are told.
    fn end(&mut self) {
        if let Some(end) = self.end.take() {
            end.end();
        }
    }
}

/// A process with tunnels.
pub(super) struct Process<'a> {
    running: Vec<Running>,
    /// File that is read again at SIGHUP; `None` if the end comes from the command line.
    file: Option<&'a Path>,
    hangups: Receiver<()>,
    board: Board,
}

impl<'a> Process<'a> {
    /// Starts the ends of `read`, which was read from the file `path` if there is one.
    ///
    /// # Errors
    ///
    /// The metrics cannot be served. With a command line also: its end cannot be started.
    pub(super) fn begin(read: File, path: Option<&'a Path>) -> io::Result<Process<'a>> {
        // The signal is blocked before there is any other thread, so that only the thread that
        // waits for it receives it.
        let hangups = path.map(|_| hangups()).transpose()?;
        log::set(read.watching.log, read.watching.log_level);
        let board = Board::default();
        if let Some(place) = &read.watching.metrics {
            metrics::serve_at(place, &board)?;
        }
        let (_, none) = channel();
        let running = read.entries.into_iter().map(Running::new).collect();
        let mut process = Process { running, file: path, hangups: hangups.unwrap_or(none), board };
        for one in &mut process.running {
            let begun = one.attempt(path.is_none());
            if path.is_none() {
                begun?;
            }
        }
        process.show();
        Ok(process)
    }

    /// Reports the counters every second until the process has to end.
    ///
    /// # Errors
    ///
    /// Results cannot be written. With a command line also: its end cannot continue.
    pub(super) fn run(mut self, reporting: &Reporting) -> io::Result<ExitCode> {
        let live = io::stderr().is_terminal() && !reporting.json;
        let ended = self.until_end(reporting, live);
        if live {
            // The status line is ended, so that the shell continues on a line of its own.
            let _ = writeln!(io::stderr());
        }
        self.farewell();
        ended
    }

    fn until_end(&mut self, reporting: &Reporting, live: bool) -> io::Result<ExitCode> {
        let stop = stop_on_interrupt();
        let until = reporting.seconds.map(|seconds| Clock.now() + Duration::from_secs_f64(seconds));
        let mut tick = Clock.now() + TICK;
        loop {
            let now = Clock.now();
            let next = until.map_or(tick, |until| tick.min(until)).min(now + LOOK);
            match self.hangups.recv_timeout(std::time::Duration::from_nanos(next.since(now).0)) {
                Ok(()) => self.reload(),
                Err(RecvTimeoutError::Timeout) => {}
                // There is no sender for a command line.
                #[expect(clippy::disallowed_methods, reason = "a line for people every second")]
                Err(RecvTimeoutError::Disconnected) => {
                    std::thread::sleep(std::time::Duration::from_nanos(next.since(now).0));
                }
            }
            let now = Clock.now();
            self.look(now)?;
            let is_over = until.is_some_and(|until| now >= until);
            if now >= tick || is_over {
                tick = tick.max(now) + TICK;
                self.report(reporting.json, live)?;
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(ExitCode::from(INTERRUPTED));
            }
            if is_over {
                return Ok(ExitCode::SUCCESS);
            }
        }
    }

    /// Checks that all ends run. Ends of a file that do not run are started again.
    fn look(&mut self, now: Time) -> io::Result<()> {
        for one in &mut self.running {
            if let Some(Err(error)) = one.end.as_ref().map(End::check) {
                if self.file.is_none() {
                    return Err(error);
                }
                log::say(Level::Error, &one.entry.name, &error.to_string());
                one.end();
                one.due = Some(now);
            }
            if one.due.is_some_and(|due| now >= due) {
                let _ = one.attempt(false);
            }
        }
        self.show();
        Ok(())
    }

    /// Passes the current ends to the server of the metrics.
    fn show(&self) {
        self.board.show(self.running.iter().map(|one| (one.entry.name.as_str(), &one.entry.what, one.end.as_ref())));
    }

    fn report(&mut self, json: bool, live: bool) -> io::Result<()> {
        let (mut now, mut before) = (Totals::default(), Totals::default());
        for one in &mut self.running {
            let totals = one.end.as_ref().map(|end| end.counters().totals()).unwrap_or_default();
            if let Some(bytes) = totals.narrowed.filter(|_| totals.narrowed != one.before.narrowed) {
                let message = format!("long packets do not pass the path; assuming an MTU of {bytes} bytes");
                log::say(Level::Warn, &one.entry.name, &message);
            }
            if json {
                let transport = one.end.as_ref().and_then(End::transport);
                results(&live::line(&one.entry.name, &totals, transport))?;
            }
            live::add(&mut now, &totals);
            live::add(&mut before, &std::mem::replace(&mut one.before, totals));
        }
        if live {
            live::show(&now, &before);
        }
        Ok(())
    }

    /// Reads the file again. Ends whose configuration has not changed continue without
    /// interruption. If the file has a fault, all ends continue as before.
    fn reload(&mut self) {
        let Some(path) = self.file else { return };
        let read = file::read(path).and_then(|read| match check(&read) {
            Ok(()) => Ok(read),
            Err(error) => Err(error.into()),
        });
        let read = match read {
            Ok(read) => read,
            Err(wrong) => {
                wrong.lines().iter().for_each(|line| log::say(Level::Error, "", line));
                let message = format!("{}: not used; the previous configuration continues", path.display());
                self.board.reloaded(false);
                return log::say(Level::Error, "", &message);
            }
        };
        log::set(read.watching.log, read.watching.log_level);
        let mut before = std::mem::take(&mut self.running);
        let mut kept = 0;
        for entry in read.entries {
            let same = |one: &Running| one.entry.name == entry.name && one.entry.identity == entry.identity;
            match before.iter().position(same) {
                Some(place) => {
                    let one = before.swap_remove(place);
                    kept += usize::from(one.end.is_some());
                    self.running.push(Running { entry, due: Some(Time::ZERO), ..one });
                }
                None => self.running.push(Running::new(entry)),
            }
        }
        let ended = before.len();
        before.iter_mut().for_each(Running::end);
        for one in &mut self.running {
            let _ = one.attempt(false);
        }
        self.board.reloaded(true);
        let begun = self.running.len() - kept;
        let message = format!("{} read again: {kept} ends continue, {ended} ended, {begun} started", path.display());
        log::say(Level::Info, "", &message);
    }

    /// Ends all ends. If any was carrying data, waits until far ends have learned it.
    #[expect(clippy::disallowed_methods, reason = "nobody tells when the last datagram has left")]
    fn farewell(&mut self) {
        let was_open = self.running.iter().filter_map(|one| one.end.as_ref()).any(End::carries);
        self.running.iter_mut().for_each(Running::end);
        if was_open {
            std::thread::sleep(FAREWELL);
        }
    }
}

/// Checks that all ends are valid, as far as this is possible without starting them.
///
/// # Errors
///
/// The first error.
pub(super) fn check(file: &File) -> io::Result<()> {
    for entry in &file.entries {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", entry.name));
        End::prepare(entry).map_err(named)?;
    }
    Ok(())
}

/// Channel that reports each SIGHUP.
fn hangups() -> io::Result<Receiver<()>> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGHUP);
    signals.thread_block()?;
    let (sender, hangups) = channel();
    std::thread::Builder::new()
        .name("reload".into())
        .spawn(move || while signals.wait().is_ok() && sender.send(()).is_ok() {})?;
    Ok(hangups)
}

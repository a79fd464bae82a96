//! The ends of a process while they run: begun, told about, changed when their file has changed, ended.

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

/// Interval at which it looks whether it is to end, or whether an end is to be tried again.
const LOOK: Duration = Duration::from_millis(200);

/// After so many attempts in a row of which nothing is said: the port of an end that has just ended may not be free yet.
const QUIETLY: u32 = 10;

/// Interval at which an end that does not come about is tried after that.
const AGAIN: Duration = Duration::from_secs(5);

/// Time that far ends are given to hear that this end ends.
const FAREWELL: std::time::Duration = std::time::Duration::from_millis(300);

/// An end that runs, or is to.
struct Running {
    entry: Entry,
    end: Option<End>,
    /// Attempts in a row that came to nothing, and when the next one is due; none if all is as it should be.
    tries: u32,
    due: Option<Time>,
    /// Totals that were told last.
    before: Totals,
}

impl Running {
    fn new(entry: Entry) -> Running {
        Running { entry, end: None, tries: 0, due: Some(Time::ZERO), before: Totals::default() }
    }

    /// Begins what is not there yet. If it fails, that is told where `is_last` does not say that the process ends with it.
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
                    let message = format!("{error}; it is tried again every {} s", AGAIN.as_secs_f64());
                    log::say(Level::Error, &self.entry.name, &message);
                }
            }
        }
        done
    }

    /// Ends it: all streams are broken off, and their far ends told so.
    fn end(&mut self) {
        if let Some(end) = self.end.take() {
            end.end();
        }
    }
}

/// A process with tunnels.
pub(super) struct Process<'a> {
    running: Vec<Running>,
    /// The file it comes from, to be read again; none for a command line.
    file: Option<&'a Path>,
    hangups: Receiver<()>,
    board: Board,
}

impl<'a> Process<'a> {
    /// With the ends of `file`, which was read from `path` if there is one.
    ///
    /// # Errors
    ///
    /// The metrics cannot be served. Of a command line also: its end cannot be begun.
    pub(super) fn begin(read: File, path: Option<&'a Path>) -> io::Result<Process<'a>> {
        // Before there is any other thread, so that only the one that waits for it gets the signal.
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

    /// Says every second what is done, until it is to end.
    ///
    /// # Errors
    ///
    /// Results cannot be written. Of a command line also: its end cannot go on.
    pub(super) fn run(mut self, reporting: &Reporting) -> io::Result<ExitCode> {
        let live = io::stderr().is_terminal() && !reporting.json;
        let ended = self.until_end(reporting, live);
        if live {
            // What the shell says next begins a line of its own.
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
                // Nobody sends: a command line.
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

    /// Checks that all ends are as they should be; those of a file that are not are begun again.
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

    /// Hands what there is to whoever serves the metrics.
    fn show(&self) {
        self.board.show(self.running.iter().map(|one| (one.entry.name.as_str(), &one.entry.what, one.end.as_ref())));
    }

    fn report(&mut self, json: bool, live: bool) -> io::Result<()> {
        let (mut now, mut before) = (Totals::default(), Totals::default());
        for one in &mut self.running {
            let totals = one.end.as_ref().map(|end| end.counters().totals()).unwrap_or_default();
            if let Some(bytes) = totals.narrowed.filter(|_| totals.narrowed != one.before.narrowed) {
                let message = format!("long packets do not pass the path: its MTU is taken for {bytes} bytes");
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

    /// Reads the file again. What did not change goes on, undisturbed; if anything is wrong with it, all does.
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
                let message = format!("{}: not taken, what ran before goes on", path.display());
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
        let message = format!("{} read again: {kept} ends go on, {ended} ended, {begun} begun", path.display());
        log::say(Level::Info, "", &message);
    }

    /// Breaks off what is open, and gives far ends time to hear it.
    #[expect(clippy::disallowed_methods, reason = "nobody tells when the last datagram has left")]
    fn farewell(&mut self) {
        let was_open = self.running.iter().filter_map(|one| one.end.as_ref()).any(End::carries);
        self.running.iter_mut().for_each(Running::end);
        if was_open {
            std::thread::sleep(FAREWELL);
        }
    }
}

/// Checks that all ends could be begun, as far as that can be told without beginning them.
///
/// # Errors
///
/// The error of the first that could not.
pub(super) fn check(file: &File) -> io::Result<()> {
    for entry in &file.entries {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", entry.name));
        End::prepare(entry).map_err(named)?;
    }
    Ok(())
}

/// Where it is told that SIGHUP has come.
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

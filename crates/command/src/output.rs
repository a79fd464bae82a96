//! Standard output carries results and nothing else; everything for people goes to standard error.

use crate::printable::printable;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// True if only errors are told.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on only errors are told.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// True if only errors are told.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Says something that is no error, unless nobody wants to know.
pub fn note(message: &str) {
    if !is_quiet() {
        complain(message);
    }
}

/// Writes results in one piece, so that an interruption leaves no half line. Programs get them as they are, a terminal nothing that acts on it.
///
/// # Errors
///
/// Standard output cannot be written to.
pub fn results(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.is_terminal() {
        true => stdout.write_all(printable(text).as_bytes())?,
        false => stdout.write_all(text.as_bytes())?,
    }
    stdout.flush()
}

/// Writes results and ends the command.
pub fn finish(text: &str) -> ExitCode {
    match results(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// The exit status when results could not be written. A reader that has seen enough (`| head`) is no failure.
pub fn failed(error: &io::Error) -> ExitCode {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    complain(&format!("cannot write the results: {error}"));
    ExitCode::from(crate::FAILED)
}

/// An exit status and what is said with it.
pub type Failure = (u8, String);

/// The exit status of a command, whose failure is told. An empty message has been told before: what is wrong with a scenario.
pub fn end(done: Result<ExitCode, Failure>) -> ExitCode {
    done.unwrap_or_else(|(status, message)| {
        if !message.is_empty() {
            complain(&message);
        }
        ExitCode::from(status)
    })
}

/// Says what went wrong, on standard error.
pub fn complain(message: &str) {
    tell(&format!("meshpace: {message}\n"));
}

/// Writes `text` to standard error, without what acts on a terminal.
pub fn tell(text: &str) {
    // Nobody is left to be told if standard error is closed.
    let _ = io::stderr().write_all(printable(text).as_bytes());
}

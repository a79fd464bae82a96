//! Output of commands. Standard output carries results and nothing else; all messages for people go
//! to standard error.

use crate::printable::printable;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

/// True if only errors are printed.
static QUIET: AtomicBool = AtomicBool::new(false);

/// From now on only errors are printed.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// True if only errors are printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a message that is not an error, unless the command is quiet.
pub fn note(message: &str) {
    if !is_quiet() {
        complain(message);
    }
}

/// Writes results in one piece, so that an interruption leaves no incomplete line. Programs get the
/// text unchanged; for a terminal, control characters are escaped.
///
/// # Errors
///
/// Returns the error if standard output cannot be written to.
pub fn results(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.is_terminal() {
        true => stdout.write_all(printable(text).as_bytes())?,
        false => stdout.write_all(text.as_bytes())?,
    }
    stdout.flush()
}

/// Writes results and returns the exit status of the command.
pub fn finish(text: &str) -> ExitCode {
    match results(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// Writes results piece by piece, each of whole lines, and returns the exit status of the command.
pub fn finish_pieces(mut pieces: impl Iterator<Item = String>) -> ExitCode {
    match pieces.try_for_each(|piece| results(&piece)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

/// Exit status when results could not be written. If the reader has closed the pipe (`| head`),
/// that is not a failure.
pub fn failed(error: &io::Error) -> ExitCode {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    complain(&format!("cannot write the results: {error}"));
    ExitCode::from(crate::FAILED)
}

/// Exit status of a failed command, and its message.
pub type Failure = (u8, String);

/// Exit status of a command; prints the message of a failure. The message is empty if it was
/// printed before, as with the errors of a scenario.
pub fn end(done: Result<ExitCode, Failure>) -> ExitCode {
    done.unwrap_or_else(|(status, message)| {
        if !message.is_empty() {
            complain(&message);
        }
        ExitCode::from(status)
    })
}

/// Prints an error message to standard error.
pub fn complain(message: &str) {
    tell(&format!("meshpace: {message}\n"));
}

/// Writes `text` to standard error, with control characters escaped.
pub fn tell(text: &str) {
    // If standard error is closed, there is no other place for the message.
    let _ = io::stderr().write_all(printable(text).as_bytes());
}

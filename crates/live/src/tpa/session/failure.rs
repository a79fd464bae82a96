//! Reason for which a connection failed, for programs in Rust and in C.

use nix::libc;
use std::io;

/// Reason for which a connection failed. It is kept so that every later call can report it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    kind: io::ErrorKind,
    /// The errno that stands for the reason.
    pub(crate) errno: i32,
    /// The reason as a sentence for people.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(errno: i32, message: impl Into<String>) -> Failure {
        Failure { kind: io::Error::from_raw_os_error(errno).kind(), errno, message: message.into() }
    }

    /// Reason made from an error of the system and a sentence that says more.
    pub(crate) fn of(error: &io::Error, message: String) -> Failure {
        Failure { kind: error.kind(), errno: error.raw_os_error().unwrap_or(libc::EIO), message }
    }

    pub(crate) fn error(&self) -> io::Error {
        io::Error::new(self.kind, TpaError { errno: self.errno, message: self.message.clone() })
    }
}

/// Content of an [`io::Error`] of a connection: a sentence, and the errno for callers in C.
#[derive(Debug)]
pub struct TpaError {
    errno: i32,
    message: String,
}

impl TpaError {
    /// The errno that stands for this error.
    pub fn errno(&self) -> i32 {
        self.errno
    }
}

impl std::fmt::Display for TpaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TpaError {}

/// The errno that stands for an error of these sockets.
pub fn errno_of(error: &io::Error) -> i32 {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TpaError>()).map(TpaError::errno);
    inner.or(error.raw_os_error()).unwrap_or(match error.kind() {
        io::ErrorKind::WouldBlock => libc::EAGAIN,
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        io::ErrorKind::Interrupted => libc::EINTR,
        io::ErrorKind::BrokenPipe => libc::EPIPE,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        io::ErrorKind::NotConnected => libc::ENOTCONN,
        _ => libc::EIO,
    })
}

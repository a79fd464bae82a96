//! Reasons for which a connection fails.

use std::io;

/// Kind of reason for which a connection fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The peer refuses the connection, or nobody listens at its address.
    Refused,
    /// The peer has reset the connection, or does not know it any more.
    Reset,
    /// This end has aborted the connection.
    Aborted,
    /// The peer does not answer, or no data have moved for too long.
    TimedOut,
    /// The path does not carry packets of the length that the connection needs.
    TooLong,
    /// There is no route to the peer's address.
    HostUnreachable,
    /// There is no route to the network of the peer's address.
    NetworkUnreachable,
    /// The buffers of the connection get no more memory.
    NoMemory,
    /// The peer has violated the protocol.
    Protocol,
    /// This end has closed the connection.
    Closed,
    /// The session itself has failed.
    Internal,
    /// The operating system has reported the error with this number.
    System(i32),
}

impl Reason {
    /// Kind of an [`io::Error`] with this reason.
    fn kind(self) -> io::ErrorKind {
        match self {
            Reason::Refused => io::ErrorKind::ConnectionRefused,
            Reason::Reset => io::ErrorKind::ConnectionReset,
            Reason::Aborted => io::ErrorKind::ConnectionAborted,
            Reason::TimedOut => io::ErrorKind::TimedOut,
            Reason::HostUnreachable => io::ErrorKind::HostUnreachable,
            Reason::NetworkUnreachable => io::ErrorKind::NetworkUnreachable,
            Reason::TooLong | Reason::NoMemory | Reason::Protocol | Reason::Closed | Reason::Internal => {
                io::ErrorKind::Other
            }
            Reason::System(number) => io::Error::from_raw_os_error(number).kind(),
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Reason::Refused => "connection refused",
            Reason::Reset => "connection reset by the peer",
            Reason::Aborted => "connection aborted",
            Reason::TimedOut => "no answer in time",
            Reason::TooLong => "packets are too long for the path",
            Reason::HostUnreachable => "no route to the host",
            Reason::NetworkUnreachable => "no route to the network",
            Reason::NoMemory => "no memory for buffers",
            Reason::Protocol => "violation of the protocol",
            Reason::Closed => "closed by this end",
            Reason::Internal => "internal error",
            Reason::System(number) => return io::Error::from_raw_os_error(*number).fmt(f),
        })
    }
}

/// Reason for which a connection failed. It is kept so that every later call can report it.
#[derive(Clone, Debug)]
pub struct Failure {
    kind: io::ErrorKind,
    /// The kind of reason, for programs.
    pub reason: Reason,
    /// The reason as a sentence for people.
    pub message: String,
}

impl Failure {
    /// Failure for this reason; the sentence says more.
    pub fn new(reason: Reason, message: impl Into<String>) -> Failure {
        Failure { kind: reason.kind(), reason, message: message.into() }
    }

    /// Failure made from an error of the system and a sentence that says more.
    pub fn of(error: &io::Error, message: String) -> Failure {
        let reason = error.raw_os_error().map_or(Reason::Internal, Reason::System);
        Failure { kind: error.kind(), reason, message }
    }

    /// The failure as an error of the standard library. It contains a [`TpaError`].
    pub fn error(&self) -> io::Error {
        io::Error::new(self.kind, TpaError { reason: self.reason, message: self.message.clone() })
    }
}

/// Content of an [`io::Error`] of a connection: a sentence for people, and the kind of reason for
/// programs.
#[derive(Debug)]
pub struct TpaError {
    reason: Reason,
    message: String,
}

impl TpaError {
    /// The kind of reason for which the connection failed.
    pub fn reason(&self) -> Reason {
        self.reason
    }
}

impl std::fmt::Display for TpaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TpaError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_the_reason_the_sentence_and_the_kind() {
        for (reason, kind) in [
            (Reason::Reset, io::ErrorKind::ConnectionReset),
            (Reason::HostUnreachable, io::ErrorKind::HostUnreachable),
            (Reason::Protocol, io::ErrorKind::Other),
        ] {
            let error = Failure::new(reason, "why").error();
            assert_eq!((error.kind(), error.to_string().as_str()), (kind, "why"));
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<TpaError>());
            assert_eq!(inner.map(TpaError::reason), Some(reason));
        }
        let system = io::Error::from_raw_os_error(2);
        let failure = Failure::of(&system, "more".to_owned());
        assert_eq!((failure.reason, failure.error().kind()), (Reason::System(2), system.kind()));
        assert_eq!(Failure::of(&io::Error::other("?"), String::new()).reason, Reason::Internal);
    }
}

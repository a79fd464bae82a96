//! Interface of a transport for the sender, the same for all transports.

use crate::Clock;
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use std::io::{self, Read, Write};
use std::sync::atomic::AtomicBool;

/// Progress of a carrier so far, summed over all its connections.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Progress {
    /// Payload bytes that the far end has acknowledged. A carrier that does not know them counts
    /// the bytes sent.
    pub acknowledged: u64,
    /// True if the current connection has ended in order.
    pub is_over: bool,
    /// Counters of the transport. A counter that the transport does not maintain is zero.
    pub stats: Stats,
    /// Number of packets sent to the network; 0 if only the kernel knows it.
    pub packets: u64,
}

/// Transport of bytes to one host.
pub trait Carrier {
    /// Opens a new connection and waits until it is open, at most until `until`. A carrier that can
    /// check `stop` also ends the wait when `stop` is set.
    ///
    /// # Errors
    ///
    /// The host refuses the connection, cannot be reached, or has not answered in time.
    fn open(&mut self, until: Time, stop: &AtomicBool) -> io::Result<()>;
    /// Writes bytes. Returns the number of bytes accepted, 0 if there is no room.
    ///
    /// # Errors
    ///
    /// The connection has failed.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Closes the current connection for writing.
    ///
    /// # Errors
    ///
    /// The connection has failed.
    fn close(&mut self) -> io::Result<()>;
    /// Aborts the current connection at once.
    fn abort(&mut self);
    /// Waits until something happens, or until `until`.
    ///
    /// # Errors
    ///
    /// The system cannot wait for the carrier's sockets.
    fn wait(&mut self, until: Time) -> io::Result<()>;
    /// Progress so far.
    ///
    /// # Errors
    ///
    /// The connection has failed.
    fn progress(&mut self) -> io::Result<Progress>;
}

/// Writes as many bytes as there is room for to a non-blocking stream. Returns their number.
pub(super) fn write_some(stream: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        written => written,
    }
}

/// Reads and discards what has arrived on a non-blocking stream. Returns true at the end of the
/// stream.
pub(super) fn discard(stream: &mut impl Read) -> io::Result<bool> {
    loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Time that is left to connect, but at least 1 ms.
pub(super) fn time_left(until: Time) -> Duration {
    until.since(Clock.now()).max(Duration::from_millis(1))
}

/// Adds the host to the text of an error.
pub(super) fn about(to: impl std::fmt::Display) -> impl Fn(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), format!("{to}: {error}"))
}

impl<C: Carrier> Carrier for &mut C {
    fn open(&mut self, until: Time, stop: &AtomicBool) -> io::Result<()> {
        (**self).open(until, stop)
    }
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (**self).write(bytes)
    }
    fn close(&mut self) -> io::Result<()> {
        (**self).close()
    }
    fn abort(&mut self) {
        (**self).abort();
    }
    fn wait(&mut self, until: Time) -> io::Result<()> {
        (**self).wait(until)
    }
    fn progress(&mut self) -> io::Result<Progress> {
        (**self).progress()
    }
}

//! Interface through which a sender is driven, whichever the transport.

use crate::Clock;
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use std::io::{self, Read, Write};
use std::sync::atomic::AtomicBool;

/// Progress of a carrier so far, all its connections together.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Progress {
    /// Payload bytes the far end has acknowledged. A carrier that does not know counts what has left.
    pub acknowledged: u64,
    /// True if the present connection has ended in order.
    pub is_over: bool,
    /// The transport's counters; zero what it does not count.
    pub stats: Stats,
    /// Packets put on the network; 0 if only the kernel knows.
    pub packets: u64,
}

/// Carries bytes to one host.
pub trait Carrier {
    /// Connects anew and waits for it until `until`, or, if it can look, until `stop` is set.
    ///
    /// # Errors
    ///
    /// The host refuses, cannot be reached, or has not answered when the time was over.
    fn open(&mut self, until: Time, stop: &AtomicBool) -> io::Result<()>;
    /// Hands over bytes; how many, 0 if there is no room.
    ///
    /// # Errors
    ///
    /// The connection has failed.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// No more will be written to the present connection.
    ///
    /// # Errors
    ///
    /// The connection has failed.
    fn close(&mut self) -> io::Result<()>;
    /// Gives the present connection up at once.
    fn abort(&mut self);
    /// Waits until something happens, or until `until`.
    ///
    /// # Errors
    ///
    /// The system cannot wait for its sockets.
    fn wait(&mut self, until: Time) -> io::Result<()>;
    /// The progress so far.
    ///
    /// # Errors
    ///
    /// The connection has failed.
    fn progress(&mut self) -> io::Result<Progress>;
}

/// Writes what there is room for to a stream that does not wait; how much.
pub(super) fn write_some(stream: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        written => written,
    }
}

/// Takes what a stream that does not wait has brought, and forgets it; whether that was all.
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

/// Time that is left to connect: a moment at least.
pub(super) fn time_left(until: Time) -> Duration {
    until.since(Clock.now()).max(Duration::from_millis(1))
}

/// An error with the host it is about.
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

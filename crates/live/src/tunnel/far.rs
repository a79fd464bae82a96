//! A stream to the far end, whatever carries it.

use super::Refusal;
use super::carried_by::CarriedBy;
use super::session::Stream;
use crate::tpa::TpaStream;
use meshpace_session::budget::Account;
use meshpace_transport::Stats;
use std::io::{self, Read, Write};
use std::net::Shutdown;

/// One stream.
#[derive(Debug)]
pub(super) enum Far {
    /// A connection of its own.
    Tpa(TpaStream),
    /// One of many in a session.
    Session(Stream),
}

impl Far {
    pub(super) fn carried_by(&self) -> CarriedBy {
        match self {
            Far::Tpa(_) => CarriedBy::Tpa,
            Far::Session(stream) => stream.carried_by(),
        }
    }

    /// Memory of the connection that carries it.
    pub(super) fn account(&self) -> Account {
        match self {
            Far::Tpa(stream) => stream.account(),
            Far::Session(stream) => stream.link().account(),
        }
    }

    /// Checks that bytes may flow, or will once the target is connected.
    ///
    /// # Errors
    ///
    /// The reason why they will not.
    pub(super) fn is_wanted(&self) -> io::Result<()> {
        match self {
            Far::Tpa(stream) => stream.is_open().map(drop),
            Far::Session(stream) => stream.is_wanted(),
        }
    }

    /// Reading and writing wait from now on.
    pub(super) fn wait_when_asked(&self) {
        if let Far::Tpa(stream) = self {
            // It never fails: the result is that of `std::net`.
            let _ = stream.set_nonblocking(false);
        }
    }

    /// Waits until the far end has connected it; in a session that `may_be_dead` only until the far end seems to have begun anew.
    ///
    /// # Errors
    ///
    /// Why it has not, as far as it says so, and the error.
    pub(super) fn wait_for_answer(&self, may_be_dead: bool) -> Result<(), (Refusal, io::Error)> {
        let stream = match self {
            Far::Tpa(stream) => stream,
            Far::Session(stream) => return stream.wait_for_answer(may_be_dead),
        };
        let mut answer = [0];
        (&*stream).read_exact(&mut answer).map_err(|error| (Refusal::Unreachable, error))?;
        if answer == [0] {
            return Ok(());
        }
        let refusal = Refusal::of(answer[0]);
        Err((refusal, io::Error::other(refusal.to_string())))
    }

    /// Tells the far end whether its target is connected: 0, or why not. Nobody waits until it has heard why not.
    ///
    /// # Errors
    ///
    /// The stream's.
    pub(super) fn answer(&self, code: u8) -> io::Result<()> {
        match self {
            Far::Tpa(stream) => {
                (&mut &*stream).write_all(&[code])?;
                if code != 0 {
                    stream.shutdown(Shutdown::Write)?;
                    stream.set_nonblocking(true)?;
                }
                Ok(())
            }
            Far::Session(stream) => {
                stream.answer(code);
                Ok(())
            }
        }
    }

    /// The peer's silence ends a stream, not the time that what is left takes over a slow link.
    pub(super) fn be_patient(&self) {
        if let Far::Tpa(stream) = self {
            let _ = stream.set_linger(std::time::Duration::from_secs(3600));
        }
    }

    /// Will write no more.
    ///
    /// # Errors
    ///
    /// The stream's.
    pub(super) fn shutdown(&self) -> io::Result<()> {
        match self {
            Far::Tpa(stream) => stream.shutdown(Shutdown::Write),
            Far::Session(stream) => stream.shutdown(),
        }
    }

    /// Waits until everything written, and the end of it, have arrived.
    ///
    /// # Errors
    ///
    /// Why they will not.
    pub(super) fn finish(&self) -> io::Result<()> {
        match self {
            Far::Tpa(stream) => stream.finish(),
            Far::Session(stream) => stream.finish(),
        }
    }

    /// Breaks it off, here and at the far end.
    pub(super) fn abort(&self) {
        match self {
            Far::Tpa(stream) => stream.abort(),
            Far::Session(stream) => stream.abort(),
        }
    }

    /// Has the far end hear from this end, if its connection is its own.
    pub(super) fn probe(&self) {
        if let Far::Tpa(stream) = self {
            stream.probe();
        }
    }

    /// What its own connection has counted: nothing, if it shares one.
    pub(super) fn own_stats(&self) -> Stats {
        match self {
            Far::Tpa(stream) => stream.stats(),
            Far::Session(_) => Stats::default(),
        }
    }

    /// Longest IP packet that the path was found to carry, bytes; `None` while nothing says that it drops any.
    pub(super) fn narrowed(&self) -> Option<u32> {
        match self {
            Far::Tpa(stream) => stream.narrowed(),
            Far::Session(stream) => stream.link().narrowed(),
        }
    }

    /// Hops that the peer's last packet seems to have come.
    pub(super) fn hops(&self) -> Option<u8> {
        match self {
            Far::Tpa(stream) => stream.hops(),
            Far::Session(stream) => stream.link().hops(),
        }
    }
}

impl Read for &Far {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Far::Tpa(stream) => (&*stream).read(into),
            Far::Session(stream) => stream.read(into),
        }
    }
}

impl Write for &Far {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Far::Tpa(stream) => (&*stream).write(from),
            Far::Session(stream) => stream.write(from),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

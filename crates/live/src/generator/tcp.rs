//! Our TCP on raw IP as a carrier.

use super::carrier::{Carrier, Progress};
use crate::clock::Clock;
use crate::tcp::{Id, Interface, Protocol, Stack, Status};
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use meshpace_transport::tcp::End;
use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicBool, Ordering};

/// Interval at which a waiting thread checks whether to continue.
const LOOK: Duration = Duration::from_millis(100);

/// Connections of a stack to one host, one at a time.
#[derive(Debug)]
pub struct Tcp<I: Interface> {
    stack: Stack<I>,
    protocol: Protocol,
    to: SocketAddrV4,
    present: Option<Id>,
    /// Progress of earlier connections.
    past: Progress,
    past_stats: Stats,
}

impl<I: Interface> Tcp<I> {
    /// Creates a carrier without a connection. The parameters of `protocol` must pass their
    /// `check`.
    pub fn new(stack: Stack<I>, to: SocketAddrV4, protocol: impl Into<Protocol>) -> Tcp<I> {
        Tcp {
            stack,
            protocol: protocol.into(),
            to,
            present: None,
            past: Progress::default(),
            past_stats: Stats::default(),
        }
    }

    /// The carrier's stack.
    pub fn stack(&self) -> &Stack<I> {
        &self.stack
    }

    /// Number of hops of the current connection; 0 without a connection.
    pub fn hops(&self) -> u8 {
        self.present.map_or(0, |id| self.stack.hops(id))
    }

    fn status(&self) -> io::Result<(Id, Status)> {
        let known = self.present.and_then(|id| Some((id, self.stack.status(id)?)));
        known.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn failure(&self, end: End, status: &Status) -> io::Error {
        let to = self.to;
        if let Some(bytes) = status.too_long {
            let text = format!("packets of {bytes} bytes are too long for the way to {to}: choose a smaller MTU");
            return io::Error::new(io::ErrorKind::InvalidInput, text);
        }
        if let (Some(error), false) = (status.unreachable, status.established) {
            return io::Error::new(io::ErrorKind::HostUnreachable, format!("{to}: {error}"));
        }
        let (kind, what) = match end {
            End::Refused => (io::ErrorKind::ConnectionRefused, "refuses the connection"),
            End::Reset => (io::ErrorKind::ConnectionReset, "reset the connection"),
            End::TimedOut => (io::ErrorKind::TimedOut, "does not answer any more"),
            // TCP does not skip sequence numbers, so it never detects a peer that acknowledges
            // unsent data.
            End::Aborted | End::Closed | End::Deceived => (io::ErrorKind::ConnectionAborted, "closed"),
        };
        match status.unreachable {
            Some(error) => io::Error::new(kind, format!("{to} {what} ({error})")),
            None => io::Error::new(kind, format!("{to} {what}")),
        }
    }
}

impl<I: Interface> Carrier for Tcp<I> {
    fn open(&mut self, until: Time, stop: &AtomicBool) -> io::Result<()> {
        if let Some(id) = self.present.take() {
            if let Some(connection) = self.stack.connection(id) {
                self.past.acknowledged += connection.acknowledged();
                self.past_stats += *connection.stats();
            }
            self.stack.release(id);
        }
        let id = self.stack.connect(self.to, &self.protocol)?;
        self.present = Some(id);
        loop {
            let (_, status) = self.status()?;
            match status.end {
                Some(end) => return Err(self.failure(end, &status)),
                None if status.established => return Ok(()),
                None if Clock.now() >= until => {
                    self.stack.abort(id);
                    let text = format!("{} does not answer; is it on and is there a way back?", self.to);
                    return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                }
                None if stop.load(Ordering::Relaxed) => {
                    self.stack.abort(id);
                    return Err(io::ErrorKind::Interrupted.into());
                }
                None => self.stack.step(until.min(Clock.now() + LOOK))?,
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (id, _) = self.status()?;
        Ok(self.stack.write(id, bytes))
    }

    fn close(&mut self) -> io::Result<()> {
        let (id, _) = self.status()?;
        self.stack.close(id);
        Ok(())
    }

    fn abort(&mut self) {
        if let Some(id) = self.present {
            self.stack.abort(id);
        }
    }

    fn wait(&mut self, until: Time) -> io::Result<()> {
        self.stack.step(until)?;
        // Data from the far end are discarded, but they must not fill the window.
        if let Some(id) = self.present {
            while self.stack.read(id, &mut [0; 4096]) > 0 {}
        }
        Ok(())
    }

    fn progress(&mut self) -> io::Result<Progress> {
        let mut progress = Progress { packets: self.stack.packets_sent(), stats: self.past_stats, ..self.past };
        if let Some(connection) = self.present.and_then(|id| self.stack.connection(id)) {
            progress.acknowledged += connection.acknowledged();
            progress.stats += *connection.stats();
            match connection.end() {
                None => {}
                Some(End::Aborted) if self.status()?.1.too_long.is_some() => {
                    let (_, status) = self.status()?;
                    return Err(self.failure(End::Aborted, &status));
                }
                Some(End::Closed | End::Aborted) => progress.is_over = true,
                Some(end) => {
                    let (_, status) = self.status()?;
                    return Err(self.failure(end, &status));
                }
            }
        }
        Ok(progress)
    }
}

impl<I: Interface> Drop for Tcp<I> {
    fn drop(&mut self) {
        // The peer is informed, whatever the reason for the end.
        if let Some(id) = self.present {
            self.stack.abandon(id);
        }
    }
}

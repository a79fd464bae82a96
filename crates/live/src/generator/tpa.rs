//! TPA over UDP as a carrier.

use super::carrier::{Carrier, Progress, about, discard, time_left, write_some};
use crate::Clock;
use crate::hosts::Host;
use crate::poll::{Poller, Ready};
use crate::tpa::{Options, TpaPort, TpaStream};
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use std::io;
use std::net::Shutdown;
use std::sync::atomic::AtomicBool;

/// Maximum time for the reset of an aborted connection to leave this host.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(2);

/// TPA connections to one host, one at a time.
#[derive(Debug)]
pub struct Tpa {
    port: TpaPort,
    to: Host,
    stream: Option<TpaStream>,
    written: u64,
    ended: bool,
    past: Progress,
    past_stats: Stats,
    poller: Poller,
    ready: Vec<Ready>,
}

impl Tpa {
    /// Creates a carrier without a connection.
    ///
    /// # Errors
    ///
    /// The options are out of range, or no port is available.
    pub fn new(to: impl Into<Host>, options: Options) -> io::Result<Tpa> {
        let to = to.into();
        Ok(Tpa {
            port: TpaPort::reaching(&to.addresses()?, options)?,
            to,
            stream: None,
            written: 0,
            ended: false,
            past: Progress::default(),
            past_stats: Stats::default(),
            poller: Poller::new()?,
            ready: Vec::new(),
        })
    }

    fn stream(&mut self) -> io::Result<&mut TpaStream> {
        self.stream.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Number of bytes of the current connection that the peer has acknowledged.
    fn acknowledged(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| self.written - stream.unacknowledged() as u64)
    }
}

impl Carrier for Tpa {
    fn open(&mut self, until: Time, _: &AtomicBool) -> io::Result<()> {
        self.past.acknowledged += self.acknowledged();
        if let Some(stream) = self.stream.take() {
            self.past_stats += stream.stats();
        }
        let addresses = self.to.addresses().map_err(about(&self.to))?;
        let opened = self.port.connect_timeout(&addresses[..], time_left(until));
        let stream = opened.inspect_err(|_| self.to.doubt()).map_err(about(&self.to))?;
        self.to.answered(stream.peer_addr()?);
        stream.set_nonblocking(true)?;
        self.stream = Some(stream);
        (self.written, self.ended) = (0, false);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = write_some(self.stream()?, bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn close(&mut self) -> io::Result<()> {
        self.stream()?.shutdown(Shutdown::Write)
    }

    fn abort(&mut self) {
        if let Some(stream) = &self.stream {
            // The program may end next. A peer that receives no reset would only probe after 30 s.
            let _ = stream.abort_timeout(FAREWELL);
        }
        self.ended = true;
    }

    fn wait(&mut self, until: Time) -> io::Result<()> {
        // The connection has its own thread, which does not notify this one, so the progress is
        // checked every few milliseconds.
        let soon = Clock.now() + Duration::from_millis(2);
        self.poller.wait(until.min(soon), &mut self.ready)?;
        if let (Some(stream), false) = (&mut self.stream, self.ended) {
            self.ended = discard(stream)?;
        }
        Ok(())
    }

    fn progress(&mut self) -> io::Result<Progress> {
        let mut progress = Progress { is_over: self.ended, stats: self.past_stats, ..self.past };
        progress.acknowledged += self.acknowledged();
        if let Some(stream) = &self.stream {
            progress.stats += stream.stats();
            progress.packets = progress.stats.segments_sent;
        }
        Ok(progress)
    }
}

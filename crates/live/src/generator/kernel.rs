//! The kernel's TCP as a carrier, for comparison.

use super::carrier::{Carrier, Progress, about, discard, time_left, write_some};
use crate::poll::{Poller, Ready};
use crate::sys;
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use std::io;
use std::net::{Shutdown, SocketAddrV4, TcpStream};
use std::sync::atomic::AtomicBool;

/// Kernel connections to one host, one at a time.
#[derive(Debug)]
pub struct Kernel {
    to: SocketAddrV4,
    congestion: Option<String>,
    poller: Poller,
    ready: Vec<Ready>,
    stream: Option<TcpStream>,
    written: u64,
    ended: bool,
    past: Progress,
    past_stats: Stats,
}

impl Kernel {
    /// Creates a carrier without a connection. `congestion` is the kernel's name of the congestion
    /// control, for example `reno`. `None`: the kernel's default. [`Carrier::open`] fails if the
    /// kernel does not have or allow that congestion control.
    ///
    /// # Errors
    /// The system provides no descriptor to wait with.
    pub fn new(to: SocketAddrV4, congestion: Option<String>) -> io::Result<Kernel> {
        Ok(Kernel {
            to,
            congestion,
            poller: Poller::new()?,
            ready: Vec::new(),
            stream: None,
            written: 0,
            ended: false,
            past: Progress::default(),
            past_stats: Stats::default(),
        })
    }

    fn stream(&mut self) -> io::Result<&mut TcpStream> {
        self.stream.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Number of bytes of the current connection that the peer has acknowledged, and the
    /// connection's counters.
    fn present(&self) -> io::Result<(u64, Stats)> {
        let Some(stream) = &self.stream else { return Ok((0, Stats::default())) };
        let info = sys::tcp_info(stream)?;
        let rtt = f64::from(info.rtt_us) * 1e-6;
        let stats = Stats {
            segments_sent: u64::from(info.data_segments_out),
            retransmissions: u64::from(info.retransmissions),
            // There is only one value: the smoothed RTT.
            rtt_samples: u64::from(info.rtt_us > 0),
            rtt_sum_s: rtt,
            ..Stats::default()
        };
        // The kernel also counts SYN and FIN.
        Ok((info.bytes_acked.min(self.written), stats))
    }
}

impl Carrier for Kernel {
    fn open(&mut self, until: Time, _: &AtomicBool) -> io::Result<()> {
        let (acknowledged, stats) = self.present()?;
        self.past.acknowledged += acknowledged;
        self.past_stats += stats;
        let left = std::time::Duration::from_nanos(time_left(until).0);
        let stream = TcpStream::connect_timeout(&self.to.into(), left).map_err(about(self.to))?;
        if let Some(name) = &self.congestion {
            rustix::net::sockopt::set_tcp_congestion(&stream, name).map_err(|error| {
                let error = io::Error::from(error);
                io::Error::new(error.kind(), format!("congestion control {name}: {error}"))
            })?;
        }
        stream.set_nonblocking(true)?;
        self.poller.add(&stream, 0)?;
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
        self.ended = true;
        // An error is ignored, because the connection is given up anyway.
        let _ = self.stream().and_then(|stream| stream.shutdown(Shutdown::Both));
    }

    fn wait(&mut self, until: Time) -> io::Result<()> {
        // No event signals an acknowledgement, so the progress is checked every few milliseconds.
        let soon = crate::Clock.now() + Duration::from_millis(2);
        let ended = self.ended;
        let Some(stream) = &mut self.stream else { return self.poller.wait(until, &mut self.ready) };
        if !ended && discard(stream)? {
            self.ended = true;
            self.poller.remove(&*stream)?;
        }
        self.poller.wait(until.min(soon), &mut self.ready)
    }

    fn progress(&mut self) -> io::Result<Progress> {
        let (acknowledged, stats) = self.present()?;
        let mut progress = Progress { is_over: self.ended, stats: self.past_stats, ..self.past };
        progress.acknowledged += acknowledged;
        progress.stats += stats;
        Ok(progress)
    }
}

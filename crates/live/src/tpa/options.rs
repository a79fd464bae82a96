//! What can be set about connections over UDP.

use super::path::PathSource;
use meshpace_core::Duration;
use meshpace_transport::{Config, names, tpa};
use std::io;
use std::sync::Arc;

/// Settings of a port; they hold for the connections it opens and accepts.
#[derive(Clone, Debug)]
pub struct Options {
    /// The transport. Who accepts takes segment size, block size, cwnd_max and ACK rule from who opens. Default TPA with
    /// cwnd_max 2, without pacing, and the margin of [`Options::of`].
    pub transport: tpa::Config,
    /// Whether segments are made smaller where the way out has an MTU too small for them. Default true.
    pub fit_mtu: bool,
    /// Where path information comes from; none: one hop at 2 Mbit/s, until packets tell otherwise. Default none.
    pub path: Option<Arc<dyn PathSource>>,
    /// Bytes written that wait to be sent or acknowledged; at least two blocks. Default 256 KiB.
    pub send_buffer: usize,
    /// Bytes received that wait to be read; at least three blocks. Default 256 KiB.
    pub receive_buffer: usize,
    /// How long to try to open a connection. Default 30 s.
    pub connect_timeout: Duration,
    /// How long to send without hearing anything from the peer (RFC 1122, section 4.2.3.5, asks for 100 s at least).
    /// Default 120 s.
    pub silence_timeout: Duration,
    /// How long dropping a stream waits for what was written to arrive. Default 30 s.
    pub linger: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            transport: on_wires(tpa::Config::default()),
            fit_mtu: true,
            path: None,
            send_buffer: 256 << 10,
            receive_buffer: 256 << 10,
            connect_timeout: Duration::from_secs(30),
            silence_timeout: Duration::from_secs(120),
            linger: Duration::from_secs(30),
        }
    }
}

impl Options {
    /// The defaults with a transport by its name, `tpa-2` for example; an error if that is no TPA.
    pub fn named(transport: &str) -> io::Result<Options> {
        match names::lookup(transport) {
            Some(Config::Tpa(transport)) => Ok(Options::of(transport)),
            Some(_) => Err(refused(format!("{transport}: not a TPA, and only TPA runs over these sockets"))),
            None => Err(refused(format!("{transport}: no such transport"))),
        }
    }

    /// The defaults with this transport. Its RTO keeps a margin above the RTT of at least the time an ACK may be held and
    /// 50 ms more.
    ///
    /// A segment that is repeated alone is acknowledged when the receiver's timer expires. With a margin of just that time,
    /// the simulator's, the ACK and the sender's timer are a tie over a steady path, and what was not lost is sent a third
    /// time. A machine that is busy wakes a thread some milliseconds late, seldom tens.
    pub fn of(transport: tpa::Config) -> Options {
        Options { transport: on_wires(transport), ..Options::default() }
    }

    /// Whether every value is in its range.
    pub fn check(&self) -> io::Result<()> {
        self.transport.check().map_err(|error| refused(format!("transport.{error}")))?;
        if self.transport.segment > MOST_PAYLOAD {
            let message =
                format!("transport.segment: {}, at most {MOST_PAYLOAD} bytes over UDP", self.transport.segment);
            return Err(refused(message));
        }
        Ok(())
    }
}

/// Payload that fits into the largest UDP datagram behind TPA's header.
pub(super) const MOST_PAYLOAD: u32 = 65507 - tpa::wire::INSIDE_UDP as u32;

/// How much later than the receiver's ACK timer the sender's may expire.
const LATENESS: Duration = Duration::from_millis(50);

fn on_wires(mut transport: tpa::Config) -> tpa::Config {
    let margin = (transport.ack_delay + LATENESS).min(transport.rto.max);
    transport.rto.margin = transport.rto.margin.max(margin);
    transport
}

fn refused(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

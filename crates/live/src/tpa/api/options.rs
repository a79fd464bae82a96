//! Options of connections over UDP.

use crate::tpa::runtime::keylog::KeyLog;
use crate::tpa::runtime::random;
use crate::tpa::runtime::service::Service;
use crate::tpa::session::admission::Admission;
use crate::tpa::session::cipher::processor_has_aes;
use crate::tpa::session::framing::overhead;
use crate::tpa::session::handshake::{LEAST_SEGMENT, Protection};
use crate::tpa::session::path::PathSource;
use crate::tpa::session::seal::KEY_LIFE;
use crate::tpa::session::security::Security;
use crate::tpa::session::settings::{Beside, Limits, Settings};
use meshpace_core::Duration;
use meshpace_transport::{Config, names, tpa, train};
use std::io;
use std::sync::Arc;

impl Security {
    /// A fresh pair of keys for [`Security::Keys`]: private and public.
    ///
    /// # Errors
    ///
    /// No random numbers can be had.
    pub fn new_key() -> io::Result<([u8; 32], [u8; 32])> {
        let mut secret = [0; 32];
        random(&mut secret)?;
        Ok((secret, Security::public_key(&secret)))
    }
}

/// Settings of a port; they hold for the connections it opens and accepts.
#[derive(Clone, Debug)]
pub struct Options {
    /// The transport. Who accepts takes segment size, block size, cwnd_max and ACK rule from who opens. Default TPA with
    /// cwnd_max 2, without pacing, and the margin of [`Options::of`].
    pub transport: tpa::Config,
    /// Quiet trains instead of TPA inside the datagrams; both ends have to set this. Their reaction to ECN marks must be off, for these
    /// sockets ask the network for none, and `keep_alive` 1 s or more. `transport` then decides only how long datagrams are (a listener
    /// agrees to those of which three blocks fit into its buffer) and when an acceptance is repeated; `path` tells the trains hops and
    /// data rate. Default none: TPA.
    pub trains: Option<train::Config>,
    /// With `trains`: whether connections that are opened from here ask for BBR in their place, for paths that are no mesh. A listener that
    /// knows it agrees if it takes trains; with one that does not it is trains. Default false.
    pub bbr: bool,
    /// With `trains`: whether a listener takes TPA as well; who opens a connection decides. What is opened from here speaks trains. Default
    /// false.
    pub takes_tpa: bool,
    /// True if segments are made smaller where the way out has an MTU too small for them. Default true.
    pub fit_mtu: bool,
    /// Where path information comes from; none: one hop at 2 Mbit/s, until packets tell otherwise. Default none.
    pub path: Option<Arc<dyn PathSource>>,
    /// Bytes written that wait to be sent or acknowledged; at least two blocks, [`MOST_BUFFER`] at most. Default 256 KiB.
    pub send_buffer: usize,
    /// Bytes received that wait to be read; at least three blocks, [`MOST_BUFFER`] at most. Default 256 KiB.
    pub receive_buffer: usize,
    /// Time limit for opening a connection; quiet trains give up after 100 s at most. Default 30 s.
    pub connect_timeout: Duration,
    /// Protection of datagrams; both ends need the same. Default [`Security::Opportunistic`].
    pub security: Security,
    /// With [`Security::Keys`]: decides which peers a listener takes connections from, in the place of the list there, which may then be empty; none
    /// for that list. A peer that is not admitted is told so within a round trip, with a proof that it is this end that says so. Default none.
    pub admission: Option<Admission>,
    /// True if AES-256-GCM is offered and agreed to; without it, or if the peer has not, ChaCha20-Poly1305 is used. Default: true where this
    /// processor has instructions for it.
    pub aes: bool,
    /// Where the keys of connections are noted, for whoever wants to read captures. Default none.
    pub keylog: Option<Arc<KeyLog>>,
    /// Silence after which the peer is asked for a sign of life; none for never. Default 30 s.
    pub keep_alive: Option<Duration>,
    /// Time without data after which a connection is ended, although the peer is there; none for never. Default none.
    pub idle_timeout: Option<Duration>,
    /// Limits of what a listener grants.
    pub limits: Limits,
    /// Time for which data are sent without hearing anything from the peer (RFC 1122, section 4.2.3.5, asks for 100 s at least); quiet trains give
    /// up after 100 s at most. Default 120 s.
    pub silence_timeout: Duration,
    /// Time for which dropping a stream waits for what was written to arrive. Default 30 s.
    pub linger: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            transport: on_wires(tpa::Config::default()),
            trains: None,
            bbr: false,
            takes_tpa: false,
            fit_mtu: true,
            path: None,
            send_buffer: 256 << 10,
            receive_buffer: 256 << 10,
            connect_timeout: Duration::from_secs(30),
            security: Security::Opportunistic,
            admission: None,
            aes: processor_has_aes(),
            keylog: None,
            keep_alive: Some(Duration::from_secs(30)),
            idle_timeout: None,
            limits: Limits::default(),
            silence_timeout: Duration::from_secs(120),
            linger: Duration::from_secs(30),
        }
    }
}

impl Options {
    /// The defaults with a transport by its name, `tpa-2` for example.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if that is no TPA.
    pub fn named(transport: &str) -> io::Result<Options> {
        match names::lookup(transport) {
            Some(Config::Tpa(transport)) => Ok(Options::of(transport)),
            Some(_) => Err(refused(format!(
                "{transport}: not a TPA (quiet trains over UDP are chosen by `Options::trains`; no other transport is carried in UDP)"
            ))),
            None => Err(refused(format!("{transport}: no such transport"))),
        }
    }

    /// The defaults with this transport. A block does not wait to be filled ([`tpa::Config::waits_to_fill`]), so that questions and answers
    /// do not cost `fill_timeout`. The end of a block is acknowledged at once, so that none costs the time an ACK may be held; and the RTO
    /// keeps a margin above the RTT of at least that time and 50 ms more.
    ///
    /// A segment that is repeated alone is acknowledged when the receiver's timer expires. With a margin of just that time,
    /// the simulator's, the ACK and the sender's timer are a tie over a steady path, and what was not lost is sent a third
    /// time. A machine that is busy wakes a thread some milliseconds late, seldom tens.
    pub fn of(transport: tpa::Config) -> Options {
        Options { transport: on_wires(transport), ..Options::default() }
    }

    /// Checks that every value is in its range.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`], with the name of the value and its range.
    pub fn check(&self) -> io::Result<()> {
        self.security.check().map_err(|error| refused(format!("security: {error}")))?;
        if self.admission.is_some() && !matches!(self.security, Security::Keys { .. }) {
            return Err(refused("admission: it decides about known keys, and `security` has none".to_owned()));
        }
        let (segment, least) = (self.transport.segment, u32::from(LEAST_SEGMENT));
        if !(least..=MOST_PAYLOAD).contains(&segment) {
            let message = format!("transport.segment = {segment}: expected {least} to {MOST_PAYLOAD} bytes over UDP");
            return Err(refused(message));
        }
        self.transport.check().map_err(|error| refused(format!("transport.{error}")))?;
        if let Some(trains) = &self.trains {
            trains.check().map_err(|error| refused(format!("trains.{error}")))?;
            if trains.control.marks > 0.0 {
                let marks = trains.control.marks;
                let message = format!(
                    "trains.control.marks: {marks}, and no marks of relays are seen over UDP: 0, as of `quiet-train`"
                );
                return Err(refused(message));
            }
            if let Some(often) = self.keep_alive.filter(|often| *often < LEAST_QUESTION) {
                let message = format!("keep_alive: {} s, at least 1 s with quiet trains", often.as_secs_f64());
                return Err(refused(message));
            }
        }
        for (name, bytes) in [("send_buffer", self.send_buffer), ("receive_buffer", self.receive_buffer)] {
            if bytes > MOST_BUFFER {
                return Err(refused(format!("{name}: {bytes}, expected 0 to {MOST_BUFFER} bytes")));
            }
        }
        Ok(())
    }

    /// Settings with which a port is run, with memory of its own for the buffers of its connections.
    pub(crate) fn service(&self) -> Service {
        let settings = Settings {
            transport: self.transport.clone(),
            trains: self.trains.clone(),
            beside: Beside { bbr: self.bbr, takes_tpa: self.takes_tpa },
            path: self.path.clone(),
            fit_mtu: self.fit_mtu,
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            connect_timeout: self.connect_timeout,
            security: self.security.clone(),
            admission: self.admission.clone(),
            aes: self.aes,
            key_life: KEY_LIFE,
            keep_alive: self.keep_alive,
            idle_timeout: self.idle_timeout,
            limits: self.limits,
            budget: self.limits.budget(crate::memory::limit()),
            silence_timeout: self.silence_timeout,
        };
        Service { settings: Arc::new(settings), keylog: self.keylog.clone() }
    }
}

/// The largest buffer of a connection, bytes: 1 GiB. Some thousand times what any path here holds.
pub const MOST_BUFFER: usize = 1 << 30;

/// Payload that fits into the largest UDP datagram behind the headers.
const MOST_PAYLOAD: u32 = 65507 - overhead(Protection::Nn);

/// Shortest interval at which quiet trains may be asked for a sign of life: they answer ten SYNs in 5 s.
const LEAST_QUESTION: Duration = Duration::from_secs(1);

/// Least time by which the sender's timer expires later than the receiver's ACK timer.
const LATENESS: Duration = Duration::from_millis(50);

fn on_wires(mut transport: tpa::Config) -> tpa::Config {
    let margin = (transport.ack_delay + LATENESS).min(transport.rto.max);
    transport.rto.margin = transport.rto.margin.max(margin);
    transport.ack_block_end = true;
    transport.waits_to_fill = false;
    // RFC 6298, section 2.1, which the Internet has lived with since 2011; the paper's table says 3 s.
    transport.rto.initial = transport.rto.initial.min(Duration::from_secs(1));
    transport
}

fn refused(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_pages() {
        // docs/wire-api.md, what goes wrong; docs/wire-opening.md, the places that a listener grants.
        let options = Options::default();
        assert_eq!([options.connect_timeout, options.silence_timeout].map(Duration::as_secs_f64), [30.0, 120.0]);
        assert_eq!((options.keep_alive, options.idle_timeout), (Some(Duration::from_secs(30)), None));
        assert_eq!(options.linger, Duration::from_secs(30));
        let limits = options.limits;
        assert_eq!((limits.connections, limits.connections_per_source), (16_384, 4096));
        assert_eq!((limits.half_open, limits.half_open_per_source, limits.handshakes_per_second), (1024, 256, 256));
    }

    #[test]
    fn a_segment_that_no_listener_agrees_to_is_refused_where_it_is_set() {
        let of = |segment: u32| Options::of(tpa::Config { segment, ..tpa::Config::default() }).check();
        // docs/wire-opening.md: "payload of a full segment, bytes, 64 at least"; the largest UDP datagram over IPv4 has 65507.
        for good in [64, 1460, 65_463] {
            assert!(of(good).is_ok(), "{good}");
        }
        for bad in [0, 1, 63, 65_464, 65_495] {
            let error = of(bad).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert_eq!(error.to_string(), format!("transport.segment = {bad}: expected 64 to 65463 bytes over UDP"));
        }
    }

    #[test]
    fn buffers_that_no_memory_holds_are_refused_with_their_range() {
        for most in [MOST_BUFFER, 0] {
            assert!(Options { send_buffer: most, receive_buffer: most, ..Options::default() }.check().is_ok());
        }
        for bytes in [MOST_BUFFER + 1, 1 << 40, usize::MAX] {
            let refused = [
                ("send_buffer", Options { send_buffer: bytes, ..Options::default() }),
                ("receive_buffer", Options { receive_buffer: bytes, ..Options::default() }),
            ];
            for (name, options) in refused {
                let error = options.check().unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
                assert_eq!(error.to_string(), format!("{name}: {bytes}, expected 0 to 1073741824 bytes"));
            }
        }
    }
}

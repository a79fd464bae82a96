//! Options of connections over UDP.

use crate::tpa::runtime::keylog::KeyLog;
use crate::tpa::runtime::service::Service;
use meshpace_core::Duration;
use meshpace_session::Admission;
use meshpace_session::Security;
use meshpace_session::cipher::processor_has_aes;
use meshpace_session::framing::overhead;
use meshpace_session::handshake::{LEAST_SEGMENT, Protection};
use meshpace_session::path::PathSource;
use meshpace_session::seal::KEY_LIFE;
use meshpace_session::settings::{Beside, Limits, Settings, on_wires};
use meshpace_transport::{Config, names, tpa, train};
use std::io;
use std::sync::Arc;

/// Settings of a port. They apply to the connections that it opens and accepts.
#[derive(Clone, Debug)]
pub struct Options {
    /// Configuration of the transport. The accepting end takes segment size, block size, `cwnd_max`
    /// and ACK rule from the opening end. Default: TPA with `cwnd_max` 2, without pacing, and with
    /// the margin of [`Options::of`].
    pub transport: tpa::Config,
    /// Uses quiet trains instead of TPA inside the datagrams; both ends have to set this. Reaction
    /// to ECN marks must be off, because these sockets do not ask the network for marks.
    /// `keep_alive` must be at least 1 s.
    ///
    /// `transport` then decides only the length of datagrams and when an acceptance is repeated. A
    /// listener agrees to a length if three blocks of such datagrams fit into its buffer. `path`
    /// provides the trains with hops and data rate. Default `None`: TPA.
    pub trains: Option<train::Config>,
    /// With `trains`: true if connections that this end opens request BBR instead of quiet trains,
    /// for paths that are not in a mesh. A listener that knows BBR agrees if it accepts trains.
    /// With a listener that does not know BBR, the connection uses quiet trains. Default false.
    pub bbr: bool,
    /// With `trains`: true if a listener also accepts connections with TPA; the opening end
    /// decides. Connections that this end opens still use trains. Default false.
    pub takes_tpa: bool,
    /// True if segments are made smaller when the MTU of the outgoing path is too small for them.
    /// Default true.
    pub fit_mtu: bool,
    /// Source of path information. `None`: assumes one hop at 2 Mbit/s until packets show another
    /// value. Default `None`.
    pub path: Option<Arc<dyn PathSource>>,
    /// Size of the send buffer in bytes, which holds data that are waiting to be sent or
    /// acknowledged. At least two blocks, at most [`MOST_BUFFER`]. Default 256 KiB.
    pub send_buffer: usize,
    /// Size of the receive buffer in bytes, which holds received data that have not been read. At
    /// least three blocks, at most [`MOST_BUFFER`]. Default 256 KiB.
    pub receive_buffer: usize,
    /// Time limit for opening a connection. Quiet trains give up after at most 100 s. Default 30 s.
    pub connect_timeout: Duration,
    /// Protection of datagrams. Both ends need the same protection. Default
    /// [`Security::Opportunistic`].
    pub security: Security,
    /// With [`Security::Keys`]: decides which peers a listener accepts. It replaces the list of
    /// keys there, which may then be empty; `None` uses that list. A peer that is not admitted is
    /// informed within a round trip, with proof that the information comes from this end. Default
    /// `None`.
    pub admission: Option<Admission>,
    /// True if this end offers AES-256-GCM and agrees to it. If it is false here or at the peer,
    /// ChaCha20-Poly1305 is used. Default: true if this processor has AES instructions.
    pub aes: bool,
    /// File in which the keys of connections are recorded, so that captures can be decrypted.
    /// Default `None`.
    pub keylog: Option<Arc<KeyLog>>,
    /// Silence of the peer after which it is probed with a keep-alive. `None`: never. Default 30 s.
    pub keep_alive: Option<Duration>,
    /// Time without data after which a connection is ended although the peer still responds.
    /// `None`: never. Default `None`.
    pub idle_timeout: Option<Duration>,
    /// Limits on what a listener grants.
    pub limits: Limits,
    /// Time for which data are sent without hearing anything from the peer, after which the
    /// connection fails. RFC 1122, section 4.2.3.5, requires at least 100 s. Quiet trains give up
    /// after at most 100 s. Default 120 s.
    pub silence_timeout: Duration,
    /// Time for which dropping a stream waits until all written data have arrived. Default 30 s.
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
    /// Default options with the transport of this name, for example `tpa-2`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] if the name is not that of a TPA transport.
    pub fn named(transport: &str) -> io::Result<Options> {
        match names::lookup(transport) {
            Some(Config::Tpa(transport)) => Ok(Options::of(transport)),
            Some(_) => Err(refused(format!(
                "{transport}: not a TPA (quiet trains over UDP are chosen by `Options::trains`; no other transport is carried in UDP)"
            ))),
            None => Err(refused(format!("{transport}: no such transport"))),
        }
    }

    /// Default options with this transport, changed for real networks as [`on_wires`] says.
    pub fn of(transport: tpa::Config) -> Options {
        Options { transport: on_wires(transport), ..Options::default() }
    }

    /// Checks that every value is in its range.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`], with the name of the value and its valid range.
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

    /// Settings of the runtime for a port. The buffers of the port's connections have a memory
    /// budget of their own.
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

/// Largest size of a connection's buffer in bytes: 1 GiB. This is some thousand times what any path
/// here can hold in flight.
pub const MOST_BUFFER: usize = 1 << 30;

/// Largest payload that fits into a UDP datagram after the headers, bytes.
const MOST_PAYLOAD: u32 = 65507 - overhead(Protection::Nn);

/// Shortest interval between keep-alive probes of quiet trains. The peer answers at most ten SYNs
/// in 5 s.
const LEAST_QUESTION: Duration = Duration::from_secs(1);

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

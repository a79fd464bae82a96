//! What can be set about connections over UDP.

use super::cipher::processor_has_aes;
use super::handshake::Protection;
use super::keylog::KeyLog;
use super::path::PathSource;
use curve25519_dalek::montgomery::MontgomeryPoint;
use meshpace_core::Duration;
use meshpace_transport::{Config, names, tpa, train};
use std::io;
use std::sync::Arc;

/// How datagrams are protected, and from whom.
#[derive(Clone, PartialEq, Eq)]
pub enum Security {
    /// A random tag of 64 bits in every datagram: whoever cannot read the packets can forge nothing. Whoever can read them can
    /// forge them. For experiments.
    Plain,
    /// Encrypted, with whoever answers: whoever reads packets learns nothing and can forge nothing. Somebody who stands
    /// between the two ends while they connect can pose as each to the other.
    Opportunistic,
    /// Encrypted, with whoever knows this secret.
    Shared([u8; 32]),
    /// Encrypted, with the holders of known keys (X25519). Whoever opens a connection knows exactly one peer.
    Keys {
        /// Our own private key.
        own: [u8; 32],
        /// Public keys of the peers.
        peers: Vec<[u8; 32]>,
    },
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys are not for logs.
        write!(f, "Security({:?})", self.protection())
    }
}

impl Security {
    /// As it stands in a request.
    pub fn protection(&self) -> Protection {
        match self {
            Security::Plain => Protection::Plain,
            Security::Opportunistic => Protection::Nn,
            Security::Shared(_) => Protection::NnPsk0,
            Security::Keys { .. } => Protection::Ik,
        }
    }

    /// Whether the peer proves that it is the one that is meant: by a secret, or by known keys.
    pub fn knows_peer(&self) -> bool {
        matches!(self, Security::Shared(_) | Security::Keys { .. })
    }

    /// A fresh pair of keys for [`Security::Keys`]: private and public.
    ///
    /// # Errors
    ///
    /// No random numbers can be had.
    pub fn new_key() -> io::Result<([u8; 32], [u8; 32])> {
        let mut secret = [0; 32];
        super::runtime::random(&mut secret)?;
        Ok((secret, Security::public_key(&secret)))
    }

    /// The public key of a private one.
    pub fn public_key(secret: &[u8; 32]) -> [u8; 32] {
        MontgomeryPoint::mul_base_clamped(*secret).to_bytes()
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
    /// With `trains`: whether a listener takes TPA as well; who opens a connection decides. What is opened from here speaks trains. Default
    /// false.
    pub takes_tpa: bool,
    /// Whether segments are made smaller where the way out has an MTU too small for them. Default true.
    pub fit_mtu: bool,
    /// Where path information comes from; none: one hop at 2 Mbit/s, until packets tell otherwise. Default none.
    pub path: Option<Arc<dyn PathSource>>,
    /// Bytes written that wait to be sent or acknowledged; at least two blocks. Default 256 KiB.
    pub send_buffer: usize,
    /// Bytes received that wait to be read; at least three blocks. Default 256 KiB.
    pub receive_buffer: usize,
    /// How long to try to open a connection; quiet trains give up after 100 s at most. Default 30 s.
    pub connect_timeout: Duration,
    /// How datagrams are protected; both ends need the same. Default [`Security::Opportunistic`].
    pub security: Security,
    /// Whether AES-256-GCM is offered and agreed to; ChaCha20-Poly1305 is what there is without, and if the peer has not. Default: where this
    /// processor has instructions for it.
    pub aes: bool,
    /// Where the keys of connections are noted, for whoever wants to read captures. Default none.
    pub keylog: Option<Arc<KeyLog>>,
    /// Silence after which the peer is asked for a sign of life; none for never. Default 30 s.
    pub keep_alive: Option<Duration>,
    /// How long a connection may carry no data before it is ended, although the peer is there; none for ever. Default none.
    pub idle_timeout: Option<Duration>,
    /// What a listener grants.
    pub limits: Limits,
    /// How long to send without hearing anything from the peer (RFC 1122, section 4.2.3.5, asks for 100 s at least); quiet trains give
    /// up after 100 s at most. Default 120 s.
    pub silence_timeout: Duration,
    /// How long dropping a stream waits for what was written to arrive. Default 30 s.
    pub linger: Duration,
}

/// What a listener grants, altogether and per source: an IPv4 address, or an IPv6 network of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections open at a time. Default 16,384.
    pub connections: usize,
    /// The same from one source. Default 4096.
    pub connections_per_source: usize,
    /// Handshakes that are not finished. Default 1024: some hundred bytes each.
    pub half_open: usize,
    /// The same from one source. Default 256.
    pub half_open_per_source: usize,
    /// Handshakes begun per second and source, in the long run; as many at once. Default 256. Each costs two
    /// multiplications on the curve.
    pub handshakes_per_second: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 16_384,
            connections_per_source: 4096,
            half_open: 1024,
            half_open_per_source: 256,
            handshakes_per_second: 256,
        }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            transport: on_wires(tpa::Config::default()),
            trains: None,
            takes_tpa: false,
            fit_mtu: true,
            path: None,
            send_buffer: 256 << 10,
            receive_buffer: 256 << 10,
            connect_timeout: Duration::from_secs(30),
            security: Security::Opportunistic,
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

    /// The defaults with this transport. The end of a block is acknowledged at once, so that none costs the time an ACK may be held; and the
    /// RTO keeps a margin above the RTT of at least that time and 50 ms more.
    ///
    /// A segment that is repeated alone is acknowledged when the receiver's timer expires. With a margin of just that time,
    /// the simulator's, the ACK and the sender's timer are a tie over a steady path, and what was not lost is sent a third
    /// time. A machine that is busy wakes a thread some milliseconds late, seldom tens.
    pub fn of(transport: tpa::Config) -> Options {
        Options { transport: on_wires(transport), ..Options::default() }
    }

    /// Whether a listener takes connections of this kind.
    pub(super) fn takes(&self, trains: bool) -> bool {
        trains == self.trains.is_some() || (!trains && self.takes_tpa)
    }

    /// Whether every value is in its range.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`], with the name of the value and its range.
    pub fn check(&self) -> io::Result<()> {
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
        if self.transport.segment > MOST_PAYLOAD {
            let message =
                format!("transport.segment: {}, at most {MOST_PAYLOAD} bytes over UDP", self.transport.segment);
            return Err(refused(message));
        }
        Ok(())
    }
}

/// Payload that fits into the largest UDP datagram behind the headers.
pub(super) const MOST_PAYLOAD: u32 = 65507 - super::cover::overhead(Protection::Nn);

/// How often quiet trains may be asked for a sign of life at most: they answer ten SYNs in 5 s.
const LEAST_QUESTION: Duration = Duration::from_secs(1);

/// How much later than the receiver's ACK timer the sender's may expire.
const LATENESS: Duration = Duration::from_millis(50);

fn on_wires(mut transport: tpa::Config) -> tpa::Config {
    let margin = (transport.ack_delay + LATENESS).min(transport.rto.max);
    transport.rto.margin = transport.rto.margin.max(margin);
    transport.ack_block_end = true;
    // RFC 6298, section 2.1, which the Internet has lived with since 2011; the paper's table says 3 s.
    transport.rto.initial = transport.rto.initial.min(Duration::from_secs(1));
    transport
}

fn refused(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

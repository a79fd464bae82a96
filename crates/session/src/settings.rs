//! Settings of a session for the connections that it opens and accepts.

use super::admission::Admission;
use super::cipher::processor_has_aes;
use super::handshake::InnerTransport;
use super::path::PathSource;
use super::seal::KEY_LIFE;
use super::security::Security;
use crate::budget::Budget;
use meshpace_core::Duration;
use meshpace_transport::{tpa, train};
use std::sync::Arc;

/// Least size of the buffers of connections with BBR, bytes: the bandwidth-delay product of a path
/// with 160 Mbit/s and 200 ms.
const BBR_BUFFER: usize = 4 << 20;

/// Settings of the connections of a port. Both ends need the same `security`, `transport` and
/// `key_life`; [`Settings::new`] has values for all others.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Configuration of TPA.
    pub transport: tpa::Config,
    /// Configuration of quiet trains. `None` if TPA is used.
    pub trains: Option<train::Config>,
    /// Transports that may be used besides quiet trains.
    pub beside: Beside,
    /// Source of path information. `None` if there is none.
    pub path: Option<Arc<dyn PathSource>>,
    /// True if segments are made smaller when the path is too narrow for them.
    pub fit_mtu: bool,
    /// Send buffer for bytes that wait to be sent or acknowledged, bytes; at least two blocks.
    pub send_buffer: usize,
    /// Receive buffer for bytes that wait to be read, bytes; at least three blocks.
    pub receive_buffer: usize,
    /// Time limit for opening a connection.
    pub connect_timeout: Duration,
    /// Protection of datagrams.
    pub security: Security,
    /// Decision whose keys are admitted, in the place of the list in `security`. `None` if that
    /// list decides.
    pub admission: Option<Admission>,
    /// True if AES-256-GCM is offered and agreed to.
    pub aes: bool,
    /// Lifetime of a key: two to the power of this many datagrams. Both ends need the same value.
    pub key_life: u32,
    /// Silence of the peer after which it is probed. `None` if it is never probed.
    pub keep_alive: Option<Duration>,
    /// Time without data after which a connection is ended. `None` if it is never ended for that
    /// reason.
    pub idle_timeout: Option<Duration>,
    /// Limits for the peers of a listener.
    pub limits: Limits,
    /// Memory limit for the buffers of all connections of the port.
    pub budget: Budget,
    /// Time for which an end continues to send data without receiving anything from the peer.
    pub silence_timeout: Duration,
}

impl Settings {
    /// Creates settings with this protection: TPA on a real network, buffers of 256 KiB, 30 s to
    /// open a connection, and a peer that is silent for 30 s is probed and after 120 s given up.
    /// AES-256-GCM is offered if this processor has instructions for it.
    pub fn new(security: Security) -> Settings {
        Settings {
            transport: on_wires(tpa::Config { close_with_peer: false, ..tpa::Config::default() }),
            trains: None,
            beside: Beside::default(),
            path: None,
            fit_mtu: true,
            send_buffer: 256 << 10,
            receive_buffer: 256 << 10,
            connect_timeout: Duration::from_secs(30),
            security,
            admission: None,
            aes: processor_has_aes(),
            key_life: KEY_LIFE,
            keep_alive: Some(Duration::from_secs(30)),
            idle_timeout: None,
            limits: Limits::default(),
            budget: Limits::default().budget(None),
            silence_timeout: Duration::from_secs(120),
        }
    }

    /// Returns the transport that connections opened with these settings request.
    pub fn inner(&self) -> InnerTransport {
        match (self.trains.is_some(), self.beside.bbr) {
            (false, _) => InnerTransport::Tpa,
            (true, false) => InnerTransport::Trains,
            (true, true) => InnerTransport::Bbr,
        }
    }

    /// Returns these settings adapted to a connection that carries `inner`.
    pub fn with(self: Arc<Settings>, inner: InnerTransport) -> Arc<Settings> {
        let mut settings = self;
        match inner {
            InnerTransport::Tpa if settings.trains.is_some() => Arc::make_mut(&mut settings).trains = None,
            InnerTransport::Bbr => {
                let settings = Arc::make_mut(&mut settings);
                settings.beside.bbr = true;
                settings.send_buffer = settings.send_buffer.max(BBR_BUFFER);
                settings.receive_buffer = settings.receive_buffer.max(BBR_BUFFER);
            }
            InnerTransport::Tpa | InnerTransport::Trains => {}
        }
        settings
    }

    /// True if a listener accepts connections from the holder of this public key.
    pub(crate) fn admits(&self, key: &[u8; 32]) -> bool {
        match (&self.admission, &self.security) {
            (Some(admission), _) => !Security::is_weak(key) && admission.admits(key),
            (None, Security::Keys { peers, .. }) => peers.contains(key),
            (None, _) => false,
        }
    }

    /// True if a listener accepts connections of this kind: with quiet trains or BBR if `trains`,
    /// with TPA otherwise.
    pub fn takes(&self, trains: bool) -> bool {
        trains == self.trains.is_some() || (!trains && self.beside.takes_tpa)
    }
}

/// Transports that are used besides quiet trains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Beside {
    /// True if BBR is requested in the place of quiet trains. A listener accepts BBR wherever it
    /// accepts trains.
    pub bbr: bool,
    /// True if a listener accepts TPA as well.
    pub takes_tpa: bool,
}

/// Limits for the peers of a listener, in total and per source. A source is an IPv4 address or an
/// IPv6 network of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Most open connections. Default 16,384.
    pub connections: usize,
    /// Most open connections of one source. Default 4096.
    pub connections_per_source: usize,
    /// Most unfinished handshakes. Default 1024; each uses some hundred bytes. When all places are
    /// taken, a source with few takes one from the network that has most.
    pub half_open: usize,
    /// Most unfinished handshakes of one source. Default 256.
    pub half_open_per_source: usize,
    /// Handshakes that a source may begin per second in the long run, and also in one burst.
    /// Default 256. Each handshake costs two multiplications on the curve. All sources together may
    /// begin four times as many.
    pub handshakes_per_second: u32,
    /// Most bytes in the buffers of all connections, including those that are opened from here.
    /// Counted are bytes that were written and are not acknowledged, and bytes that have arrived
    /// and were not read. Receive windows do not grow while less than a quarter is left. When all
    /// is used up, the largest connection of the network that holds most ends with `ENOBUFS`. If
    /// the connection that needs more is in a network that is not lighter, it ends instead
    /// ([`crate::budget`]). Default: a quarter of the memory that this process may use, at least 8
    /// MiB and at most 1 GiB.
    pub buffers: Option<usize>,
    /// Most bytes in the buffers of all connections with one source. Default: half of `buffers`.
    pub buffers_per_source: Option<usize>,
    /// Most bytes in the buffers of all connections with the holder of one key, if keys of peers
    /// are known. Default: half of `buffers`.
    pub buffers_per_key: Option<usize>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 16_384,
            connections_per_source: 4096,
            half_open: 1024,
            half_open_per_source: 256,
            handshakes_per_second: 256,
            buffers: None,
            buffers_per_source: None,
            buffers_per_key: None,
        }
    }
}

/// Least time between the expiry of the receiver's ACK timer and that of the sender's timer.
const LATENESS: Duration = Duration::from_millis(50);

/// Returns this configuration of TPA with three changes for real networks:
///
/// - A block does not wait until it is full ([`tpa::Config::waits_to_fill`]), so that requests and
///   replies are not delayed by `fill_timeout`.
/// - The end of a block is acknowledged at once, so that no block is delayed by the time for which
///   an ACK may be held.
/// - The margin of the RTO above the RTT is at least that time plus 50 ms.
///
/// The initial RTO is at most 1 s.
///
/// The reason for the margin: a segment that is retransmitted alone is acknowledged when the
/// receiver's timer expires. The simulator's margin is exactly the time of that timer. On a path
/// with constant delay, the ACK then arrives exactly when the sender's timer expires, and segments
/// that were not lost are sent a third time. A busy machine wakes a thread some milliseconds late,
/// rarely tens of milliseconds.
pub fn on_wires(mut transport: tpa::Config) -> tpa::Config {
    let margin = (transport.ack_delay + LATENESS).min(transport.rto.max);
    transport.rto.margin = transport.rto.margin.max(margin);
    transport.ack_block_end = true;
    transport.waits_to_fill = false;
    transport.fin_follows = true;
    // Initial RTO of RFC 6298, section 2.1, which the Internet has used since 2011. The table of
    // the paper says 3 s.
    transport.rto.initial = transport.rto.initial.min(Duration::from_secs(1));
    transport
}

/// Settings without encryption that do not depend on the processor, for tests.
#[cfg(any(test, fuzzing))]
pub(crate) fn plain() -> Settings {
    Settings { aes: true, ..Settings::new(Security::Plain) }
}

/// Like [`plain`], for connections that carry `inner`.
#[cfg(test)]
pub(crate) fn carrying(inner: InnerTransport) -> Settings {
    let trains = (inner != InnerTransport::Tpa).then(train::Config::default);
    let beside = Beside { bbr: inner == InnerTransport::Bbr, takes_tpa: false };
    Settings { trains, beside, ..plain() }
}

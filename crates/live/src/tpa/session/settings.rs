//! Settings of a session for the connections that it opens and accepts.

use super::admission::Admission;
use super::handshake::InnerTransport;
use super::path::PathSource;
use super::security::Security;
use crate::budget::Budget;
use meshpace_core::Duration;
use meshpace_transport::{tpa, train};
use std::sync::Arc;

/// Least size of the buffers of connections with BBR, bytes: the bandwidth-delay product of a path
/// with 160 Mbit/s and 200 ms.
const BBR_BUFFER: usize = 4 << 20;

/// Settings of the connections of a port, as far as a session needs them. `Options` describes each
/// of them.
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

#[cfg(any(test, fuzzing))]
pub mod tests {
    use super::*;

    /// Like [`plain`], for connections that carry `inner`.
    #[cfg(test)]
    pub fn carrying(inner: InnerTransport) -> Settings {
        let trains = (inner != InnerTransport::Tpa).then(train::Config::default);
        let beside = Beside { bbr: inner == InnerTransport::Bbr, takes_tpa: false };
        Settings { trains, beside, ..plain() }
    }

    /// Settings for TPA without encryption, with the default values of `Options`.
    pub fn plain() -> Settings {
        let mut transport = tpa::Config {
            ack_block_end: true,
            waits_to_fill: false,
            fin_follows: true,
            close_with_peer: false,
            ..tpa::Config::default()
        };
        transport.rto.margin = Duration::from_millis(150);
        transport.rto.initial = Duration::from_secs(1);
        Settings {
            transport,
            trains: None,
            beside: Beside::default(),
            path: None,
            fit_mtu: true,
            send_buffer: 256 << 10,
            receive_buffer: 256 << 10,
            connect_timeout: Duration::from_secs(30),
            security: Security::Plain,
            admission: None,
            aes: true,
            key_life: 20,
            keep_alive: Some(Duration::from_secs(30)),
            idle_timeout: None,
            limits: Limits::default(),
            budget: Limits::default().budget(None),
            silence_timeout: Duration::from_secs(120),
        }
    }
}

//! Settings of a session for the connections that it opens and accepts.

use super::admission::Admission;
use super::handshake::InnerTransport;
use super::path::PathSource;
use super::security::Security;
use crate::budget::Budget;
use meshpace_core::Duration;
use meshpace_transport::{tpa, train};
use std::sync::Arc;

/// Least buffers of BBR's connections, bytes: what a path of 160 Mbit/s and 200 ms holds.
const BBR_BUFFER: usize = 4 << 20;

/// Settings of the connections of a port, as far as a session has to know. `Options` says what each is for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The transport.
    pub transport: tpa::Config,
    /// Quiet trains instead of TPA.
    pub trains: Option<train::Config>,
    /// With trains: what else there is.
    pub beside: Beside,
    /// Where path information comes from.
    pub path: Option<Arc<dyn PathSource>>,
    /// True if segments are made smaller where the way is too narrow for them.
    pub fit_mtu: bool,
    /// Bytes written that wait to be sent or acknowledged; at least two blocks.
    pub send_buffer: usize,
    /// Bytes received that wait to be read; at least three blocks.
    pub receive_buffer: usize,
    /// Time limit for opening a connection.
    pub connect_timeout: Duration,
    /// Protection of datagrams.
    pub security: Security,
    /// Decision about the keys of those who connect, in the place of the list in `security`; none for that list.
    pub admission: Option<Admission>,
    /// True if AES-256-GCM is offered and agreed to.
    pub aes: bool,
    /// A key serves two to the power of this many datagrams. Both ends need the same.
    pub key_life: u32,
    /// Silence after which the peer is asked for a sign of life; none for never.
    pub keep_alive: Option<Duration>,
    /// Time without data after which a connection is ended; none for never.
    pub idle_timeout: Option<Duration>,
    /// Limits of what a listener grants.
    pub limits: Limits,
    /// Memory of the buffers of all connections of the port.
    pub budget: Budget,
    /// Time for which data are sent without hearing anything from the peer.
    pub silence_timeout: Duration,
}

impl Settings {
    /// The transport that connections opened with these settings ask for.
    pub fn inner(&self) -> InnerTransport {
        match (self.trains.is_some(), self.beside.bbr) {
            (false, _) => InnerTransport::Tpa,
            (true, false) => InnerTransport::Trains,
            (true, true) => InnerTransport::Bbr,
        }
    }

    /// The same for a connection with this inside.
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

    /// True if a listener takes connections from the holder of this public key.
    pub(crate) fn admits(&self, key: &[u8; 32]) -> bool {
        match (&self.admission, &self.security) {
            (Some(admission), _) => !Security::is_weak(key) && admission.admits(key),
            (None, Security::Keys { peers, .. }) => peers.contains(key),
            (None, _) => false,
        }
    }

    /// True if a listener takes connections of this kind.
    pub fn takes(&self, trains: bool) -> bool {
        trains == self.trains.is_some() || (!trains && self.beside.takes_tpa)
    }
}

/// Transports beside quiet trains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Beside {
    /// BBR is asked for in their place. Listeners take it wherever they take trains.
    pub bbr: bool,
    /// A listener takes TPA as well.
    pub takes_tpa: bool,
}

/// Limits of what a listener grants, altogether and per source: an IPv4 address, or an IPv6 network of 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections open at a time. Default 16,384.
    pub connections: usize,
    /// The same from one source. Default 4096.
    pub connections_per_source: usize,
    /// Handshakes that are not finished. Default 1024: some hundred bytes each. When all are taken, who has few gets one from the network
    /// that has most.
    pub half_open: usize,
    /// The same from one source. Default 256.
    pub half_open_per_source: usize,
    /// Handshakes begun per second and source, in the long run; as many at once. Default 256. Each costs two
    /// multiplications on the curve. All sources together begin four times as many.
    pub handshakes_per_second: u32,
    /// Bytes that the buffers of all connections hold, also of those that are opened from here: what was written and is not acknowledged, and what
    /// has arrived and was not read. Receive windows do not grow while less than a quarter is left. When all
    /// is used up, the connection that holds most ends with `ENOBUFS`, or the one that needs more if its network is not the lighter one
    /// ([`crate::budget`]). Default: a quarter of the memory that this process may use, 8 MiB at least and 1 GiB at most.
    pub buffers: Option<usize>,
    /// The same of all connections with one source. Default: half of `buffers`.
    pub buffers_per_source: Option<usize>,
    /// The same of all connections with the holder of one key, where keys of peers are known. Default: half of `buffers`.
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

    /// The same with this inside.
    #[cfg(test)]
    pub fn carrying(inner: InnerTransport) -> Settings {
        let trains = (inner != InnerTransport::Tpa).then(train::Config::default);
        let beside = Beside { bbr: inner == InnerTransport::Bbr, takes_tpa: false };
        Settings { trains, beside, ..plain() }
    }

    /// TPA without encryption, with the values of `Options`.
    pub fn plain() -> Settings {
        let mut transport =
            tpa::Config { ack_block_end: true, waits_to_fill: false, close_with_peer: false, ..tpa::Config::default() };
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

//! Protocol of a connection of the stack: TCP, or quiet trains in TCP packets.
//!
//! The opening end offers quiet trains in its SYN. If the peer does not accept the offer, the
//! connection uses the TCP that [`Protocol::fallback`] returns. Its SYN has then already been sent.

use meshpace_core::Time;
use meshpace_transport::stats::Stats;
use meshpace_transport::tcp::wire::{Header, Numbers, Options};
use meshpace_transport::tcp::{self, Agreed, End, train_wire};
use meshpace_transport::{Arrival, Config, Machine, Output, PathInfo, Role, names, train};

/// Protocol of a stack's connections, with its parameters.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// TCP.
    Tcp(tcp::Config),
    /// Quiet trains, with peers that know them.
    Train(train::Config),
}

impl From<&tcp::Config> for Protocol {
    fn from(config: &tcp::Config) -> Protocol {
        Protocol::Tcp(config.of_host())
    }
}

impl From<&train::Config> for Protocol {
    fn from(config: &train::Config) -> Protocol {
        Protocol::Train(config.of_host())
    }
}

impl From<&Protocol> for Protocol {
    fn from(protocol: &Protocol) -> Protocol {
        protocol.clone()
    }
}

impl Protocol {
    /// TCP configuration for a peer that does not know quiet trains: trains that need no help from
    /// the peer, with the same sizes.
    pub(super) fn fallback(&self) -> tcp::Config {
        match self {
            Protocol::Tcp(config) => config.clone(),
            Protocol::Train(train) => {
                let solo = match names::lookup("quiet-train-solo") {
                    Some(Config::Tcp(solo)) => solo,
                    _ => tcp::Config::default(),
                };
                tcp::Config { segment: train.segment, max_window: u32::from(train.max_window), ..solo }.of_host()
            }
        }
    }

    /// True if this end offers quiet trains.
    pub(super) fn offers_trains(&self) -> bool {
        matches!(self, Protocol::Train(_))
    }

    /// Returns the protocol with full segments of at most `segment` bytes.
    pub(super) fn with_segments_up_to(&self, segment: u32) -> Protocol {
        let mut protocol = self.clone();
        match &mut protocol {
            Protocol::Tcp(config) => config.segment = config.segment.min(segment),
            Protocol::Train(config) => config.segment = config.segment.min(segment),
        }
        protocol
    }

    /// Receive window in bytes.
    pub(super) fn window(&self) -> u32 {
        match self {
            Protocol::Tcp(config) => config.segment.saturating_mul(config.max_window),
            Protocol::Train(config) => config.segment.saturating_mul(u32::from(config.max_window)),
        }
    }

    /// Options of our SYN or SYN-ACK.
    pub(super) fn options(&self, options: Options) -> Options {
        match self {
            Protocol::Tcp(_) => options,
            Protocol::Train(config) => train_wire::offer(options, config.segment),
        }
    }

    /// Creates a connection with this protocol.
    pub(super) fn connection(&self, role: Role) -> Conversation {
        match self {
            Protocol::Tcp(config) => Conversation::Tcp(tcp::Connection::new(config, role)),
            Protocol::Train(config) => {
                Conversation::Train { connection: train::Connection::new(config, role), segment: config.segment }
            }
        }
    }
}

/// State of a connection.
#[derive(Clone, Debug)]
pub enum Conversation {
    /// A TCP connection.
    Tcp(tcp::Connection),
    /// A connection of quiet trains.
    Train {
        /// State of the protocol.
        connection: train::Connection,
        /// Payload of a full segment in bytes, as agreed.
        segment: u32,
    },
}

/// A segment that is sent.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    Tcp(tcp::Segment),
    Train(train::Segment),
}

/// Calls the same method of either kind of connection.
macro_rules! either {
    ($self:ident, $connection:ident => $call:expr) => {
        match $self {
            Conversation::Tcp($connection) => $call,
            Conversation::Train { connection: $connection, .. } => $call,
        }
    };
}

impl Conversation {
    /// Number of payload bytes that have arrived in order.
    pub fn delivered(&self) -> u64 {
        either!(self, connection => connection.delivered())
    }

    /// Number of payload bytes that the peer has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        either!(self, connection => connection.acknowledged())
    }

    /// True if the handshake has been completed.
    pub fn is_established(&self) -> bool {
        either!(self, connection => connection.is_established())
    }

    /// True if the peer has closed its stream and all of it has arrived.
    pub fn peer_has_closed(&self) -> bool {
        either!(self, connection => connection.peer_has_closed())
    }

    /// How the connection ended; `None` while it has not.
    pub fn end(&self) -> Option<End> {
        either!(self, connection => connection.end())
    }

    /// Counters of the connection.
    pub fn stats(&self) -> &Stats {
        either!(self, connection => connection.stats())
    }

    /// True if both ends use quiet trains.
    pub fn has_trains(&self) -> bool {
        matches!(self, Conversation::Train { .. })
    }

    pub(super) fn is_forgotten(&self, now: Time) -> bool {
        either!(self, connection => connection.is_forgotten(now))
    }

    pub(super) fn expected(&self) -> u64 {
        either!(self, connection => connection.expected())
    }

    pub(super) fn outstanding_end(&self) -> u64 {
        either!(self, connection => connection.outstanding_end())
    }

    pub(super) fn on_path(&mut self, path: PathInfo) {
        either!(self, connection => connection.on_path(path));
    }

    pub(super) fn open(&mut self, now: Time) {
        match self {
            Conversation::Tcp(connection) => connection.open(now),
            Conversation::Train { connection, .. } => connection.open(),
        }
    }

    pub(super) fn write(&mut self, now: Time, bytes: u64) {
        match self {
            Conversation::Tcp(connection) => connection.write(now, bytes),
            Conversation::Train { connection, .. } => connection.write(bytes),
        }
    }

    pub(super) fn take(&mut self, now: Time, bytes: u64) {
        match self {
            Conversation::Tcp(connection) => connection.take(now, bytes),
            Conversation::Train { connection, .. } => connection.take(bytes),
        }
    }

    pub(super) fn close(&mut self, now: Time) {
        match self {
            Conversation::Tcp(connection) => connection.close(now),
            Conversation::Train { connection, .. } => connection.close(),
        }
    }

    pub(super) fn abort(&mut self, now: Time) {
        match self {
            Conversation::Tcp(connection) => connection.abort(now),
            Conversation::Train { connection, .. } => connection.abort(),
        }
    }

    /// Applies what the two SYNs have agreed on.
    pub(super) fn on_agreed(&mut self, now: Time, agreed: &Agreed) {
        match self {
            Conversation::Tcp(connection) => connection.on_agreed(now, agreed),
            Conversation::Train { connection, segment } => {
                *segment = agreed.segment.min(*segment);
                connection.on_agreed(*segment);
            }
        }
    }

    /// Encodes the header of a segment that is sent. `numbers` are those of the connection.
    pub(super) fn header(&self, numbers: &Numbers, said: &Said, ports: (u16, u16)) -> Header {
        match (self, said) {
            (Conversation::Tcp(connection), Said::Tcp(segment)) => numbers.header(segment, ports, connection.blocks()),
            (Conversation::Train { segment: full, .. }, Said::Train(segment)) => {
                numbers.train_header(segment, *full, ports)
            }
            _ => unreachable!("a connection says segments of its own"),
        }
    }

    /// Decodes a segment of this connection from `header`, with `payload` bytes. `None` if the
    /// header is not valid in this connection.
    pub(super) fn understand(&self, numbers: &Numbers, header: &Header, payload: u16) -> Option<Heard> {
        let (expected, acknowledged) = (self.expected(), self.acknowledged());
        match self {
            Conversation::Tcp(_) => numbers.segment(header, payload, expected, acknowledged).map(Heard::Tcp),
            Conversation::Train { segment: full, .. } => {
                numbers.train_segment(header, payload, *full, (expected, acknowledged)).map(Heard::Train)
            }
        }
    }

    /// Returns the next action of the connection.
    pub(super) fn poll(&mut self, now: Time) -> Output<Said> {
        match self {
            Conversation::Tcp(connection) => connection.poll(now).map(Said::Tcp),
            Conversation::Train { connection, .. } => connection.poll(now).map(Said::Train),
        }
    }

    /// Handles a segment that has arrived. Returns true if its payload is part of the peer's
    /// stream.
    pub(super) fn on_heard(&mut self, now: Time, heard: &Heard, arrival: Arrival) -> bool {
        match (self, heard) {
            (Conversation::Tcp(connection), Heard::Tcp(understood)) => {
                connection.on_segment(now, &understood.segment, understood.blocks(), arrival)
            }
            (Conversation::Train { connection, .. }, Heard::Train(segment)) => {
                connection.on_segment(now, segment, arrival)
            }
            _ => false,
        }
    }
}

/// A segment of the peer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Heard {
    Tcp(tcp::wire::Understood),
    Train(train::Segment),
}

impl Heard {
    /// Offset of the segment's first byte, and the offset that it acknowledges.
    pub(super) fn offsets(&self) -> (u64, u64) {
        match self {
            Heard::Tcp(understood) => (understood.segment.seq, understood.segment.ack),
            Heard::Train(segment) => (segment.seq, segment.ack),
        }
    }
}

impl Said {
    /// Offset of the segment's first byte, and the length of its payload.
    pub(super) fn range(&self) -> (u64, usize) {
        match self {
            Said::Tcp(segment) => (segment.seq, usize::from(segment.payload)),
            Said::Train(segment) => (segment.seq, usize::from(segment.payload)),
        }
    }

    /// True if the segment opens the connection.
    pub(super) fn is_syn(&self) -> bool {
        match self {
            Said::Tcp(segment) => segment.flags.has(tcp::Flags::SYN),
            Said::Train(segment) => segment.flags.has(tcp::Flags::SYN),
        }
    }

    /// True if routers may mark the packet (ECN).
    pub(super) fn is_ecn_capable(&self) -> bool {
        match self {
            Said::Tcp(segment) => segment.is_ecn_capable(),
            Said::Train(segment) => segment.flags.has(tcp::Flags::ECT),
        }
    }
}

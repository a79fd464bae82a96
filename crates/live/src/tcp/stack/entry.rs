//! Entry of one connection in the stack's table.

use super::super::packet::Unreachable;
use super::conversation::{Conversation, Protocol, Said};
use meshpace_core::Time;
use meshpace_session::ring::{ReceiveRing, SendRing};
use meshpace_transport::tcp::wire::{self, Header, Numbers, Options};
use meshpace_transport::tcp::{self, Flags, train_wire};
use meshpace_transport::{Machine, Output, PathInfo, Role, pump};
use std::net::Ipv4Addr;

/// Peer's address, peer's port and local port. Together with the interface's address they identify
/// a connection.
pub(super) type Key = (Ipv4Addr, u16, u16);

/// A connection, and what the stack stores about it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) connection: Conversation,
    /// Protocol that this end prefers.
    pub(super) protocol: Protocol,
    pub(super) numbers: Numbers,
    /// Options of our SYN or SYN-ACK.
    pub(super) syn_options: Options,
    /// Number of SYNs sent, and the time of the first one.
    pub(super) syns: (u32, Time),
    /// Payload and options of a full segment on the path, bytes.
    pub(super) path_mss: u16,
    /// `None` at a listening end until the handshake is complete.
    pub(super) buffers: Option<(SendRing, ReceiveRing)>,
    pub(super) window: usize,
    /// Number of hops of the peer's packets; 0 if unknown.
    pub(super) hops: u8,
    /// True if the application will write no more.
    pub(super) closed: bool,
    pub(super) accepted: bool,
    pub(super) claimed: bool,
    /// True if the application has released the connection: the entry is removed when the
    /// connection is forgotten.
    pub(super) released: bool,
    pub(super) unreachable: Option<Unreachable>,
    /// MTU in bytes of the interface if it refused a packet as too long.
    pub(super) too_long: Option<u16>,
}

impl Entry {
    /// Applies the peer's answers in its SYN-ACK.
    pub(super) fn on_syn_ack(&mut self, now: Time, header: &Header, path: PathInfo) {
        if header.ack != self.numbers.own.wrapping_add(1) {
            return;
        }
        let options = &header.options;
        let agreed = wire::agreed(self.path_mss, options);
        self.numbers.peer = header.seq;
        self.numbers.timestamps = agreed.timestamps;
        match options.window_scale {
            Some(scale) => self.numbers.peer_scale = scale,
            None => self.numbers.own_scale = 0,
        }
        if self.connection.has_trains() && !train_wire::is_offered(options) {
            self.fall_back(now, path);
        }
        self.connection.on_agreed(now, &agreed);
    }

    /// True if the peer may have sent this segment now: its offset is within the window, and it
    /// acknowledges data in flight (RFC 5961, section 5.2, without older acknowledgements). An
    /// attacker that only knows addresses and ports hits both numbers once in many millions of
    /// segments.
    pub(super) fn is_current(&self, flags: Flags, offset: u64, acknowledges: u64) -> bool {
        let connection = &self.connection;
        let answers = flags.has(Flags::ACK) || !connection.is_established();
        let beyond = offset.checked_sub(connection.expected());
        answers
            && beyond.is_some_and(|beyond| beyond <= self.window as u64)
            && (connection.acknowledged()..=connection.outstanding_end()).contains(&acknowledges)
    }

    /// Replaces quiet trains by plain TCP, which continues from the SYNs that were sent, because
    /// the peer does not know quiet trains.
    fn fall_back(&mut self, now: Time, path: PathInfo) {
        let mut connection = tcp::Connection::new(&self.protocol.fallback(), Role::Sender);
        connection.on_path(path);
        // The TCP state is told the number and the time of the SYNs that were sent. If there were
        // several, the first answer is not used as a sample of the round-trip time.
        let (syns, mut at) = self.syns;
        connection.open(at);
        for _ in 0..syns {
            at = pump(&mut connection, at, |_, _| {});
        }
        if let Some((send, _)) = &self.buffers {
            connection.write(now, send.end());
        }
        if self.closed {
            connection.close(now);
        }
        self.connection = Conversation::Tcp(connection);
    }
}

impl Machine for Entry {
    type Segment = Said;

    fn poll(&mut self, now: Time) -> Output<Said> {
        let output = self.connection.poll(now);
        if let Output::Transmit(said) = &output
            && said.is_syn()
        {
            let (count, first) = self.syns;
            self.syns = (count + 1, if count == 0 { now } else { first });
        }
        output
    }
}

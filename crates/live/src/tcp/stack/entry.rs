//! One connection in the hands of the stack.

use super::super::packet::Unreachable;
use super::conversation::{Conversation, Protocol, Said};
use crate::ring::{ReceiveRing, SendRing};
use meshpace_core::Time;
use meshpace_transport::tcp::wire::{self, Header, Numbers, Options};
use meshpace_transport::tcp::{self, Flags, train_wire};
use meshpace_transport::{Machine, Output, PathInfo, Role, pump};
use std::net::Ipv4Addr;

/// The four numbers that tell a connection; our address is the interface's.
pub(super) type Key = (Ipv4Addr, u16, u16);

/// A connection and what the stack keeps of it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Key,
    pub(super) connection: Conversation,
    /// Protocol that this end would speak.
    pub(super) protocol: Protocol,
    pub(super) numbers: Numbers,
    /// The options of our SYN or SYN-ACK.
    pub(super) syn_options: Options,
    /// Number of them that have left, and time at which the first did.
    pub(super) syns: (u32, Time),
    /// Payload and options of a full segment of the path.
    pub(super) path_mss: u16,
    /// None before the handshake is over, at an end that listens.
    pub(super) buffers: Option<(SendRing, ReceiveRing)>,
    pub(super) window: usize,
    /// The hops the peer's packets come.
    pub(super) hops: u8,
    /// The application will write no more.
    pub(super) closed: bool,
    pub(super) accepted: bool,
    pub(super) claimed: bool,
    /// The application has let go: the entry goes when the connection is forgotten.
    pub(super) released: bool,
    pub(super) unreachable: Option<Unreachable>,
    /// Bytes of a packet that the way out refused as too long.
    pub(super) too_long: Option<u16>,
}

impl Entry {
    /// The SYN-ACK tells what the peer agrees to.
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

    /// True if a segment is one that the peer sends now: in the window, acknowledging what is under way (RFC 5961, section 5.2, without what
    /// is older). Whoever only knows addresses and ports meets both numbers once in many millions of segments.
    pub(super) fn is_current(&self, flags: Flags, offset: u64, acknowledges: u64) -> bool {
        let connection = &self.connection;
        let answers = flags.has(Flags::ACK) || !connection.is_established();
        let beyond = offset.checked_sub(connection.expected());
        answers
            && beyond.is_some_and(|beyond| beyond <= self.window as u64)
            && (connection.acknowledged()..=connection.outstanding_end()).contains(&acknowledges)
    }

    /// The peer does not know quiet trains: a plain TCP goes on from the SYNs that were sent.
    fn fall_back(&mut self, now: Time, path: PathInfo) {
        let mut connection = tcp::Connection::new(&self.protocol.fallback(), Role::Sender);
        connection.on_path(path);
        // Its SYNs have left already, so many and from then on: the first answer is no sample of the round trip if there were several.
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

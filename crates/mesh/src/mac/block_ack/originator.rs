//! Transmit side of block ACK: the window of unacknowledged MPDUs that a station holds for a
//! neighbour.

use super::{unwrap, wrap};
use crate::body::Queued;
use crate::mac::config::HtConfig;
use crate::mac::frame::Mpdu;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use meshpace_core::NodeId;

/// Size in bytes of the delimiter before each MPDU of an aggregate.
const DELIMITER_BYTES: u32 = 4;

/// Content of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// Request for a block ACK.
    Request,
    /// One MPDU with this number of bytes.
    Mpdu(u32),
    /// Several MPDUs with this number of bytes together.
    Aggregate(u32),
}

#[derive(Clone, Debug)]
struct HeldMpdu<P> {
    packet: Queued<P>,
    sequence: u32,
    bytes: u32,
    /// Number of attempts that failed.
    failed: u32,
    was_sent: bool,
}

impl<P> HeldMpdu<P> {
    /// Bytes of the MPDU within an aggregate if another MPDU follows.
    fn subframe(&self) -> u32 {
        DELIMITER_BYTES + self.bytes.next_multiple_of(4)
    }
}

/// State of a neighbour.
#[derive(Clone, Copy, Debug)]
struct Peer {
    node: NodeId,
    /// Next sequence number.
    next: u32,
    /// True if an MPDU was given up since the neighbour last received the start of the window.
    start_changed: bool,
}

/// Transmit side of one category.
#[derive(Clone, Debug)]
pub struct Originator<P> {
    config: HtConfig,
    /// Most bytes of an aggregate.
    max_bytes: u32,
    peers: Vec<Peer>,
    /// Index in `peers` of the neighbour of the current batch.
    peer: usize,
    /// MPDUs of the current batch, by ascending sequence number.
    window: VecDeque<HeldMpdu<P>>,
    /// Bytes of an aggregate of the whole current batch, with each MPDU padded.
    bytes: u32,
    attempt: Attempt,
    /// Number of MPDUs from the front of the window in the current attempt.
    carried: usize,
    /// True if a block ACK was missed.
    missed_block_ack: bool,
    /// True if an attempt was transmitted since the window was last empty.
    has_begun: bool,
}

impl<P: Clone> Originator<P> {
    /// Creates the state with an empty batch. `max_bytes` is the largest size of an aggregate in
    /// bytes.
    pub fn new(config: HtConfig, max_bytes: u32) -> Originator<P> {
        Originator {
            config,
            max_bytes,
            peers: Vec::new(),
            peer: 0,
            window: VecDeque::new(),
            bytes: 0,
            attempt: Attempt::Request,
            carried: 0,
            missed_block_ack: false,
            has_begun: false,
        }
    }

    /// True if the current batch is empty.
    pub fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// True if an attempt was transmitted since the window was last empty.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Bytes of an aggregate of the whole current batch.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Adds a packet whose MPDU has `bytes`: the first packet of a batch, or one for the same
    /// neighbour that [`Originator::room`] permits.
    pub fn push(&mut self, packet: Queued<P>, bytes: u32) {
        let node = packet.next_hop;
        if self.window.is_empty() {
            self.has_begun = false;
            let place = self.peers.iter().position(|peer| peer.node == node);
            self.peer = place.unwrap_or_else(|| {
                self.peers.push(Peer { node, next: 0, start_changed: false });
                self.peers.len() - 1
            });
        }
        let peer = &mut self.peers[self.peer];
        debug_assert_eq!(peer.node, node);
        let mpdu = HeldMpdu { packet, sequence: peer.next, bytes, failed: 0, was_sent: false };
        peer.next += 1;
        self.bytes += mpdu.subframe();
        self.window.push_back(mpdu);
    }

    /// Neighbour for which another packet can be added, and the largest size of its MPDU in bytes.
    /// `None` if the batch is empty or full.
    pub fn room(&self) -> Option<(NodeId, u32)> {
        let first = self.window.front()?;
        let peer = &self.peers[self.peer];
        let fits = self.window.len() < self.config.mpdus as usize
            && peer.next < first.sequence + HtConfig::WINDOW
            && self.bytes + DELIMITER_BYTES < self.max_bytes;
        fits.then(|| (peer.node, self.max_bytes - self.bytes - DELIMITER_BYTES))
    }

    /// Decides the content of the next attempt: an aggregate of at most `max_bytes` bytes, but at
    /// least one MPDU. The batch must not be empty.
    pub fn prepare(&mut self, max_bytes: u32) -> Attempt {
        let (mut carried, mut bytes, mut padding) = (self.window.len(), self.bytes, 0);
        while let Some(last) = carried.checked_sub(1).and_then(|place| self.window.get(place)) {
            // The last MPDU is not padded.
            padding = last.bytes.next_multiple_of(4) - last.bytes;
            if carried == 1 || bytes - padding <= max_bytes {
                break;
            }
            (carried, bytes) = (carried - 1, bytes - last.subframe());
        }
        if self.missed_block_ack {
            // The answer will refer to the MPDUs of the previous attempt.
            self.attempt = Attempt::Request;
            return self.attempt;
        }
        self.carried = carried;
        self.attempt = if self.peers[self.peer].start_changed {
            Attempt::Request
        } else if let (1, Some(only)) = (carried, self.window.front()) {
            Attempt::Mpdu(only.bytes)
        } else {
            Attempt::Aggregate(bytes - padding)
        };
        self.attempt
    }

    /// Content of the current attempt, as decided last.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// MPDUs of the current attempt, which are transmitted now.
    pub fn send(&mut self) -> impl Iterator<Item = Mpdu<P>> {
        self.has_begun = true;
        self.window.iter_mut().take(self.carried).map(|mpdu| Mpdu {
            sequence: wrap(mpdu.sequence),
            bytes: mpdu.bytes,
            retry: core::mem::replace(&mut mpdu.was_sent, true),
            body: mpdu.packet.body.clone(),
        })
    }

    /// Sequence number at which the window begins.
    pub fn start(&self) -> u16 {
        self.window.front().map_or(0, |first| wrap(first.sequence))
    }

    /// Handles the ACK of a single MPDU. Returns the number of acknowledged MPDUs.
    pub fn on_ack(&mut self) -> u32 {
        if let Some(only) = self.window.pop_front() {
            self.bytes -= only.subframe();
        }
        1
    }

    /// Number of MPDUs in the attempt. Zero if it is a request.
    pub fn data_carried(&self) -> u32 {
        if self.attempt == Attempt::Request { 0 } else { self.carried as u32 }
    }

    /// Handles a block ACK. Returns the number of acknowledged MPDUs.
    pub fn on_block_ack(&mut self, start: u16, bitmap: u64) -> u32 {
        let Some(first) = self.window.front().map(|first| first.sequence) else { return 0 };
        let before = self.window.len();
        let start = unwrap(start, first);
        let carried = self.carried;
        // A request that only announces the start of the window follows no transmission that could
        // have failed.
        let counts = self.missed_block_ack || self.attempt != Attempt::Request;
        self.missed_block_ack = false;
        self.peers[self.peer].start_changed = false;
        let (mut place, mut acknowledged_bytes) = (0, 0);
        self.window.retain_mut(|mpdu| {
            let was_carried = place < carried && mpdu.was_sent;
            place += 1;
            // A receiver whose window starts behind the MPDU has received it or has given it up. An
            // earlier attempt than the last may have delivered it.
            let listed = match mpdu.sequence.checked_sub(start) {
                None => mpdu.was_sent,
                Some(bit) => mpdu.was_sent && bit < 64 && bitmap >> bit & 1 == 1,
            };
            if listed {
                acknowledged_bytes += mpdu.subframe();
            } else if was_carried && counts {
                mpdu.failed += 1;
            }
            !listed
        });
        self.bytes -= acknowledged_bytes;
        (before - self.window.len()) as u32
    }

    /// Handles an attempt without an answer. `on_air` is false if the CTS was missing, and true if
    /// the data was sent.
    pub fn on_missing_answer(&mut self, on_air: bool) {
        let is_aggregate = matches!(self.attempt, Attempt::Aggregate(_));
        if on_air && is_aggregate && self.config.requests_block_ack {
            self.missed_block_ack = true;
            return;
        }
        // A request that only announces the start of the window carries no MPDU. Its failure counts
        // against the first packet, so that a neighbour that is gone is noticed.
        let announces_start = self.attempt == Attempt::Request && !self.missed_block_ack;
        let requests_missed_block_ack = self.attempt == Attempt::Request && self.missed_block_ack;
        let carried = if announces_start { 1 } else { self.carried };
        for mpdu in self.window.iter_mut().take(carried).filter(|mpdu| mpdu.was_sent || !requests_missed_block_ack) {
            mpdu.failed += 1;
        }
    }

    /// Removes an MPDU that has failed `limit` times. Returns it with the number of its failures.
    pub fn take_given_up(&mut self, limit: u32) -> Option<(Queued<P>, u32)> {
        let place = self.window.iter().position(|mpdu| mpdu.failed >= limit)?;
        let mpdu = self.window.remove(place)?;
        self.bytes -= mpdu.subframe();
        self.missed_block_ack &= !self.window.is_empty();
        self.peers[self.peer].start_changed = true;
        Some((mpdu.packet, mpdu.failed))
    }
}

//! The sending side: the window of MPDUs that a station holds for a neighbour and that are not acknowledged.

use super::{unwrap, wrap};
use crate::body::Queued;
use crate::mac::config::HtConfig;
use crate::mac::frame::Mpdu;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use meshpace_core::NodeId;

/// Bytes of a delimiter between MPDUs.
const DELIMITER_BYTES: u32 = 4;

/// Content of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// A request for the block ACK.
    Request,
    /// One MPDU, of so many bytes.
    Mpdu(u32),
    /// Several, of so many bytes together.
    Aggregate(u32),
}

#[derive(Clone, Debug)]
struct InHand<P> {
    packet: Queued<P>,
    sequence: u32,
    bytes: u32,
    /// Attempts that failed.
    failed: u32,
    was_sent: bool,
}

impl<P> InHand<P> {
    /// Its bytes in an aggregate, if another follows.
    fn subframe(&self) -> u32 {
        DELIMITER_BYTES + self.bytes.next_multiple_of(4)
    }
}

/// State of a neighbour.
#[derive(Clone, Copy, Debug)]
struct Peer {
    node: NodeId,
    /// The next sequence number.
    next: u32,
    /// True if something was given up since the neighbour was told where the window begins.
    has_moved: bool,
}

/// The sending half.
#[derive(Clone, Debug)]
pub struct Originator<P> {
    config: HtConfig,
    /// Bytes of an aggregate at most.
    most: u32,
    peers: Vec<Peer>,
    /// Place among them of the neighbour that the current batch is for.
    peer: usize,
    /// Ascending.
    window: VecDeque<InHand<P>>,
    /// Bytes of an aggregate of the current batch, each MPDU padded.
    bytes: u32,
    attempt: Attempt,
    /// Number of MPDUs of the window, from its front, in the attempt under way.
    carried: usize,
    /// True if a block ACK was missed.
    in_doubt: bool,
    /// True if anything was on the air since the window was last empty.
    has_begun: bool,
}

impl<P: Clone> Originator<P> {
    /// With an empty batch. `most`: bytes of an aggregate.
    pub fn new(config: HtConfig, most: u32) -> Originator<P> {
        Originator {
            config,
            most,
            peers: Vec::new(),
            peer: 0,
            window: VecDeque::new(),
            bytes: 0,
            attempt: Attempt::Request,
            carried: 0,
            in_doubt: false,
            has_begun: false,
        }
    }

    /// True if the current batch is empty.
    pub fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// True if anything was on the air since the window was last empty.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Bytes of an aggregate of the whole current batch.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Takes in a packet that is an MPDU of `bytes`: the first, or one for the same neighbour that [`Originator::room`] allows.
    pub fn push(&mut self, packet: Queued<P>, bytes: u32) {
        let node = packet.next_hop;
        if self.window.is_empty() {
            self.has_begun = false;
            let place = self.peers.iter().position(|peer| peer.node == node);
            self.peer = place.unwrap_or_else(|| {
                self.peers.push(Peer { node, next: 0, has_moved: false });
                self.peers.len() - 1
            });
        }
        let peer = &mut self.peers[self.peer];
        debug_assert_eq!(peer.node, node);
        let mpdu = InHand { packet, sequence: peer.next, bytes, failed: 0, was_sent: false };
        peer.next += 1;
        self.bytes += mpdu.subframe();
        self.window.push_back(mpdu);
    }

    /// The neighbour for which another packet can be taken in, and the most bytes that its MPDU may have.
    pub fn room(&self) -> Option<(NodeId, u32)> {
        let first = self.window.front()?;
        let peer = &self.peers[self.peer];
        let fits = self.window.len() < self.config.mpdus as usize
            && peer.next < first.sequence + HtConfig::WINDOW
            && self.bytes + DELIMITER_BYTES < self.most;
        fits.then(|| (peer.node, self.most - self.bytes - DELIMITER_BYTES))
    }

    /// Decides what the next attempt sends: an aggregate of `most` bytes at most, but one MPDU at least. The batch must not be empty.
    pub fn prepare(&mut self, most: u32) -> Attempt {
        let (mut carried, mut bytes, mut padding) = (self.window.len(), self.bytes, 0);
        while let Some(last) = carried.checked_sub(1).and_then(|place| self.window.get(place)) {
            // The last one is not padded.
            padding = last.bytes.next_multiple_of(4) - last.bytes;
            if carried == 1 || bytes - padding <= most {
                break;
            }
            (carried, bytes) = (carried - 1, bytes - last.subframe());
        }
        if self.in_doubt {
            // The answer will be to what was carried before.
            self.attempt = Attempt::Request;
            return self.attempt;
        }
        self.carried = carried;
        self.attempt = if self.peers[self.peer].has_moved {
            Attempt::Request
        } else if let (1, Some(only)) = (carried, self.window.front()) {
            Attempt::Mpdu(only.bytes)
        } else {
            Attempt::Aggregate(bytes - padding)
        };
        self.attempt
    }

    /// The last decision.
    pub fn attempt(&self) -> Attempt {
        self.attempt
    }

    /// The MPDUs of the attempt, which go on the air now.
    pub fn send(&mut self) -> impl Iterator<Item = Mpdu<P>> {
        self.has_begun = true;
        self.window.iter_mut().take(self.carried).map(|mpdu| Mpdu {
            sequence: wrap(mpdu.sequence),
            bytes: mpdu.bytes,
            retry: core::mem::replace(&mut mpdu.was_sent, true),
            body: mpdu.packet.body.clone(),
        })
    }

    /// Where the window begins.
    pub fn start(&self) -> u16 {
        self.window.front().map_or(0, |first| wrap(first.sequence))
    }

    /// The ACK of an MPDU that went alone is here. How many it acknowledges.
    pub fn on_ack(&mut self) -> u32 {
        if let Some(only) = self.window.pop_front() {
            self.bytes -= only.subframe();
        }
        1
    }

    /// Number of MPDUs in the attempt: none if it is a request.
    pub fn data_carried(&self) -> u32 {
        if self.attempt == Attempt::Request { 0 } else { self.carried as u32 }
    }

    /// The block ACK is here. How many MPDUs it acknowledges.
    pub fn on_block_ack(&mut self, start: u16, bitmap: u64) -> u32 {
        let Some(first) = self.window.front().map(|first| first.sequence) else { return 0 };
        let before = self.window.len();
        let start = unwrap(start, first);
        let carried = self.carried;
        // A request for its own sake follows no transmission that could have failed.
        let counts = self.in_doubt || self.attempt != Attempt::Request;
        self.in_doubt = false;
        self.peers[self.peer].has_moved = false;
        let (mut place, mut gone) = (0, 0);
        self.window.retain_mut(|mpdu| {
            let was_carried = place < carried && mpdu.was_sent;
            place += 1;
            // A receiver whose window is beyond it has it, or has given it up. It may have come by an earlier attempt than the last.
            let listed = match mpdu.sequence.checked_sub(start) {
                None => mpdu.was_sent,
                Some(bit) => mpdu.was_sent && bit < 64 && bitmap >> bit & 1 == 1,
            };
            if listed {
                gone += mpdu.subframe();
            } else if was_carried && counts {
                mpdu.failed += 1;
            }
            !listed
        });
        self.bytes -= gone;
        (before - self.window.len()) as u32
    }

    /// No answer has come to the attempt: no CTS (`on_air` false), or nothing after what was sent.
    pub fn on_silence(&mut self, on_air: bool) {
        let is_aggregate = matches!(self.attempt, Attempt::Aggregate(_));
        if on_air && is_aggregate && self.config.asks {
            self.in_doubt = true;
            return;
        }
        // The request that only tells where the window begins carries nothing: the first packet bears it, so that a neighbour that is gone is noticed.
        let tells = self.attempt == Attempt::Request && !self.in_doubt;
        let asks = self.attempt == Attempt::Request && self.in_doubt;
        let carried = if tells { 1 } else { self.carried };
        for mpdu in self.window.iter_mut().take(carried).filter(|mpdu| mpdu.was_sent || !asks) {
            mpdu.failed += 1;
        }
    }

    /// Takes out an MPDU that has failed `limit` times, with the number of its failures.
    pub fn take_given_up(&mut self, limit: u32) -> Option<(Queued<P>, u32)> {
        let place = self.window.iter().position(|mpdu| mpdu.failed >= limit)?;
        let mpdu = self.window.remove(place)?;
        self.bytes -= mpdu.subframe();
        self.in_doubt &= !self.window.is_empty();
        self.peers[self.peer].has_moved = true;
        Some((mpdu.packet, mpdu.failed))
    }
}

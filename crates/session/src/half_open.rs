//! An unfinished handshake: what a listener stores of it, some hundred bytes.
//!
//! The acceptance is repeated as the simulated listener repeats its SYN+ACK: after the first RTO,
//! then after twice as long each time. The connection itself, with its state machine and its
//! buffers, is created when the peer has shown that it knows our tag.

use super::addresses::Addresses;
use super::engine::AnySegment;
use super::framing::Framing;
use super::handshake::{Opening, Tag};
use super::outbox::Outbox;
use super::seal::Keys;
use meshpace_core::{Duration, Time};

/// Number of times that the acceptance is sent before the peer is taken for gone. The state
/// machines send their SYN+ACK as often.
const ATTEMPTS: u32 = 6;

/// Shortest time for which a listener keeps an unfinished handshake if `initial` is the interval
/// before the first repetition.
pub(crate) fn kept(initial: Duration) -> Duration {
    Duration(initial.0.saturating_mul((1 << ATTEMPTS) - 1))
}

/// An unfinished handshake.
#[derive(Debug)]
pub(crate) struct HalfOpen {
    pub(crate) addresses: Addresses,
    /// The peer's request.
    pub(crate) request: Opening,
    /// Our tag.
    pub(crate) tag: Tag,
    /// Number of our first block.
    pub(crate) first_block: u16,
    pub(crate) keys: Option<Keys>,
    /// The peer's public key. `None` if it is not known.
    pub(crate) peer_key: Option<[u8; 32]>,
    /// A key serves two to the power of this many datagrams.
    key_life: u32,
    /// The datagram of the acceptance.
    acceptance: Box<[u8]>,
    /// Number of times that the acceptance has been sent.
    times: u32,
    /// Time of the next repetition.
    at: Time,
}

impl HalfOpen {
    /// Handshake that answers `request` with our tag and first block number. Where datagrams are
    /// encrypted it has keys, each of which serves two to the power of `key_life` datagrams, and
    /// the peer's public key if it is known.
    pub(crate) fn new(
        addresses: Addresses,
        request: Opening,
        (tag, first_block): (Tag, u16),
        (keys, peer_key, key_life): (Option<Keys>, Option<[u8; 32]>, u32),
        acceptance: Vec<u8>,
        now: Time,
    ) -> HalfOpen {
        let acceptance = acceptance.into();
        HalfOpen { addresses, request, tag, first_block, keys, peer_key, key_life, acceptance, times: 0, at: now }
    }

    /// Sends the acceptance. It is repeated after `initial`, and then after twice as long each
    /// time. A peer that asks for it more often does not keep its place for longer.
    pub(crate) fn send(&mut self, now: Time, initial: Duration, out: &mut Outbox) {
        out.push_bytes(self.addresses, &self.acceptance);
        if self.times < ATTEMPTS {
            self.at = now.saturating_add(Duration(initial.0.saturating_mul(1 << self.times)));
            self.times += 1;
        }
    }

    /// True if the acceptance has been sent as often as allowed, and the answer to the last one is
    /// overdue.
    pub(crate) fn is_stale(&self, now: Time) -> bool {
        self.times >= ATTEMPTS && now >= self.at
    }

    /// True if the handshake will be stale in `wait` from now, unless an answer arrives before.
    pub(crate) fn is_stale_within(&self, now: Time, wait: Duration) -> bool {
        self.is_stale(now.saturating_add(wait))
    }

    /// Framing of the connection's datagrams.
    pub(crate) fn framing(&self) -> Framing {
        Framing::new(self.request.opener, self.keys.as_ref(), self.key_life, self.request.inner())
    }

    /// Time of the next repetition.
    pub(crate) fn next_wakeup(&self) -> Time {
        self.at
    }

    /// Sends a reset, which tells the peer that no connection will come about.
    pub(crate) fn reset(&self, out: &mut Outbox) {
        let mut framing = self.framing();
        let segment = AnySegment::reset(self.request.inner(), self.first_block);
        out.push(self.addresses, framing.length(&segment, 0), |out| framing.write(out, &segment, &[], &[]));
    }
}

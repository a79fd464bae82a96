//! A handshake that its peer has not finished: what a listener keeps of it, some hundred bytes.
//!
//! The acceptance is repeated as the simulated listener repeats its SYN+ACK: after the first RTO, then twice as long each
//! time. The connection itself, with its machine and its buffers, is made when the peer has shown that it knows our tag.

use super::cover::Cover;
use super::engine::Inside;
use super::handshake::{Opening, Tag};
use super::listener::Backlog;
use super::noise::Keys;
use super::outbox::Outbox;
use super::socket::Addresses;
use meshpace_core::{Duration, Time};
use std::sync::Arc;

/// How often the acceptance is sent before the peer is taken for gone, as a machine does with its SYN+ACK.
const ATTEMPTS: u32 = 6;

/// An unfinished handshake.
#[derive(Debug)]
pub(super) struct HalfOpen {
    pub(super) port: u64,
    pub(super) addresses: Addresses,
    /// The peer's request.
    pub(super) request: Opening,
    /// Our tag and our first block.
    pub(super) tag: Tag,
    pub(super) first_block: u16,
    pub(super) keys: Option<Keys>,
    /// The datagram of the acceptance.
    pub(super) acceptance: Box<[u8]>,
    pub(super) backlog: Arc<Backlog>,
    pub(super) since: Time,
    times: u32,
    /// When it is repeated.
    at: Time,
}

impl HalfOpen {
    #[expect(clippy::too_many_arguments, reason = "all of it is known at one place, once")]
    pub(super) fn new(
        port: u64,
        addresses: Addresses,
        request: Opening,
        (tag, first_block): (Tag, u16),
        keys: Option<Keys>,
        acceptance: Vec<u8>,
        backlog: Arc<Backlog>,
        now: Time,
    ) -> HalfOpen {
        let acceptance = acceptance.into();
        HalfOpen {
            port,
            addresses,
            request,
            tag,
            first_block,
            keys,
            acceptance,
            backlog,
            since: now,
            times: 0,
            at: now,
        }
    }

    /// The acceptance leaves; it is repeated after `initial`, doubled each time. Whoever asks for it more often does not keep his place
    /// for longer.
    pub(super) fn sent(&mut self, now: Time, initial: Duration) {
        if self.times < ATTEMPTS {
            self.at = now.saturating_add(Duration(initial.0.saturating_mul(1 << self.times)));
            self.times += 1;
        }
    }

    /// Whether the peer has had all its chances.
    pub(super) fn is_stale(&self, now: Time) -> bool {
        self.times >= ATTEMPTS && now >= self.at
    }

    /// What the connection's datagrams will stand in.
    pub(super) fn cover(&self) -> Cover {
        Cover::new(self.request.opener, self.keys.as_ref(), self.request.trains)
    }

    /// When to come back.
    pub(super) fn next_wakeup(&self) -> Time {
        self.at
    }

    /// Tells its peer that nothing will come of it.
    pub(super) fn reset(&self, out: &mut Outbox) {
        let mut cover = self.cover();
        let segment = Inside::reset(self.request.trains, self.first_block);
        out.push(self.addresses, cover.length(&segment, 0), |out| cover.write(out, &segment, &[], &[]));
    }
}

//! Data that the application has handed over, and how long they wait for their block to fill.
//!
//! TPA, section 3.2: a block begins when the one before has been acknowledged and data for a whole block are there. With less it waits
//! for more, at most `fill_timeout` (100 ms). That is the simulator's rule and the default.
//!
//! Hosts set `waits_to_fill` to false, because by the paper's rule each message costs the timeout: a question of some bytes and its
//! answer took 200 ms on loopback. Their rule is Nagle's (RFC 9293, section 3.7.4), by blocks:
//!
//! - While nothing is unacknowledged, data leave as soon as they are written.
//! - While a block is under way, what is written joins it until the last of its segments has left. Only the last segment of a block
//!   may be short, so that a writer that is faster than the path fills segments and blocks as it does by the paper's rule.
//! - Anything else waits for the acknowledgement of the block under way. A full segment waits, too, which is a departure from Nagle's
//!   rule: TPA begins no block while another is under way. Since a block's end is acknowledged at once (`ack_block_end`), that is one
//!   round trip and no timer of the peer.
//!
//! What is pushed ([`Supply::push`]) does not wait by either rule.

use crate::path::ENDLESS;
use meshpace_core::{Duration, Time};

/// The data of one sender.
#[derive(Clone, Debug)]
pub(super) struct Supply {
    /// Bytes handed over.
    written: u64,
    /// Bytes from the start of the stream that do not wait for their block to fill.
    pushed: u64,
    /// Nothing more will come.
    closing: bool,
    /// Since when bytes have been waiting for their block to fill.
    filling_since: Time,
    fill_timeout: Duration,
    /// True if a block that is not full waits for more.
    waits_to_fill: bool,
}

impl Supply {
    /// Nothing written yet.
    pub(super) fn new(fill_timeout: Duration, waits_to_fill: bool) -> Supply {
        Supply { written: 0, pushed: 0, closing: false, filling_since: Time::ZERO, fill_timeout, waits_to_fill }
    }

    /// The application hands over `bytes`; all before the offset `cut` are in a block.
    pub(super) fn write(&mut self, now: Time, bytes: u64, cut: u64) {
        if self.closing || bytes == 0 {
            return;
        }
        if self.written == cut {
            self.filling_since = now;
        }
        self.written = self.written.saturating_add(bytes).min(ENDLESS);
        if !self.waits_to_fill {
            self.push();
        }
    }

    /// What was written does not wait for more.
    pub(super) fn push(&mut self) {
        self.pushed = self.written;
    }

    /// From now on a block that is not full waits for more, or does not.
    pub(super) fn set_waits_to_fill(&mut self, waits: bool) {
        self.waits_to_fill = waits;
        if !waits {
            self.push();
        }
    }

    /// True if a block that is not full waits for more.
    pub(super) fn waits_to_fill(&self) -> bool {
        self.waits_to_fill
    }

    /// The application will write no more. Of data without end only what is before the offset `cut` is still sent.
    pub(super) fn close(&mut self, cut: u64) {
        self.closing = true;
        if self.written == ENDLESS {
            self.written = cut;
        }
    }

    /// Bytes after the offset `cut`.
    #[inline]
    pub(super) fn after(&self, cut: u64) -> u64 {
        self.written - cut
    }

    /// True if the application will write no more.
    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// True if anything was ever written.
    pub(super) fn has_any(&self) -> bool {
        self.written > 0
    }

    /// True if the bytes after the offset `cut`, which do not fill a block, may leave in one.
    pub(super) fn is_released(&self, now: Time, cut: u64) -> bool {
        self.closing || now >= self.fill_by(cut)
    }

    /// A block begins: what is left waits for the next one to fill.
    pub(super) fn on_block_begun(&mut self, now: Time) {
        self.filling_since = now;
    }

    /// Time up to which the bytes after the offset `cut` wait for their block to fill.
    #[inline]
    pub(super) fn fill_by(&self, cut: u64) -> Time {
        if self.pushed > cut { Time::ZERO } else { self.filling_since.saturating_add(self.fill_timeout) }
    }
}

//! Data that the application has written, and how long they wait for their block to fill.
//!
//! TPA, section 3.2: a block begins when the block before it has been acknowledged and there is
//! data for a whole block. With less data it waits for more, at most `fill_timeout` (100 ms). This
//! is the rule in the simulator and the default.
//!
//! Hosts set `waits_to_fill` to false, because with the paper's rule each message costs the
//! timeout: a request of some bytes and its response took 200 ms on loopback. Hosts use Nagle's
//! rule (RFC 9293, section 3.7.4), applied to blocks:
//!
//! - While nothing is unacknowledged, data are sent as soon as they are written.
//! - While a block is being sent, written data join it until the last of its segments has been
//!   sent. Only the last segment of a block may be short. A writer that is faster than the path
//!   therefore fills segments and blocks as with the paper's rule.
//! - All other data wait for the acknowledgement of the current block. A full segment waits, too,
//!   which is a departure from Nagle's rule: TPA begins no block before the current one is
//!   acknowledged. Since the end of a block is acknowledged at once (`ack_block_end`), the wait is
//!   one round trip and involves no timer of the peer.
//!
//! With either rule, pushed data ([`Supply::push`]) do not wait.

use crate::path::ENDLESS;
use meshpace_core::{Duration, Time};

/// Data that one sender has to send.
#[derive(Clone, Debug)]
pub(super) struct Supply {
    /// Bytes written by the application.
    written: u64,
    /// Number of bytes from the start of the stream that do not wait for their block to fill.
    pushed: u64,
    /// The application will write no more.
    closing: bool,
    /// Time since which bytes have been waiting for their block to fill.
    filling_since: Time,
    fill_timeout: Duration,
    /// True if a block that is not full waits for more data.
    waits_to_fill: bool,
}

impl Supply {
    /// Creates a supply without any data.
    pub(super) fn new(fill_timeout: Duration, waits_to_fill: bool) -> Supply {
        Supply { written: 0, pushed: 0, closing: false, filling_since: Time::ZERO, fill_timeout, waits_to_fill }
    }

    /// Adds `bytes` that the application writes. All data before the offset `cut` are already in a
    /// block.
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

    /// Releases all data written so far: they do not wait for their block to fill.
    pub(super) fn push(&mut self) {
        self.pushed = self.written;
    }

    /// Sets whether a block that is not full waits for more data.
    pub(super) fn set_waits_to_fill(&mut self, waits: bool) {
        self.waits_to_fill = waits;
        if !waits {
            self.push();
        }
    }

    /// True if a block that is not full waits for more data.
    pub(super) fn waits_to_fill(&self) -> bool {
        self.waits_to_fill
    }

    /// The application will write no more. If it wrote data without end, only data before the
    /// offset `cut` are still sent.
    pub(super) fn close(&mut self, cut: u64) {
        self.closing = true;
        if self.written == ENDLESS {
            self.written = cut;
        }
    }

    /// Number of bytes after the offset `cut`.
    #[inline]
    pub(super) fn after(&self, cut: u64) -> u64 {
        self.written - cut
    }

    /// True if the application will write no more.
    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// True if the application has written anything.
    pub(super) fn has_any(&self) -> bool {
        self.written > 0
    }

    /// True if the bytes after the offset `cut`, which do not fill a block, may be sent now in a
    /// short one.
    pub(super) fn is_released(&self, now: Time, cut: u64) -> bool {
        self.closing || now >= self.fill_by(cut)
    }

    /// A block begins: the remaining bytes start to wait for the next block to fill.
    pub(super) fn on_block_begun(&mut self, now: Time) {
        self.filling_since = now;
    }

    /// Time until which the bytes after the offset `cut` wait for their block to fill.
    #[inline]
    pub(super) fn fill_by(&self, cut: u64) -> Time {
        if self.pushed > cut { Time::ZERO } else { self.filling_since.saturating_add(self.fill_timeout) }
    }
}

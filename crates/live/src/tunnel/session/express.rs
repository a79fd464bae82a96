//! Budget of a stream or a flow for express: [`BURST`] bytes at once, [`RATE`] per second in the long run. What sends more is bulk.

use meshpace_core::{Duration, Time};

/// Bytes at once: a screen of text, a command, a small file.
pub(super) const BURST: u64 = 8 << 10;
/// Bytes per second that come back.
pub(super) const RATE: u64 = 16 << 10;

/// What is left of it, and when that was so.
#[derive(Debug)]
pub(super) struct ExpressBudget {
    tokens: u64,
    at: Time,
}

impl ExpressBudget {
    /// All of it.
    pub(super) fn new(now: Time) -> ExpressBudget {
        ExpressBudget { tokens: BURST, at: now }
    }

    /// Bytes that are left now.
    pub(super) fn left(&mut self, now: Time) -> u64 {
        let second = Duration::from_secs(1).0;
        let since = now.since(self.at).0.min(BURST * second / RATE);
        let refill = since * RATE / second;
        // What is less than a byte counts next time.
        self.at = if refill < BURST { self.at + Duration(refill * second / RATE) } else { now };
        self.tokens = BURST.min(self.tokens + refill);
        self.tokens
    }

    /// So many bytes leave, by whatever carrier.
    pub(super) fn spend(&mut self, bytes: usize) {
        self.tokens = self.tokens.saturating_sub(bytes as u64);
    }
}

//! Accessors for the state of a connection.

use super::Connection;
use crate::closing::End;
use crate::stats::Stats;
use crate::train::sender::Sender;
use meshpace_core::Time;

impl Connection {
    /// Payload bytes that arrived in order.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Next offset that is expected from the peer; its FIN counts as one byte.
    pub fn expected(&self) -> u64 {
        self.receiver.expected()
    }

    /// Number of payload bytes that the peer has acknowledged. They need not be kept for
    /// retransmission any longer.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Offset after everything sent; a FIN counts as one byte.
    pub fn outstanding_end(&self) -> u64 {
        self.sender.sent_end()
    }

    /// True if the handshake has been completed.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Number of ranges of the peer's stream that have arrived beyond a gap.
    pub fn ranges(&self) -> usize {
        self.receiver.ranges()
    }

    /// True if the peer has closed its stream and all of it has arrived.
    pub fn peer_has_closed(&self) -> bool {
        self.receiver.is_closed()
    }

    /// True if the connection has ended.
    pub fn is_done(&self) -> bool {
        self.end().is_some()
    }

    /// How the connection ended; `None` if it has not.
    pub fn end(&self) -> Option<End> {
        self.state.end()
    }

    /// True if the connection has ended and late segments need no answer any more.
    pub fn is_forgotten(&self, now: Time) -> bool {
        self.is_done() && !self.reset_due && (self.forget_at == Time::NEVER || now >= self.forget_at)
    }

    /// Returns the counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Returns the sending half.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }
}

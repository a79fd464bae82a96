//! Queries about the state of a connection, for its caller.

use super::Connection;
use crate::closing::End;
use crate::stats::Stats;
use crate::tcp::sending::Sender;
use crate::tcp::timers::Timer;
use meshpace_core::Time;

impl Connection {
    /// Payload bytes that arrived in order.
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Payload bytes that the peer has acknowledged. The caller may discard them, because they are
    /// not sent again.
    pub fn acknowledged(&self) -> u64 {
        self.sender.flight().acknowledged()
    }

    /// True if the handshake has been completed.
    pub fn is_established(&self) -> bool {
        self.sender.is_established()
    }

    /// True if the peer has closed its stream and all of it has arrived.
    pub fn peer_has_closed(&self) -> bool {
        self.receiver.is_closed()
    }

    /// End of the connection; `None` if it has not ended.
    pub fn end(&self) -> Option<End> {
        self.state.end()
    }

    /// True if the connection has ended and late segments need no answer any more.
    pub fn is_forgotten(&self, now: Time) -> bool {
        let forgets_at = self.shared.timers.at(Timer::TimeWait);
        self.end().is_some() && !self.reset_due && (forgets_at == Time::NEVER || now >= forgets_at)
    }

    /// The received blocks beyond a gap, for ACKs that have room for several of them.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.receiver.blocks()
    }

    /// The offset after everything that was sent. A FIN counts as one byte.
    pub fn outstanding_end(&self) -> u64 {
        self.sender.flight().sent_end()
    }

    /// The next offset that is expected from the peer.
    pub fn expected(&self) -> u64 {
        self.receiver.expected()
    }

    /// The counters of both halves.
    pub fn stats(&self) -> &Stats {
        &self.shared.stats
    }

    /// The sending half of the connection.
    pub fn sender(&self) -> &Sender {
        &self.sender
    }
}

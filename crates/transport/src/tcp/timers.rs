//! The timers of a connection, by name, and what both of its halves share.

use crate::stats::Stats;
use meshpace_core::Time;

/// A timer of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// A SYN or SYN-ACK is sent again.
    Handshake,
    /// Retransmission of unacknowledged data; without such data, a probe of the peer's closed window (RFC 6298, RFC 9293 3.8.6.1).
    Retransmission,
    /// The pacing lets the next segment leave.
    Pacing,
    /// Acknowledgement of segments that wait for a delayed ACK (RFC 9293, section 3.8.6.3).
    DelayedAck,
    /// The peer, which owes an answer, is given up (RFC 9293, section 3.8.3).
    GiveUp,
    /// The connection, closed by both ends, is forgotten (RFC 9293, section 3.6.1).
    TimeWait,
}

/// Their number.
const COUNT: usize = Timer::TimeWait as usize + 1;

/// When each of them expires; never if it does not run.
#[derive(Clone, Debug)]
pub struct Timers([Time; COUNT]);

impl Default for Timers {
    fn default() -> Timers {
        Timers([Time::NEVER; COUNT])
    }
}

impl Timers {
    /// `timer` expires at `at` and not when it would have before.
    #[inline]
    pub fn set(&mut self, timer: Timer, at: Time) {
        self.0[timer as usize] = at;
    }

    /// `timer` does not run.
    #[inline]
    pub fn stop(&mut self, timer: Timer) {
        self.set(timer, Time::NEVER);
    }

    /// Time at which `timer` expires; never if it does not run.
    #[inline]
    pub fn at(&self, timer: Timer) -> Time {
        self.0[timer as usize]
    }

    /// True if `timer` runs.
    #[inline]
    pub fn runs(&self, timer: Timer) -> bool {
        self.at(timer) != Time::NEVER
    }

    /// True if `timer` has expired by `now`.
    #[inline]
    pub fn is_due(&self, timer: Timer, now: Time) -> bool {
        self.at(timer) <= now
    }

    /// Time at which the first one expires.
    #[inline]
    pub fn next(&self) -> Time {
        self.0.iter().copied().fold(Time::NEVER, Time::min)
    }
}

/// State that both halves of a connection share.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// The time as last told.
    pub now: Time,
    /// The counters.
    pub stats: Stats,
    /// The timers.
    pub timers: Timers,
}

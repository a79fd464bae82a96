//! The named timers of a connection, and the state that its two halves share.

use crate::stats::Stats;
use meshpace_core::Time;

/// A timer of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timer {
    /// Time at which a SYN or SYN-ACK is sent again.
    Handshake,
    /// Retransmission of unacknowledged data. Without such data it triggers a probe of the peer's
    /// closed window (RFC 6298, RFC 9293 3.8.6.1).
    Retransmission,
    /// Time at which the pacing lets the next segment leave.
    Pacing,
    /// Time at which segments that wait for a delayed ACK are acknowledged (RFC 9293, section
    /// 3.8.6.3).
    DelayedAck,
    /// Time at which a peer that owes an answer is given up (RFC 9293, section 3.8.3).
    GiveUp,
    /// Time at which a connection that both ends have closed is forgotten (RFC 9293, section
    /// 3.6.1).
    TimeWait,
}

/// Number of timers.
const COUNT: usize = Timer::TimeWait as usize + 1;

/// Expiry time of each timer; [`Time::NEVER`] if a timer does not run.
#[derive(Clone, Debug)]
pub struct Timers([Time; COUNT]);

impl Default for Timers {
    fn default() -> Timers {
        Timers([Time::NEVER; COUNT])
    }
}

impl Timers {
    /// Makes `timer` expire at `at`, whenever it would have expired before.
    #[inline]
    pub fn set(&mut self, timer: Timer, at: Time) {
        self.0[timer as usize] = at;
    }

    /// Stops `timer`.
    #[inline]
    pub fn stop(&mut self, timer: Timer) {
        self.set(timer, Time::NEVER);
    }

    /// Time at which `timer` expires; [`Time::NEVER`] if it does not run.
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

    /// Time at which the next timer expires; [`Time::NEVER`] if no timer runs.
    #[inline]
    pub fn next(&self) -> Time {
        self.0.iter().copied().fold(Time::NEVER, Time::min)
    }
}

/// State that both halves of a connection share.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// Time of the current call, as the caller gave it.
    pub now: Time,
    /// The counters of both halves.
    pub stats: Stats,
    /// The timers of both halves.
    pub timers: Timers,
}

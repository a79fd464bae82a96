//! Earliest send: a gate that lets a segment leave if an interval has passed since the last one
//! left.
//!
//! AP05, section 4.4, read so that no time is lost: a segment that becomes available after its
//! interval has ended leaves at once.

use super::adaptive::Recovery;
use super::interval::Interval;
use crate::stats::Stats;
use meshpace_core::Time;

/// Permission for a segment to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// The segment may leave now.
    Now,
    /// The segment may leave at this time.
    At(Time),
}

impl Release {
    /// Creates the permission for a segment that may leave at `at`, which may have passed.
    pub fn from(now: Time, at: Time) -> Release {
        if now >= at { Release::Now } else { Release::At(at) }
    }
}

/// State of the gate.
#[derive(Clone, Debug)]
pub struct EarliestSend {
    pub(super) interval: Interval,
    recovery: Recovery,
    /// Time at which the next segment may leave.
    next: Time,
    /// True if a timeout has switched pacing off until the next ACK.
    off: bool,
}

impl EarliestSend {
    /// Creates an open gate: the first segment may leave at once.
    pub fn new(interval: Interval, recovery: Recovery) -> EarliestSend {
        EarliestSend { interval, recovery, next: Time::ZERO, off: false }
    }

    /// Permission for a new segment to leave.
    pub fn release(&self, now: Time) -> Release {
        Release::from(now, self.next)
    }

    /// Permission for a retransmission to leave.
    pub fn release_again(&self, now: Time) -> Release {
        if self.recovery == Recovery::Paced { self.release(now) } else { Release::Now }
    }

    /// True if segments are paced at present.
    pub fn spaces(&self) -> bool {
        !self.off
    }

    /// A segment leaves. Starts the next interval.
    pub fn on_sent(&mut self, now: Time, stats: &mut Stats) {
        self.next = now.saturating_add(self.interval.read(stats));
    }

    /// An ACK arrived. Switches pacing on again.
    pub fn on_ack(&mut self) {
        self.off = false;
    }

    /// The retransmission timer expired. Returns whether pacing is off until the next ACK.
    pub fn on_timeout(&mut self) -> bool {
        self.off |= self.recovery == Recovery::OffUntilAck;
        self.off
    }
}

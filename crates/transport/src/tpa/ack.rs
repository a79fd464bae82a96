//! Times at which the receiver sends an ACK.
//!
//! TPA, section 3.6. While the sender is not congested, one ACK is sent for every second segment
//! (TPA) or for every cwnd_max segments (TPA*), or when a timer expires. While the sender is
//! congested, every segment is acknowledged.
//!
//! The paper states no rule for the end of a block, and there is none here: an odd last segment
//! waits for the timer, unless `ack_block_end` is set. With TPA* the receiver has to know the
//! sender's cwnd_max; it is part of the configuration.

use meshpace_core::{Duration, Time, words};

/// Rule for the number of segments that share an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Two segments (TPA-2, TPA-3).
    EveryOther,
    /// As many segments as the sender's window has (TPA*).
    EveryWindow,
}

words! { Rule: "every-other" = EveryOther, "every-window" = EveryWindow }

impl Rule {
    /// Segments per ACK if the sender's window is `window` segments.
    pub const fn segments(self, window: u8) -> u8 {
        match self {
            Rule::EveryOther => 2,
            Rule::EveryWindow => window,
        }
    }
}

/// State of the next ACK: whether it is due, and when its timer expires.
#[derive(Clone, Debug)]
pub struct Acknowledger {
    every: u8,
    delay: Duration,
    /// Segments received since the last ACK.
    pending: u8,
    due: bool,
    /// Time at which the timer expires; `Time::NEVER` if it is not running.
    at: Time,
}

impl Acknowledger {
    /// Creates a state that sends one ACK per `every` segments, at most `delay` after the first of
    /// them.
    pub fn new(every: u8, delay: Duration) -> Acknowledger {
        Acknowledger { every, delay, pending: 0, due: false, at: Time::NEVER }
    }

    /// Sets how long an ACK may wait. The new delay applies from the next segment on.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// Counts a data segment that arrived.
    pub fn on_segment(&mut self, now: Time, congested: bool) {
        self.pending += 1;
        if congested || self.pending >= self.every {
            self.at_once();
        } else if self.at == Time::NEVER {
            self.at = now.saturating_add(self.delay);
        }
    }

    /// Makes an ACK due now, whatever the number of segments received.
    pub fn at_once(&mut self) {
        self.due = true;
        self.at = Time::NEVER;
    }

    /// Makes an ACK due if the timer has expired.
    pub fn on_timer(&mut self, now: Time) {
        if self.at <= now {
            self.at_once();
        }
    }

    /// Resets the state after an ACK was sent, or when no ACK is needed any more.
    pub fn clear(&mut self) {
        self.pending = 0;
        self.due = false;
        self.at = Time::NEVER;
    }

    /// True if an ACK must leave now.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// True if a segment that is sent anyway should carry an ACK.
    pub fn is_pending(&self) -> bool {
        self.due || self.pending > 0
    }

    /// Time at which [`Acknowledger::on_timer`] is due.
    pub fn next_wakeup(&self) -> Time {
        self.at
    }
}

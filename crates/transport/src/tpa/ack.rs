//! When the receiver acknowledges.
//!
//! TPA, section 3.6: while the sender is not congested, one ACK every other segment (TPA) or every cwnd_max segments (TPA*),
//! or when a timer expires; while it is congested, every segment. No rule is stated for the end of a block, and there is
//! none here: an odd last segment waits for the timer, unless `ack_block_end` is set. TPA* needs cwnd_max at the receiver: it is configured.

use meshpace_core::{Duration, Time, words};

/// Number of segments that share an ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Two (TPA-2, TPA-3).
    EveryOther,
    /// As many as the sender's window (TPA*).
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

/// The ACK that is due, or not yet.
#[derive(Clone, Debug)]
pub struct Acknowledger {
    every: u8,
    delay: Duration,
    /// Segments since the last ACK.
    pending: u8,
    due: bool,
    /// Time at which the timer expires.
    at: Time,
}

impl Acknowledger {
    /// One ACK per `every` segments, at the latest `delay` after the first of them.
    pub fn new(every: u8, delay: Duration) -> Acknowledger {
        Acknowledger { every, delay, pending: 0, due: false, at: Time::NEVER }
    }

    /// From the next segment on an ACK waits for this long.
    pub fn set_delay(&mut self, delay: Duration) {
        self.delay = delay;
    }

    /// A data segment arrived.
    pub fn on_segment(&mut self, now: Time, congested: bool) {
        self.pending += 1;
        if congested || self.pending >= self.every {
            self.at_once();
        } else if self.at == Time::NEVER {
            self.at = now.saturating_add(self.delay);
        }
    }

    /// An ACK is due whatever the count.
    pub fn at_once(&mut self) {
        self.due = true;
        self.at = Time::NEVER;
    }

    /// The timer may be due.
    pub fn on_timer(&mut self, now: Time) {
        if self.at <= now {
            self.at_once();
        }
    }

    /// An ACK leaves, or none is needed any more.
    pub fn clear(&mut self) {
        self.pending = 0;
        self.due = false;
        self.at = Time::NEVER;
    }

    /// True if an ACK must leave now.
    pub fn is_due(&self) -> bool {
        self.due
    }

    /// True if a segment that leaves anyway should carry an ACK.
    pub fn is_pending(&self) -> bool {
        self.due || self.pending > 0
    }

    /// Time at which [`Acknowledger::on_timer`] is due.
    pub fn next_wakeup(&self) -> Time {
        self.at
    }
}

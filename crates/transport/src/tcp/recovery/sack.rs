//! Selective acknowledgement: which segments beyond a gap have arrived, and what to send again because of it.
//!
//! RFC 2018 for the blocks and RFC 6675, sections 2 to 5, for the sender, in whole segments. With DupThresh = 3:
//!
//! ```text
//! lost(n)   three segments above n have been reported
//! pipe      of the segments released and not reported: those not lost, and those sent again in this recovery
//! recovery  starts with the third duplicate ACK or when the first missing segment is lost; ends when everything sent before
//!           it is acknowledged; while pipe < cwnd: the next lost segment, else a new one, else the next missing one
//! ```
//!
//! An ACK reports up to three blocks, on the wire four without time stamps (RFC 2018, section 3), those first that segments
//! arrived in last.
//!
//! Departures: in the simulator a block more than 2 MiB beyond the ACK is not reported; no rescue retransmission (rule 4 of
//! NextSeg); after a timeout the reports are forgotten and only what later ACKs report is left out of what is sent anew (RFC
//! 2018, section 5.1), and a new recovery needs an ACK beyond what was sent before it, as without SACK.

use super::DUPLICATE_THRESHOLD;
use crate::about::Named;
use crate::tcp::flight::{Flight, RetransmissionQueue};
use crate::tcp::window::Window;
use crate::work::step;
use meshpace_core::Time;

/// Selective acknowledgements.
pub const SACK: Named<bool> =
    Named { name: "sack", description: "selective acknowledgements", source: "RFC 2018, RFC 6675", config: || true };

/// Segments that recovery may send again when the pipe has room; before `missing`, new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The oldest lost segment that has not been sent again.
    pub lost: Option<u64>,
    /// The oldest one with a report above it.
    pub missing: Option<u64>,
}

/// State of recovery by reports. Segments are counted from 0.
#[derive(Clone, Debug, Default)]
pub struct Sack {
    /// Consecutive duplicate ACKs.
    duplicates: u32,
    /// Number of segments that had been sent when the recovery that lasts started.
    point: Option<u64>,
    /// Segments below this have been sent again in this recovery, or need not be.
    again_from: u64,
    /// Number of segments that had been sent at the last timeout.
    timeout_at: u64,
    /// True if the first duplicate ACKs release a new segment each (RFC 3042).
    limits: bool,
}

impl Sack {
    /// No loss yet.
    pub fn new(limited_transmit: bool) -> Sack {
        Sack { limits: limited_transmit, ..Sack::default() }
    }

    /// New data is acknowledged up to segment `acked`. Whether the window may grow.
    pub fn on_new_ack(&mut self, acked: u64) -> bool {
        self.duplicates = 0;
        match self.point {
            Some(point) if acked < point => false,
            Some(_) => {
                self.point = None;
                false
            }
            None => true,
        }
    }

    /// A duplicate ACK, its report taken into `sent`; `highest` segments have been sent. Whether recovery starts, with the
    /// first missing segment to be sent again.
    pub fn on_duplicate_ack(&mut self, sent: &RetransmissionQueue, highest: u64) -> bool {
        self.duplicates = self.duplicates.saturating_add(1);
        let first = sent.base();
        let lost = self.duplicates >= DUPLICATE_THRESHOLD || sent.sacked_above(first) >= DUPLICATE_THRESHOLD;
        if self.point.is_some() || !lost || (first <= self.timeout_at && self.timeout_at > 0) {
            return false;
        }
        self.point = Some(highest);
        self.again_from = first + 1;
        true
    }

    /// The retransmission timer expired with `highest` segments sent.
    pub fn on_timeout(&mut self, highest: u64) {
        *self = Sack { timeout_at: highest, ..Sack::new(self.limits) };
    }

    /// True if recovery lasts.
    pub fn in_recovery(&self) -> bool {
        self.point.is_some()
    }

    /// Segments by which limited transmit opens the window (RFC 3042).
    pub fn limited_transmit(&self) -> u32 {
        if self.in_recovery() || !self.limits { 0 } else { self.duplicates.min(DUPLICATE_THRESHOLD - 1) }
    }

    /// Segment that recovery may send with a window of `cwnd` segments, of which all below `next` have been released; none if the
    /// pipe is full.
    pub fn plan(&self, sent: &RetransmissionQueue, next: u64, cwnd: u64) -> Option<Plan> {
        let mut pipe = 0;
        let mut plan = Plan { lost: None, missing: None };
        let mut above = 0;
        // From the newest to the oldest, so that the reports above each are counted on the way.
        for number in (sent.base()..next).rev() {
            step();
            if sent.is_sacked(number) {
                above += 1;
                continue;
            }
            let is_lost = above >= DUPLICATE_THRESHOLD;
            pipe += u64::from(!is_lost) + u64::from(number < self.again_from);
            if number >= self.again_from && above > 0 {
                plan.missing = Some(number);
                if is_lost {
                    plan.lost = Some(number);
                }
            }
        }
        (pipe < cwnd).then_some(plan)
    }

    /// Segment `number` is sent again.
    pub fn on_again(&mut self, number: u64) {
        self.again_from = self.again_from.max(number + 1);
    }

    /// Releases the next segment in recovery: the pipe decides, and what is lost goes first.
    pub fn take(&mut self, flight: &mut Flight, window: &Window, now: Time) -> Option<u64> {
        let plan = self.plan(flight.queue(), flight.next(), window.usable(0))?;
        if plan.lost.is_none()
            && flight.next() < limit_end(flight, window)
            && let Some(number) = flight.release(now)
        {
            return Some(number);
        }
        let again = plan.lost.or(plan.missing)?;
        self.on_again(again);
        Some(again)
    }

    /// True if [`Sack::take`] would release something.
    pub fn wants_to_send(&self, flight: &Flight, window: &Window) -> bool {
        let Some(plan) = self.plan(flight.queue(), flight.next(), window.usable(0)) else { return false };
        let again = plan.lost.is_some() || plan.missing.is_some();
        again || (flight.has_more() && flight.next() < limit_end(flight, window))
    }
}

/// The number of the first segment beyond the largest window.
fn limit_end(flight: &Flight, window: &Window) -> u64 {
    flight.first() + u64::from(window.limit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limited_transmit_is_for_the_first_two_duplicate_acks() {
        // RFC 3042, section 2: from the third on recovery says what leaves.
        let sent = RetransmissionQueue::new(16);
        for (is_on, opened) in [(true, [1, 2, 0, 0]), (false, [0; 4])] {
            let mut sack = Sack::new(is_on);
            let after = |_| {
                sack.on_duplicate_ack(&sent, 10);
                sack.limited_transmit()
            };
            assert_eq!([1, 2, 3, 4].map(after), opened);
        }
    }
}

//! Selective acknowledgement (SACK): records which segments beyond a gap have arrived, and decides
//! which segments are sent again.
//!
//! RFC 2018 for the blocks and RFC 6675, sections 2 to 5, for the sender, in whole segments. With
//! DupThresh = 3:
//!
//! ```text
//! lost(n)   three segments above n have been reported
//! pipe      of the segments released and not reported: those not lost, and those sent again in this recovery
//! recovery  starts with the third duplicate ACK or when the first missing segment is lost; ends when everything sent before
//!           it is acknowledged; while pipe < cwnd: the next lost segment, else a new one, else the next missing one
//! ```
//!
//! An ACK reports up to three blocks; on the wire it reports four if there are no time stamps (RFC
//! 2018, section 3). The blocks that received a segment most recently come first.
//!
//! Departures: in the simulator a block more than 2 MiB beyond the ACK is not reported. There is no
//! rescue retransmission (rule 4 of NextSeg). After a timeout the earlier reports are forgotten.
//! Segments that later ACKs report are not sent again (RFC 2018, section 5.1). A new recovery then
//! needs an ACK beyond what had been sent at the timeout, as without SACK.

use super::DUPLICATE_THRESHOLD;
use crate::about::Named;
use crate::tcp::flight::{Flight, RetransmissionQueue};
use crate::tcp::window::Window;
use crate::work::step;
use meshpace_core::Time;

/// Selective acknowledgements of RFC 2018 and RFC 6675.
pub const SACK: Named<bool> =
    Named { name: "sack", description: "selective acknowledgements", source: "RFC 2018, RFC 6675", config: || true };

/// Segments that recovery may send again when the pipe has room. New data comes after `lost` and
/// before `missing`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The oldest lost segment that has not been sent again in this recovery.
    pub lost: Option<u64>,
    /// The oldest segment that has a reported segment above it and has not been sent again in this
    /// recovery.
    pub missing: Option<u64>,
}

/// State of recovery with SACK. Segments are counted from 0.
#[derive(Clone, Debug, Default)]
pub struct Sack {
    /// Number of consecutive duplicate ACKs.
    duplicates: u32,
    /// Number of segments that had been sent when the current recovery started; `None` outside
    /// recovery.
    point: Option<u64>,
    /// Segments below this number have been sent again in this recovery, or need not be sent again.
    again_from: u64,
    /// Number of segments that had been sent at the last timeout.
    timeout_at: u64,
    /// True if each of the first duplicate ACKs releases a new segment (RFC 3042).
    limits: bool,
}

impl Sack {
    /// Creates the state before any loss.
    pub fn new(limited_transmit: bool) -> Sack {
        Sack { limits: limited_transmit, ..Sack::default() }
    }

    /// New data is acknowledged; `acked` segments are acknowledged in all. Returns whether the
    /// window may grow.
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

    /// A duplicate ACK arrived, and its blocks are already marked in `sent`; `highest` segments
    /// have been sent. Returns whether recovery starts; the first missing segment has to be sent
    /// again then.
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

    /// The retransmission timer expired when `highest` segments had been sent.
    pub fn on_timeout(&mut self, highest: u64) {
        *self = Sack { timeout_at: highest, ..Sack::new(self.limits) };
    }

    /// True during recovery.
    pub fn in_recovery(&self) -> bool {
        self.point.is_some()
    }

    /// Number of segments by which limited transmit opens the window (RFC 3042).
    pub fn limited_transmit(&self) -> u32 {
        if self.in_recovery() || !self.limits { 0 } else { self.duplicates.min(DUPLICATE_THRESHOLD - 1) }
    }

    /// Segments that recovery may send again, with a window of `cwnd` segments, when all segments
    /// below `next` have been released. `None` if the pipe is full.
    pub fn plan(&self, sent: &RetransmissionQueue, next: u64, cwnd: u64) -> Option<Plan> {
        let mut pipe = 0;
        let mut plan = Plan { lost: None, missing: None };
        let mut above = 0;
        // The loop goes from the newest to the oldest segment, so it counts the reported segments
        // above each one.
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

    /// Releases the next segment in recovery if the pipe has room. Lost segments come first.
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

    /// True if [`Sack::take`] would release a segment.
    pub fn wants_to_send(&self, flight: &Flight, window: &Window) -> bool {
        let Some(plan) = self.plan(flight.queue(), flight.next(), window.usable(0)) else { return false };
        let again = plan.lost.is_some() || plan.missing.is_some();
        again || (flight.has_more() && flight.next() < limit_end(flight, window))
    }
}

/// Number of the first segment beyond the largest window.
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

//! Physical and virtual carrier sense, the backoff that depends on them, and the time of the
//! station's next timer.
//!
//! Source: IEEE Std 802.11-1999, 9.2.1 (carrier sense), 9.2.5.1 and 9.2.5.2 (basic access,
//! backoff), 9.2.5.4 (NAV).

use super::{Dcf, Exchange};
use crate::category::Category;
use crate::mac::arrivals::LockedFrame;
use crate::mac::backoff::Backoff;
use crate::mac::rules::ImmediateAccess;
use crate::mac::timing::{Access, Timing};
use crate::packet::Packet;
use meshpace_core::{Duration, Time};

/// Shortest time for which the medium is reserved after `frame`, whose reception may fail because
/// of a collision.
#[inline]
fn least_nav(frame: &LockedFrame, t: &Timing) -> Duration {
    // Under the other rule, a longer interframe space follows a lost frame instead of a NAV.
    if !t.rules.error_sets_nav || frame.is_notified {
        Duration::ZERO
    } else if frame.decodable {
        t.eifs.min(Duration(u64::from(frame.nav_ns)))
    } else {
        t.eifs
    }
}

impl<P: Packet> Dcf<P> {
    /// Time at which [`Dcf::on_timer`] must be called next; [`Time::NEVER`] if no call is needed.
    /// Frames that have been announced to the station can only move this time to later. The call
    /// then has no effect.
    #[inline(always)]
    pub fn next_wakeup(&self, t: &Timing) -> Time {
        let mut at = self.sifs_timer.min(self.timeout);
        let busy = self.receiver.busy_until();
        if busy == Time::NEVER
            && let Some(next) = self.next_arrival.first()
            && next.start < self.receiver.detecting_until()
        {
            // The next frame may destroy the preamble and leave the medium idle. Starts of frames
            // are processed after timers of the same time.
            at = at.min(next.start + Duration(1));
        }
        let (from, remaining_ns) = match self.backoff {
            Backoff::Off => return at,
            Backoff::Running { from, remaining_ns } => (from, remaining_ns),
            // Neither the end of the arriving frame nor the end of the NAV needs a timer: the
            // backoff expires after both, DIFS and the remaining time later, or even later.
            Backoff::Paused { remaining_ns } if self.exchange == Exchange::Idle => {
                let quiet = self.locked.map_or(Duration::ZERO, |locked| least_nav(&locked, t));
                let idle = busy.saturating_add(quiet).max(self.nav_until);
                (idle.saturating_add(t.difs), remaining_ns)
            }
            Backoff::Paused { .. } => return at,
        };
        let remaining = Duration(u64::from(remaining_ns));
        let expiry = from.saturating_add(remaining);
        let locks = busy == Time::ZERO && self.receiver.is_first_lock();
        match self.next_arrival.first() {
            // A frame that begins before the expiry stops the backoff, which continues DIFS after
            // the end of that frame at the earliest.
            Some(next) if locks && next.start < expiry && expiry.since(next.start) >= t.rules.cca_time => {
                let idle = (next.frame.end + least_nav(&next.into(), t)).max(self.nav_until);
                let elapsed = (next.start + t.counts_ahead).since(from);
                at.min(idle + t.difs + remaining.saturating_sub(elapsed))
            }
            _ => at.min(expiry),
        }
    }

    /// Continues the backoff if the medium has been idle since the end of a NAV, at `now` or
    /// before. No timer is set for the end of a NAV.
    #[inline]
    pub(super) fn follow_nav(&mut self, now: Time, t: &Timing) {
        if matches!(self.backoff, Backoff::Paused { .. }) && self.nav_until <= now {
            self.sense(self.nav_until, t);
        }
    }

    /// Handles the time at which the medium becomes busy.
    #[inline]
    pub(super) fn sense_onset(&mut self, now: Time, t: &Timing) {
        if self.backoff.notices(now, t.rules.cca_time) {
            self.sense(now, t);
        }
    }

    /// Stops the backoff because a frame makes the medium busy, whatever the state of the medium
    /// was.
    #[inline(never)]
    pub(super) fn pause_backoff(&mut self, now: Time, t: &Timing) {
        if self.backoff.notices(now, t.rules.cca_time) {
            self.backoff.pause(now, t.slot, t.counts_ahead);
        }
    }

    /// Begins to contend for the medium with the current frame.
    pub(super) fn contend(&mut self, now: Time, t: &Timing) {
        let idle_since = if t.rules.nav_is_busy { self.idle_since.max(self.nav_until) } else { self.idle_since };
        if t.rules.immediate_access != ImmediateAccess::Never
            && self.medium_idle(now)
            && now.since(idle_since) >= self.interframe(self.category, t)
        {
            // The medium has been idle for the whole interframe space. The frame is transmitted at
            // once, by the timer.
            self.backoff = Backoff::Running { from: now, remaining_ns: 0 };
        } else if t.rules.immediate_access == ImmediateAccess::WhileIdle
            && self.medium_idle(now)
            // No category may use immediate access while another one waits for a SIFS within its
            // own exchange.
            && (!t.edca || self.sifs_timer == Time::NEVER)
        {
            self.backoff = Backoff::paused(Duration::ZERO);
            self.sense(now, t);
        } else {
            self.start_backoff(now, t);
        }
    }

    /// Draws a backoff. Counting down begins an interframe space after the medium became idle.
    pub(super) fn start_backoff(&mut self, now: Time, t: &Timing) {
        let slots = self.rng.below(u64::from(self.contention.cw) + u64::from(t.rules.backoff_reaches_window));
        self.backoff = Backoff::paused(t.slot * slots);
        self.sense(now, t);
    }

    /// Interframe space before a frame that is not a response.
    pub(super) fn interframe(&self, category: Category, t: &Timing) -> Duration {
        let Access { aifs, eifs, .. } = t.access[category as usize];
        if self.after_error { eifs } else { aifs }
    }

    /// Time from which a backoff counts down if the medium is idle `now`.
    #[inline]
    pub(super) fn counts_from(&self, category: Category, now: Time, t: &Timing) -> Time {
        // The interframe space begins when both physical and virtual carrier sense became idle.
        let idle_since = self.idle_since.max(self.nav_until.min(now));
        (idle_since + self.interframe(category, t)).max(now)
    }

    /// Adjusts the backoff to the state of the medium.
    #[inline]
    pub(super) fn sense(&mut self, now: Time, t: &Timing) {
        match self.backoff {
            Backoff::Off => {}
            Backoff::Paused { .. } => {
                if self.medium_idle(now) {
                    let from =
                        if t.rules.error_sets_nav { now + t.difs } else { self.counts_from(self.category, now, t) };
                    self.backoff.resume(from);
                }
            }
            Backoff::Running { .. } => {
                if !self.medium_idle(now) {
                    self.backoff.pause(now, t.slot, t.counts_ahead);
                }
            }
        }
    }

    /// True if physical and virtual carrier sense are idle and this station takes part in no
    /// exchange.
    #[inline]
    pub(super) fn medium_idle(&self, now: Time) -> bool {
        !self.receiver.busy() && self.exchange == Exchange::Idle && self.nav_until <= now
    }

    /// Extends the NAV. Returns false if the NAV was already longer.
    pub(super) fn set_nav(&mut self, now: Time, span: Duration) -> bool {
        let until = now + span;
        let longer = until > self.nav_until;
        if longer {
            self.nav_until = until;
            self.nav_provisional = false;
        }
        longer
    }
}

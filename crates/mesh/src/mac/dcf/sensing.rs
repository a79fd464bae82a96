//! Physical and virtual carrier sense, the backoff that follows it, and when the station must be woken.
//!
//! Source: IEEE Std 802.11-1999, 9.2.1 (carrier sense), 9.2.5.1 and 9.2.5.2 (basic access, backoff), 9.2.5.4 (NAV).

use super::{Dcf, Exchange};
use crate::category::Category;
use crate::mac::arrivals::LockedFrame;
use crate::mac::backoff::Backoff;
use crate::mac::rules::ImmediateAccess;
use crate::mac::timing::{Access, Timing};
use crate::packet::Packet;
use meshpace_core::{Duration, Time};

/// The least time for which the medium is reserved after `frame`, which may be lost to a collision.
#[inline]
fn least_nav(frame: &LockedFrame, t: &Timing) -> Duration {
    // Without that rule a longer space follows a frame that is lost.
    if !t.rules.error_sets_nav || frame.is_notified {
        Duration::ZERO
    } else if frame.decodable {
        t.eifs.min(Duration(u64::from(frame.nav_ns)))
    } else {
        t.eifs
    }
}

impl<P: Packet> Dcf<P> {
    /// Time at which [`Dcf::on_timer`] must be called next; [`Time::NEVER`] if it need not. What becomes of the frames that the station
    /// has been told of can only move it to later: then the call finds nothing to do.
    #[inline(always)]
    pub fn next_wakeup(&self, t: &Timing) -> Time {
        let mut at = self.defer.min(self.timeout);
        let busy = self.receiver.busy_until();
        if busy == Time::NEVER
            && let Some(next) = self.next_arrival.first()
            && next.start < self.receiver.detecting_until()
        {
            // It may take the preamble away and leave the medium idle. Starts are processed after timers of the same time.
            at = at.min(next.start + Duration(1));
        }
        let (from, remaining_ns) = match self.backoff {
            Backoff::Off => return at,
            Backoff::Running { from, remaining_ns } => (from, remaining_ns),
            // Neither the end of the frame that arrives nor that of the NAV needs a timer: the backoff expires DIFS and what
            // remains after both, or later.
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
            // A frame that begins before pauses it, and it goes on DIFS after that at the earliest.
            Some(next) if locks && next.start < expiry && expiry.since(next.start) >= t.rules.cca_time => {
                let idle = (next.frame.end + least_nav(&next.into(), t)).max(self.nav_until);
                let elapsed = (next.start + t.counts_ahead).since(from);
                at.min(idle + t.difs + remaining.saturating_sub(elapsed))
            }
            _ => at.min(expiry),
        }
    }

    /// Lets the backoff resume if the medium is idle since a NAV ended, at `now` at the latest: no timer told the station.
    #[inline]
    pub(super) fn follow_nav(&mut self, now: Time, t: &Timing) {
        if matches!(self.backoff, Backoff::Paused { .. }) && self.nav_until <= now {
            self.sense(self.nav_until, t);
        }
    }

    /// The medium becomes busy.
    #[inline]
    pub(super) fn sense_onset(&mut self, now: Time, t: &Timing) {
        if self.backoff.notices(now, t.rules.cca_time) {
            self.sense(now, t);
        }
    }

    /// The medium becomes busy with a frame, whatever else there is.
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
            // Idle for the whole space already. The frame leaves with the timer, at once.
            self.backoff = Backoff::Running { from: now, remaining_ns: 0 };
        } else if t.rules.immediate_access == ImmediateAccess::WhileIdle
            && self.medium_idle(now)
            // No category may go while another one waits the space within its own exchange.
            && (!t.edca || self.defer == Time::NEVER)
        {
            self.backoff = Backoff::paused(Duration::ZERO);
            self.sense(now, t);
        } else {
            self.start_backoff(now, t);
        }
    }

    /// Draws a backoff; counting down begins an interframe space after the medium is idle.
    pub(super) fn start_backoff(&mut self, now: Time, t: &Timing) {
        let slots = self.rng.below(u64::from(self.contention.cw) + u64::from(t.rules.backoff_reaches_window));
        self.backoff = Backoff::paused(t.slot * slots);
        self.sense(now, t);
    }

    /// The interframe space before a frame that is not an answer.
    pub(super) fn interframe(&self, category: Category, t: &Timing) -> Duration {
        let Access { aifs, eifs, .. } = t.access[category as usize];
        if self.after_error { eifs } else { aifs }
    }

    /// When a backoff counts on if the medium is idle `now`.
    #[inline]
    pub(super) fn counts_from(&self, category: Category, now: Time, t: &Timing) -> Time {
        // The space counts from when the medium, physical or virtual, became idle.
        let idle_since = self.idle_since.max(self.nav_until.min(now));
        (idle_since + self.interframe(category, t)).max(now)
    }

    /// Lets the backoff follow the state of the medium.
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

    /// Physical and virtual carrier sense, and no exchange of this station's own.
    #[inline]
    pub(super) fn medium_idle(&self, now: Time) -> bool {
        !self.receiver.busy() && self.exchange == Exchange::Idle && self.nav_until <= now
    }

    /// Extends the NAV; false if it was longer already.
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

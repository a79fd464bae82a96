//! Frames of other stations: their departure, their start and their end at this station, whatever
//! their destination.
//!
//! Source: IEEE Std 802.11-1999, 9.2.3.4 (EIFS); profile `ns2`: ns-2.35 as measured.
//! [`crate::mac::arrivals`] explains how processing is deferred to the next event of the station
//! itself.

use super::{Action, Dcf, EndingFrame};
use crate::mac::arrivals::{Arrival, LockedFrame, OrderedTime};
use crate::mac::timing::Timing;
use crate::packet::Packet;
use crate::radio::frame::{FrameEnd, FrameStart};
use core::hint::select_unpredictable;
use meshpace_core::{Duration, Time};

impl<P: Packet> Dcf<P> {
    /// Announces a frame that leaves its sender `now` and arrives at this station later. Returns
    /// whether [`Dcf::next_wakeup`] may change. The function is inlined because it is called for
    /// every station that senses the frame: otherwise the arrival would be passed in memory, which
    /// costs as much as the rest of the function.
    #[inline(always)]
    pub fn on_departure(&mut self, now: OrderedTime, arrival: Arrival, t: &Timing) -> bool {
        // The condition is one branch instead of two, because the branch is often mispredicted.
        if self.single_arrival & self.next_arrival.is_over(now.time()) {
            let passed = self.next_arrival.take();
            self.process_whole_frame(passed, t);
            self.next_arrival.replace(arrival);
        } else if self.next_arrival.first().is_none() {
            self.next_arrival.replace(arrival);
        } else {
            self.process_arrivals(now, t);
            self.has_later_arrivals |= self.next_arrival.push(arrival, &mut self.later_arrivals);
            self.update_single_arrival();
        }
        self.backoff.busy()
    }

    /// Processes the frames that begin or end at this station before `now`.
    #[inline]
    pub fn catch_up(&mut self, now: OrderedTime, t: &Timing) {
        if self.next_arrival.begins() < now || self.locked.is_some() && self.receiver.busy_until() <= now.time() {
            self.process_arrivals(now, t);
            self.update_single_arrival();
        }
        self.follow_nav(now.time(), t);
    }

    /// Processes a whole frame for another station. No other frame arrived in its time.
    #[inline]
    pub(super) fn process_whole_frame(&mut self, frame: Arrival, t: &Timing) {
        debug_assert!(!frame.is_notified);
        let end = frame.frame.end;
        let decoded = self.receive_whole(&frame, t);
        self.end_foreign_frame(end, decoded, frame.nav_ns, t);
        if self.backoff.busy() {
            self.sense(end, t);
        }
    }

    /// Processes the start and the reception of a frame that is the only one in its time, but not
    /// its end. Returns whether the frame is decoded.
    #[inline]
    fn receive_whole(&mut self, frame: &Arrival, t: &Timing) -> bool {
        if self.backoff.busy() {
            self.follow_nav(frame.start, t);
            self.pause_backoff(frame.start, t);
        }
        self.missed_start = frame.start < self.transmitting_until;
        frame.frame.decodable & !self.missed_start
    }

    /// Updates NAV and EIFS at the end of a frame for another station.
    #[inline]
    fn end_foreign_frame(&mut self, end: Time, decoded: bool, nav_ns: u32, t: &Timing) {
        if t.rules.error_sets_nav {
            if end >= self.transmitting_until {
                // Whether a frame can be decoded depends on its sender. A branch would be
                // mispredicted every other time.
                let span = select_unpredictable(decoded, Duration(u64::from(nav_ns)), t.eifs);
                self.nav_until = self.nav_until.max(end + span);
            }
        } else if self.end_reception(end, decoded, t) && decoded && nav_ns > 0 {
            self.set_nav(end, Duration(u64::from(nav_ns)));
        }
    }

    /// Processes the starts of announced frames, and the ends of frames for other stations, before
    /// `now`.
    pub(super) fn process_arrivals(&mut self, now: OrderedTime, t: &Timing) {
        if t.edca { self.process_with_categories(now, t) } else { self.process::<false>(now, t) }
    }

    #[cold]
    #[inline(never)]
    fn process_with_categories(&mut self, now: OrderedTime, t: &Timing) {
        self.process::<true>(now, t);
    }

    /// Implements `process_arrivals` with categories or without.
    #[inline(always)]
    fn process<const EDCA: bool>(&mut self, now: OrderedTime, t: &Timing) {
        loop {
            let begins = self.next_arrival.begins();
            match self.locked {
                Some(locked)
                    if !locked.is_notified
                        && OrderedTime::end(self.receiver.busy_until(), locked.sender) < begins.min(now) =>
                {
                    self.on_foreign_end(locked, t);
                }
                _ if begins < now => {
                    let arrival = if self.has_later_arrivals {
                        let first = self.next_arrival.pop(&mut self.later_arrivals);
                        self.has_later_arrivals = !self.later_arrivals.is_empty();
                        first
                    } else {
                        self.next_arrival.take()
                    };
                    self.on_frame_start::<EDCA>(arrival, t);
                }
                _ => return,
            }
        }
    }

    /// Updates `single_arrival`. Called after each change of a field on which it depends.
    #[inline]
    pub(super) fn update_single_arrival(&mut self) {
        self.single_arrival =
            self.locked.is_none() && !self.has_later_arrivals && !self.nav_provisional && self.receiver.is_first_lock();
    }

    /// Handles the start of a frame.
    #[inline(always)]
    fn on_frame_start<const EDCA: bool>(&mut self, arrival: Arrival, t: &Timing) {
        let (now, frame) = (arrival.start, arrival.frame);
        self.follow_nav(now, t);
        if EDCA {
            self.follow_nav_parked(now, t);
        }
        let transmitting = now < self.transmitting_until;
        match self.receiver.on_start(now, frame, transmitting) {
            FrameStart::Locked => {
                self.missed_start = transmitting;
                if self.nav_provisional {
                    self.nav_provisional = false;
                    if now < self.nav_until {
                        self.nav_until = self.nav_beyond;
                    }
                }
                self.sense_onset(now, t);
            }
            FrameStart::Sensed => self.sense_onset(now, t),
            FrameStart::Ignored => {
                if t.rules.ignored_sets_nav {
                    self.set_nav(now, t.duration_field(t.eifs + frame.end.since(now)));
                }
            }
            FrameStart::Collided => self.missed_start &= transmitting,
            FrameStart::Interference => {}
            FrameStart::BecameIdle => {
                self.idle_since = now;
                self.sense(now, t);
            }
        }
        if self.receiver.holds(frame.id) {
            self.locked = Some(LockedFrame::from(&arrival));
        } else if EDCA {
            self.sense_parked(now, false, t);
        }
    }

    /// Handles the end of a frame for another station that the receiver has locked onto.
    pub(super) fn on_foreign_end(&mut self, frame: LockedFrame, t: &Timing) {
        let now = self.receiver.busy_until();
        self.locked = None;
        self.follow_nav(now, t);
        let Some(outcome) = self.receiver.end_locked() else { return };
        self.end_foreign_frame(now, outcome == FrameEnd::Decoded, frame.nav_ns, t);
        self.sense(now, t);
    }

    /// Updates the state at the end of a received frame, decoded or not. Returns false if this
    /// station is transmitting and does not notice the frame.
    #[inline]
    pub(super) fn end_reception(&mut self, now: Time, decoded: bool, t: &Timing) -> bool {
        if !t.rules.error_sets_nav {
            self.idle_since = now;
        }
        if now < self.transmitting_until {
            return false;
        }
        if decoded {
            self.after_error = false;
        } else if t.rules.error_sets_nav {
            self.set_nav(now, t.eifs);
        } else {
            // 9.2.3.4 applies to frames whose reception the PHY has begun.
            self.after_error |= !self.missed_start;
        }
        true
    }

    /// True if transmission `id`, which ends now, has been received without error.
    pub fn decodes(&self, now: Time, id: u32) -> bool {
        now >= self.transmitting_until && self.receiver.decodes(now, id)
    }

    /// Counts a collision: a frame for this station that was lost to another frame, and not to
    /// noise or to a transmission of this station.
    fn count_collision(&mut self, now: Time, frame_end: &EndingFrame<'_, P>, locked: bool, outcome: Option<FrameEnd>) {
        if frame_end.frame.to != self.me {
            return;
        }
        let lost = match outcome {
            Some(FrameEnd::Collided) => true,
            Some(FrameEnd::Decoded | FrameEnd::Damaged) => false,
            // The receiver was locked onto another frame, or another frame destroyed the preamble.
            Some(FrameEnd::BecameIdle) | None => !locked && self.receiver.could_detect(frame_end.power),
        };
        let started = now.0.saturating_sub(frame_end.frame.air_time.0);
        self.collisions += u64::from(lost && self.transmitting_until.0 <= started);
    }

    /// Handles the end of a frame for which the station requested a notification
    /// ([`Arrival::is_notified`]).
    // The attribute is needed because the function is called at one place of a generic engine, of
    // which there are two instances. The compiler would not inline it by itself.
    #[inline(always)]
    pub fn on_frame_end(&mut self, now: Time, frame_end: EndingFrame<'_, P>, t: &Timing) -> Action<P> {
        let outcome = if self.single_arrival && self.next_arrival.first_is(frame_end.id) {
            let frame = self.next_arrival.take();
            if self.receive_whole(&frame, t) { FrameEnd::Decoded } else { FrameEnd::Damaged }
        } else {
            self.catch_up(OrderedTime::end(now, frame_end.frame.from), t);
            if t.edca {
                self.follow_nav_parked(now, t);
            }
            let locked = self.receiver.holds(frame_end.id);
            let outcome = if frame_end.mpdus.is_empty() {
                self.receiver.on_end(now, frame_end.id, frame_end.power)
            } else {
                self.end_aggregate(now, &frame_end)
            };
            self.count_collision(now, &frame_end, locked, outcome);
            let Some(outcome) = outcome else { return Action::None };
            if locked {
                self.locked = None;
            }
            outcome
        };
        let mut action = Action::None;
        let decoded = outcome == FrameEnd::Decoded;
        if outcome == FrameEnd::BecameIdle {
            self.idle_since = now;
        } else if self.end_reception(now, decoded, t) && decoded {
            action = self.on_decoded(now, frame_end.frame, t);
        }
        self.sense(now, t);
        self.update_single_arrival();
        action
    }
}

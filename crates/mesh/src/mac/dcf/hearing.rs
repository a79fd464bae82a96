//! Frames of other stations: their departure, their start and their end at this station, whomever they are for.
//!
//! Source: IEEE Std 802.11-1999, 9.2.3.4 (EIFS); profile `ns2`: ns-2.35 as measured. How processing is deferred to the
//! station's next own event: [`crate::mac::arrivals`].

use super::{Action, Dcf, Heard};
use crate::mac::arrivals::{Arrival, LockedFrame, OrderedTime};
use crate::mac::timing::Timing;
use crate::packet::Packet;
use crate::radio::frame::{FrameEnd, FrameStart};
use core::hint::select_unpredictable;
use meshpace_core::{Duration, Time};

impl<P: Packet> Dcf<P> {
    /// A frame leaves its sender `now`; it arrives here later. Returns whether that may move
    /// [`Dcf::next_wakeup`]. It is called for every station that senses the frame: a call that is not inlined hands the arrival over in
    /// memory, which costs as much as the rest.
    #[inline(always)]
    pub fn on_departure(&mut self, now: OrderedTime, arrival: Arrival, t: &Timing) -> bool {
        // One branch, which is often guessed wrong, and not two.
        if self.single_arrival & self.next_arrival.is_over(now.time()) {
            let passed = self.next_arrival.take();
            self.pass_by(passed, t);
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

    /// Processes the frames that begin or end here before `now`.
    #[inline]
    pub fn catch_up(&mut self, now: OrderedTime, t: &Timing) {
        if self.next_arrival.begins() < now || self.locked.is_some() && self.receiver.busy_until() <= now.time() {
            self.process_arrivals(now, t);
            self.update_single_arrival();
        }
        self.follow_nav(now.time(), t);
    }

    /// Processes a whole frame for another station, the only one that arrived in its time.
    #[inline]
    pub(super) fn pass_by(&mut self, frame: Arrival, t: &Timing) {
        debug_assert!(!frame.is_notified);
        let end = frame.frame.end;
        let decoded = self.receive_whole(&frame, t);
        self.end_foreign_frame(end, decoded, frame.nav_ns, t);
        if self.backoff.busy() {
            self.sense(end, t);
        }
    }

    /// Processes the start and the reception of a frame that is the only one in its time, all but its end. Returns whether it is
    /// decoded.
    #[inline]
    fn receive_whole(&mut self, frame: &Arrival, t: &Timing) -> bool {
        if self.backoff.busy() {
            self.follow_nav(frame.start, t);
            self.pause_backoff(frame.start, t);
        }
        self.missed_start = frame.start < self.transmitting_until;
        frame.frame.decodable & !self.missed_start
    }

    /// Processes the end of a frame for another station: NAV and EIFS.
    #[inline]
    fn end_foreign_frame(&mut self, end: Time, decoded: bool, nav_ns: u32, t: &Timing) {
        if t.rules.error_sets_nav {
            if end >= self.transmitting_until {
                // Whether a frame can be decoded depends on who sent it: a branch would be guessed wrong every other time.
                let span = select_unpredictable(decoded, Duration(u64::from(nav_ns)), t.eifs);
                self.nav_until = self.nav_until.max(end + span);
            }
        } else if self.end_reception(end, decoded, t) && decoded && nav_ns > 0 {
            self.set_nav(end, Duration(u64::from(nav_ns)));
        }
    }

    pub(super) fn process_arrivals(&mut self, now: OrderedTime, t: &Timing) {
        if t.edca { self.process_with_categories(now, t) } else { self.process::<false>(now, t) }
    }

    #[cold]
    #[inline(never)]
    fn process_with_categories(&mut self, now: OrderedTime, t: &Timing) {
        self.process::<true>(now, t);
    }

    /// As [`Dcf::process_arrivals`], with categories or without.
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

    /// Updates `single_arrival`: after each change of what it depends on.
    #[inline]
    pub(super) fn update_single_arrival(&mut self) {
        self.single_arrival =
            self.locked.is_none() && !self.has_later_arrivals && !self.nav_provisional && self.receiver.is_first_lock();
    }

    /// A frame begins to arrive.
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
                    self.set_nav(now, t.field(t.eifs + frame.end.since(now)));
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

    /// A frame for somebody else ends that the receiver has locked.
    pub(super) fn on_foreign_end(&mut self, frame: LockedFrame, t: &Timing) {
        let now = self.receiver.busy_until();
        self.locked = None;
        self.follow_nav(now, t);
        let Some(outcome) = self.receiver.end_locked() else { return };
        self.end_foreign_frame(now, outcome == FrameEnd::Decoded, frame.nav_ns, t);
        self.sense(now, t);
    }

    /// Something that was received, decoded or not, has ended. False if this station is on the air itself and does not notice.
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
            // 9.2.3.4 counts what the PHY began to receive.
            self.after_error |= !self.missed_start;
        }
        true
    }

    /// True if transmission `id`, which ends now, has been received without error.
    pub fn decodes(&self, now: Time, id: u32) -> bool {
        now >= self.transmitting_until && self.receiver.decodes(now, id)
    }

    /// Counts a frame for this station that was lost to another one, not to a transmission of its own nor to noise.
    fn count_collision(&mut self, now: Time, heard: &Heard<'_, P>, locked: bool, outcome: Option<FrameEnd>) {
        if heard.frame.to != self.me {
            return;
        }
        let lost = match outcome {
            Some(FrameEnd::Collided) => true,
            Some(FrameEnd::Decoded | FrameEnd::Damaged) => false,
            // The receiver was with another frame, or that one hid the preamble.
            Some(FrameEnd::BecameIdle) | None => !locked && self.receiver.could_detect(heard.power),
        };
        let started = now.0.saturating_sub(heard.frame.air_time.0);
        self.collisions += u64::from(lost && self.transmitting_until.0 <= started);
    }

    /// A frame ends here for which the station asked to be notified ([`Arrival::is_notified`]).
    // An engine calls it at one place. The compiler sees two engines and would not inline it by itself.
    #[inline(always)]
    pub fn on_frame_end(&mut self, now: Time, heard: Heard<'_, P>, t: &Timing) -> Action<P> {
        let outcome = if self.single_arrival && self.next_arrival.first_is(heard.id) {
            let frame = self.next_arrival.take();
            if self.receive_whole(&frame, t) { FrameEnd::Decoded } else { FrameEnd::Damaged }
        } else {
            self.catch_up(OrderedTime::end(now, heard.frame.from), t);
            if t.edca {
                self.follow_nav_parked(now, t);
            }
            let locked = self.receiver.holds(heard.id);
            let outcome = if heard.mpdus.is_empty() {
                self.receiver.on_end(now, heard.id, heard.power)
            } else {
                self.end_aggregate(now, &heard)
            };
            self.count_collision(now, &heard, locked, outcome);
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
            action = self.on_decoded(now, heard.frame, t);
        }
        self.sense(now, t);
        self.update_single_arrival();
        action
    }
}

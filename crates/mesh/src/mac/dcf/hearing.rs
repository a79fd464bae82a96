//! Frames that pass by: when they leave their sender, begin and end here, whomever they are for.
//!
//! Source: IEEE Std 802.11-1999, 9.2.3.4 (EIFS); profile `ns2`: ns-2.35 as measured. What is put off until the station is
//! next touched is the business of [`crate::mac::arrivals`].

use super::{Action, Dcf, Heard};
use crate::mac::arrivals::{Arrival, Kept, Moment};
use crate::mac::config::MacProfile;
use crate::mac::timing::Timing;
use crate::packet::Packet;
use crate::radio::reception::{FrameEnd, FrameStart};
use core::hint::select_unpredictable;
use meshpace_core::{Duration, Time};

impl<P: Packet> Dcf<P> {
    /// A frame leaves its sender `now` and will arrive here, not before. Returns whether that may move
    /// [`Dcf::next_wakeup`].
    #[inline]
    pub fn on_departure(&mut self, now: Moment, arrival: Arrival, t: &Timing) -> bool {
        // One branch, which is often guessed wrong, and not two.
        if self.calm & self.underway.is_over(now.time()) {
            let passed = self.underway.take();
            self.pass(passed, t);
            self.underway.replace(arrival);
        } else if self.underway.first().is_none() {
            self.underway.replace(arrival);
        } else {
            self.live_through(now, t);
            self.crowded |= self.underway.push(arrival, &mut self.others);
            self.note_calm();
        }
        self.backoff.busy()
    }

    /// Lets the station live through what begins and ends here before `now`.
    #[inline]
    pub fn catch_up(&mut self, now: Moment, t: &Timing) {
        if self.underway.begins() < now || self.kept.is_some() && self.receiver.busy_until() <= now.time() {
            self.live_through(now, t);
            self.note_calm();
        }
        self.follow_nav(now.time(), t);
    }

    /// What a frame for somebody else does to a station that is calm all the time.
    #[inline]
    pub(super) fn pass(&mut self, frame: Arrival, t: &Timing) {
        debug_assert!(!frame.is_told);
        let end = frame.frame.end;
        let decoded = self.take_in(&frame, t);
        self.pass_on(end, decoded, frame.nav_ns, t);
        if self.backoff.busy() {
            self.sense(end, t);
        }
    }

    /// A frame arrives while the station is calm, from its first bit to its last: all but what comes of its end. Whether it
    /// is decoded.
    #[inline]
    fn take_in(&mut self, frame: &Arrival, t: &Timing) -> bool {
        if self.backoff.busy() {
            self.follow_nav(frame.start, t);
            self.pause_backoff(frame.start, t);
        }
        self.missed_start = frame.start < self.transmitting_until;
        frame.frame.decodable & !self.missed_start
    }

    /// What the end of a frame for somebody else does to the NAV.
    #[inline]
    fn pass_on(&mut self, end: Time, decoded: bool, nav_ns: u32, t: &Timing) {
        match t.profile {
            MacProfile::Ns2 => {
                if end >= self.transmitting_until {
                    // Whether a frame can be decoded depends on who sent it: a branch would be guessed wrong every other time.
                    let span = select_unpredictable(decoded, Duration(u64::from(nav_ns)), t.eifs);
                    self.nav_until = self.nav_until.max(end + span);
                }
            }
            MacProfile::Ieee => {
                if self.end_reception(end, decoded, t) && decoded && nav_ns > 0 {
                    self.set_nav(end, Duration(u64::from(nav_ns)));
                }
            }
        }
    }

    pub(super) fn live_through(&mut self, now: Moment, t: &Timing) {
        loop {
            let begins = self.underway.begins();
            match self.kept {
                Some(kept)
                    if !kept.is_told && Moment::end(self.receiver.busy_until(), kept.sender) < begins.min(now) =>
                {
                    self.on_foreign_end(kept, t);
                }
                _ if begins < now => {
                    let arrival = if self.crowded {
                        let first = self.underway.pop(&mut self.others);
                        self.crowded = !self.others.is_empty();
                        first
                    } else {
                        self.underway.take()
                    };
                    self.on_frame_start(arrival, t);
                }
                _ => return,
            }
        }
    }

    /// Notes whether the station is calm: after whatever may have changed it.
    #[inline]
    pub(super) fn note_calm(&mut self) {
        self.calm = self.kept.is_none() && !self.crowded && !self.nav_provisional && self.receiver.keeps_one();
    }

    /// A frame begins to arrive.
    pub(super) fn on_frame_start(&mut self, arrival: Arrival, t: &Timing) {
        let (now, frame) = (arrival.start, arrival.frame);
        self.follow_nav(now, t);
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
                if t.profile == MacProfile::Ns2 {
                    self.set_nav(now, t.field(t.eifs + frame.end.since(now)));
                }
            }
            FrameStart::Collided => self.missed_start &= transmitting,
            FrameStart::Interference => {}
        }
        if self.receiver.keeps(frame.id) {
            self.kept = Some(Kept::from(&arrival));
        }
    }

    /// A frame for somebody else ends that the receiver has kept.
    pub(super) fn on_foreign_end(&mut self, frame: Kept, t: &Timing) {
        let now = self.receiver.busy_until();
        self.kept = None;
        self.follow_nav(now, t);
        let Some(outcome) = self.receiver.end_kept() else { return };
        self.pass_on(now, outcome == FrameEnd::Decoded, frame.nav_ns, t);
        self.sense(now, t);
    }

    /// Something that was received, decoded or not, has ended. False if this station is on the air itself and does not notice.
    #[inline]
    pub(super) fn end_reception(&mut self, now: Time, decoded: bool, t: &Timing) -> bool {
        if t.profile == MacProfile::Ieee {
            self.idle_since = now;
        }
        if now < self.transmitting_until {
            return false;
        }
        if decoded {
            self.after_error = false;
        } else if t.profile == MacProfile::Ns2 {
            self.set_nav(now, t.eifs);
        } else {
            // 9.2.3.4 counts what the PHY began to receive.
            self.after_error |= !self.missed_start;
        }
        true
    }

    /// Whether transmission `id`, which ends now, has been received without error.
    pub fn decodes(&self, now: Time, id: u32) -> bool {
        now >= self.transmitting_until && self.receiver.decodes(now, id)
    }

    /// A frame ends here that the station was to be told of.
    #[inline]
    pub fn on_frame_end(&mut self, now: Time, heard: Heard<'_, P>, t: &Timing) -> Action<P> {
        let outcome = if self.calm && self.underway.first_is(heard.id) {
            let frame = self.underway.take();
            if self.take_in(&frame, t) { FrameEnd::Decoded } else { FrameEnd::Damaged }
        } else {
            self.catch_up(Moment::end(now, heard.frame.from), t);
            let kept = self.receiver.keeps(heard.id);
            let Some(outcome) = self.receiver.on_end(now, heard.id, heard.power) else { return Action::None };
            if kept {
                self.kept = None;
            }
            outcome
        };
        let mut action = Action::None;
        let decoded = outcome == FrameEnd::Decoded;
        if outcome == FrameEnd::Quiet {
            self.idle_since = now;
        } else if self.end_reception(now, decoded, t) && decoded {
            action = self.on_decoded(now, heard.frame, t);
        }
        self.sense(now, t);
        self.note_calm();
        action
    }
}

//! Frames on their way to a station: told when they leave, lived through when the station is next touched.
//!
//! Stations have effect on each other only through frames, which take time to arrive; so only the order of what happens *at
//! one station* matters, and a [`Moment`] is a place in that order. What a frame for somebody else does to a station is
//! settled by the frame and the station alone, and nothing of it need be worked out before the station has something to
//! do. [`super::Dcf::on_departure`] notes the frame, [`super::Dcf::catch_up`] brings the station up to a moment.

use crate::radio::Arriving;
use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// A place in the order of what happens at one station: by time; at equal times frames end before timers fire, and timers
/// fire before frames begin (a station cannot sense in zero time); then by who sent the frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Moment {
    time: Time,
    order: u32,
}

/// Senders have 16 bits below these.
const TIMER: u32 = 1 << 16;
const START: u32 = 2 << 16;

impl Moment {
    /// After everything.
    pub const NEVER: Moment = Moment { time: Time::NEVER, order: u32::MAX };

    /// The end of a frame from `sender`.
    #[inline]
    pub const fn end(time: Time, sender: NodeId) -> Moment {
        Moment { time, order: sender.0 as u32 }
    }

    /// Whatever is neither end nor start of a frame.
    #[inline]
    pub const fn timer(time: Time) -> Moment {
        Moment { time, order: TIMER }
    }

    /// The start of a frame from `sender`.
    #[inline]
    pub const fn start(time: Time, sender: NodeId) -> Moment {
        Moment { time, order: START | sender.0 as u32 }
    }

    /// Its time.
    #[inline]
    pub const fn time(self) -> Time {
        self.time
    }
}

/// A frame on its way to a station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrival {
    /// When it begins to arrive. [`Time::NEVER`], as its end: there is no such frame.
    pub start: Time,
    /// What the receiver is told of it.
    pub frame: Arriving,
    /// Its duration field, ns: whole microseconds in 16 bits, so that it fits.
    pub nav_ns: u32,
    /// Who sent it.
    pub sender: NodeId,
    /// Whether its end is told by [`super::Dcf::on_frame_end`]. Must be so if it is for this station, or for all, or an RTS
    /// under `ieee` (which may *shorten* a NAV); never needed where it cannot be decoded.
    pub is_told: bool,
}

impl Arrival {
    const NONE: Arrival = Arrival {
        start: Time::NEVER,
        frame: Arriving { id: 0, power: 0.0, decodable: false, at_data_rate: false, end: Time::NEVER },
        nav_ns: 0,
        sender: NodeId(0),
        is_told: false,
    };

    #[inline]
    fn begins(&self) -> Moment {
        if self.start == Time::NEVER { Moment::NEVER } else { Moment::start(self.start, self.sender) }
    }
}

/// The frames that have not begun to arrive yet, as far as the station knows. There is rarely more than one: only stations
/// that begin within a propagation delay of each other make two.
#[derive(Clone, Debug)]
pub struct Underway {
    /// The one that begins first.
    first: Arrival,
}

/// All but the first frame of [`Underway`], which is kept where a processor has it at hand.
#[derive(Clone, Debug)]
pub struct Others {
    /// The one that begins first among them.
    next: Arrival,
    rest: Vec<Arrival>,
}

impl Default for Others {
    fn default() -> Self {
        Others { next: Arrival::NONE, rest: Vec::new() }
    }
}

impl Default for Underway {
    fn default() -> Self {
        Underway { first: Arrival::NONE }
    }
}

impl Underway {
    /// When the next frame begins.
    #[inline]
    pub fn begins(&self) -> Moment {
        self.first.begins()
    }

    /// The next frame, if there is one.
    #[inline]
    pub fn first(&self) -> Option<&Arrival> {
        (self.first.start != Time::NEVER).then_some(&self.first)
    }

    /// Whether there is a frame and the next one has ended before `now`.
    #[inline]
    pub fn is_over(&self, now: Time) -> bool {
        self.first.frame.end < now
    }

    /// Whether the next frame is transmission `id`.
    #[inline]
    pub fn first_is(&self, id: u32) -> bool {
        self.first.start != Time::NEVER && self.first.frame.id == id
    }

    /// Notes a frame in place of the only one, which is over.
    #[inline]
    pub fn replace(&mut self, arrival: Arrival) {
        self.first = arrival;
    }

    /// Notes one more frame. Whether there was one already, so that there are `others` now.
    #[inline]
    pub fn push(&mut self, arrival: Arrival, others: &mut Others) -> bool {
        if self.first.start == Time::NEVER {
            self.first = arrival;
            false
        } else {
            let (sooner, later) =
                if arrival.begins() < self.begins() { (arrival, self.first) } else { (self.first, arrival) };
            self.first = sooner;
            others.push(later);
            true
        }
    }

    /// Takes out the frame that begins first, which must be the only one.
    #[inline]
    pub fn take(&mut self) -> Arrival {
        let first = self.first;
        self.first.start = Time::NEVER;
        self.first.frame.end = Time::NEVER;
        first
    }

    /// Takes out the frame that begins first. There must be one.
    pub fn pop(&mut self, others: &mut Others) -> Arrival {
        core::mem::replace(&mut self.first, others.pop())
    }
}

/// What has to be kept of a frame while it holds the receiver, which knows the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its duration field, ns.
    pub nav_ns: u32,
    /// Who sent it.
    pub sender: NodeId,
    /// As in [`Arrival`].
    pub is_told: bool,
    /// Whether it is strong enough to be decoded on a quiet medium.
    pub decodable: bool,
}

impl From<&Arrival> for Kept {
    #[inline]
    fn from(arrival: &Arrival) -> Kept {
        let &Arrival { nav_ns, sender, is_told, frame: Arriving { decodable, .. }, .. } = arrival;
        Kept { nav_ns, sender, is_told, decodable }
    }
}

impl Others {
    fn push(&mut self, arrival: Arrival) {
        if self.is_empty() {
            self.next = arrival;
        } else if arrival.begins() < self.next.begins() {
            self.rest.push(core::mem::replace(&mut self.next, arrival));
        } else {
            self.rest.push(arrival);
        }
    }

    fn pop(&mut self) -> Arrival {
        let sooner = (0..self.rest.len()).min_by_key(|&place| self.rest[place].begins());
        core::mem::replace(&mut self.next, sooner.map_or(Arrival::NONE, |place| self.rest.swap_remove(place)))
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next.start == Time::NEVER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;

    fn arrival(sender: u16, start: u64) -> Arrival {
        Arrival { start: Time(start), sender: NodeId(sender), ..Arrival::NONE }
    }

    #[test]
    fn at_equal_times_frames_end_before_timers_and_timers_before_frames_begin() {
        let (t, a, b) = (Time(5), NodeId(1), NodeId(u16::MAX));
        let order = [
            Moment::start(Time(4), b),
            Moment::end(t, a),
            Moment::end(t, b),
            Moment::timer(t),
            Moment::start(t, a),
            Moment::start(t, b),
            Moment::end(Time(6), a),
            Moment::NEVER,
        ];
        assert!(order.is_sorted_by(|x, y| x < y), "{order:?}");
    }

    #[test]
    fn frames_begin_in_order_whatever_order_they_left_in() {
        let seed = 11;
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let (mut underway, mut others) = (Underway::default(), Others::default());
        let mut model: Vec<Arrival> = Vec::new();
        for step in 0..5_000u64 {
            if rng.below(2) == 0 {
                let arrival = arrival(rng.below(9) as u16, step + rng.below(9));
                if !model.iter().any(|a| a.begins() == arrival.begins()) {
                    model.push(arrival);
                    underway.push(arrival, &mut others);
                }
            } else if !model.is_empty() {
                model.sort_by_key(|a| a.begins());
                assert_eq!(underway.pop(&mut others), model.remove(0), "seed {seed} step {step}");
            }
            let first = model.iter().map(|a| a.begins()).min().unwrap_or(Moment::NEVER);
            assert_eq!(underway.begins(), first, "seed {seed} step {step}");
            assert_eq!(others.is_empty(), model.len() < 2, "seed {seed} step {step}");
        }
    }
}

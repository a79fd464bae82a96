//! Frames that are on their way to a station: announced when they leave their sender, processed later, at the station's own next event.
//!
//! Stations affect each other only through frames, which take time to arrive. So only the order of events *at one station*
//! matters, and an [`OrderedTime`] is a place in that order. The effect of a frame for another station (carrier sense, NAV,
//! EIFS) depends on the frame and on this station alone, so it can be computed later without a change of results.
//! [`super::Dcf::on_departure`] stores the frame, [`super::Dcf::catch_up`] processes all frames up to a given time.

use crate::radio::{Arriving, FrameRate};
use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// A time with its place among the events of one station: at equal times frames end before timers fire, and timers
/// fire before frames begin (a station cannot sense in zero time); then by who sent the frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OrderedTime {
    time: Time,
    order: u32,
}

/// Senders have 16 bits below these.
const TIMER: u32 = 1 << 16;
const START: u32 = 2 << 16;

impl OrderedTime {
    /// After everything.
    pub const NEVER: OrderedTime = OrderedTime { time: Time::NEVER, order: u32::MAX };

    /// The end of a frame from `sender`.
    #[inline]
    pub const fn end(time: Time, sender: NodeId) -> OrderedTime {
        OrderedTime { time, order: sender.0 as u32 }
    }

    /// An event that is neither end nor start of a frame.
    #[inline]
    pub const fn timer(time: Time) -> OrderedTime {
        OrderedTime { time, order: TIMER }
    }

    /// The start of a frame from `sender`.
    #[inline]
    pub const fn start(time: Time, sender: NodeId) -> OrderedTime {
        OrderedTime { time, order: START | sender.0 as u32 }
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
    /// Time at which it begins to arrive. [`Time::NEVER`], as its end: there is no such frame.
    pub start: Time,
    /// The frame as the receiver learns of it.
    pub frame: Arriving,
    /// Its duration field, ns: whole microseconds in 16 bits, so that it fits.
    pub nav_ns: u32,
    /// Its sender.
    pub sender: NodeId,
    /// True if [`super::Dcf::on_frame_end`] will be called for its end. Required if it is for this station, or for all, or an RTS
    /// under `ieee` (which may *shorten* a NAV); never needed where it cannot be decoded.
    pub is_notified: bool,
}

impl Arrival {
    const NONE: Arrival = Arrival {
        start: Time::NEVER,
        frame: Arriving { id: 0, power: 0.0, decodable: false, rate: FrameRate::BASIC, end: Time::NEVER },
        nav_ns: 0,
        sender: NodeId(0),
        is_notified: false,
    };

    #[inline]
    fn begins(&self) -> OrderedTime {
        if self.start == Time::NEVER { OrderedTime::NEVER } else { OrderedTime::start(self.start, self.sender) }
    }
}

/// The announced frame that begins to arrive first. There is rarely a second one ([`LaterArrivals`]): only stations that begin
/// to transmit within a propagation delay of each other make two.
#[derive(Clone, Debug)]
pub struct NextArrival {
    /// The one that begins first.
    first: Arrival,
}

/// The announced frames after [`NextArrival`], kept apart because they are rare: the first one lies on the station's first cache
/// lines.
#[derive(Clone, Debug)]
pub struct LaterArrivals {
    /// The one that begins first among them.
    next: Arrival,
    rest: Vec<Arrival>,
}

impl Default for LaterArrivals {
    fn default() -> Self {
        LaterArrivals { next: Arrival::NONE, rest: Vec::new() }
    }
}

impl Default for NextArrival {
    fn default() -> Self {
        NextArrival { first: Arrival::NONE }
    }
}

impl NextArrival {
    /// When the next frame begins.
    #[inline]
    pub fn begins(&self) -> OrderedTime {
        self.first.begins()
    }

    /// The next frame, if there is one.
    #[inline]
    pub fn first(&self) -> Option<&Arrival> {
        (self.first.start != Time::NEVER).then_some(&self.first)
    }

    /// True if there is a frame and the next one has ended before `now`.
    #[inline]
    pub fn is_over(&self, now: Time) -> bool {
        self.first.frame.end < now
    }

    /// True if the next frame is transmission `id`.
    #[inline]
    pub fn first_is(&self, id: u32) -> bool {
        self.first.start != Time::NEVER && self.first.frame.id == id
    }

    /// Stores a frame in place of the only one, which is over.
    #[inline]
    pub fn replace(&mut self, arrival: Arrival) {
        self.first = arrival;
    }

    /// Stores one more frame. Whether there was one already, so that there are `others` now.
    #[inline]
    pub fn push(&mut self, arrival: Arrival, later: &mut LaterArrivals) -> bool {
        if self.first.start == Time::NEVER {
            self.first = arrival;
            false
        } else {
            let (sooner, second) =
                if arrival.begins() < self.begins() { (arrival, self.first) } else { (self.first, arrival) };
            self.first = sooner;
            later.push(second);
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
    pub fn pop(&mut self, later: &mut LaterArrivals) -> Arrival {
        core::mem::replace(&mut self.first, later.pop())
    }
}

/// Properties, for the MAC, of the frame that the receiver has locked onto; the receiver knows the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockedFrame {
    /// Its duration field, ns.
    pub nav_ns: u32,
    /// Its sender.
    pub sender: NodeId,
    /// As in [`Arrival`].
    pub is_notified: bool,
    /// True if it is strong enough to be decoded on a quiet medium.
    pub decodable: bool,
}

impl From<&Arrival> for LockedFrame {
    #[inline]
    fn from(arrival: &Arrival) -> LockedFrame {
        let &Arrival { nav_ns, sender, is_notified, frame: Arriving { decodable, .. }, .. } = arrival;
        LockedFrame { nav_ns, sender, is_notified, decodable }
    }
}

impl LaterArrivals {
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

    /// True if there are none.
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
            OrderedTime::start(Time(4), b),
            OrderedTime::end(t, a),
            OrderedTime::end(t, b),
            OrderedTime::timer(t),
            OrderedTime::start(t, a),
            OrderedTime::start(t, b),
            OrderedTime::end(Time(6), a),
            OrderedTime::NEVER,
        ];
        assert!(order.is_sorted_by(|x, y| x < y), "{order:?}");
    }

    #[test]
    fn frames_begin_in_order_whatever_order_they_left_in() {
        let seed = 11;
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let (mut underway, mut others) = (NextArrival::default(), LaterArrivals::default());
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
            let first = model.iter().map(|a| a.begins()).min().unwrap_or(OrderedTime::NEVER);
            assert_eq!(underway.begins(), first, "seed {seed} step {step}");
            assert_eq!(others.is_empty(), model.len() < 2, "seed {seed} step {step}");
        }
    }
}

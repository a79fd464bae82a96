//! Frames on their way to a station. They are announced when they leave their sender, and processed
//! later, at the next event of the station itself.
//!
//! Stations affect each other only through frames, which take time to arrive. Only the order of
//! events *at one station* therefore matters, and an [`OrderedTime`] is a position in that order.
//! The effect of a frame for another station (carrier sense, NAV, EIFS) depends on the frame and on
//! this station alone, so it can be computed later without changing results.
//! [`super::Dcf::on_departure`] stores the frame; [`super::Dcf::catch_up`] processes all frames up
//! to a given time.

use crate::radio::{Arriving, FrameRate};
use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// Time together with its position among the events of one station. At equal times, ends of frames
/// come before timers, and timers before starts of frames, because a station cannot sense in zero
/// time. Ties of frames are ordered by sender.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OrderedTime {
    time: Time,
    order: u32,
}

/// Event class of a timer. The classes stand above the 16 bits of the sender's number.
const TIMER: u32 = 1 << 16;
/// Event class of the start of a frame.
const START: u32 = 2 << 16;

impl OrderedTime {
    /// Position after all events.
    pub const NEVER: OrderedTime = OrderedTime { time: Time::NEVER, order: u32::MAX };

    /// Position of the end of a frame from `sender`.
    #[inline]
    pub const fn end(time: Time, sender: NodeId) -> OrderedTime {
        OrderedTime { time, order: sender.0 as u32 }
    }

    /// Position of an event that is neither the end nor the start of a frame.
    #[inline]
    pub const fn timer(time: Time) -> OrderedTime {
        OrderedTime { time, order: TIMER }
    }

    /// Position of the start of a frame from `sender`.
    #[inline]
    pub const fn start(time: Time, sender: NodeId) -> OrderedTime {
        OrderedTime { time, order: START | sender.0 as u32 }
    }

    /// Time of the event.
    #[inline]
    pub const fn time(self) -> Time {
        self.time
    }
}

/// A frame on its way to a station.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrival {
    /// Time at which the frame begins to arrive. If start and end are [`Time::NEVER`], there is no
    /// frame.
    pub start: Time,
    /// Properties that the receiver needs.
    pub frame: Arriving,
    /// Duration field, in ns. The field has 16 bits of whole microseconds, so its value fits.
    pub nav_ns: u32,
    /// Station that sends the frame.
    pub sender: NodeId,
    /// True if the engine calls [`super::Dcf::on_frame_end`] at the end of the frame. Required if
    /// the frame is for this station or for all stations, and for an RTS under `ieee` (which may
    /// *shorten* a NAV). Never needed if the frame cannot be decoded.
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

/// The announced frame that begins to arrive first. A second announced frame is rare
/// ([`LaterArrivals`]): it occurs only if stations begin to transmit within a propagation delay of
/// each other.
#[derive(Clone, Debug)]
pub struct NextArrival {
    /// Frame that begins first; [`Arrival::NONE`] if no frame is announced.
    first: Arrival,
}

/// The announced frames after [`NextArrival`]. They are stored separately because they are rare, so
/// that the first frame lies on the first cache lines of the station.
#[derive(Clone, Debug)]
pub struct LaterArrivals {
    /// Frame that begins first among these.
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
    /// Time at which the next frame begins.
    #[inline]
    pub fn begins(&self) -> OrderedTime {
        self.first.begins()
    }

    /// Next frame; `None` if no frame is announced.
    #[inline]
    pub fn first(&self) -> Option<&Arrival> {
        (self.first.start != Time::NEVER).then_some(&self.first)
    }

    /// True if a frame is announced and the next one has ended before `now`.
    #[inline]
    pub fn is_over(&self, now: Time) -> bool {
        self.first.frame.end < now
    }

    /// True if the next frame is transmission `id`.
    #[inline]
    pub fn first_is(&self, id: u32) -> bool {
        self.first.start != Time::NEVER && self.first.frame.id == id
    }

    /// Stores a frame in place of the only announced frame, which has ended.
    #[inline]
    pub fn replace(&mut self, arrival: Arrival) {
        self.first = arrival;
    }

    /// Stores another frame. Returns true if a frame was announced before, so that `later` holds at
    /// least one now.
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

    /// Removes and returns the frame that begins first, which must be the only one.
    #[inline]
    pub fn take(&mut self) -> Arrival {
        let first = self.first;
        self.first.start = Time::NEVER;
        self.first.frame.end = Time::NEVER;
        first
    }

    /// Removes and returns the frame that begins first. There must be one.
    pub fn pop(&mut self, later: &mut LaterArrivals) -> Arrival {
        core::mem::replace(&mut self.first, later.pop())
    }
}

/// Properties, for the MAC, of the frame that the receiver has locked onto. The receiver stores the
/// other properties.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockedFrame {
    /// Duration field, in ns.
    pub nav_ns: u32,
    /// Station that sends the frame.
    pub sender: NodeId,
    /// True if the end of the frame is notified, as in [`Arrival`].
    pub is_notified: bool,
    /// True if the power suffices for decoding on a quiet medium.
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

    /// True if no frame is stored.
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

//! Reception of frames as they begin and end, by one of two rules: [`FirstLock`] or [`Sinr`].
//!
//! The rule is chosen when the receiver is made. [`FirstLock`] is kept in place and the larger [`Sinr`] apart, so that the
//! simulations that need only the first pay for one comparison.

use super::first_lock::FirstLock;
use super::frame::{Arriving, FrameEnd, FrameStart};
use super::sinr::Sinr;
use alloc::boxed::Box;
use meshpace_core::Time;

/// A receiver.
#[derive(Clone, Debug)]
pub enum Receiver {
    /// The rule of ns-2.
    FirstLock(FirstLock),
    /// By the ratio of signal to noise and interference.
    Sinr(Box<Sinr>),
}

impl Default for Receiver {
    fn default() -> Self {
        Receiver::FirstLock(FirstLock::default())
    }
}

impl Receiver {
    /// True if the medium is busy: a frame holds the receiver, or energy is sensed.
    #[inline]
    pub fn busy(&self) -> bool {
        match self {
            Receiver::FirstLock(receiver) => receiver.busy(),
            Receiver::Sinr(receiver) => receiver.busy(),
        }
    }

    /// Time at which the medium will be idle if nothing else arrives: [`Time::ZERO`] if it is, [`Time::NEVER`] if only the ends of
    /// frames can tell.
    #[inline]
    pub fn busy_until(&self) -> Time {
        match self {
            Receiver::FirstLock(receiver) => receiver.busy_until(),
            Receiver::Sinr(receiver) if receiver.busy() => Time::NEVER,
            Receiver::Sinr(_) => Time::ZERO,
        }
    }

    /// Until when the frame being received can still be lost to one that begins; [`Time::ZERO`] if there is none.
    pub fn detecting_until(&self) -> Time {
        match self {
            Receiver::FirstLock(_) => Time::ZERO,
            Receiver::Sinr(receiver) => receiver.detecting_until(),
        }
    }

    /// True if the receiver is by the rule of ns-2, which keeps one frame and forgets the others.
    #[inline]
    pub fn is_first_lock(&self) -> bool {
        matches!(self, Receiver::FirstLock(_))
    }

    /// True if transmission `id` is the one frame that is locked.
    #[inline]
    pub fn holds(&self, id: u32) -> bool {
        matches!(self, Receiver::FirstLock(receiver) if receiver.holds(id))
    }

    /// The one frame that is kept ends; the receiver is free again. None if there is no such frame.
    #[inline]
    pub fn end_locked(&mut self) -> Option<FrameEnd> {
        match self {
            Receiver::FirstLock(receiver) if receiver.busy() => Some(receiver.release()),
            _ => None,
        }
    }

    /// A frame begins to arrive; `transmitting`: this node is on the air itself.
    #[inline]
    pub fn on_start(&mut self, now: Time, frame: Arriving, transmitting: bool) -> FrameStart {
        match self {
            Receiver::FirstLock(receiver) => {
                receiver.on_start(frame.id, frame.power, frame.end, transmitting || !frame.decodable)
            }
            Receiver::Sinr(receiver) => receiver.on_start(now, frame, transmitting),
        }
    }

    /// True if the preamble of a frame of `power` W that can be decoded is detected on a quiet medium.
    pub fn could_detect(&self, power: f64) -> bool {
        match self {
            Receiver::FirstLock(_) => true,
            Receiver::Sinr(receiver) => receiver.could_detect(power),
        }
    }

    /// This node begins to transmit: what it was receiving is lost.
    #[inline]
    pub fn on_own_transmission(&mut self) {
        match self {
            Receiver::FirstLock(receiver) => receiver.on_own_transmission(),
            Receiver::Sinr(receiver) => receiver.on_own_transmission(),
        }
    }

    /// True if transmission `id`, which ends now, will be found to be received without error.
    pub fn decodes(&self, now: Time, id: u32) -> bool {
        match self {
            Receiver::FirstLock(receiver) => receiver.decodes(id),
            Receiver::Sinr(receiver) => receiver.decodes(now, id),
        }
    }

    /// Time at which the frame being received ends, if there is one.
    pub fn held_until(&self) -> Option<Time> {
        match self {
            Receiver::FirstLock(receiver) => receiver.busy().then(|| receiver.busy_until()),
            Receiver::Sinr(receiver) => receiver.held_until(),
        }
    }

    /// Transmission `id`, an aggregate of MPDUs of so many bytes, ends, which arrived with `power` W. What it does to the station, and
    /// which MPDUs are received, a bit for each.
    pub fn on_aggregate_end(
        &mut self,
        now: Time,
        id: u32,
        power: f64,
        mpdus: impl Iterator<Item = u32> + Clone,
    ) -> (Option<FrameEnd>, u64) {
        match self {
            Receiver::FirstLock(receiver) => {
                let end = receiver.on_end(id);
                (end, if end == Some(FrameEnd::Decoded) { u64::MAX } else { 0 })
            }
            Receiver::Sinr(receiver) => {
                let received = receiver.receive_each(now, id, mpdus);
                let end = receiver.on_end(now, id, power);
                match received {
                    Some(0) | None => {
                        (end.map(|end| if end == FrameEnd::Decoded { FrameEnd::Damaged } else { end }), 0)
                    }
                    Some(received) => (end.map(|_| FrameEnd::Decoded), received),
                }
            }
        }
    }

    /// Transmission `id`, which arrived with `power` W, ends. None if nothing changes for the station.
    #[inline]
    pub fn on_end(&mut self, now: Time, id: u32, power: f64) -> Option<FrameEnd> {
        match self {
            Receiver::FirstLock(receiver) => receiver.on_end(id),
            Receiver::Sinr(receiver) => receiver.on_end(now, id, power),
        }
    }
}

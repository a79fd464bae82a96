//! What a receiver makes of frames that begin and end, by one of two rules: [`FirstLock`] or [`Sinr`].
//!
//! The rule is chosen when the receiver is made. [`FirstLock`] is kept in place and the larger [`Sinr`] apart, so that the
//! simulations that need only the first pay for one comparison.

use super::first_lock::FirstLock;
use super::sinr::Sinr;
use alloc::boxed::Box;
use meshpace_core::Time;

/// A frame as it begins to arrive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arriving {
    /// The transmission.
    pub id: u32,
    /// Its power here, W.
    pub power: f64,
    /// Whether it is strong enough to be decoded on a quiet medium.
    pub decodable: bool,
    /// Whether it is sent at the data rate (else at the basic rate).
    pub at_data_rate: bool,
    /// When it ends here.
    pub end: Time,
}

/// What the start of a frame did to the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameStart {
    /// The receiver was free and is now held by this frame.
    Locked,
    /// The frame being received is stronger by the capture ratio; this one is forgotten.
    Ignored,
    /// Both frames are lost.
    Collided,
    /// It is not received, but its energy has made the medium busy.
    Sensed,
    /// It only adds to the interference.
    Interference,
    /// It takes the preamble of the frame being received away, and is not received either; what energy there is leaves the medium
    /// idle.
    Quiet,
}

/// What became of a frame that ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameEnd {
    /// Received without error.
    Decoded,
    /// Too weak to decode, with bit errors, or spoilt by a transmission of this node that began or ended meanwhile.
    Damaged,
    /// Lost to an overlap with another frame: it would have been decoded on a quiet medium.
    Collided,
    /// Nothing was received; the medium has become idle with the end of its energy.
    Quiet,
}

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
    /// Whether the medium is busy: a frame holds the receiver, or energy is sensed.
    #[inline]
    pub fn busy(&self) -> bool {
        match self {
            Receiver::FirstLock(receiver) => receiver.busy(),
            Receiver::Sinr(receiver) => receiver.busy(),
        }
    }

    /// When the medium will be idle if nothing else arrives: [`Time::ZERO`] if it is, [`Time::NEVER`] if only the ends of
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

    /// Whether the receiver is by the rule of ns-2, which keeps one frame and forgets the others.
    #[inline]
    pub fn is_first_lock(&self) -> bool {
        matches!(self, Receiver::FirstLock(_))
    }

    /// Whether transmission `id` is the one frame that is locked.
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

    /// Whether the preamble of a frame of `power` W that can be decoded is detected on a quiet medium.
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

    /// Whether transmission `id`, which ends now, will be found to be received without error.
    pub fn decodes(&self, now: Time, id: u32) -> bool {
        match self {
            Receiver::FirstLock(receiver) => receiver.decodes(id),
            Receiver::Sinr(receiver) => receiver.decodes(now, id),
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

//! Receiver of a station. It follows one of two reception models: [`FirstLock`] or [`Sinr`].
//!
//! The model is chosen when the receiver is made. [`FirstLock`] is stored in place and the larger
//! [`Sinr`] on the heap, so that simulations with the first model pay only for one comparison.

use super::first_lock::FirstLock;
use super::frame::{Arriving, FrameEnd, FrameStart};
use super::sinr::Sinr;
use alloc::boxed::Box;
use meshpace_core::Time;

/// Receiver of a station.
#[derive(Clone, Debug)]
pub enum Receiver {
    /// Reception model of ns-2.
    FirstLock(FirstLock),
    /// Reception by the ratio of signal to noise and interference.
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

    /// Time at which the medium becomes idle if no other frame arrives. [`Time::ZERO`] if the
    /// medium is idle now; [`Time::NEVER`] if this is known only when frames end.
    #[inline]
    pub fn busy_until(&self) -> Time {
        match self {
            Receiver::FirstLock(receiver) => receiver.busy_until(),
            Receiver::Sinr(receiver) if receiver.busy() => Time::NEVER,
            Receiver::Sinr(_) => Time::ZERO,
        }
    }

    /// Time until which the frame being received can still be replaced by a frame that begins;
    /// [`Time::ZERO`] if no frame is being received, or if the model has no such phase.
    pub fn detecting_until(&self) -> Time {
        match self {
            Receiver::FirstLock(_) => Time::ZERO,
            Receiver::Sinr(receiver) => receiver.detecting_until(),
        }
    }

    /// True for the model of ns-2, which keeps one frame and forgets the others.
    #[inline]
    pub fn is_first_lock(&self) -> bool {
        matches!(self, Receiver::FirstLock(_))
    }

    /// True if transmission `id` is the frame that the receiver is locked to. Always false with
    /// [`Sinr`].
    #[inline]
    pub fn holds(&self, id: u32) -> bool {
        matches!(self, Receiver::FirstLock(receiver) if receiver.holds(id))
    }

    /// Handles the end of the locked frame and frees the receiver. `None` if no frame is locked,
    /// and always with [`Sinr`].
    #[inline]
    pub fn end_locked(&mut self) -> Option<FrameEnd> {
        match self {
            Receiver::FirstLock(receiver) if receiver.busy() => Some(receiver.release()),
            _ => None,
        }
    }

    /// Handles the start of a frame. `transmitting` is true if this node is itself transmitting.
    #[inline]
    pub fn on_start(&mut self, now: Time, frame: Arriving, transmitting: bool) -> FrameStart {
        match self {
            Receiver::FirstLock(receiver) => {
                receiver.on_start(frame.id, frame.power, frame.end, transmitting || !frame.decodable)
            }
            Receiver::Sinr(receiver) => receiver.on_start(now, frame, transmitting),
        }
    }

    /// True if the preamble of a decodable frame of `power` W would be detected on a quiet medium.
    pub fn could_detect(&self, power: f64) -> bool {
        match self {
            Receiver::FirstLock(_) => true,
            Receiver::Sinr(receiver) => receiver.could_detect(power),
        }
    }

    /// Handles the start of a transmission of this node, which destroys the frame being received.
    #[inline]
    pub fn on_own_transmission(&mut self) {
        match self {
            Receiver::FirstLock(receiver) => receiver.on_own_transmission(),
            Receiver::Sinr(receiver) => receiver.on_own_transmission(),
        }
    }

    /// True if transmission `id`, which ends now, is received without error.
    pub fn decodes(&self, now: Time, id: u32) -> bool {
        match self {
            Receiver::FirstLock(receiver) => receiver.decodes(id),
            Receiver::Sinr(receiver) => receiver.decodes(now, id),
        }
    }

    /// Time at which the frame being received ends; `None` if no frame is being received.
    pub fn held_until(&self) -> Option<Time> {
        match self {
            Receiver::FirstLock(receiver) => receiver.busy().then(|| receiver.busy_until()),
            Receiver::Sinr(receiver) => receiver.held_until(),
        }
    }

    /// Handles the end of transmission `id`, an aggregate whose MPDUs have the sizes `mpdus` in
    /// bytes and which arrived with `power` W. Returns the effect on the station, and a bit set of
    /// the received MPDUs.
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

    /// Handles the end of transmission `id`, which arrived with `power` W. `None` if nothing
    /// changes for the station.
    #[inline]
    pub fn on_end(&mut self, now: Time, id: u32, power: f64) -> Option<FrameEnd> {
        match self {
            Receiver::FirstLock(receiver) => receiver.on_end(id),
            Receiver::Sinr(receiver) => receiver.on_end(now, id, power),
        }
    }
}

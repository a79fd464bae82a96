//! Reception model of ns-2, in constant space: decides which of several overlapping frames a
//! receiver keeps.
//!
//! Source: ns-2.35 as measured. The first frame to arrive locks the receiver, even if it can only
//! be sensed. A later frame that is at least 10 dB weaker is ignored and forgotten. Any other later
//! frame destroys both, and the receiver stays busy until the longer of the two ends. The model has
//! neither noise nor a sum of interferers.

use super::frame::{FrameEnd, FrameStart};
use meshpace_core::Time;

/// Power ratio from which the frame being received survives a later frame: 10 dB.
pub const CAPTURE_RATIO: f64 = 10.0;

/// Receiver of the ns-2 model.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FirstLock {
    /// Transmission that holds the receiver.
    held: u32,
    /// Received power of that transmission, in W.
    power: f64,
    /// Time at which that transmission ends at this receiver. [`Time::ZERO`] while the receiver is
    /// free.
    end: Time,
    damaged: bool,
    collided: bool,
}

impl Default for FirstLock {
    fn default() -> Self {
        FirstLock { held: 0, power: 0.0, end: Time::ZERO, damaged: false, collided: false }
    }
}

impl FirstLock {
    /// True if a frame holds the receiver. (All frames end later than time zero.)
    #[inline]
    pub fn busy(&self) -> bool {
        self.end != Time::ZERO
    }

    /// Time at which the medium becomes idle if no other frame arrives; [`Time::ZERO`] if it is
    /// idle now.
    #[inline]
    pub fn busy_until(&self) -> Time {
        self.end
    }

    /// True if transmission `id` holds the receiver.
    #[inline]
    pub fn holds(&self, id: u32) -> bool {
        self.busy() && self.held == id
    }

    /// Handles the start of transmission `id`, which arrives with `power` W and ends at this
    /// receiver at `end`. `damaged` is true if the frame cannot be decoded because it is too weak
    /// or because this node is transmitting.
    #[inline]
    pub fn on_start(&mut self, id: u32, power: f64, end: Time, damaged: bool) -> FrameStart {
        if !self.busy() {
            *self = FirstLock { held: id, power, end, damaged, collided: false };
            FrameStart::Locked
        } else if self.power >= CAPTURE_RATIO * power {
            FrameStart::Ignored
        } else {
            self.collided = true;
            if end > self.end {
                self.held = id;
                self.power = power;
                self.end = end;
                self.damaged = damaged;
            }
            FrameStart::Collided
        }
    }

    /// Handles the start of a transmission of this node, which destroys the frame being received.
    #[inline]
    pub fn on_own_transmission(&mut self) {
        self.damaged = true;
    }

    /// True if transmission `id` holds the receiver and is undamaged so far.
    pub fn decodes(&self, id: u32) -> bool {
        self.holds(id) && !self.collided && !self.damaged
    }

    /// Handles the end of transmission `id`. The receiver is free afterwards. `None` if the
    /// transmission did not hold the receiver.
    #[inline]
    pub fn on_end(&mut self, id: u32) -> Option<FrameEnd> {
        self.holds(id).then(|| self.release())
    }

    /// Handles the end of the frame that holds the receiver.
    #[inline]
    pub fn release(&mut self) -> FrameEnd {
        self.end = Time::ZERO;
        if self.collided {
            FrameEnd::Collided
        } else if self.damaged {
            FrameEnd::Damaged
        } else {
            FrameEnd::Decoded
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::two_ray::received_power;

    #[test]
    fn a_later_frame_from_beyond_356_m_does_no_harm() {
        // Path loss has the fourth power, so a frame from 200 m survives interferers that start
        // later and are farther away than 200 * 10^(1/4) = 355.7 m.
        for (interferer, outcome) in [(355.0, FrameEnd::Collided), (356.5, FrameEnd::Decoded)] {
            let mut rx = FirstLock::default();
            assert_eq!(rx.on_start(1, received_power(200.0), Time(1000), false), FrameStart::Locked);
            rx.on_start(2, received_power(interferer), Time(900), false);
            assert_eq!(rx.on_end(2), None);
            assert_eq!(rx.on_end(1), Some(outcome));
            assert!(!rx.busy());
        }
    }

    #[test]
    fn a_late_stronger_frame_never_captures() {
        let mut rx = FirstLock::default();
        rx.on_start(1, received_power(500.0), Time(1000), true);
        assert_eq!(rx.on_start(2, received_power(50.0), Time(1500), false), FrameStart::Collided);
        assert_eq!(rx.on_end(1), None, "the longer frame now holds the receiver");
        assert_eq!(rx.on_end(2), Some(FrameEnd::Collided));
    }

    #[test]
    fn an_ignored_frame_is_forgotten() {
        let mut rx = FirstLock::default();
        rx.on_start(1, received_power(200.0), Time(1000), false);
        assert_eq!(rx.on_start(2, received_power(400.0), Time(5000), true), FrameStart::Ignored);
        assert_eq!(rx.on_end(1), Some(FrameEnd::Decoded));
        assert_eq!(rx.on_start(3, received_power(200.0), Time(4000), false), FrameStart::Locked);
    }

    #[test]
    fn transmitting_spoils_a_reception() {
        let mut rx = FirstLock::default();
        rx.on_start(1, received_power(200.0), Time(1000), false);
        rx.on_own_transmission();
        assert_eq!(rx.on_end(1), Some(FrameEnd::Damaged));
    }
}

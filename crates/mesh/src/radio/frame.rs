//! A frame at a receiver: what the receiver is told about it, and the effects that its start and its end may have there.
//!
//! All rules of reception use these types.

use meshpace_core::Time;

/// Which of the rates of the mesh a frame has. One byte, because it is handed to every station that senses the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRate(u8);

/// A [`FrameRate`] to match on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateKind {
    /// [`FrameRate::BASIC`].
    Basic,
    /// [`FrameRate::DATA`].
    Data,
    /// [`FrameRate::RESPONSE`].
    Response,
    /// [`FrameRate::chosen`], with the number of the rate.
    Chosen(u8),
    /// [`FrameRate::answering`], with the number of the rate of what is answered.
    Answering(u8),
}

/// Above the number of the rate, which has the bits below: the MCS, or [`FrameRate::NON_HT`] and the place in table 17-4 of 802.11a.
const CHOSEN: u8 = 0x40;
const ANSWERING: u8 = 0x80;

impl FrameRate {
    /// That of RTS, CTS and broadcasts.
    pub const BASIC: FrameRate = FrameRate(0);
    /// That of unicast data.
    pub const DATA: FrameRate = FrameRate(1);
    /// That of what acknowledges data.
    pub const RESPONSE: FrameRate = FrameRate(2);

    /// Number of the slowest rate in the format of 802.11a, above those of the MCS.
    pub const NON_HT: u8 = 16;

    /// That of data at the MCS, 0 to 15, that was chosen for it, or from [`FrameRate::NON_HT`] on at a rate of 802.11a.
    pub const fn chosen(mcs: u8) -> FrameRate {
        FrameRate(CHOSEN | mcs)
    }

    /// That of what acknowledges data at the rate of that number, which was chosen for it.
    pub const fn answering(mcs: u8) -> FrameRate {
        FrameRate(ANSWERING | mcs)
    }

    /// Its kind.
    #[inline]
    pub const fn kind(self) -> RateKind {
        match self.0 {
            0 => RateKind::Basic,
            1 => RateKind::Data,
            2 => RateKind::Response,
            rate if rate & ANSWERING == 0 => RateKind::Chosen(rate & !CHOSEN),
            rate => RateKind::Answering(rate & !ANSWERING),
        }
    }

    /// The rate of what answers a frame with this one, which is no RTS.
    #[inline]
    pub const fn answer(self) -> FrameRate {
        match self.kind() {
            RateKind::Chosen(mcs) | RateKind::Answering(mcs) => FrameRate::answering(mcs),
            RateKind::Basic | RateKind::Data | RateKind::Response => FrameRate::RESPONSE,
        }
    }
}

/// A frame as it begins to arrive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arriving {
    /// The transmission.
    pub id: u32,
    /// Its power here, W.
    pub power: f64,
    /// True if it is strong enough to be decoded on a quiet medium.
    pub decodable: bool,
    /// Its rate.
    pub rate: FrameRate,
    /// Time at which it ends here.
    pub end: Time,
}

/// Effect of a frame's start on the receiver.
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

/// Result of a frame that ends.
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

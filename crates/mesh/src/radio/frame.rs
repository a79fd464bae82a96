//! A frame at a receiver: what the receiver is told about it, and the effects that its start and its end may have there.
//!
//! All rules of reception use these types.

use meshpace_core::Time;

/// Which of the rates of the mesh a frame has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameRate {
    /// That of RTS, CTS and broadcasts.
    Basic,
    /// That of unicast data.
    Data,
    /// That of what acknowledges data.
    Response,
    /// Unicast data at the MCS that was chosen for it.
    Chosen(u8),
    /// What acknowledges that.
    Answering(u8),
}

impl FrameRate {
    /// The rate of what answers a frame with this one, which is no RTS.
    #[inline]
    pub fn answer(self) -> FrameRate {
        match self {
            FrameRate::Chosen(mcs) | FrameRate::Answering(mcs) => FrameRate::Answering(mcs),
            FrameRate::Basic | FrameRate::Data | FrameRate::Response => FrameRate::Response,
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
    /// Whether it is strong enough to be decoded on a quiet medium.
    pub decodable: bool,
    /// Its rate.
    pub rate: FrameRate,
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

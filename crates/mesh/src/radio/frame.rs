//! A frame at a receiver: what the receiver knows about it, and the effects that its start and its
//! end have.
//!
//! All reception models use these types.

use meshpace_core::Time;

/// Role of a frame, which selects one of the rates of the mesh. It is one byte, because it is
/// handed to every station that senses the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRate(u8);

/// Decoded form of a [`FrameRate`], for `match`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateKind {
    /// Rate [`FrameRate::BASIC`].
    Basic,
    /// Rate [`FrameRate::DATA`].
    Data,
    /// Rate [`FrameRate::RESPONSE`].
    Response,
    /// Rate [`FrameRate::chosen`], with the number of the rate.
    Chosen(u8),
    /// Rate [`FrameRate::answering`], with the number of the rate of the frame that is answered.
    Answering(u8),
}

/// Flag bit above the number of the rate. The lower bits hold the MCS, or [`FrameRate::NON_HT`]
/// plus the index in table 17-4 of 802.11a.
const CHOSEN: u8 = 0x40;
/// Flag bit of a rate of responses; the lower bits are those of [`CHOSEN`].
const ANSWERING: u8 = 0x80;

impl FrameRate {
    /// Rate of RTS, CTS and broadcasts.
    pub const BASIC: FrameRate = FrameRate(0);
    /// Rate of unicast data.
    pub const DATA: FrameRate = FrameRate(1);
    /// Rate of frames that acknowledge data.
    pub const RESPONSE: FrameRate = FrameRate(2);

    /// Number of the slowest rate in the format of 802.11a. These numbers follow those of the MCS.
    pub const NON_HT: u8 = 16;

    /// Rate that was chosen for a data frame: an MCS of 0 to 15, or a rate of 802.11a from
    /// [`FrameRate::NON_HT`] on.
    pub const fn chosen(mcs: u8) -> FrameRate {
        FrameRate(CHOSEN | mcs)
    }

    /// Rate of the acknowledgement of a data frame whose chosen rate has the number `mcs`.
    pub const fn answering(mcs: u8) -> FrameRate {
        FrameRate(ANSWERING | mcs)
    }

    /// Decodes the rate.
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

    /// Rate of the response to a frame with this rate. The frame must not be an RTS.
    #[inline]
    pub const fn answer(self) -> FrameRate {
        match self.kind() {
            RateKind::Chosen(mcs) | RateKind::Answering(mcs) => FrameRate::answering(mcs),
            RateKind::Basic | RateKind::Data | RateKind::Response => FrameRate::RESPONSE,
        }
    }
}

/// A frame at the time at which it begins to arrive.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arriving {
    /// Number of the transmission.
    pub id: u32,
    /// Received power at this station, in W.
    pub power: f64,
    /// True if the power suffices for decoding on a quiet medium.
    pub decodable: bool,
    /// Role that selects the rate.
    pub rate: FrameRate,
    /// Time at which the frame ends at this station.
    pub end: Time,
}

/// Effect of the start of a frame on the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameStart {
    /// The receiver was free and is now held by this frame.
    Locked,
    /// The frame being received is stronger by at least the capture ratio. This frame is forgotten.
    Ignored,
    /// Both frames are lost.
    Collided,
    /// The frame is not received, but its energy has made the medium busy.
    Sensed,
    /// The frame only adds to the interference.
    Interference,
    /// The frame destroys the preamble of the frame being received, and is not received either. The
    /// remaining energy is too low to be sensed, so that the medium becomes idle.
    BecameIdle,
}

/// Result of the end of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameEnd {
    /// The frame was received without error.
    Decoded,
    /// The frame was too weak to decode, had bit errors, or was destroyed by a transmission of this
    /// node that began or ended meanwhile.
    Damaged,
    /// The frame was lost because it overlapped with another frame. It would have been decoded on a
    /// quiet medium.
    Collided,
    /// No frame was received. The medium has become idle, because the energy of this frame has
    /// ended.
    BecameIdle,
}

//! Frames that stations transmit.
//!
//! Source: IEEE Std 802.11-1999, 7.2 (frame formats), 7.1.3.2 (duration field); IEEE Std
//! 802.11-2016, 9.3.1.8 and 9.3.1.9 (block ACK and its request), 9.7 (A-MPDU).

use crate::body::Body;
use crate::category::Category;
use crate::radio::FrameRate;
use meshpace_core::{Duration, NodeId};

/// Kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FrameKind {
    /// Request to send (RTS).
    Rts,
    /// Clear to send (CTS).
    Cts,
    /// Unicast or broadcast data.
    Data,
    /// Acknowledgement of one frame (ACK).
    Ack,
    /// Block ACK: acknowledges the MPDUs of an aggregate one by one.
    BlockAck = 5,
    /// Request for a block ACK.
    BlockAckReq = 6,
}

/// One MPDU of an aggregate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mpdu<P> {
    /// Sequence number, 12 bits.
    pub sequence: u16,
    /// Size in bytes: header, body and FCS.
    pub bytes: u32,
    /// True if this MPDU was transmitted before.
    pub retry: bool,
    /// Content of the MPDU.
    pub body: Body<P>,
}

/// A frame on the air. The MPDUs of an aggregate are stored separately
/// ([`super::EndingFrame::mpdus`]), so that this struct is plain data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame<P> {
    /// Kind of the frame.
    pub kind: FrameKind,
    /// Transmitting station. CTS and ACK do not carry it on the air, so observers and captures omit
    /// it for these frames.
    pub from: NodeId,
    /// Receiving station, or broadcast.
    pub to: NodeId,
    /// Size of the MPDU in bytes: header, body and FCS, without PLCP.
    pub bytes: u32,
    /// Rate of the frame.
    pub rate: FrameRate,
    /// Air time, including PLCP preamble and header.
    pub air_time: Duration,
    /// Duration field: how long the exchange continues after this frame.
    pub nav: Duration,
    /// Sequence number of a data frame, or of the first MPDU of an aggregate. In a block ACK, the
    /// first number of the bitmap. In a block ACK request, the number before which no MPDU will be
    /// sent any more.
    pub sequence: u16,
    /// True if this MPDU was transmitted before.
    pub retry: bool,
    /// Category of a data frame, a block ACK or a block ACK request. Each category has its own
    /// sequence numbers.
    pub category: Category,
    /// Content of a data frame. `None` for an aggregate and for other kinds of frames.
    pub body: Option<Body<P>>,
    /// Bitmap of a block ACK: a bit for each of the 64 sequence numbers from `sequence` on, the
    /// lowest bit first, set if the MPDU has arrived.
    pub bitmap: u64,
}

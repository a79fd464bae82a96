//! The frames that stations transmit.
//!
//! Source: IEEE Std 802.11-1999, 7.2 (frame formats), 7.1.3.2 (duration field); IEEE Std 802.11-2016, 9.3.1.8 and 9.3.1.9 (block ACK
//! and its request), 9.7 (A-MPDU).

use crate::body::Body;
use crate::category::Category;
use crate::radio::FrameRate;
use meshpace_core::{Duration, NodeId};

/// The kinds of frame a mesh station sends.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FrameKind {
    /// Request to send.
    Rts,
    /// Clear to send.
    Cts,
    /// Data, unicast or broadcast.
    Data,
    /// Acknowledgement.
    Ack,
    /// Acknowledgement of the MPDUs of an aggregate, one by one.
    BlockAck = 5,
    /// Asks for a block acknowledgement.
    BlockAckReq = 6,
}

/// One MPDU of an aggregate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Mpdu<P> {
    /// Its sequence number.
    pub sequence: u16,
    /// Its length in bytes: header, body, FCS.
    pub bytes: u32,
    /// True if it was on the air before.
    pub retry: bool,
    /// Its content.
    pub body: Body<P>,
}

/// A frame. Those of an aggregate lie beside it ([`super::Heard::mpdus`]), so that it is plain data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame<P> {
    /// Its kind.
    pub kind: FrameKind,
    /// The transmitter. CTS and ACK do not carry it on the air; observers and pcap leave it out there.
    pub from: NodeId,
    /// The receiver, or broadcast.
    pub to: NodeId,
    /// Length of the MPDU in bytes: header, body, FCS; without PLCP.
    pub bytes: u32,
    /// Its rate.
    pub rate: FrameRate,
    /// Time on the air, PLCP preamble and header included.
    pub air_time: Duration,
    /// The duration field: how long the exchange goes on after this frame.
    pub nav: Duration,
    /// Sequence number of a data frame, of the first MPDU of an aggregate. Where the bitmap of a block ACK begins; before what nothing
    /// will be sent any more, in a request for one.
    pub sequence: u16,
    /// True if this MPDU was on the air before.
    pub retry: bool,
    /// The category of a data frame, a block ACK or the request for one: each has its own sequence numbers.
    pub category: Category,
    /// Content of a data frame that is no aggregate.
    pub body: Option<Body<P>>,
    /// Of a block ACK: which MPDUs have arrived, a bit for each of 64 from `sequence` on, the lowest first.
    pub bitmap: u64,
}

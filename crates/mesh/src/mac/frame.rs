//! What goes on the air.
//!
//! Source: IEEE Std 802.11-1999, 7.2 (frame formats), 7.1.3.2 (duration field); IEEE Std 802.11-2016, 9.3.1.8 and 9.3.1.9 (block ACK
//! and its request), 9.7 (A-MPDU).

use crate::body::Body;
use crate::radio::FrameRate;
use alloc::boxed::Box;
use alloc::vec::Vec;
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
#[derive(Clone, PartialEq, Debug)]
pub struct Mpdu<P> {
    /// Its sequence number.
    pub sequence: u16,
    /// Its length in bytes: header, body, FCS.
    pub bytes: u32,
    /// Whether it was on the air before.
    pub retry: bool,
    /// What it carries.
    pub body: Body<P>,
}

/// What a frame of the block acknowledgement holds.
#[derive(Clone, PartialEq, Debug)]
pub enum BlockAckPart<P> {
    /// A-MPDU: several MPDUs with delimiters. The frame's length is that of all of it.
    Aggregate(Vec<Mpdu<P>>),
    /// Which MPDUs have arrived: the first sequence number, and a bit for each of 64 from it on, the lowest first.
    Received {
        /// The starting sequence number.
        start: u16,
        /// The bitmap.
        bitmap: u64,
    },
    /// Nothing before this sequence number will be sent any more.
    Start(u16),
}

/// A frame.
#[derive(Clone, PartialEq, Debug)]
pub struct Frame<P> {
    /// What it is.
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
    /// Sequence number of a data frame.
    pub sequence: u16,
    /// Whether this MPDU was on the air before.
    pub retry: bool,
    /// What a data frame carries that is no aggregate.
    pub body: Option<Body<P>>,
    /// What a frame of the block acknowledgement holds.
    pub block_ack: Option<Box<BlockAckPart<P>>>,
}

//! What goes on the air.
//!
//! Source: IEEE Std 802.11-1999, 7.2 (frame formats), 7.1.3.2 (duration field).

use crate::body::Body;
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
}

/// A frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Frame<P> {
    /// What it is.
    pub kind: FrameKind,
    /// The transmitter. CTS and ACK do not carry it on the air; observers and pcap leave it out there.
    pub from: NodeId,
    /// The receiver, or broadcast.
    pub to: NodeId,
    /// Length of the MPDU in bytes: header, body, FCS; without PLCP.
    pub bytes: u32,
    /// Whether it is sent at the data rate (else at the basic rate).
    pub at_data_rate: bool,
    /// Time on the air, PLCP preamble and header included.
    pub air_time: Duration,
    /// The duration field: how long the exchange goes on after this frame.
    pub nav: Duration,
    /// Sequence number of a data frame.
    pub sequence: u16,
    /// Whether this MPDU was on the air before.
    pub retry: bool,
    /// What a data frame carries.
    pub body: Option<Body<P>>,
}

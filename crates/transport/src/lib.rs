//! Transports without a world: each endpoint is told the time and what arrived, and asked what to send and when to be
//! woken.
//!
//! An endpoint never holds payload. It decides about ranges of a byte stream; whoever runs it slices real bytes, or, in
//! the simulator, has none. The caller's loop is: call any `on_*` method, then [`pump`] until there is nothing more to
//! transmit, then come back at the time it returned.
#![no_std]
extern crate alloc;

pub mod checksum;
pub mod config;
pub mod describe;
pub mod endpoint;
pub mod flags;
pub mod names;
pub mod output;
pub mod pacing;
pub mod ranges;
pub mod stats;
pub mod tcp;
pub mod tpa;
pub mod train;
pub mod udp;

pub use config::Config;
pub use endpoint::{Endpoint, Role};
pub use output::{Machine, Output, pump};
pub use stats::Stats;

use meshpace_core::Rate;

/// What the network knows about a packet that arrives.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Arrival {
    /// Hops the packet travelled; 0 if unknown.
    pub hops: u8,
    /// Whether a node on the way marked it "congestion experienced" (RFC 3168).
    pub ce: bool,
    /// Power of the last hop's frame in dBm, where the radio tells.
    pub received_power_dbm: Option<f32>,
}

/// What the routing table and the radio know about the path to the peer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathInfo {
    /// Hops to the peer, at least 1.
    pub hops: u8,
    /// Channel data rate.
    pub rate: Rate,
    /// Power at which the next hop is received, in dBm, where the radio tells.
    pub received_power_dbm: Option<f32>,
}

/// A transport packet: headers and the range it covers, never payload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Segment {
    /// A TCP segment.
    Tcp(tcp::Segment),
    /// A UDP datagram.
    Udp(udp::Datagram),
    /// A TPA segment.
    Tpa(tpa::Segment),
    /// A segment of a quiet train.
    Train(train::Segment),
}

impl Segment {
    /// Size of the IP packet in bytes: TCP 40 + payload (options cost no bytes in the simulator), UDP 20 + payload
    /// (ns-2 counts 20 bytes for IP and UDP together), TPA 40 + payload, a quiet train's 40 + payload + feedback.
    #[inline]
    pub fn size(&self) -> u32 {
        match self {
            Segment::Tcp(segment) => tcp::HEADER_BYTES + u32::from(segment.payload),
            Segment::Udp(datagram) => udp::HEADER_BYTES + u32::from(datagram.payload),
            Segment::Tpa(segment) => tpa::HEADER_BYTES + u32::from(segment.payload),
            Segment::Train(segment) => segment.size(),
        }
    }

    /// Whether a congested node may mark the packet instead of dropping it (ECT, RFC 3168).
    #[inline]
    pub fn is_ecn_capable(&self) -> bool {
        matches!(self, Segment::Tcp(segment) if segment.is_ecn_capable())
    }

    /// Payload bytes.
    #[inline]
    pub fn payload(&self) -> u32 {
        match self {
            Segment::Tcp(segment) => u32::from(segment.payload),
            Segment::Udp(datagram) => u32::from(datagram.payload),
            Segment::Tpa(segment) => u32::from(segment.payload),
            Segment::Train(segment) => u32::from(segment.payload),
        }
    }
}

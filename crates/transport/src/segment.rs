//! A packet of any transport.

use crate::flags::Flags;
use crate::{flush, tcp, tpa, train, udp};

/// A transport packet: its headers and the range of bytes it covers, without the payload.
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
    /// A segment of Flush.
    Flush(flush::Segment),
}

impl Segment {
    /// Size of the IP packet in bytes. TCP and TPA: 40 + payload (in the simulator TCP options take
    /// no bytes). UDP: 20 + payload (ns-2 counts 20 bytes for IP and UDP together). Quiet trains:
    /// 40 + payload + feedback. Flush: 40 + payload, and if it names gaps 4 more and 4 per gap.
    #[inline]
    pub fn size(&self) -> u32 {
        match self {
            Segment::Tcp(segment) => tcp::HEADER_BYTES + u32::from(segment.payload),
            Segment::Udp(datagram) => udp::HEADER_BYTES + u32::from(datagram.payload),
            Segment::Tpa(segment) => tpa::HEADER_BYTES + u32::from(segment.payload),
            Segment::Train(segment) => segment.size(),
            Segment::Flush(segment) => segment.size(),
        }
    }

    /// True if a congested node may mark the packet instead of dropping it (ECT, RFC 3168).
    #[inline]
    pub fn is_ecn_capable(&self) -> bool {
        match self {
            Segment::Tcp(segment) => segment.is_ecn_capable(),
            Segment::Train(segment) => segment.flags.has(Flags::ECT),
            Segment::Udp(_) | Segment::Tpa(_) | Segment::Flush(_) => false,
        }
    }

    /// Payload bytes.
    #[inline]
    pub fn payload(&self) -> u32 {
        match self {
            Segment::Tcp(segment) => u32::from(segment.payload),
            Segment::Udp(datagram) => u32::from(datagram.payload),
            Segment::Tpa(segment) => u32::from(segment.payload),
            Segment::Train(segment) => u32::from(segment.payload),
            Segment::Flush(segment) => u32::from(segment.payload),
        }
    }
}

//! Packet of the simulator: the IP header fields that matter here and a structured segment, without
//! payload bytes.

use meshpace_core::{FlowId, NodeId};
use meshpace_mesh::Packet;
use meshpace_mesh::mac::Category;
use meshpace_transport::Segment;

/// A transport segment in the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimPacket {
    /// Number of the packet within its run.
    pub id: u32,
    /// Node that created the packet.
    pub source: NodeId,
    /// Node to which the packet is addressed.
    pub destination: NodeId,
    /// Flow of the packet.
    pub flow: FlowId,
    /// Number of the connection within the flow, from 0.
    pub connection: u16,
    /// Time to live: number of remaining hops.
    pub ttl: u8,
    /// Number of hops so far.
    pub hops: u8,
    /// True if a node on the path has set the mark "congestion experienced".
    pub ce: bool,
    /// Code point of differentiated services.
    pub dscp: u8,
    /// Segment of the transport.
    pub segment: Segment,
}

impl Packet for SimPacket {
    #[inline]
    fn source(&self) -> NodeId {
        self.source
    }

    #[inline]
    fn destination(&self) -> NodeId {
        self.destination
    }

    #[inline]
    fn flow(&self) -> FlowId {
        self.flow
    }

    #[inline]
    fn size(&self) -> u32 {
        self.segment.size()
    }

    #[inline]
    fn id(&self) -> u32 {
        self.id
    }

    #[inline]
    fn hops(&self) -> u8 {
        self.hops
    }

    #[inline]
    fn count_hop(&mut self) {
        self.hops = self.hops.saturating_add(1);
    }

    #[inline]
    fn decrement_ttl(&mut self) -> bool {
        self.ttl = self.ttl.saturating_sub(1);
        self.ttl > 0
    }

    #[inline]
    fn ecn_capable(&self) -> bool {
        self.segment.is_ecn_capable()
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.ce = true;
    }

    #[inline]
    fn category(&self) -> Category {
        Category::of_dscp(self.dscp)
    }

    #[inline]
    fn is_pure_ack(&self) -> bool {
        !matches!(self.segment, Segment::Udp(_)) && self.segment.payload() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_at_most_64_bytes() {
        assert!(size_of::<SimPacket>() <= 64, "{}", size_of::<SimPacket>());
    }
}

//! The packet of the simulator: the fields of an IP header that matter here and a structured segment, without payload.

use meshpace_core::{FlowId, NodeId};
use meshpace_mesh::Packet;
use meshpace_mesh::mac::Category;
use meshpace_transport::Segment;

/// A transport segment under way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SimPacket {
    /// Number of the packet in its run.
    pub id: u32,
    /// The node that sent it.
    pub source: NodeId,
    /// The node it is for.
    pub destination: NodeId,
    /// Its flow.
    pub flow: FlowId,
    /// Number of its connection within the flow, from 0.
    pub connection: u16,
    /// Hops left.
    pub ttl: u8,
    /// Hops travelled.
    pub hops: u8,
    /// True if a node on the way marked it "congestion experienced".
    pub ce: bool,
    /// Its code point of differentiated services.
    pub dscp: u8,
    /// The transport's segment.
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

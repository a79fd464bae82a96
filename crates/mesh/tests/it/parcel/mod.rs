//! A packet of 1500 bytes from node 0 to node 1, for tests of one station.

use meshpace_core::{FlowId, NodeId};
use meshpace_mesh::Packet;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Parcel {
    pub id: u32,
    pub hops: u8,
}

impl Packet for Parcel {
    fn source(&self) -> NodeId {
        NodeId(0)
    }
    fn destination(&self) -> NodeId {
        NodeId(1)
    }
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn size(&self) -> u32 {
        1500
    }
    fn id(&self) -> u32 {
        self.id
    }
    fn hops(&self) -> u8 {
        self.hops
    }
    fn count_hop(&mut self) {
        self.hops += 1;
    }
    fn decrement_ttl(&mut self) -> bool {
        true
    }
}

//! The packet of the emulator: a real frame, with what the mesh needs to know about it.

use crate::frame::{self, Facts};
use meshpace_core::{FlowId, NodeId};
use meshpace_mesh::Packet;
use meshpace_mesh::mac::Category;
use std::rc::Rc;

/// A frame under way. Copies, of which the MAC makes some, share its bytes.
#[derive(Clone, Debug)]
pub struct CarriedFrame {
    bytes: Rc<[u8]>,
    /// What it says.
    pub facts: Facts,
    source: NodeId,
    destination: NodeId,
    flow: FlowId,
    id: u32,
    hops: u8,
    ttl: u8,
    is_marked: bool,
}

impl CarriedFrame {
    /// A frame that `source` sends to `destination`, number `id` of the run.
    pub fn new(bytes: &[u8], facts: Facts, source: NodeId, destination: NodeId, flow: FlowId, id: u32) -> CarriedFrame {
        CarriedFrame {
            bytes: bytes.into(),
            facts,
            source,
            destination,
            flow,
            id,
            hops: 0,
            ttl: facts.ttl,
            is_marked: false,
        }
    }

    /// The frame as it was sent.
    pub fn sent(&self) -> &[u8] {
        &self.bytes
    }

    /// The frame as it arrives, put into `into`: routers have taken from its time to live and may have marked it.
    pub fn arrived(&self, into: &mut Vec<u8>) {
        into.clear();
        into.extend_from_slice(&self.bytes);
        frame::arrive(into, self.ttl, self.is_marked);
    }
}

impl Packet for CarriedFrame {
    fn source(&self) -> NodeId {
        self.source
    }
    fn destination(&self) -> NodeId {
        self.destination
    }
    fn flow(&self) -> FlowId {
        self.flow
    }
    /// Without the Ethernet header: the MAC counts its own.
    fn size(&self) -> u32 {
        (self.bytes.len() - frame::HEADER) as u32
    }
    fn id(&self) -> u32 {
        self.id
    }
    fn hops(&self) -> u8 {
        self.hops
    }
    fn count_hop(&mut self) {
        self.hops = self.hops.saturating_add(1);
    }
    fn decrement_ttl(&mut self) -> bool {
        self.ttl = self.ttl.saturating_sub(1);
        self.ttl > 0
    }
    fn ecn_capable(&self) -> bool {
        self.facts.ecn_capable
    }
    fn mark_ce(&mut self) {
        self.is_marked = true;
    }
    fn category(&self) -> Category {
        Category::of_dscp(self.facts.dscp)
    }
    fn is_pure_ack(&self) -> bool {
        self.facts.tcp.is_some_and(|tcp| !tcp.is_control) && self.facts.payload == 0
    }
}

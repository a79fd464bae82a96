//! Packet of the emulator: a real frame, with the facts about it that the mesh needs.

use crate::frame::{self, Facts};
use meshpace_core::{FlowId, NodeId};
use meshpace_mesh::mac::Category;
use meshpace_mesh::radio::FrameRate;
use meshpace_mesh::{AttemptRequest, Packet};
use std::rc::Rc;

/// Rates at which a sender wants a frame to be transmitted, in this order, each with a number of
/// attempts. Unused entries have 0 attempts.
pub type Series = [(FrameRate, u8); 4];

/// A frame on its way through the mesh. The MAC makes copies; they share the bytes.
#[derive(Clone, Debug)]
pub struct CarriedFrame {
    bytes: Rc<[u8]>,
    /// Facts from its headers.
    pub facts: Facts,
    source: NodeId,
    destination: NodeId,
    flow: FlowId,
    id: u32,
    hops: u8,
    ttl: u8,
    is_marked: bool,
    /// Length in the mesh in bytes, without the headers of the mesh's MAC.
    size: u32,
    series: Option<Series>,
}

impl CarriedFrame {
    /// A frame that `source` sends to `destination`. `id` is its number in the run.
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
            // The Ethernet header does not count: the MAC adds its own header.
            size: bytes.len().saturating_sub(frame::HEADER) as u32,
            series: None,
        }
    }

    /// Same frame for a sender that chooses rates and attempts itself. It is an 802.11 frame
    /// already, and counts as `size` bytes without the headers of the mesh's MAC.
    pub fn with_series(self, size: u32, series: Series) -> CarriedFrame {
        CarriedFrame { size, series: Some(series), ..self }
    }

    /// The frame as it was sent.
    pub fn sent(&self) -> &[u8] {
        &self.bytes
    }

    /// Writes the frame as it arrives into `into`. Routers have decremented its time to live and
    /// may have marked it.
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
    fn size(&self) -> u32 {
        self.size
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
    fn attempt_request(&self, attempt: u32) -> Option<AttemptRequest> {
        let series = self.series.as_ref()?;
        let mut before = 0;
        for &(rate, attempts) in series {
            before += u32::from(attempts);
            if attempt < before {
                return Some(AttemptRequest::At(rate));
            }
        }
        Some(AttemptRequest::GiveUp)
    }
    fn is_pure_ack(&self) -> bool {
        self.facts.tcp.is_some_and(|tcp| !tcp.is_control) && self.facts.payload == 0
    }
}

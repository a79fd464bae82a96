//! The packet of the emulator: a real frame, with what the mesh needs to know about it.

use crate::frame::{self, Facts};
use meshpace_core::{FlowId, NodeId};
use meshpace_mesh::mac::Category;
use meshpace_mesh::radio::FrameRate;
use meshpace_mesh::{AttemptRequest, Packet};
use std::rc::Rc;

/// The rates at which a sender wants a frame to be tried, in turn, each so many times; what is not used has no attempts.
pub type Series = [(FrameRate, u8); 4];

/// A frame under way. Copies, of which the MAC makes some, share its bytes.
#[derive(Clone, Debug)]
pub struct CarriedFrame {
    bytes: Rc<[u8]>,
    /// Facts of its headers.
    pub facts: Facts,
    source: NodeId,
    destination: NodeId,
    flow: FlowId,
    id: u32,
    hops: u8,
    ttl: u8,
    is_marked: bool,
    /// Length for the mesh, without its own headers.
    size: u32,
    series: Option<Series>,
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
            // Without the Ethernet header: the MAC counts its own.
            size: bytes.len().saturating_sub(frame::HEADER) as u32,
            series: None,
        }
    }

    /// The same for a frame that is one of 802.11 already and counts as `size` bytes without the headers of the mesh's MAC, to be tried as its sender wants.
    pub fn with_series(self, size: u32, series: Series) -> CarriedFrame {
        CarriedFrame { size, series: Some(series), ..self }
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

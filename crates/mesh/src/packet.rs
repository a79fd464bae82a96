//! Packets that the mesh carries: any type that knows its destination and its size.

use crate::category::Category;
use meshpace_core::{FlowId, NodeId};

/// A network-layer packet of a user of the mesh: a structured segment in the simulator, a real IP packet in the emulator.
pub trait Packet: Clone {
    /// Its source.
    fn source(&self) -> NodeId;
    /// Its destination.
    fn destination(&self) -> NodeId;
    /// The flow it belongs to, for statistics and per-flow marking.
    fn flow(&self) -> FlowId;
    /// Its length in bytes with the IP header.
    fn size(&self) -> u32;
    /// A number that tells packets of one run apart.
    fn id(&self) -> u32;
    /// Hops travelled so far: the number of times a MAC received it.
    fn hops(&self) -> u8;
    /// Counts one more hop.
    fn count_hop(&mut self);
    /// Takes one from the time to live; false if it has run out.
    fn decrement_ttl(&mut self) -> bool;
    /// True if its transport reacts to congestion marks (ECN-capable transport, RFC 3168, section 5).
    fn ecn_capable(&self) -> bool {
        false
    }
    /// Marks it "congestion experienced" (RFC 3168, section 5). Only if it is [`Packet::ecn_capable`].
    fn mark_ce(&mut self) {}
    /// Its category where the MAC has some (EDCA).
    fn category(&self) -> Category {
        Category::BestEffort
    }
    /// True if it only acknowledges: a transport packet without payload.
    fn is_pure_ack(&self) -> bool {
        false
    }
}

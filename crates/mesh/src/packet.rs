//! Interface of the packets that the mesh carries. Any type that has a destination and a size can
//! implement it.

use crate::category::Category;
use crate::radio::FrameRate;
use meshpace_core::{FlowId, NodeId};

/// Request of a packet about one attempt to transmit it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttemptRequest {
    /// The attempt is made at this rate.
    At(FrameRate),
    /// The attempt is not made, because the packet requested no further attempts. The MAC gives the
    /// packet up.
    GiveUp,
}

/// A network-layer packet of a user of the mesh: a structured segment in the simulator, a real IP
/// packet in the emulator.
pub trait Packet: Clone {
    /// Node that created the packet.
    fn source(&self) -> NodeId;
    /// Node to which the packet is addressed.
    fn destination(&self) -> NodeId;
    /// Flow of the packet, for statistics and per-flow marking.
    fn flow(&self) -> FlowId;
    /// Length in bytes, including the IP header.
    fn size(&self) -> u32;
    /// Number that distinguishes the packets of one run.
    fn id(&self) -> u32;
    /// Number of hops so far, that is, how many times a MAC has received the packet.
    fn hops(&self) -> u8;
    /// Increments the number of hops by one.
    fn count_hop(&mut self);
    /// Decrements the time to live. Returns false if it has run out.
    fn decrement_ttl(&mut self) -> bool;
    /// True if the transport reacts to congestion marks (ECN-capable transport, RFC 3168, section
    /// 5).
    fn ecn_capable(&self) -> bool {
        false
    }
    /// Sets the mark "congestion experienced" (RFC 3168, section 5). Called only if the packet is
    /// [`Packet::ecn_capable`].
    fn mark_ce(&mut self) {}
    /// Access category of the packet, for a MAC with categories (EDCA).
    fn category(&self) -> Category {
        Category::BestEffort
    }
    /// Request of the packet for an attempt, where attempt 0 is the first. It is used if the sender
    /// itself chooses the rate and the number of attempts, in the way in which Linux instructs its
    /// drivers. `None` if the MAC chooses. Requests are supported only with an OFDM radio, without
    /// RTS and without aggregates.
    #[inline(always)]
    fn attempt_request(&self, _attempt: u32) -> Option<AttemptRequest> {
        None
    }
    /// True for a transport packet without payload, which only acknowledges.
    fn is_pure_ack(&self) -> bool {
        false
    }
}

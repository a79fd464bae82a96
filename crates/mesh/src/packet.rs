//! Packets that the mesh carries: any type that knows its destination and its size.

use crate::category::Category;
use crate::radio::FrameRate;
use meshpace_core::{FlowId, NodeId};

/// Demand that a packet makes on an attempt to send it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// To be made at this rate.
    At(FrameRate),
    /// Not to be made: the attempts before it were all.
    GiveUp,
}

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
    /// Its demand on an attempt, 0 being the first, where its sender chooses rate and number of attempts itself, as the drivers of Linux
    /// are told to; None where the MAC does. Only with an OFDM radio, without RTS and without aggregates.
    #[inline(always)]
    fn asked(&self, _attempt: u32) -> Option<Asked> {
        None
    }
    /// True if it only acknowledges: a transport packet without payload.
    fn is_pure_ack(&self) -> bool {
        false
    }
}

//! What the mesh carries: any packet that can say where it goes and how long it is.

use crate::link::arp::ARP_BYTES;
use crate::routing::{aodv, olsr};
use meshpace_core::{FlowId, NodeId};

/// A network-layer packet of a user of the mesh: a structured segment in the simulator, a real IP packet in the emulator.
pub trait Packet: Clone {
    /// Where it comes from.
    fn source(&self) -> NodeId;
    /// Where it goes.
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
    /// Whether its transport reacts to congestion marks (ECN-capable transport, RFC 3168, section 5).
    fn ecn_capable(&self) -> bool {
        false
    }
    /// Marks it "congestion experienced" (RFC 3168, section 5). Only if it is [`Packet::ecn_capable`].
    fn mark_ce(&mut self) {}
    /// Whether it only acknowledges: a transport packet without payload.
    fn is_pure_ack(&self) -> bool {
        false
    }
}

/// What a link-layer data frame holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Body<P> {
    /// A packet of the user.
    Data(P),
    /// A packet of the routing protocol, sent by `from` on this hop, with `ttl` hops left.
    Aodv(aodv::Message),
    /// A message of OLSR, alone in its packet.
    Olsr(olsr::Message),
    /// An ARP request for `target` or the reply from it.
    Arp {
        /// Whether this asks or answers.
        request: bool,
        /// The node that sent this message.
        sender: NodeId,
        /// The node asked for, or the node that asked.
        target: NodeId,
    },
}

impl<P: Packet> Body<P> {
    /// Its length in bytes, without MAC header.
    #[inline]
    pub fn size(&self) -> u32 {
        match self {
            Body::Data(packet) => packet.size(),
            Body::Aodv(message) => message.size(),
            Body::Olsr(message) => message.size(),
            Body::Arp { .. } => ARP_BYTES,
        }
    }
}

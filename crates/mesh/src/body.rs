//! Body of a link-layer data frame: a packet of the user, a routing message, or an ARP message.

use crate::category::Category;
use crate::packet::{Asked, Packet};
use crate::routing::message::Message;
use meshpace_core::NodeId;

/// Bytes of an ARP request or reply (RFC 826, with Ethernet and IPv4 addresses).
pub const ARP_BYTES: u32 = 28;

/// Content of a link-layer data frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Body<P> {
    /// A packet of the user.
    Data(P),
    /// A message of the routing protocol, on one hop.
    Routing(Message),
    /// An ARP request for `target` or the reply from it.
    Arp {
        /// True in a request, false in an answer.
        request: bool,
        /// The node that sent this message.
        sender: NodeId,
        /// The node asked for, or the node that asked.
        target: NodeId,
    },
}

impl<P> Body<P> {
    /// The user's packet, if it holds one.
    #[inline]
    pub fn into_packet(self) -> Option<P> {
        match self {
            Body::Data(packet) => Some(packet),
            Body::Routing(_) | Body::Arp { .. } => None,
        }
    }
}

impl<P: Packet> Body<P> {
    /// Its length in bytes, without MAC header.
    #[inline]
    pub fn size(&self) -> u32 {
        match self {
            Body::Data(packet) => packet.size(),
            Body::Routing(message) => message.size(),
            Body::Arp { .. } => ARP_BYTES,
        }
    }

    /// Demand on an attempt to send it: [`Packet::asked`].
    #[inline(always)]
    pub fn asked(&self, attempt: u32) -> Option<Asked> {
        if let Body::Data(packet) = self { packet.asked(attempt) } else { None }
    }

    /// Its category where the MAC has some: routing is network control (CS6).
    pub fn category(&self) -> Category {
        match self {
            Body::Data(packet) => packet.category(),
            Body::Routing(_) => Category::Voice,
            Body::Arp { .. } => Category::BestEffort,
        }
    }
}

/// A body on its way to a neighbour.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Queued<P> {
    /// The neighbour, or broadcast.
    pub next_hop: NodeId,
    /// Content to send.
    pub body: Body<P>,
}

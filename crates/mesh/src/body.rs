//! Body of a link-layer data frame: a packet of the user, a routing message, or an ARP message.

use crate::category::Category;
use crate::packet::{AttemptRequest, Packet};
use crate::routing::message::Message;
use meshpace_core::NodeId;

/// Size in bytes of an ARP request or reply (RFC 826, with Ethernet and IPv4 addresses).
pub const ARP_BYTES: u32 = 28;

/// Content of a link-layer data frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Body<P> {
    /// User packet of the network layer.
    Data(P),
    /// Message of the routing protocol, for one hop.
    Routing(Message),
    /// ARP request for `target`, or ARP reply to `target`.
    Arp {
        /// True in a request, false in a reply.
        request: bool,
        /// Node that sent this message.
        sender: NodeId,
        /// Request: the node whose MAC address is requested. Reply: the node that sent the request.
        target: NodeId,
    },
}

impl<P> Body<P> {
    /// Returns the user's packet; `None` if the body is a routing or ARP message.
    #[inline]
    pub fn into_packet(self) -> Option<P> {
        match self {
            Body::Data(packet) => Some(packet),
            Body::Routing(_) | Body::Arp { .. } => None,
        }
    }
}

impl<P: Packet> Body<P> {
    /// Length in bytes, without the MAC header.
    #[inline]
    pub fn size(&self) -> u32 {
        match self {
            Body::Data(packet) => packet.size(),
            Body::Routing(message) => message.size(),
            Body::Arp { .. } => ARP_BYTES,
        }
    }

    /// Rate or end of an attempt as the packet itself requests it: [`Packet::attempt_request`].
    #[inline(always)]
    pub fn attempt_request(&self, attempt: u32) -> Option<AttemptRequest> {
        if let Body::Data(packet) = self { packet.attempt_request(attempt) } else { None }
    }

    /// Access category of the frame, for a MAC with categories. Routing messages are network
    /// control (CS6).
    pub fn category(&self) -> Category {
        match self {
            Body::Data(packet) => packet.category(),
            Body::Routing(_) => Category::Voice,
            Body::Arp { .. } => Category::BestEffort,
        }
    }
}

/// A body that waits for, or is in, transmission to a neighbour.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Queued<P> {
    /// Address of the neighbour, or broadcast.
    pub next_hop: NodeId,
    /// Content of the frame.
    pub body: Body<P>,
}

//! Address resolution: finds the MAC address of a neighbour's network address.
//!
//! Source: RFC 826; ns-2.35 as measured. One packet is held per neighbour; a newer packet replaces
//! it. An entry never expires. After three unanswered requests, the next packet is given up as if
//! the link had failed, together with the held packet. Requests and replies have 28 bytes. A
//! request teaches the address of its sender to all stations that receive it, and has no other
//! content.

use crate::body::{Body, Queued};
use alloc::vec::Vec;
use meshpace_core::NodeId;

/// Number of requests for one neighbour before its packets are given up.
pub const MAX_REQUESTS: u8 = 3;

#[derive(Clone, Debug)]
struct Entry<P> {
    node: NodeId,
    resolved: bool,
    requests: u8,
    held: Option<Body<P>>,
}

/// ARP table of one node.
#[derive(Clone, Debug)]
pub struct Arp<P> {
    me: NodeId,
    entries: Vec<Entry<P>>,
}

/// Decision about a packet that is to be sent.
#[derive(Clone, PartialEq, Debug)]
pub enum Resolve<P> {
    /// The address is known. The packet can be sent.
    Known(Body<P>),
    /// The packet is held until the address is known. The request must be broadcast.
    Ask {
        /// Request to broadcast.
        request: Queued<P>,
        /// Packet that was held before, and is lost.
        displaced: Option<Body<P>>,
    },
    /// Three requests had no answer. The link counts as failed for these packets.
    Unreachable {
        /// Packet that was held.
        held: Option<Body<P>>,
        /// Packet that was to be sent.
        packet: Body<P>,
    },
}

/// Effects of a received ARP packet, to be executed in this order.
#[derive(Clone, PartialEq, Debug)]
pub struct ArpEffects<P> {
    /// Packet that was held for the sender, if any.
    pub release: Option<Queued<P>>,
    /// Reply to send, if the request was for this node.
    pub reply: Option<Queued<P>>,
}

impl<P: Clone> Arp<P> {
    /// Creates an empty table.
    pub fn new(me: NodeId) -> Self {
        Arp { me, entries: Vec::new() }
    }

    fn entry(&mut self, node: NodeId) -> &mut Entry<P> {
        let at = match self.entries.iter().position(|e| e.node == node) {
            Some(at) => at,
            None => {
                self.entries.push(Entry { node, resolved: false, requests: 0, held: None });
                self.entries.len() - 1
            }
        };
        &mut self.entries[at]
    }

    /// Resolves the address of `next_hop`, which is not broadcast, for a packet that is to be sent.
    #[inline]
    pub fn resolve(&mut self, next_hop: NodeId, body: Body<P>) -> Resolve<P> {
        let me = self.me;
        let entry = self.entry(next_hop);
        if entry.resolved {
            return Resolve::Known(body);
        }
        if entry.requests >= MAX_REQUESTS {
            entry.requests = 0;
            return Resolve::Unreachable { held: entry.held.take(), packet: body };
        }
        entry.requests += 1;
        let displaced = entry.held.replace(body);
        let request =
            Queued { next_hop: NodeId::BROADCAST, body: Body::Arp { request: true, sender: me, target: next_hop } };
        Resolve::Ask { request, displaced }
    }

    /// Handles a received ARP packet.
    pub fn on_packet(&mut self, request: bool, sender: NodeId, target: NodeId) -> ArpEffects<P> {
        let me = self.me;
        let entry = self.entry(sender);
        entry.resolved = true;
        let release = entry.held.take().map(|body| Queued { next_hop: sender, body });
        let reply = (request && target == me)
            .then_some(Queued { next_hop: sender, body: Body::Arp { request: false, sender: me, target: sender } });
        ArpEffects { release, reply }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn body(n: u16) -> Body<u16> {
        Body::Data(n)
    }

    #[test]
    fn asks_holds_and_releases() {
        let mut arp = Arp::new(NodeId(0));
        assert!(matches!(arp.resolve(NodeId(1), body(7)), Resolve::Ask { displaced: None, .. }));
        assert!(matches!(arp.resolve(NodeId(1), body(8)), Resolve::Ask { displaced: Some(b), .. } if b == body(7)));
        let heard = arp.on_packet(false, NodeId(1), NodeId(0));
        assert_eq!(heard.release, Some(Queued { next_hop: NodeId(1), body: body(8) }));
        assert_eq!(heard.reply, None);
        assert_eq!(arp.resolve(NodeId(1), body(9)), Resolve::Known(body(9)));
    }

    #[test]
    fn a_request_is_answered_by_its_target_only() {
        let mut arp: Arp<u16> = Arp::new(NodeId(3));
        assert!(arp.on_packet(true, NodeId(1), NodeId(2)).reply.is_none());
        let reply = arp.on_packet(true, NodeId(1), NodeId(3)).reply.expect("asked for");
        assert_eq!(reply.next_hop, NodeId(1));
        assert_eq!(reply.body, Body::Arp { request: false, sender: NodeId(3), target: NodeId(1) });
    }

    #[test]
    fn gives_up_after_three_requests() {
        let mut arp = Arp::new(NodeId(0));
        for n in 0..3 {
            assert!(matches!(arp.resolve(NodeId(1), body(n)), Resolve::Ask { .. }));
        }
        assert_eq!(arp.resolve(NodeId(1), body(3)), Resolve::Unreachable { held: Some(body(2)), packet: body(3) });
    }
}

//! Address resolution: which neighbour answers to a network address.
//!
//! Source: RFC 826; ns-2.35 as measured: one packet is held per neighbour, a newer one displaces it,
//! an entry never expires, and the packet after the third unanswered request is given up as if the link had failed,
//! together with the one held. Requests and replies are 28 bytes; a request teaches its sender's address to everyone who
//! hears it and holds nothing else.

use crate::body::{Body, Queued};
use alloc::vec::Vec;
use meshpace_core::NodeId;

/// Requests for one neighbour before its packets are given up.
pub const MAX_REQUESTS: u8 = 3;

#[derive(Clone, Debug)]
struct Entry<P> {
    node: NodeId,
    resolved: bool,
    requests: u8,
    held: Option<Body<P>>,
}

/// One node's table.
#[derive(Clone, Debug)]
pub struct Arp<P> {
    me: NodeId,
    entries: Vec<Entry<P>>,
}

/// Decision on a packet that wants to leave.
#[derive(Clone, PartialEq, Debug)]
pub enum Resolve<P> {
    /// The address is known: send it.
    Known(Body<P>),
    /// The packet is held; broadcast the request. `displaced` was held before and is lost.
    Ask {
        /// The request to broadcast.
        request: Queued<P>,
        /// The older packet that had to make room.
        displaced: Option<Body<P>>,
    },
    /// No answer to three requests: the link counts as failed for these packets.
    Unreachable {
        /// The packet that was held.
        held: Option<Body<P>>,
        /// The packet that wanted to leave.
        packet: Body<P>,
    },
}

/// Consequences of a received ARP packet, in this order.
#[derive(Clone, PartialEq, Debug)]
pub struct Heard<P> {
    /// A packet that was held for the sender.
    pub release: Option<Queued<P>>,
    /// The reply, if this node was asked for.
    pub reply: Option<Queued<P>>,
}

impl<P: Clone> Arp<P> {
    /// An empty table.
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

    /// A packet wants to leave for `next_hop` (not broadcast).
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

    /// An ARP packet arrived.
    pub fn on_packet(&mut self, request: bool, sender: NodeId, target: NodeId) -> Heard<P> {
        let me = self.me;
        let entry = self.entry(sender);
        entry.resolved = true;
        let release = entry.held.take().map(|body| Queued { next_hop: sender, body });
        let reply = (request && target == me)
            .then_some(Queued { next_hop: sender, body: Body::Arp { request: false, sender: me, target: sender } });
        Heard { release, reply }
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

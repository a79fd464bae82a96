//! Packets above the MAC: routing, address resolution, the link layer's delay, the interface queue.

use super::frames::LARGE;
use super::{ARP_DELAY, Engine, InLink, LINK_DELAY, Routing};
use crate::probe::{Loss, Probe};
use crate::queue::{DELAYED_RANK, DELAYED_RANKS, Key, Owner};
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId};
use meshpace_mesh::link::arp::Resolve;
use meshpace_mesh::link::queue::Queued;
use meshpace_mesh::routing::aodv::{DropReason, Sink};
use meshpace_mesh::{Body, Packet};

/// How many packets ahead routing's state is read.
const AHEAD: usize = 16;

/// A packet that waits elsewhere: routing's jitter before the link layer, or ARP's delay before the queue.
#[derive(Clone)]
pub(super) struct Delayed<P> {
    pub node: NodeId,
    pub queued: Queued<P>,
    pub past_link: bool,
}

/// What a routing protocol asked for, in order.
#[derive(Clone)]
enum Asked<P> {
    Send { body: Body<P>, next_hop: NodeId, delay: Duration },
    Drop { packet: P, reason: DropReason },
    Flush { next_hop: NodeId },
    Notice { destination: NodeId, found: bool },
}

#[derive(Clone)]
pub(super) struct Wishes<P>(Vec<Asked<P>>);

impl<P> Wishes<P> {
    pub fn new() -> Self {
        Wishes(Vec::new())
    }
}

impl<P> Sink<P> for Wishes<P> {
    fn send(&mut self, body: Body<P>, next_hop: NodeId, delay: Duration) {
        self.0.push(Asked::Send { body, next_hop, delay });
    }
    fn drop_packet(&mut self, packet: P, reason: DropReason) {
        self.0.push(Asked::Drop { packet, reason });
    }
    fn flush_queue(&mut self, next_hop: NodeId) {
        self.0.push(Asked::Flush { next_hop });
    }
    fn route_lost(&mut self, destination: NodeId) {
        self.0.push(Asked::Notice { destination, found: false });
    }
    fn route_found(&mut self, destination: NodeId) {
        self.0.push(Asked::Notice { destination, found: true });
    }
}

impl<P: Packet, O: Probe<P>> Engine<P, O> {
    #[inline]
    pub(super) fn schedule_routing(&mut self, node: NodeId) {
        let at = match &self.routing {
            Routing::Static => return,
            Routing::Aodv(nodes) => nodes[node.index()].next_wakeup(),
            Routing::Olsr(nodes) => nodes[node.index()].next_wakeup(),
        };
        self.queue.set_timer(Owner::Routing, node, at);
    }

    /// Reads what routing keeps for the packets that come up next, in the same way.
    #[inline]
    pub(super) fn touch_routing(&mut self) {
        if self.nodes.len() < LARGE {
            return;
        }
        if self.touched == 0
            && let Routing::Aodv(nodes) = &self.routing
        {
            let next = self.link.iter().take(AHEAD);
            core::hint::black_box(next.fold(0, |sum, (_, node, _)| sum ^ nodes[node.index()].next_wakeup().0));
            self.touched = AHEAD;
        }
        self.touched -= 1;
    }

    /// A packet from below: returns it if it is for this node's transport.
    pub(super) fn receive(&mut self, node: NodeId, from: NodeId, body: Body<P>) -> Option<P> {
        match body {
            Body::Data(packet) => {
                if packet.destination() == node || packet.destination().is_broadcast() {
                    return Some(packet);
                }
                self.route(node, packet, Some(from));
            }
            Body::Aodv(message) => {
                if let Routing::Aodv(nodes) = &mut self.routing {
                    nodes[node.index()].on_message(self.now, from, message, &mut self.wishes);
                }
                self.grant(node);
            }
            Body::Olsr(message) => {
                if let Routing::Olsr(nodes) = &mut self.routing {
                    nodes[node.index()].on_message(self.now, from, message, &mut self.wishes);
                }
                self.grant(node);
            }
            // ARP is answered below the link delay.
            Body::Arp { .. } => {}
        }
        None
    }

    pub(super) fn route(&mut self, node: NodeId, mut packet: P, previous_hop: Option<NodeId>) {
        match &mut self.routing {
            Routing::Static => {
                let lost = if previous_hop.is_some() && !packet.decrement_ttl() {
                    Some(DropReason::TtlExpired)
                } else {
                    match self.shortest.next_hop(node, packet.destination()) {
                        Some(next_hop) => {
                            self.send_down(node, Queued { next_hop, body: Body::Data(packet) });
                            return;
                        }
                        None => Some(DropReason::NoRoute),
                    }
                };
                if let Some(reason) = lost {
                    let lost = Queued { next_hop: packet.destination(), body: Body::Data(packet) };
                    self.probe.on_loss(self.now, node, &lost, Loss::Routing(reason));
                }
            }
            Routing::Aodv(nodes) => {
                nodes[node.index()].on_packet(self.now, packet, previous_hop, &mut self.wishes);
                self.grant(node);
            }
            Routing::Olsr(nodes) => {
                nodes[node.index()].on_packet(self.now, packet, previous_hop, &mut self.wishes);
                self.grant(node);
            }
        }
    }

    /// Carries out what routing asked for.
    pub(super) fn grant(&mut self, node: NodeId) {
        // Granting can make routing ask again (an ARP failure), so the list is taken out meanwhile.
        while !self.wishes.0.is_empty() {
            let mut asked = core::mem::take(&mut self.wishes.0);
            for wish in asked.drain(..) {
                match wish {
                    Asked::Send { body, next_hop, delay } => {
                        let queued = Queued { next_hop, body };
                        if delay == Duration::ZERO {
                            self.send_down(node, queued);
                        } else {
                            self.delay(Delayed { node, queued, past_link: false }, delay);
                        }
                    }
                    Asked::Drop { packet, reason } => {
                        let lost = Queued { next_hop: packet.destination(), body: Body::Data(packet) };
                        self.probe.on_loss(self.now, node, &lost, Loss::Routing(reason));
                    }
                    Asked::Notice { destination, found } => self.notices.push_back((node, destination, found)),
                    Asked::Flush { next_hop } => {
                        while let Some(lost) = self.nodes[node.index()].queue.take_for(next_hop) {
                            self.probe.on_loss(self.now, node, &lost, Loss::Flushed);
                        }
                    }
                }
            }
            if self.wishes.0.is_empty() {
                self.wishes.0 = asked;
                break;
            }
        }
        self.schedule_routing(node);
    }

    /// From routing to the link layer: address resolution, then the delay.
    pub(super) fn send_down(&mut self, node: NodeId, queued: Queued<P>) {
        if queued.next_hop.is_broadcast() {
            self.link.push_back((self.now + LINK_DELAY, node, InLink::Down(queued)));
            return;
        }
        let next_hop = queued.next_hop;
        match self.nodes[node.index()].arp.resolve(next_hop, queued.body) {
            Resolve::Known(body) => {
                self.link.push_back((self.now + LINK_DELAY, node, InLink::Down(Queued { next_hop, body })));
            }
            Resolve::Ask { request, displaced } => {
                if let Some(body) = displaced {
                    self.probe.on_loss(self.now, node, &Queued { next_hop, body }, Loss::ArpDisplaced);
                }
                self.delay(Delayed { node, queued: request, past_link: true }, ARP_DELAY);
            }
            Resolve::Unreachable { held, packet } => {
                for body in held.into_iter().chain([packet]) {
                    self.link_failed(node, Queued { next_hop, body });
                }
            }
        }
    }

    pub(super) fn delay(&mut self, what: Delayed<P>, delay: Duration) {
        let node = what.node;
        let rank = DELAYED_RANK + self.delays % DELAYED_RANKS;
        self.delays = self.delays.wrapping_add(1);
        let number = self.delayed.insert(what);
        self.queue.set(Owner::Delayed, number, Key::timer(self.now + delay, node, rank));
    }

    pub(super) fn enqueue(&mut self, node: NodeId, queued: Queued<P>) {
        let hops = match &queued.body {
            Body::Data(packet) if packet.source() == node && self.nodes[node.index()].queue.wants_hops() => {
                self.hops(node, packet.destination())
            }
            _ => None,
        };
        let (now, probe) = (self.now, &mut self.probe);
        let lost = |lost, why| probe.on_loss(now, node, &lost, Loss::Queue(why));
        self.nodes[node.index()].queue.push(now, queued, hops, lost);
        self.offer(node);
    }

    pub(super) fn link_failed(&mut self, node: NodeId, queued: Queued<P>) {
        match &mut self.routing {
            Routing::Static => self.probe.on_loss(self.now, node, &queued, Loss::RetryLimit),
            Routing::Aodv(nodes) => {
                nodes[node.index()].on_link_failure(self.now, queued.next_hop, queued.body, &mut self.wishes);
                self.grant(node);
            }
            Routing::Olsr(nodes) => {
                nodes[node.index()].on_link_failure(self.now, queued.next_hop, queued.body, &mut self.wishes);
                self.grant(node);
            }
        }
    }
}

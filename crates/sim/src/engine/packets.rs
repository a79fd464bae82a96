//! Packets above the MAC: routing, address resolution, the link layer's delay, the interface queue.

use super::counters::count_loss;
use super::{ARP_DELAY, Engine, InLink, LARGE, LINK_DELAY};
use crate::probe::{Event, Loss, Probe};
use crate::queue::{DELAYED_RANK, DELAYED_RANKS, Key, Owner};
use meshpace_core::{Duration, NodeId};
use meshpace_mesh::link::arp::Resolve;
use meshpace_mesh::routing::Action;
use meshpace_mesh::{Body, Packet, Queued};

/// Number of packets for which the state of routing is read ahead.
const AHEAD: usize = 16;

/// A packet that waits outside the interface queue.
#[derive(Clone)]
pub(super) struct Delayed<P> {
    pub node: NodeId,
    pub queued: Queued<P>,
    pub next: Stage,
}

/// Next stage of a waiting packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    /// Routing, after the random delay at the source.
    Routing,
    /// The link layer, after the jitter of routing.
    Link,
    /// The interface queue, after the delay of ARP.
    Queue,
}

impl<P: Packet, O: Probe<P>> Engine<P, O> {
    /// Sets the timer of the routing protocol of `node`.
    #[inline]
    pub(super) fn schedule_routing(&mut self, node: NodeId) {
        let at = self.router.next_wakeup(node);
        if at != self.queue.timer(Owner::Routing, node) {
            self.queue.set_timer(Owner::Routing, node, at);
        }
    }

    /// Reads the state of routing for the packets that come next, so that the cache misses of a
    /// large mesh overlap, as `read_ahead` does for stations.
    #[inline]
    pub(super) fn read_ahead_routing(&mut self) {
        if self.nodes.len() < LARGE {
            return;
        }
        if self.read_ahead_left == 0 {
            let next = self.link.iter().take(AHEAD);
            core::hint::black_box(next.fold(0, |sum, (_, node, _)| sum ^ self.router.next_wakeup(*node).0));
            self.read_ahead_left = AHEAD;
        }
        self.read_ahead_left -= 1;
    }

    /// Handles a packet from the link layer. Returns the packet if it is for the transport of this
    /// node.
    pub(super) fn receive(&mut self, node: NodeId, from: NodeId, body: Body<P>) -> Option<P> {
        match body {
            Body::Data(packet) => {
                let (to, now) = (packet.destination(), self.now);
                if to == node || to.is_broadcast() {
                    return (to != node || self.router.accepts(now, node, &packet)).then_some(packet);
                }
                self.route(node, packet, Some(from));
            }
            Body::Routing(message) => {
                self.router.on_message(self.now, node, from, message, &mut self.actions);
                self.carry_out(node);
            }
            // The ARP message was answered in `execute`, before the link layer's delay.
            Body::Arp { .. } => {}
        }
        None
    }

    /// Hands a packet to the routing of `node` and executes its actions. `previous_hop` is `None`
    /// for a packet of the node's own transport.
    pub(super) fn route(&mut self, node: NodeId, packet: P, previous_hop: Option<NodeId>) {
        self.router.on_packet(self.now, node, packet, previous_hop, &mut self.actions);
        self.carry_out(node);
    }

    /// Executes the actions that routing has requested, and sets its timer.
    pub(super) fn carry_out(&mut self, node: NodeId) {
        // An action can cause further actions of routing (an ARP failure), so the list is taken out
        // meanwhile.
        while !self.actions.actions.is_empty() {
            let mut actions = core::mem::take(&mut self.actions.actions);
            for action in actions.drain(..) {
                match action {
                    Action::Forward { packet, next_hop, delay } => self.send(node, next_hop, Body::Data(packet), delay),
                    Action::Send { message, next_hop, delay } => {
                        self.counters.message(message.kind());
                        self.send(node, next_hop, Body::Routing(message), delay);
                    }
                    Action::Drop { packet, reason } => {
                        let lost = Queued { next_hop: packet.destination(), body: Body::Data(packet) };
                        let reason = Loss::Routing(reason);
                        self.probe.on(self.now, Event::Loss { node, lost: &lost, reason });
                    }
                    Action::Notice { destination, found } => {
                        self.probe.on(self.now, Event::Route { node, destination, found });
                        self.notices.push_back((node, destination, found));
                    }
                    Action::Flush { next_hop } => {
                        while let Some(lost) = self.nodes[node.index()].queue.take_for(next_hop) {
                            self.probe.on(self.now, Event::Loss { node, lost: &lost, reason: Loss::Flushed });
                        }
                    }
                }
            }
            if self.actions.actions.is_empty() {
                self.actions.actions = actions;
                break;
            }
        }
        self.schedule_routing(node);
    }

    /// Hands a body from routing to the link layer after `delay`.
    #[inline]
    fn send(&mut self, node: NodeId, next_hop: NodeId, body: Body<P>, delay: Duration) {
        let queued = Queued { next_hop, body };
        if delay == Duration::ZERO {
            self.send_down(node, queued);
        } else {
            self.delay(Delayed { node, queued, next: Stage::Link }, delay);
        }
    }

    /// Hands a packet from routing to the link layer: address resolution, then the delay.
    pub(super) fn send_down(&mut self, node: NodeId, queued: Queued<P>) {
        if queued.next_hop.is_broadcast() {
            if let Body::Routing(_) = queued.body {
                self.repeat(node, &queued);
            }
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
                    let lost = Queued { next_hop, body };
                    self.probe.on(self.now, Event::Loss { node, lost: &lost, reason: Loss::ArpDisplaced });
                }
                self.repeat(node, &request);
                self.delay(Delayed { node, queued: request, next: Stage::Queue }, ARP_DELAY);
            }
            Resolve::Unreachable { held, packet } => {
                for body in held.into_iter().chain([packet]) {
                    self.link_failed(node, Queued { next_hop, body });
                }
            }
        }
    }

    /// Schedules the repetitions of a broadcast, as configured for the link layer.
    fn repeat(&mut self, node: NodeId, queued: &Queued<P>) {
        for time in 1..=u64::from(self.repeats.count) {
            let again = Delayed { node, queued: queued.clone(), next: Stage::Queue };
            self.delay(again, ARP_DELAY + self.repeats.gap * time);
        }
    }

    /// Schedules a delayed packet.
    pub(super) fn delay(&mut self, what: Delayed<P>, delay: Duration) {
        let node = what.node;
        let rank = DELAYED_RANK + self.delays % DELAYED_RANKS;
        self.delays = self.delays.wrapping_add(1);
        let number = self.delayed.insert(what);
        self.queue.set(Owner::Delayed, number, Key::timer(self.now + delay, node, rank));
    }

    /// Continues with a delayed packet whose time has come.
    pub(super) fn resume(&mut self, delayed: Delayed<P>) {
        let Delayed { node, queued, next } = delayed;
        match (next, queued.body) {
            (Stage::Routing, Body::Data(packet)) => self.route(node, packet, None),
            (Stage::Queue, body) => self.enqueue(node, Queued { next_hop: queued.next_hop, body }),
            (_, body) => self.send_down(node, Queued { next_hop: queued.next_hop, body }),
        }
    }

    /// Delays a packet at its source.
    #[cold]
    pub(super) fn delay_at_source(&mut self, node: NodeId, packet: P) {
        let delay = self.source_delays.draw(self.now, packet.flow());
        let queued = Queued { next_hop: packet.destination(), body: Body::Data(packet) };
        self.delay(Delayed { node, queued, next: Stage::Routing }, delay);
    }

    /// Adds a packet to the interface queue of `node`.
    pub(super) fn enqueue(&mut self, node: NodeId, queued: Queued<P>) {
        let hops = match &queued.body {
            Body::Data(packet) if packet.source() == node && self.nodes[node.index()].queue.wants_hops() => {
                self.hops(node, packet.destination())
            }
            _ => None,
        };
        let lost = count_loss(self.now, node, &mut self.probe, &mut self.counters.queue_drops);
        self.nodes[node.index()].queue.push(self.now, queued, hops, lost);
        self.on_enqueued(node);
    }

    /// Notifies routing of a frame that could not be delivered to its next hop.
    pub(super) fn link_failed(&mut self, node: NodeId, queued: Queued<P>) {
        let packet = queued.body.into_packet();
        self.router.on_link_failure(self.now, node, queued.next_hop, packet, &mut self.actions);
        self.carry_out(node);
    }
}

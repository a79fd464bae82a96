//! AODV with link-layer failure detection: Perkins, Belding-Royer, Das, RFC 3561, the way ns-2.35 was measured and seen to
//! behave. A state machine per node: it is told of packets, messages, link failures and time, and answers through [`Actions`].
//!
//! Departures from RFC 3561, all those of ns-2.35:
//! - no HELLO, unless asked for (`hello.rs`): a link fails when the MAC gives up a *data* packet; a lost reply is only lost;
//! - a failure drops the packet and all that wait for the same next hop; the RERR is broadcast at once, precursors or not;
//!   forwarded RERRs and RREQs are jittered, uniform on [0, 10 ms);
//! - the waits and rings of `search.rs`; entries expire on a half-second grid and are never deleted (`route.rs`, `table.rs`, which
//!   can also delete them as the RFC has it);
//! - a node raises its own sequence number by two at each request and each failure, so that numbers of valid routes are even;
//! - an intermediate node answers when its number is at least the one asked for, with the rest of its route's life in whole
//!   seconds; no gratuitous RREP, no RREP-ACK, no blacklist, no D flag;
//! - data that meets no route is answered by one RERR each.
//!
//! Departures from ns-2.35: a RERR holds six destinations (there: 100) and further ones follow; a reply to a node the
//! answering node itself has lost is not sent (there: to node 0); sequence numbers wrap. `ns2` local repair is copied
//! with its faults, see `repair.rs`.
//!
//! | Parameter | Value |
//! |---|---|
//! | active route timeout | 10 s after each forwarded packet |
//! | reverse route life | 6 s |
//! | route from the destination | 10 s |
//! | request remembered | 6 s, swept every 6 s |
//! | buffer | 64 packets, 30 s |
//! | spacing of buffered packets after a reply | 10 ms |

mod buffer;
mod config;
mod discovery;
mod failure;
mod hello;
mod index;
mod message;
mod recent;
mod repair;
mod route;
mod search;
mod seen;
mod table;

pub use config::{AodvConfig, AodvDetection, LocalRepair};
pub use message::{Message, Reply, Request, Unreachable};
pub use route::ACTIVE_ROUTE_TIMEOUT;
pub use search::NETWORK_DIAMETER;

use super::actions::{Actions, DropReason};
use super::protocol::{MessageKind, Protocol, RoutingMessage};
use crate::packet::Packet;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use buffer::Buffer;
use core::cmp::Reverse;
use hello::Neighbours;
use meshpace_core::{Duration, NodeId, Rng, Time};
use recent::Recent;
use route::{Route, State, tick_after, tick_from};
use seen::Seen;
use table::Table;

/// One node's AODV. What a copy of a request needs, which in a large mesh is nearly all that happens, comes first and on one
/// cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Aodv<P> {
    /// This node.
    me: NodeId,
    /// Repair of a broken link near the destination.
    local_repair: LocalRepair,
    /// Detection of lost links.
    detection: AodvDetection,
    /// The last of the requests in `seen`.
    recent: Recent,
    /// Requests already handled.
    seen: Seen,
    /// The first of the times at which something is due; as of the end of the last call.
    next_wakeup: Time,
    /// The routing table.
    routes: Table,
    /// Packets without a route.
    buffer: Buffer<P>,
    /// Destinations to which [`Self::seek`] wants a route.
    sought: Vec<NodeId>,
    /// Its own sequence number; even.
    sequence: u32,
    /// The number of its next request.
    next_request: u32,
    /// The next purge tick that can cause a request; [`Time::NEVER`] if no packet waits.
    next_tick: Time,
    /// When a local repair ends, and of the route to which destination.
    repairs: BinaryHeap<Reverse<(Time, NodeId)>>,
    /// Jitter of broadcasts.
    rng: Rng,
    /// Neighbours heard of late, under HELLO detection.
    neighbours: Neighbours,
}

impl<P: Packet> Protocol<P> for Aodv<P> {
    type Config = AodvConfig;
    type Message = Message;

    /// The protocol at node `me`. `rng` is the node's own stream for routing jitter
    /// ([`Purpose::RoutingJitter`](meshpace_core::rng::Purpose::RoutingJitter)). With HELLOs the first one is due within an
    /// interval of time 0.
    fn new(me: NodeId, config: AodvConfig, mut rng: Rng) -> Self {
        let AodvConfig { local_repair, detection, delete_period } = config;
        let neighbours = match detection {
            AodvDetection::LinkLayer => Neighbours::off(),
            AodvDetection::Hello | AodvDetection::Both => Neighbours::new(&mut rng),
        };
        Aodv {
            me,
            local_repair,
            detection,
            recent: Recent::NONE,
            seen: Seen::default(),
            next_wakeup: neighbours.next_wakeup(),
            routes: Table::forgetting(delete_period),
            buffer: Buffer::new(),
            sought: Vec::new(),
            sequence: 2,
            next_request: 1,
            next_tick: Time::NEVER,
            repairs: BinaryHeap::new(),
            rng,
            neighbours,
        }
    }

    /// A packet that is not for this node: routes, buffers or drops it. `previous_hop` is None if it comes from this
    /// node's own transport; otherwise its time to live is taken down here.
    fn on_packet(
        &mut self,
        now: Time,
        mut packet: P,
        previous_hop: Option<NodeId>,
        out: &mut impl Actions<P, Message>,
    ) {
        let own = packet.source() == self.me;
        if previous_hop.is_some() {
            if own {
                return out.drop_packet(packet, DropReason::Loop);
            }
            if !packet.decrement_ttl() {
                return out.drop_packet(packet, DropReason::TtlExpired);
            }
        }
        let destination = packet.destination();
        let mut route = self.routes.entry(now, destination);
        match route.state {
            State::Up => {
                route.expires = now + ACTIVE_ROUTE_TIMEOUT;
                route.used_here |= own;
                let next_hop = route.next_hop;
                return out.forward(packet, next_hop, Duration::ZERO);
            }
            _ if own => {
                self.buffer.push(now, packet, out);
                self.request(now, destination, out);
            }
            State::InRepair => self.buffer.push(now, packet, out),
            State::Down => {
                let sequence = route.sequence;
                self.report(destination, sequence, out);
                return out.drop_packet(packet, DropReason::NoRoute);
            }
        }
        self.plan(now);
    }

    /// `from`, one hop away, sent `message`.
    fn on_message(&mut self, now: Time, from: NodeId, message: Message, out: &mut impl Actions<P, Message>) {
        let is_copy = matches!(&message, Message::Request(request) if self.has_handled(now, request));
        if is_copy && self.next_wakeup == Time::NEVER {
            // Nothing waits and nobody counts HELLOs: nothing changes.
            return;
        }
        self.neighbours.heard(now, from, &message);
        match message {
            Message::Reply(hello) if hello.is_hello() => self.on_hello(now, from, &hello, out),
            Message::Request(_) if is_copy => {}
            Message::Request(request) => self.on_request(now, from, request, out),
            Message::Reply(reply) => self.on_reply(now, from, reply, out),
            Message::Error(lost) => self.on_error(now, from, &lost, out),
        }
        self.plan(now);
    }

    /// The MAC gave up a unicast frame to `next_hop` at its retry limit.
    fn on_link_failure(&mut self, now: Time, next_hop: NodeId, packet: Option<P>, out: &mut impl Actions<P, Message>) {
        let Some(packet) = packet else { return };
        if self.detection == AodvDetection::Hello {
            return out.drop_packet(packet, DropReason::LinkFailure);
        }
        self.neighbours.forget(next_hop);
        self.on_lost_packet(now, next_hop, packet, out);
        self.plan(now);
    }

    /// The time of [`Self::next_wakeup`] has come.
    fn on_timer(&mut self, now: Time, out: &mut impl Actions<P, Message>) {
        while let Some(&Reverse((due, destination))) = self.repairs.peek()
            && due <= now
        {
            self.repairs.pop();
            self.on_repair_timeout(now, destination, out);
        }
        while let Some(silent) = self.neighbours.take_silent(now) {
            self.on_silence(now, silent, out);
        }
        if self.neighbours.next_hello() <= now {
            self.say_hello(now, out);
        }
        if self.next_tick <= now {
            self.ask_again(now, out);
        }
        self.plan(now);
    }

    /// Looks for a route to `destination` without a packet, as long as it takes: for a transport that was told
    /// [`Actions::route_lost`] and stays silent until [`Actions::route_found`]. Does nothing if there is a route.
    fn seek(&mut self, now: Time, destination: NodeId, out: &mut impl Actions<P, Message>) {
        if self.routes.entry(now, destination).state != State::Up && !self.sought.contains(&destination) {
            self.sought.push(destination);
            self.request(now, destination, out);
            self.plan(now);
        }
    }

    /// Time at which [`Self::on_timer`] wants to be called; [`Time::NEVER`] if there is nothing to wait for.
    #[inline]
    fn next_wakeup(&self) -> Time {
        self.next_wakeup
    }

    /// Hops to `destination` if there is a valid route, for pacing at a source.
    fn hops(&self, now: Time, destination: NodeId) -> Option<u8> {
        self.valid_route(now, destination).map(|route| route.hops)
    }

    /// The neighbour that packets to `destination` go to now, if there is a valid route.
    fn next_hop(&self, now: Time, destination: NodeId) -> Option<NodeId> {
        self.valid_route(now, destination).map(|route| route.next_hop)
    }
}

impl<P: Packet> Aodv<P> {
    fn valid_route(&self, now: Time, destination: NodeId) -> Option<&Route> {
        self.routes.peek(destination).filter(|route| route.state == State::Up && !route.lapsed(now))
    }

    /// Sets `next_tick` and `next_wakeup`. Of all that ns-2's purge does each half second only one thing cannot be done
    /// later: asking again for packets that wait. So there is no timer without waiting packets, and none before the wait of a
    /// search is over.
    fn plan(&mut self, now: Time) {
        let mut next = Time::NEVER;
        let mut last = None;
        for destination in self.buffer.destinations().chain(self.sought.iter().copied()) {
            // Most that waits at a node goes to one destination.
            if last.replace(destination) != Some(destination)
                && let Some(until) = self.routes.waits_until(destination)
            {
                next = next.min(tick_from(until));
            }
        }
        self.next_tick = next.max(tick_after(now));
        if next == Time::NEVER {
            self.next_tick = Time::NEVER;
        }
        let repair = self.repairs.peek().map_or(Time::NEVER, |&Reverse((due, _))| due);
        self.next_wakeup = repair.min(self.next_tick).min(self.neighbours.next_wakeup());
    }

    /// Work of a purge tick for the packets that wait: asks for their routes, as far as the searches allow.
    fn ask_again(&mut self, now: Time, out: &mut impl Actions<P, Message>) {
        // A request changes neither the number nor the order of the entries.
        for place in 0..self.routes.len() {
            let destination = self.routes.newest(place);
            if self.buffer.waits_for(destination) || self.sought.contains(&destination) {
                self.request(now, destination, out);
            }
        }
    }
}

impl RoutingMessage for Message {
    fn size(&self) -> u32 {
        Message::size(self)
    }

    fn kind(&self) -> MessageKind {
        match self {
            Message::Request(_) => MessageKind::Request,
            Message::Reply(reply) if reply.is_hello() => MessageKind::Announcement,
            Message::Reply(_) => MessageKind::Reply,
            Message::Error(_) => MessageKind::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn a_copy_of_a_request_is_dealt_with_on_one_cache_line() {
        let end = offset_of!(Aodv<()>, next_wakeup) + size_of::<Time>();
        assert!(end <= 64 && align_of::<Aodv<()>>() == 64, "{end}");
        assert!(size_of::<Aodv<()>>() <= 320, "{}", size_of::<Aodv<()>>());
    }
}

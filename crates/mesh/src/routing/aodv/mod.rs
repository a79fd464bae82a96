//! AODV with link-layer failure detection: Perkins, Belding-Royer, Das, RFC 3561, in the variant of
//! ns-2.35 as measured. Each node has a state machine. It is called for packets, messages, link
//! failures and timers, and answers through [`Actions`].
//!
//! Departures from RFC 3561, all of them as in ns-2.35:
//! - There are no HELLOs unless they are configured (`hello.rs`). A link fails when the MAC gives
//!   up a *data* packet. The loss of a reply has no further effect.
//! - A failure drops the packet and all packets that wait for the same next hop. The RERR is
//!   broadcast at once, with or without precursors. Forwarded RERRs and RREQs have a jitter,
//!   uniform on [0, 10 ms).
//! - Waits and expanding rings are those of `search.rs`. Entries expire on a half-second grid and
//!   are never deleted (`route.rs`, `table.rs`; the latter can also delete them as in the RFC).
//! - A node raises its own sequence number by two at each request and each failure, so that numbers
//!   of valid routes are even.
//! - An intermediate node answers if its sequence number is at least the requested one, with the
//!   remaining lifetime of its route in whole seconds. There is no gratuitous RREP, no RREP-ACK, no
//!   blacklist and no D flag.
//! - Each data packet without a route is answered by one RERR.
//!
//! Departures from ns-2.35: a RERR holds six destinations (in ns-2: 100), and further RERRs follow.
//! A reply to a node to which the answering node itself has lost its route is not sent (in ns-2:
//! sent to node 0). Sequence numbers wrap. `ns2` local repair is copied with its faults, see
//! `repair.rs`.
//!
//! | Parameter | Value |
//! |---|---|
//! | active route timeout | 10 s after each forwarded packet |
//! | reverse route lifetime | 6 s |
//! | lifetime of a route announced by its destination | 10 s |
//! | memory of handled requests | 6 s, swept every 6 s |
//! | route buffer | 64 packets, 30 s |
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

/// AODV of one node. The fields that a duplicate of a request uses come first and lie on one cache
/// line, because such duplicates are nearly all of the work in a large mesh.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Aodv<P> {
    /// Number of this node.
    me: NodeId,
    /// Method of local repair of a broken link near the destination.
    local_repair: LocalRepair,
    /// Method of detecting lost links.
    detection: AodvDetection,
    /// The latest of the requests in `seen`.
    recent: Recent,
    /// Requests that were handled already.
    seen: Seen,
    /// Earliest time at which something is due, as of the end of the last call.
    next_wakeup: Time,
    /// Routing table of the node.
    routes: Table,
    /// Packets that wait for a route.
    buffer: Buffer<P>,
    /// Destinations for which [`Self::seek`] has requested a route.
    wanted_destinations: Vec<NodeId>,
    /// Own sequence number; even.
    sequence: u32,
    /// Number of the next request of this node.
    next_request: u32,
    /// Next purge tick that can cause a request; [`Time::NEVER`] if no packet is waiting.
    next_tick: Time,
    /// End times and destinations of local repairs.
    repairs: BinaryHeap<Reverse<(Time, NodeId)>>,
    /// Random numbers for the jitter of broadcasts.
    rng: Rng,
    /// Neighbours from which messages were received, under HELLO detection.
    neighbours: Neighbours,
}

impl<P: Packet> Protocol<P> for Aodv<P> {
    type Config = AodvConfig;
    type Message = Message;

    /// Creates the protocol at node `me`. `rng` is the node's own stream for routing jitter
    /// ([`Purpose::RoutingJitter`](meshpace_core::rng::Purpose::RoutingJitter)). With HELLOs, the
    /// first one is due within an interval of time 0.
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
            routes: Table::with_delete_period(delete_period),
            buffer: Buffer::new(),
            wanted_destinations: Vec::new(),
            sequence: 2,
            next_request: 1,
            next_tick: Time::NEVER,
            repairs: BinaryHeap::new(),
            rng,
            neighbours,
        }
    }

    /// Routes, buffers or drops a packet that is not for this node. `previous_hop` is `None` if the
    /// packet comes from this node's own transport. Otherwise its time to live is decremented here.
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
        self.update_timers(now);
    }

    /// Handles `message` of `from`, which is one hop away.
    fn on_message(&mut self, now: Time, from: NodeId, message: Message, out: &mut impl Actions<P, Message>) {
        let is_copy = matches!(&message, Message::Request(request) if self.has_handled(now, request));
        if is_copy && self.next_wakeup == Time::NEVER {
            // No packet is waiting and HELLOs are not used, so nothing changes.
            return;
        }
        self.neighbours.on_message(now, from, &message);
        match message {
            Message::Reply(hello) if hello.is_hello() => self.on_hello(now, from, &hello, out),
            Message::Request(_) if is_copy => {}
            Message::Request(request) => self.on_request(now, from, request, out),
            Message::Reply(reply) => self.on_reply(now, from, reply, out),
            Message::Error(lost) => self.on_error(now, from, &lost, out),
        }
        self.update_timers(now);
    }

    /// Handles a unicast frame to `next_hop` that the MAC gave up at its retry limit.
    fn on_link_failure(&mut self, now: Time, next_hop: NodeId, packet: Option<P>, out: &mut impl Actions<P, Message>) {
        let Some(packet) = packet else { return };
        if self.detection == AodvDetection::Hello {
            return out.drop_packet(packet, DropReason::LinkFailure);
        }
        self.neighbours.forget(next_hop);
        self.on_lost_packet(now, next_hop, packet, out);
        self.update_timers(now);
    }

    /// Executes everything that is due at [`Self::next_wakeup`].
    fn on_timer(&mut self, now: Time, out: &mut impl Actions<P, Message>) {
        while let Some(&Reverse((due, destination))) = self.repairs.peek()
            && due <= now
        {
            self.repairs.pop();
            self.on_repair_timeout(now, destination, out);
        }
        while let Some(lost) = self.neighbours.take_lost(now) {
            self.on_lost_neighbour(now, lost, out);
        }
        if self.neighbours.next_hello() <= now {
            self.send_hello(now, out);
        }
        if self.next_tick <= now {
            self.repeat_requests(now, out);
        }
        self.update_timers(now);
    }

    /// Searches for a route to `destination` without a packet, for as long as necessary. Used by a
    /// transport that has received [`Actions::route_lost`] and stays silent until
    /// [`Actions::route_found`]. Does nothing if there is a route.
    fn seek(&mut self, now: Time, destination: NodeId, out: &mut impl Actions<P, Message>) {
        if self.routes.entry(now, destination).state != State::Up && !self.wanted_destinations.contains(&destination) {
            self.wanted_destinations.push(destination);
            self.request(now, destination, out);
            self.update_timers(now);
        }
    }

    /// Time at which [`Self::on_timer`] must be called; [`Time::NEVER`] if no call is needed.
    #[inline]
    fn next_wakeup(&self) -> Time {
        self.next_wakeup
    }

    /// Number of hops to `destination`, for pacing at a source. `None` if there is no valid route.
    fn hops(&self, now: Time, destination: NodeId) -> Option<u8> {
        self.valid_route(now, destination).map(|route| route.hops)
    }

    /// Neighbour to which packets for `destination` are sent now. `None` if there is no valid
    /// route.
    fn next_hop(&self, now: Time, destination: NodeId) -> Option<NodeId> {
        self.valid_route(now, destination).map(|route| route.next_hop)
    }
}

impl<P: Packet> Aodv<P> {
    /// Route to `destination` if it is valid at `now`.
    fn valid_route(&self, now: Time, destination: NodeId) -> Option<&Route> {
        self.routes.peek(destination).filter(|route| route.state == State::Up && !route.is_expired(now))
    }

    /// Sets `next_tick` and `next_wakeup`. Of the work of ns-2's purge, which runs each half
    /// second, only one part cannot be done later: repeated requests for waiting packets. The node
    /// therefore needs no timer if no packet is waiting, and none before the wait of a search is
    /// over.
    fn update_timers(&mut self, now: Time) {
        let mut next = Time::NEVER;
        let mut last = None;
        for destination in self.buffer.destinations().chain(self.wanted_destinations.iter().copied()) {
            // Most packets that wait at a node have the same destination, so repeated lookups are
            // skipped.
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

    /// Does the work of a purge tick for waiting packets: requests their routes, if the searches
    /// permit it.
    fn repeat_requests(&mut self, now: Time, out: &mut impl Actions<P, Message>) {
        // A request changes neither the number nor the order of the entries.
        for place in 0..self.routes.len() {
            let destination = self.routes.newest(place);
            if self.buffer.waits_for(destination) || self.wanted_destinations.contains(&destination) {
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

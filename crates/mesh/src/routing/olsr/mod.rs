//! OLSR: Clausen, Jacquet (eds.), RFC 3626, as a state machine per node. It is called for packets,
//! messages, link failures and timers, and answers through [`Actions`]. Every node keeps a map of
//! links: HELLOs report the links around the node; TCs, flooded over relays (MPRs), report the
//! other links. Routes are shortest paths on this map.
//!
//! Guarantee: if links have not changed for the time that the messages need (see below), routes are
//! shortest and free of loops. While a change spreads, the maps of nodes differ and routes can
//! loop; the time to live ends such loops.
//!
//! | Parameter | Value | RFC 3626 |
//! |---|---|---|
//! | HELLO_INTERVAL, less a jitter | 2 s | 18.2 |
//! | TC_INTERVAL, less a jitter | 5 s | 18.2 |
//! | MAXJITTER, of emission and of forwarding | HELLO_INTERVAL / 4 = 0.5 s, uniform | 18.9 |
//! | neighbour hold | 3 x HELLO_INTERVAL = 6 s | 18.3 |
//! | topology hold | 3 x TC_INTERVAL = 15 s | 18.3 |
//! | duplicate hold | 30 s | 18.3 |
//! | MPR_COVERAGE, TC_REDUNDANCY | 1, 0 | 18.9 |
//! | willingness | WILL_DEFAULT (3) at all nodes | 18.8 |
//!
//! Readings and departures: each node has one interface, so there is no MID. There is no HNA. A
//! packet holds one message (`message.rs`). After the loss of a selector, the next TC is sent
//! early, after a jitter. A link that the MAC reports as lost (13) counts as lost for a neighbour
//! hold time. The metric ETX is that of olsrd 0.4.10 (`quality.rs`, `mpr.rs`). The first HELLO and
//! TC of a node are due at a random time within an interval of time 0. Packets without a route are
//! dropped, because a link-state protocol has no route requests.

mod config;
mod duplicates;
mod links;
mod message;
mod mpr;
mod quality;
mod routes;
mod topology;

pub use config::{OlsrConfig, OlsrMetric};
pub use message::{Content, Hello, LinkCode, Listed, Message, NEIGHB_HOLD_TIME, TOP_HOLD_TIME, Tc};
pub use mpr::{by_cost as choose_relays_by_cost, by_hops as choose_relays_by_hops};
pub use quality::{ONE as ETX_ONE, etx};
pub use routes::Route;

use super::actions::{Actions, DropReason};
use super::protocol::{MessageKind, Protocol, RoutingMessage};
use crate::packet::Packet;
use alloc::vec::Vec;
use core::cell::RefCell;
use duplicates::Duplicates;
use links::{Change, Links};
use meshpace_core::{Duration, NodeId, Rng, Time};
use routes::Routes;
use topology::Topology;

/// Longest time between two HELLOs of a node.
pub const HELLO_INTERVAL: Duration = Duration::from_secs(2);
/// Longest time between two TCs of a node.
pub const TC_INTERVAL: Duration = Duration::from_secs(5);
/// Largest jitter.
pub const MAXJITTER: Duration = Duration(HELLO_INTERVAL.0 / 4);
/// Time to live of a TC.
const TC_TIME_TO_LIVE: u8 = 255;

/// OLSR of one node.
#[derive(Clone, Debug)]
pub struct Olsr {
    me: NodeId,
    metric: OlsrMetric,
    /// True if a failure reported by the MAC ends a link.
    link_layer: bool,
    /// Random numbers for jitter.
    rng: Rng,
    /// Links and neighbourhood of this node.
    links: Links,
    /// Links in the rest of the mesh.
    topology: Topology,
    /// Messages that were handled already.
    seen: Duplicates,
    routes: Routes,
    /// True if the map has changed since `routes` was computed. A node that sends and forwards
    /// nothing need not compute routes.
    stale: bool,
    /// Routes of the changed map, computed if they were queried since the change.
    queried_routes: RefCell<Option<Routes>>,
    /// Destinations of this node's own packets, ascending, and whether their route is lost.
    in_use: Vec<(NodeId, bool)>,
    /// Number of the next message.
    sequence: u16,
    /// Number of the next packet.
    packet: u16,
    /// Sequence number of the set of selectors.
    ansn: u16,
    next_hello: Time,
    next_tc: Time,
    /// Time until which TCs are sent although no selector is left, so that all nodes remove the
    /// advertised links.
    advertise_until: Time,
    /// Time before which no validity ends.
    next_expiry: Time,
}

impl<P: Packet> Protocol<P> for Olsr {
    type Config = OlsrConfig;
    type Message = Message;

    /// Creates the protocol at node `me`. If `link_layer` is configured, [`Self::on_link_failure`]
    /// ends a link (RFC 3626, section 13) for 6 s, whatever HELLOs report. `rng` is the node's own
    /// stream for routing jitter
    /// ([`Purpose::RoutingJitter`](meshpace_core::rng::Purpose::RoutingJitter)).
    fn new(me: NodeId, config: OlsrConfig, mut rng: Rng) -> Self {
        let OlsrConfig { metric, link_layer } = config;
        let mut first =
            |interval: Duration| Time::ZERO + Duration::from_secs_f64(rng.uniform() * interval.as_secs_f64());
        let (next_hello, next_tc) = (first(HELLO_INTERVAL), first(TC_INTERVAL));
        Olsr {
            me,
            metric,
            link_layer,
            rng,
            links: Links::new(me, metric),
            topology: Topology::default(),
            seen: Duplicates::default(),
            routes: Routes::default(),
            stale: false,
            queried_routes: RefCell::default(),
            in_use: Vec::new(),
            sequence: 0,
            packet: 0,
            ansn: 0,
            next_hello,
            next_tc,
            advertise_until: Time::ZERO,
            next_expiry: Time::NEVER,
        }
    }

    /// Routes or drops a packet that is not for this node. `previous_hop` is `None` if the packet
    /// comes from this node's own transport. Otherwise its time to live is decremented here.
    fn on_packet(
        &mut self,
        _now: Time,
        mut packet: P,
        previous_hop: Option<NodeId>,
        out: &mut impl Actions<P, Message>,
    ) {
        if previous_hop.is_some() && !packet.decrement_ttl() {
            return out.drop_packet(packet, DropReason::TtlExpired);
        }
        let destination = packet.destination();
        if self.stale {
            self.compute();
        }
        let Some(route) = self.routes.get(destination) else {
            return out.drop_packet(packet, DropReason::NoRoute);
        };
        if previous_hop.is_none()
            && let Err(at) = self.in_use.binary_search_by_key(&destination, |used| used.0)
        {
            self.in_use.insert(at, (destination, false));
        }
        out.forward(packet, route.next_hop, Duration::ZERO);
    }

    /// Handles `message` of `from`, which is one hop away.
    fn on_message(&mut self, now: Time, from: NodeId, message: Message, out: &mut impl Actions<P, Message>) {
        let mut change = Change::default();
        let mut topology_changed = false;
        match &message.content {
            Content::Hello(hello) => change = self.links.on_hello(now, from, hello),
            Content::Tc(tc) => {
                if message.originator == self.me || !self.links.is_symmetric(from) {
                    return;
                }
                // With one interface, the first copy decides whether the message is forwarded
                // (3.4.1).
                if !self.seen.first_time(now, message.originator, message.sequence) {
                    return;
                }
                let metric = self.metric;
                topology_changed =
                    self.topology.update(now, message.originator, tc, |listed| Links::cost_of(metric, listed));
                if message.ttl > 1 && self.links.is_selector(from) {
                    self.forward(message, out);
                }
            }
        }
        self.apply_changes(now, change, topology_changed, out);
    }

    /// Handles a unicast frame to `next_hop` that the MAC gave up at its retry limit.
    fn on_link_failure(&mut self, now: Time, next_hop: NodeId, packet: Option<P>, out: &mut impl Actions<P, Message>) {
        if let Some(packet) = packet {
            out.drop_packet(packet, DropReason::LinkFailure);
        }
        if self.link_layer {
            let change = self.links.on_failure(now, next_hop);
            self.apply_changes(now, change, false, out);
        }
    }

    /// Executes everything that is due at [`Self::next_wakeup`].
    fn on_timer(&mut self, now: Time, out: &mut impl Actions<P, Message>) {
        if self.next_expiry <= now {
            let change = self.links.expire(now);
            let topology_changed = self.topology.expire(now);
            self.apply_changes(now, change, topology_changed, out);
            self.next_expiry = self.links.next_expiry(now).min(self.topology.next_expiry());
        }
        if self.next_hello <= now {
            let mut neighbours = self.links.hello(now);
            for hello in Hello::parts(&mut neighbours) {
                self.emit(Content::Hello(hello), 1, out);
            }
            self.next_hello = self.after(now, HELLO_INTERVAL);
        }
        if self.next_tc <= now {
            let advertised = self.links.advertised();
            if !advertised.is_empty() {
                self.advertise_until = now + TOP_HOLD_TIME;
            }
            if now < self.advertise_until {
                for tc in Tc::parts(self.ansn, &advertised) {
                    self.emit(Content::Tc(tc), TC_TIME_TO_LIVE, out);
                }
            }
            self.seen.sweep(now);
            self.next_tc = self.after(now, TC_INTERVAL);
        }
    }

    /// Time at which [`Self::on_timer`] must be called.
    #[inline]
    fn next_wakeup(&self) -> Time {
        self.next_hello.min(self.next_tc).min(self.next_expiry)
    }

    /// Number of hops to `destination`, for pacing at a source. `None` if there is no route.
    #[inline]
    fn hops(&self, _now: Time, destination: NodeId) -> Option<u8> {
        self.route(destination).map(|route| route.hops)
    }

    /// Neighbour to which packets for `destination` are sent now. `None` if there is no route.
    #[inline]
    fn next_hop(&self, _now: Time, destination: NodeId) -> Option<NodeId> {
        self.route(destination).map(|route| route.next_hop)
    }
}

impl RoutingMessage for Message {
    fn size(&self) -> u32 {
        Message::size(self)
    }

    fn kind(&self) -> MessageKind {
        MessageKind::Announcement
    }
}

impl Olsr {
    /// Route to `destination` with its cost: hops, or ETX in units of 1 / [`ETX_ONE`].
    pub fn route(&self, destination: NodeId) -> Option<Route> {
        if !self.stale {
            return self.routes.get(destination);
        }
        let mut queried_routes = self.queried_routes.borrow_mut();
        let routes = queried_routes.get_or_insert_with(|| {
            let mut routes = Routes::default();
            routes.compute(self.me, self.links.edges().chain(self.topology.edges()));
            routes
        });
        routes.get(destination)
    }

    /// Computes the routes from the current map.
    fn compute(&mut self) {
        self.routes.compute(self.me, self.links.edges().chain(self.topology.edges()));
        self.stale = false;
    }

    /// Neighbours that this node has chosen as relays, ascending.
    pub fn relays(&self) -> &[NodeId] {
        self.links.relays()
    }

    /// True if the link between `neighbour` and this node is known to be symmetric.
    pub fn is_symmetric(&self, neighbour: NodeId) -> bool {
        self.links.is_symmetric(neighbour)
    }

    /// Updates relays, routes and notices after a change.
    fn apply_changes<P>(
        &mut self,
        now: Time,
        change: Change,
        topology_changed: bool,
        out: &mut impl Actions<P, Message>,
    ) {
        // Every validity that starts with a message lasts at least this long, so the search for the
        // earliest end can wait until then.
        self.next_expiry = self.next_expiry.min(now + quality::MISS_TIMEOUT);
        if change.selectors {
            self.ansn = self.ansn.wrapping_add(1);
        }
        if change.selector_lost {
            self.next_tc = self.next_tc.min(now + self.jitter());
        }
        if change.neighbourhood {
            self.links.choose_relays();
        }
        if change.neighbourhood || topology_changed {
            self.stale = true;
            *self.queried_routes.get_mut() = None;
        }
        if self.stale && !self.in_use.is_empty() {
            self.compute();
            for (destination, lost) in &mut self.in_use {
                let there = self.routes.get(*destination).is_some();
                if there && *lost {
                    out.route_found(*destination);
                } else if !there && !*lost {
                    out.route_lost(*destination);
                }
                *lost = !there;
            }
        }
    }

    /// Sends a message of this node's own.
    fn emit<P>(&mut self, content: Content, ttl: u8, out: &mut impl Actions<P, Message>) {
        let (originator, metric) = (self.me, self.metric);
        let (sequence, packet) = (self.sequence, self.packet);
        self.sequence = sequence.wrapping_add(1);
        self.packet = packet.wrapping_add(1);
        let message = Message { originator, sequence, packet, ttl, hop_count: 0, metric, content };
        out.send(message, NodeId::BROADCAST, Duration::ZERO);
    }

    /// Forwards another node's message after a jitter.
    fn forward<P>(&mut self, mut message: Message, out: &mut impl Actions<P, Message>) {
        message.ttl -= 1;
        message.hop_count = message.hop_count.saturating_add(1);
        message.packet = self.packet;
        self.packet = self.packet.wrapping_add(1);
        let delay = self.jitter();
        out.send(message, NodeId::BROADCAST, delay);
    }

    fn jitter(&mut self) -> Duration {
        Duration::from_secs_f64(self.rng.uniform() * MAXJITTER.as_secs_f64())
    }

    /// Time of the next message of a kind: an interval less a jitter from `now`.
    fn after(&mut self, now: Time, interval: Duration) -> Time {
        now + interval.saturating_sub(self.jitter())
    }
}

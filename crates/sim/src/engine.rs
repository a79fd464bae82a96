//! Engine: the nodes of a mesh under one clock, which a driver advances.
//!
//! The engine runs until a given time, or until an event concerns its driver: a packet reached its
//! destination, or a timer of the driver fired. The simulator drives the engine with transports,
//! the emulator with the machine's clock, and a viewer frame by frame. The engine is generic over
//! the packets it carries and over the [`Probe`] that observes it.
//!
//! A transmission is announced to every station that senses it when it begins
//! ([`Dcf::on_departure`]); a station processes past frames before its own next event. The actions
//! of a station and their times are exactly those of a simulation in which both ends of a frame are
//! events at every receiver. Here, however, only the end of a frame is an event, and only at
//! stations to which the frame may be addressed (`on_air`).

mod counters;
mod features;
mod frames;
mod jitter;
mod packets;
#[cfg(test)]
mod tests;

use crate::mobility::Motion;
use crate::on_air::OnAir;
use crate::probe::{Event, Probe};
use crate::queue::{self, EventQueue, HOST_RANK, Key, LINK_RANK, Owner};
use crate::slab::Slab;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use features::Features;
use jitter::SourceDelays;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Rng, Time};
use meshpace_mesh::config::{Position, Repeats};
use meshpace_mesh::link::arp::Arp;
use meshpace_mesh::link::discipline::{Discipline, LinkState};
use meshpace_mesh::mac::{Action, Backoff, Dcf, Mpdu, OrderedTime, Timing};
use meshpace_mesh::radio::{Channel, Neighbours, power};
use meshpace_mesh::routing::{ActionList, HopCount, Router};
use meshpace_mesh::{Body, MeshConfig, Packet, Queued};
use packets::Delayed;

pub use counters::Counters;

/// Delay of ns-2's link layer, in each direction.
const LINK_DELAY: Duration = Duration::from_micros(25);
/// Delay of ns-2's ARP for its own packets and for a packet that it releases.
const ARP_DELAY: Duration = Duration::from_micros(5);

/// Number of nodes from which their state does not fit into a processor's cache.
const LARGE: usize = 1_000;

/// Timer of the engine's driver. The numbers must be small, because they index a table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimerId(pub u32);

/// Indication of the engine to its driver.
///
/// The term is that of the reference models of OSI and IEEE 802: an indication is what a layer
/// passes up to its user.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Indication<P> {
    /// A packet reached its destination.
    Delivered {
        /// Destination of the packet.
        node: NodeId,
        /// Neighbour that sent the packet on the last hop.
        previous_hop: NodeId,
        /// Delivered packet.
        packet: P,
    },
    /// Routing at `node` has lost a route to `destination` that is in use, or has found a route
    /// again (ELFN, and the notice of recovery).
    Route {
        /// Node of the routing protocol.
        node: NodeId,
        /// Destination of the route.
        destination: NodeId,
        /// True if the route was found, false if it was lost.
        found: bool,
    },
    /// A timer of the driver fired.
    Timer {
        /// Number that was given to [`Engine::set_timer`].
        id: TimerId,
    },
}

/// State of a station as of its own last event. Later effects of other stations are not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Station {
    /// Number of packets in the interface queue.
    pub queue: usize,
    /// NAV: time until which the station considers the medium reserved. In the past if it does not.
    pub nav_until: Time,
    /// Backoff timer of the station.
    pub backoff: Backoff,
}

#[derive(Clone)]
struct Node<P> {
    mac: Dcf<P>,
    queue: Discipline<P>,
    arp: Arp<P>,
}

/// A packet inside the link layer, on its way up or down.
#[derive(Clone)]
enum InLink<P> {
    Up { from: NodeId, body: Body<P> },
    Down(Queued<P>),
}

/// A running simulation of a mesh. A clone continues exactly like the original.
#[derive(Clone)]
pub struct Engine<P, O> {
    now: Time,
    timing: Timing,
    neighbours: Neighbours,
    /// Movement of the nodes. If it is set, the neighbour table is made for each transmission.
    motion: Option<Motion>,
    /// For each node, the neighbours from which it accepts frames, sorted. Empty if all nodes
    /// accept all frames.
    firewall: Vec<Vec<NodeId>>,
    /// For each node, the nodes with which it can exchange frames.
    links: Vec<Vec<NodeId>>,
    router: Router<P>,
    nodes: Vec<Node<P>>,
    queue: EventQueue,
    /// Packets inside link layers. The delay is the same everywhere, so the queue is first in,
    /// first out.
    link: VecDeque<(Time, NodeId, InLink<P>)>,
    /// Number of the next packets in `link` for which the state of routing has been read ahead.
    read_ahead_left: usize,
    delayed: Slab<Delayed<P>>,
    /// Number of delayed packets so far.
    delays: u32,
    /// Frames whose end must still be processed at some station.
    on_air: Slab<OnAir<P>>,
    features: Features,
    /// For each transmission, its MPDUs; empty if it is not an aggregate. Used only if stations
    /// send aggregates.
    mpdus: Vec<Vec<Mpdu<P>>>,
    /// Repetition of broadcasts of routing and ARP.
    repeats: Repeats,
    /// Random delay at the source, which is not caused by a queue.
    source_delays: SourceDelays,
    /// Notices of routes that the driver has not received yet.
    notices: VecDeque<(NodeId, NodeId, bool)>,
    /// Actions that routing has requested and that have not been executed yet.
    actions: ActionList<P>,
    counters: Counters,
    frames: u64,
    broadcasts: u64,
    sensed: u64,
    fingerprint: u64,
    probe: O,
}

impl<P: Packet, O: Probe<P>> Engine<P, O> {
    /// Creates the nodes at `positions`, without traffic, at time zero. `destinations` are the
    /// nodes to which packets will be sent: static routes are computed for them.
    pub fn new(
        positions: &[Position],
        config: &MeshConfig,
        destinations: impl IntoIterator<Item = NodeId>,
        seed: u64,
        probe: O,
    ) -> Self {
        let timing = Timing::new(&config.mac, &config.radio);
        let channel = Channel::new(&config.radio);
        let neighbours = Neighbours::new(&channel, positions);
        let links = neighbours.adjacency();
        let ids = || (0..positions.len()).map(|i| NodeId(i as u16));
        let stream = |purpose, node: NodeId| Rng::stream(seed, purpose, u64::from(node.0));
        let router = Router::new(config.routing, &links, destinations, |node| stream(Purpose::RoutingJitter, node));
        let nodes: Vec<Node<P>> = ids()
            .map(|node| {
                let queue = Discipline::new(node, &config.link, &timing, stream(Purpose::Marking, node));
                Node {
                    mac: Dcf::new(node, &timing, stream(Purpose::Backoff, node))
                        .with_receiver(channel.new_receiver(stream(Purpose::Radio, node)))
                        .reporting_attempts(queue.wants_attempts()),
                    queue,
                    arp: Arp::new(node),
                }
            })
            .collect();
        let features = Features::new(config, &timing, nodes.iter().map(|node| &node.queue), probe.interests());
        let mut engine = Engine {
            now: Time::ZERO,
            timing,
            neighbours,
            motion: None,
            firewall: Vec::new(),
            links,
            router,
            nodes,
            queue: EventQueue::default(),
            link: VecDeque::new(),
            read_ahead_left: 0,
            delayed: Slab::default(),
            delays: 0,
            on_air: Slab::default(),
            features,
            mpdus: Vec::new(),
            repeats: config.link.repeats,
            source_delays: SourceDelays::new(config.link.jitter, seed),
            notices: VecDeque::new(),
            actions: ActionList::default(),
            counters: Counters::default(),
            frames: 0,
            broadcasts: 0,
            sensed: 0,
            fingerprint: 0xcbf2_9ce4_8422_2325,
            probe,
        };
        for node in ids() {
            engine.schedule_routing(node);
        }
        engine
    }

    /// Lets the nodes move from time zero on. Static routes remain those of the initial positions.
    pub fn set_motion(&mut self, motion: Motion) {
        let channel = self.neighbours.channel();
        self.neighbours = Neighbours::moving(channel, self.nodes.len());
        self.motion = Some(motion);
    }

    /// Radio of the mesh.
    pub fn channel(&self) -> &Channel {
        self.neighbours.channel()
    }

    /// Blocks the connection between two nodes in both directions if `is_blocked`, or unblocks it,
    /// from the next transmission on. Returns false, without any effect on transmissions, if the
    /// nodes do not move ([`Engine::set_motion`]), because their neighbour tables are made only
    /// once. Static routes do not change.
    pub fn set_blocked(&mut self, one: NodeId, other: NodeId, is_blocked: bool) -> bool {
        self.neighbours.channel_mut().set_blocked(one, other, is_blocked);
        self.motion.is_some()
    }

    /// Movement of the nodes; `None` if they do not move.
    pub fn motion(&mut self) -> Option<&mut Motion> {
        self.motion.as_mut()
    }

    /// Makes every node drop the frames of all nodes except its neighbours along `links`, which
    /// apply in both directions. Frames are dropped above the MAC, which still acknowledges them
    /// and sets its NAV. Static routes to `destinations` are computed over the remaining links.
    pub fn set_firewall(&mut self, links: &[(NodeId, NodeId)], destinations: impl IntoIterator<Item = NodeId>) {
        let mut accepted = alloc::vec![Vec::new(); self.nodes.len()];
        for &(a, b) in links {
            accepted[a.index()].push(b);
            accepted[b.index()].push(a);
        }
        accepted.iter_mut().for_each(|neighbours: &mut Vec<NodeId>| neighbours.sort());
        for (node, neighbours) in self.links.iter_mut().enumerate() {
            neighbours.retain(|neighbour| accepted[node].binary_search(neighbour).is_ok());
        }
        self.router.set_links(&self.links, destinations);
        self.firewall = accepted;
    }

    /// Current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of transmissions so far, including control frames.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Number of broadcasts among the transmissions.
    pub fn broadcasts(&self) -> u64 {
        self.broadcasts
    }

    /// Counters of losses and of routing packets so far.
    pub fn counters(&self) -> Counters {
        let collisions = self.nodes.iter().map(|node| node.mac.collisions()).sum();
        let internal_collisions = self.nodes.iter().map(|node| node.mac.internal_collisions()).sum();
        Counters { collisions, internal_collisions, discoveries: self.actions.searches, ..self.counters }
    }

    /// Number of stations that sensed a transmission, summed over all transmissions.
    pub fn sensed(&self) -> u64 {
        self.sensed
    }

    /// Hash of (time, node, frame kind, bytes) of every transmission and every delivery so far.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Probe that observes the engine.
    pub fn probe(&mut self) -> &mut O {
        &mut self.probe
    }

    /// Number of hops from `from` to `to`, as the routing protocol at `from` knows it.
    #[inline]
    pub fn hops(&self, from: NodeId, to: NodeId) -> Option<u8> {
        self.router.hops(self.now, from, to)
    }

    /// Neighbour to which routing at `from` would send a packet for `to`.
    pub fn next_hop(&self, from: NodeId, to: NodeId) -> Option<NodeId> {
        self.router.next_hop(self.now, from, to)
    }

    /// Link-layer state of `node` for the path towards `destination`; `None` without a route.
    pub fn link_state(&mut self, node: NodeId, destination: NodeId) -> Option<LinkState> {
        let (next_hop, hops) = (self.next_hop(node, destination)?, self.hops(node, destination)?);
        Some(self.nodes[node.index()].queue.link_state(self.now, next_hop, destination, hops))
    }

    /// State of the station of `node`.
    pub fn station(&self, node: NodeId) -> Station {
        let Node { mac, queue, .. } = &self.nodes[node.index()];
        Station { queue: queue.len(), nav_until: mac.nav_until(), backoff: mac.backoff() }
    }

    /// Power in dBm with which `receiver` receives `sender` at their current positions; `None` if
    /// it does not sense the sender.
    pub fn received_power_dbm(&mut self, receiver: NodeId, sender: NodeId) -> Option<f32> {
        let neighbour = match &mut self.motion {
            Some(motion) => {
                let distance = motion.position(sender, self.now).distance(motion.position(receiver, self.now));
                self.neighbours.channel().neighbour(sender, receiver, distance)?
            }
            None => *self.neighbours.of(sender).iter().find(|neighbour| neighbour.node == receiver)?,
        };
        Some(power::dbm(neighbour.power) as f32)
    }

    /// Starts a search for a route from `node` to `destination` without a packet, for a transport
    /// that is silent until [`Indication::Route`] reports one. Protocols that find routes by
    /// themselves ignore the call.
    pub fn seek_route(&mut self, node: NodeId, destination: NodeId) {
        self.router.seek(self.now, node, destination, &mut self.actions);
        self.carry_out(node);
    }

    /// Number of hops on the shortest path, if there is one. The path is searched by each call, so
    /// this is meant for outcomes.
    pub fn shortest_hops(&self, from: NodeId, to: NodeId) -> Option<u8> {
        HopCount::default().between(&self.links, from, to, u64::MAX).map(|hops| hops.min(255) as u8)
    }

    /// Sets a timer of the driver, which belongs to `node`. [`Time::NEVER`] cancels it.
    #[inline]
    pub fn set_timer(&mut self, id: TimerId, node: NodeId, at: Time) {
        self.queue.set(Owner::Host, id.0, Key::timer(at, node, HOST_RANK + id.0));
    }

    /// Sends `packet` from the transport of `node`.
    pub fn inject(&mut self, node: NodeId, packet: P) {
        self.probe.on(self.now, Event::Inject { node, packet: &packet });
        if self.source_delays.is_on() && !packet.is_pure_ack() {
            self.delay_at_source(node, packet);
        } else {
            self.route(node, packet, None);
        }
    }

    /// Sends `packet` from `node` to its neighbour `next_hop`, or as a broadcast, without routing
    /// and address resolution. This serves a network layer outside the engine. A node that decodes
    /// the packet delivers it if it is addressed to this node or is a broadcast. The sender gets no
    /// notice of a failure.
    pub fn inject_to_neighbour(&mut self, node: NodeId, next_hop: NodeId, packet: P) {
        self.probe.on(self.now, Event::Inject { node, packet: &packet });
        self.link.push_back((self.now + LINK_DELAY, node, InLink::Down(Queued { next_hop, body: Body::Data(packet) })));
    }

    /// Time of the next event, whatever it concerns. [`Time::NEVER`] without an event.
    pub fn next_event(&self) -> Time {
        self.queue.time().min(self.link_key().time())
    }

    /// Runs until an event concerns the driver, and returns its indication. Returns `None` if there
    /// is none until `until`.
    pub fn advance(&mut self, until: Time) -> Option<Indication<P>> {
        loop {
            if let Some((node, destination, found)) = self.notices.pop_front() {
                return Some(Indication::Route { node, destination, found });
            }
            let link_key = self.link_key();
            let queue::Event { key: first, owner, index } = self.queue.first();
            if link_key < first {
                if link_key.time() > until {
                    break;
                }
                self.read_ahead_routing();
                let Some((time, node, item)) = self.link.pop_front() else { break };
                self.now = time;
                match item {
                    InLink::Down(queued) => self.enqueue(node, queued),
                    InLink::Up { from, body } => {
                        if let Some(packet) = self.receive(node, from, body) {
                            self.mix_fingerprint(node, 4, packet.size());
                            self.probe.on(time, Event::Deliver { node, packet: &packet });
                            return Some(Indication::Delivered { node, previous_hop: from, packet });
                        }
                    }
                }
                continue;
            }
            if first.time() > until || first.time() == Time::NEVER {
                break;
            }
            debug_assert!(first.time() >= self.now, "an event in the past");
            self.now = first.time();
            // The timer of a station is nearly always set again, which moves it, so it need not be
            // cancelled.
            if owner != Owner::Mac {
                self.queue.cancel(owner, index);
            }
            match owner {
                Owner::FrameEnd => self.trailing_edge(index, until),
                Owner::Mac => {
                    let node = NodeId(index as u16);
                    let state = &mut self.nodes[index as usize];
                    state.mac.catch_up(OrderedTime::timer(self.now), &self.timing);
                    let t = &self.timing;
                    let due = if t.edca {
                        state.mac.update_and_next_wakeup_of_all(self.now, t)
                    } else {
                        state.mac.next_wakeup(t)
                    };
                    if due <= self.now {
                        if self.features.reports_link_quality && self.motion.is_some() {
                            self.report_link_qualities(node);
                        }
                        let state = &mut self.nodes[index as usize];
                        let action = state.mac.on_timer(self.now, &self.timing);
                        self.execute(node, action);
                    } else if self.timing.edca {
                        self.schedule_categories(node);
                    } else {
                        self.schedule_mac(node);
                    }
                }
                Owner::Routing => {
                    let node = NodeId(index as u16);
                    self.router.on_timer(self.now, node, &mut self.actions);
                    self.carry_out(node);
                }
                Owner::Delayed => {
                    if let Some(delayed) = self.delayed.remove(index) {
                        self.resume(delayed);
                    }
                }
                Owner::Link => {
                    let node = NodeId(index as u16);
                    let state = &mut self.nodes[index as usize];
                    state.queue.on_timer(self.now);
                    self.on_enqueued(node);
                }
                Owner::Reorder => {
                    let node = NodeId(index as u16);
                    self.catch_up(node);
                    self.nodes[node.index()].mac.on_reorder_timer(self.now);
                    self.execute(node, Action::None);
                }
                Owner::Host => return Some(Indication::Timer { id: TimerId(index) }),
            }
        }
        self.now = until.max(self.now);
        None
    }

    #[inline]
    fn link_key(&self) -> Key {
        self.link.front().map_or(Key::NEVER, |item| Key::timer(item.0, item.1, LINK_RANK))
    }

    /// True if an event at `key` comes before all other events, and not after `until`.
    #[inline]
    fn is_next(&mut self, key: Key, until: Time) -> bool {
        key.time() <= until && key < self.queue.first().key && key < self.link_key()
    }

    #[inline]
    fn mix_fingerprint(&mut self, node: NodeId, kind: u64, bytes: u32) {
        // The hash is FNV-1a over two words per event.
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let what = u64::from(node.0) << 40 | kind << 32 | u64::from(bytes);
        self.fingerprint = ((self.fingerprint ^ self.now.0).wrapping_mul(PRIME) ^ what).wrapping_mul(PRIME);
    }
}

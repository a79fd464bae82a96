//! The engine: the nodes of a mesh under one clock, which a driver advances.
//!
//! It runs until a given time or until something happens that concerns its driver: a packet reached the node it is for,
//! or one of the driver's timers fired. The simulator drives it with transports, the emulator by the machine's clock,
//! a viewer frame by frame. It is generic over the packets it carries and over the [`Probe`] that observes it.
//!
//! A transmission is announced to every station that senses it when it begins ([`Dcf::on_departure`]); a station processes
//! past frames before its own next event. What a station does, and when, is exactly what it would be if both ends of a frame
//! were events at every receiver, but only the end of a frame at a station that it may be for is an event (`on_air`).

mod counters;
mod duties;
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
use duties::Duties;
use jitter::Lateness;
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

/// Delay of ns-2's link layer, each way.
const LINK_DELAY: Duration = Duration::from_micros(25);
/// Delay of ns-2's ARP for a packet of its own or one it releases.
const ARP_DELAY: Duration = Duration::from_micros(5);

/// From so many nodes on their state is not all in a processor's cache.
const LARGE: usize = 1_000;

/// A timer of whoever drives the engine. Small numbers: they index a table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimerId(pub u32);

/// Indication of the engine to its driver.
///
/// The word is that of the reference models of OSI and IEEE 802: what a layer passes up to its user is an indication.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Indication<P> {
    /// `packet` reached `node`, which it is for.
    Delivered {
        /// The destination.
        node: NodeId,
        /// The neighbour that sent it on the last hop.
        previous_hop: NodeId,
        /// The packet.
        packet: P,
    },
    /// Routing at `node` has lost its route to `destination` while in use, or has found one again (ELFN, and the notice
    /// of recovery).
    Route {
        /// The node whose routing tells.
        node: NodeId,
        /// Destination of the route.
        destination: NodeId,
        /// True if it was found; lost otherwise.
        found: bool,
    },
    /// A timer of the driver fired.
    Timer {
        /// As given to [`Engine::set_timer`].
        id: TimerId,
    },
}

/// State of a station as of its own last event: the effect of other stations since is not included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Station {
    /// Packets that wait in its interface queue.
    pub queue: usize,
    /// Until when it holds the medium for reserved; in the past if it does not.
    pub nav_until: Time,
    /// Its backoff timer.
    pub backoff: Backoff,
}

#[derive(Clone)]
struct Node<P> {
    mac: Dcf<P>,
    queue: Discipline<P>,
    arp: Arp<P>,
}

/// A packet inside the link layer, up or down.
#[derive(Clone)]
enum InLink<P> {
    Up { from: NodeId, body: Body<P> },
    Down(Queued<P>),
}

/// A mesh under way. A clone goes on as the original does.
#[derive(Clone)]
pub struct Engine<P, O> {
    now: Time,
    timing: Timing,
    neighbours: Neighbours,
    /// Where nodes move; their neighbour tables are then made anew for each transmission.
    motion: Option<Motion>,
    /// By node, the neighbours from which it accepts frames, sorted; empty if all accept everything.
    firewall: Vec<Vec<NodeId>>,
    /// Nodes that can exchange frames, by node.
    links: Vec<Vec<NodeId>>,
    router: Router<P>,
    nodes: Vec<Node<P>>,
    queue: EventQueue,
    /// Packets that cross a link layer, which takes the same time everywhere: first in, first out.
    link: VecDeque<(Time, NodeId, InLink<P>)>,
    /// Number of the next packets in `link` for which routing's state has been read ahead.
    read_ahead_left: usize,
    delayed: Slab<Delayed<P>>,
    /// Number of them so far.
    delays: u32,
    /// The frames of which somebody is still to be told.
    on_air: Slab<OnAir<P>>,
    duties: Duties,
    /// If stations send aggregates, by the place of a transmission: the MPDUs of it, or none if it is no aggregate.
    mpdus: Vec<Vec<Mpdu<P>>>,
    /// Repetitions of the broadcasts of routing and ARP.
    repeats: Repeats,
    /// Delay that no queue causes.
    lateness: Lateness,
    /// Notices of routes that the driver has not been told yet.
    notices: VecDeque<(NodeId, NodeId, bool)>,
    /// Actions that routing has asked for and that are not done yet.
    actions: ActionList<P>,
    counters: Counters,
    frames: u64,
    broadcasts: u64,
    sensed: u64,
    fingerprint: u64,
    probe: O,
}

impl<P: Packet, O: Probe<P>> Engine<P, O> {
    /// The nodes at `positions`, silent at time zero. `destinations` are the nodes that packets will be sent to: static
    /// routes are computed for them.
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
        let duties = Duties::new(config, &timing, nodes.iter().map(|node| &node.queue), probe.interests());
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
            duties,
            mpdus: Vec::new(),
            repeats: config.link.repeats,
            lateness: Lateness::new(config.link.jitter, seed),
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

    /// Lets the nodes move, from time zero on. Static routes stay those of the places given before.
    pub fn set_motion(&mut self, motion: Motion) {
        let channel = self.neighbours.channel();
        self.neighbours = Neighbours::moving(channel, self.nodes.len());
        self.motion = Some(motion);
    }

    /// The radio.
    pub fn channel(&self) -> &Channel {
        self.neighbours.channel()
    }

    /// Puts a wall between two nodes through which neither hears the other, or takes it away again, from the next
    /// transmission on. False if the nodes do not move ([`Engine::set_motion`]): their tables are made once.
    /// Static routes stay what they were.
    pub fn cut(&mut self, one: NodeId, other: NodeId, yes: bool) -> bool {
        self.neighbours.channel_mut().cut(one, other, yes);
        self.motion.is_some()
    }

    /// Where nodes move: their movement.
    pub fn motion(&mut self) -> Option<&mut Motion> {
        self.motion.as_mut()
    }

    /// From now on every node drops the frames of all but its neighbours along `links`, which work both ways: above the
    /// MAC, which acknowledges them and sets its NAV all the same. Static routes to `destinations`
    /// follow the links that remain.
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

    /// The current time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Transmissions so far, control frames included.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Number of broadcasts among them.
    pub fn broadcasts(&self) -> u64 {
        self.broadcasts
    }

    /// Counters of losses and of routing's packets so far.
    pub fn counters(&self) -> Counters {
        let collisions = self.nodes.iter().map(|node| node.mac.collisions()).sum();
        let internal_collisions = self.nodes.iter().map(|node| node.mac.internal_collisions()).sum();
        Counters { collisions, internal_collisions, discoveries: self.actions.searches, ..self.counters }
    }

    /// Stations that sensed a transmission, summed over all.
    pub fn sensed(&self) -> u64 {
        self.sensed
    }

    /// A hash of (time, node, frame kind, bytes) of every transmission and every delivery so far.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// The probe.
    pub fn probe(&mut self) -> &mut O {
        &mut self.probe
    }

    /// Hops from `from` to `to` as the routing protocol at `from` knows them.
    #[inline]
    pub fn hops(&self, from: NodeId, to: NodeId) -> Option<u8> {
        self.router.hops(self.now, from, to)
    }

    /// The neighbour to which routing at `from` would send a packet for `to`.
    pub fn next_hop(&self, from: NodeId, to: NodeId) -> Option<NodeId> {
        self.router.next_hop(self.now, from, to)
    }

    /// State of the way toward `destination` in the link layer of `node`; None without a route.
    pub fn link_state(&mut self, node: NodeId, destination: NodeId) -> Option<LinkState> {
        let (next_hop, hops) = (self.next_hop(node, destination)?, self.hops(node, destination)?);
        Some(self.nodes[node.index()].queue.link_state(self.now, next_hop, destination, hops))
    }

    /// State of the station of `node`.
    pub fn station(&self, node: NodeId) -> Station {
        let Node { mac, queue, .. } = &self.nodes[node.index()];
        Station { queue: queue.len(), nav_until: mac.nav_until(), backoff: mac.backoff() }
    }

    /// The power in dBm with which `receiver` hears `sender` where they are now; None if it does not sense it.
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

    /// Lets routing at `node` look for a route to `destination` without a packet: for a transport that is silent until
    /// [`Indication::Route`] tells of one. Protocols that find routes by themselves ignore it.
    pub fn seek_route(&mut self, node: NodeId, destination: NodeId) {
        self.router.seek(self.now, node, destination, &mut self.actions);
        self.carry_out(node);
    }

    /// Hops on the shortest path, if there is one: a search, for outcomes.
    pub fn shortest_hops(&self, from: NodeId, to: NodeId) -> Option<u8> {
        HopCount::default().between(&self.links, from, to, u64::MAX).map(|hops| hops.min(255) as u8)
    }

    /// Sets a timer of the driver, which belongs to `node`. [`Time::NEVER`] cancels it.
    #[inline]
    pub fn set_timer(&mut self, id: TimerId, node: NodeId, at: Time) {
        self.queue.set(Owner::Host, id.0, Key::timer(at, node, HOST_RANK + id.0));
    }

    /// The transport of `node` sends `packet`.
    pub fn inject(&mut self, node: NodeId, packet: P) {
        self.probe.on(self.now, Event::Inject { node, packet: &packet });
        if self.lateness.is_on() && !packet.is_pure_ack() {
            self.hold_back(node, packet);
        } else {
            self.route(node, packet, None);
        }
    }

    /// `node` sends `packet` to its neighbour `next_hop`, or to all that hear it, past routing and address resolution: for
    /// a network layer outside of the engine. It is delivered where it is decoded if it is for that node or for everybody;
    /// nothing tells the sender if it is not.
    pub fn inject_to_neighbour(&mut self, node: NodeId, next_hop: NodeId, packet: P) {
        self.probe.on(self.now, Event::Inject { node, packet: &packet });
        self.link.push_back((self.now + LINK_DELAY, node, InLink::Down(Queued { next_hop, body: Body::Data(packet) })));
    }

    /// Time at which something happens next, whomever it concerns. [`Time::NEVER`] if nothing ever does.
    pub fn next_event(&self) -> Time {
        self.queue.time().min(self.link_key().time())
    }

    /// Runs until something happens that concerns the driver, or until `until`; then returns None.
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
                            self.mix(node, 4, packet.size());
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
            // A station's own timer is nearly always set again, which moves it.
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
                        if self.duties.tells_quality && self.motion.is_some() {
                            self.tell_qualities(node);
                        }
                        let state = &mut self.nodes[index as usize];
                        let action = state.mac.on_timer(self.now, &self.timing);
                        self.settle(node, action);
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
                    self.offer(node);
                }
                Owner::Reorder => {
                    let node = NodeId(index as u16);
                    self.catch_up(node);
                    self.nodes[node.index()].mac.on_reorder_timer(self.now);
                    self.settle(node, Action::None);
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

    /// True if an event at `key` comes before everything else, and not after `until`.
    #[inline]
    fn is_next(&mut self, key: Key, until: Time) -> bool {
        key.time() <= until && key < self.queue.first().key && key < self.link_key()
    }

    #[inline]
    fn mix(&mut self, node: NodeId, kind: u64, bytes: u32) {
        // FNV-1a over two words per event.
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let what = u64::from(node.0) << 40 | kind << 32 | u64::from(bytes);
        self.fingerprint = ((self.fingerprint ^ self.now.0).wrapping_mul(PRIME) ^ what).wrapping_mul(PRIME);
    }
}

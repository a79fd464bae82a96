//! A network of OLSR state machines without radio or MAC: links that work or do not in each
//! direction, and a clock.

use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, FlowId, NodeId, Rng, Time};
use meshpace_mesh::routing::olsr::{Content, Message};
use meshpace_mesh::routing::{self, Actions, DropReason, Olsr, Protocol};
use meshpace_mesh::{Body, OlsrConfig, OlsrMetric, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A packet of the tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    pub source: NodeId,
    pub destination: NodeId,
    pub ttl: u8,
}

impl Packet for Datagram {
    fn source(&self) -> NodeId {
        self.source
    }
    fn destination(&self) -> NodeId {
        self.destination
    }
    fn flow(&self) -> FlowId {
        FlowId(0)
    }
    fn size(&self) -> u32 {
        1500
    }
    fn id(&self) -> u32 {
        0
    }
    fn hops(&self) -> u8 {
        0
    }
    fn count_hop(&mut self) {}
    fn decrement_ttl(&mut self) -> bool {
        self.ttl -= 1;
        self.ttl > 0
    }
}

/// Collects the actions that a state machine requests.
#[derive(Default)]
struct Asked {
    sends: Vec<(Body<Datagram>, NodeId, Duration)>,
    drops: Vec<DropReason>,
    notices: Vec<Notice>,
}

/// Notice of routing to the transport about a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notice {
    Lost(u16),
    Found(u16),
}

impl Actions<Datagram, Message> for Asked {
    fn forward(&mut self, packet: Datagram, next_hop: NodeId, delay: Duration) {
        self.sends.push((Body::Data(packet), next_hop, delay));
    }
    fn send(&mut self, message: Message, next_hop: NodeId, delay: Duration) {
        self.sends.push((Body::Routing(message.into()), next_hop, delay));
    }
    fn drop_packet(&mut self, _: Datagram, reason: DropReason) {
        self.drops.push(reason);
    }
    fn flush_queue(&mut self, _: NodeId) {}
    fn route_lost(&mut self, destination: NodeId) {
        self.notices.push(Notice::Lost(destination.0));
    }
    fn route_found(&mut self, destination: NodeId) {
        self.notices.push(Notice::Found(destination.0));
    }
}

enum Event {
    Leave { by: NodeId, to: NodeId, body: Body<Datagram> },
    Arrive { from: NodeId, at: NodeId, body: Body<Datagram> },
}

/// Function that decides on the loss of HELLOs: true if `to` misses the `count`-th HELLO of `from`.
pub type Misses = fn(from: u16, to: u16, count: u64) -> bool;

/// The network.
pub struct World {
    pub now: Time,
    pub nodes: Vec<Olsr>,
    links: BTreeSet<(u16, u16)>,
    pub misses: Misses,
    /// Number of HELLOs that each node has sent.
    pub hellos: Vec<u64>,
    /// Time at which a node last received a HELLO of another, by (from, at).
    pub heard: BTreeMap<(u16, u16), Time>,
    /// Messages sent, with time and sender.
    pub sent: Vec<(Time, u16, Message)>,
    pub delivered: u32,
    pub dropped: Vec<(Time, u16, DropReason)>,
    pub notices: Vec<(Time, u16, Notice)>,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    rng: Rng,
}

impl World {
    pub fn new(nodes: u16, metric: OlsrMetric, link_layer: bool, seed: u64) -> Self {
        let machine = |n| {
            <Olsr as Protocol<Datagram>>::new(
                NodeId(n),
                OlsrConfig { metric, link_layer },
                Rng::stream(seed, Purpose::RoutingJitter, u64::from(n)),
            )
        };
        World {
            now: Time::ZERO,
            nodes: (0..nodes).map(machine).collect(),
            links: BTreeSet::new(),
            misses: |_, _, _| false,
            hellos: vec![0; usize::from(nodes)],
            heard: BTreeMap::new(),
            sent: Vec::new(),
            delivered: 0,
            dropped: Vec::new(),
            notices: Vec::new(),
            events: BTreeMap::new(),
            count: 0,
            rng: Rng::stream(seed, Purpose::Test, 0),
        }
    }

    /// A chain of the nodes 0 to `hops`, with the hop metric.
    pub fn chain(hops: u16, seed: u64) -> Self {
        let mut world = World::new(hops + 1, OlsrMetric::Hops, false, seed);
        for n in 0..hops {
            world.set_link(n, n + 1, true);
        }
        world
    }

    /// Random links that connect all nodes: a random tree and `extra` further links.
    pub fn random(nodes: u16, extra: u32, metric: OlsrMetric, seed: u64) -> Self {
        let mut world = World::new(nodes, metric, false, seed);
        let mut rng = Rng::stream(seed, Purpose::Topology, 0);
        for n in 1..nodes {
            world.set_link(n, rng.below(u64::from(n)) as u16, true);
        }
        for _ in 0..extra {
            let (a, b) = (rng.below(u64::from(nodes)) as u16, rng.below(u64::from(nodes)) as u16);
            if a != b {
                world.set_link(a, b, true);
            }
        }
        world
    }

    pub fn set_link(&mut self, a: u16, b: u16, up: bool) {
        self.set_direction(a, b, up);
        self.set_direction(b, a, up);
    }

    pub fn set_direction(&mut self, from: u16, to: u16, up: bool) {
        if up {
            self.links.insert((from, to));
        } else {
            self.links.remove(&(from, to));
        }
    }

    pub fn links(&self) -> impl Iterator<Item = (u16, u16)> + '_ {
        self.links.iter().copied()
    }

    /// The transport at `source` sends a packet.
    pub fn originate(&mut self, source: u16, destination: u16) {
        let packet = Datagram { source: NodeId(source), destination: NodeId(destination), ttl: 30 };
        let now = self.now;
        self.with(NodeId(source), |node, out| node.on_packet(now, packet, None, out));
    }

    /// The MAC of `by` gives up a packet to its neighbour `to`.
    pub fn fail(&mut self, by: u16, to: u16) {
        let packet = Datagram { source: NodeId(by), destination: NodeId(to), ttl: 30 };
        let now = self.now;
        self.with(NodeId(by), |node, out| node.on_link_failure(now, NodeId(to), Some(packet), out));
    }

    /// Advances the time by `seconds`.
    pub fn run(&mut self, seconds: f64) {
        let end = self.now + Duration::from_secs_f64(seconds);
        self.run_until(end, |_| {});
    }

    /// Advances the time to `end` and calls `each` after every event.
    pub fn run_until(&mut self, end: Time, mut each: impl FnMut(&mut World)) {
        loop {
            let event = self.events.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let (timer, at) =
                (0..self.nodes.len()).map(|n| (Protocol::<Datagram>::next_wakeup(&self.nodes[n]), n)).min().unwrap();
            let next = event.min(timer);
            if next > end {
                break;
            }
            assert!(next >= self.now, "a wake-up in the past: {next} at {}", self.now);
            self.now = next;
            if timer <= event {
                self.with(NodeId(at as u16), |node, out| node.on_timer(next, out));
                assert!(Protocol::<Datagram>::next_wakeup(&self.nodes[at]) > next, "the timer does not move on");
            } else {
                let (_, event) = self.events.pop_first().unwrap();
                match event {
                    Event::Leave { by, to, body } => self.leave(by, to, body),
                    Event::Arrive { from, at, body } => self.arrive(from, at, body),
                }
            }
            each(self);
        }
        self.now = end;
    }

    fn arrive(&mut self, from: NodeId, at: NodeId, body: Body<Datagram>) {
        let now = self.now;
        match body {
            Body::Routing(routing::Message::Olsr(message)) => {
                if matches!(message.content, Content::Hello(_)) {
                    self.heard.insert((from.0, at.0), now);
                }
                self.with(at, |node, out| node.on_message(now, from, message, out));
            }
            Body::Data(packet) if packet.destination == at => self.delivered += 1,
            Body::Data(packet) => self.with(at, |node, out| node.on_packet(now, packet, Some(from), out)),
            _ => unreachable!("nothing else here"),
        }
    }

    fn with(&mut self, node: NodeId, call: impl FnOnce(&mut Olsr, &mut Asked)) {
        let mut asked = Asked::default();
        call(&mut self.nodes[node.index()], &mut asked);
        for (body, to, delay) in asked.sends {
            if delay == Duration::ZERO {
                self.leave(node, to, body);
            } else {
                self.push(self.now + delay, Event::Leave { by: node, to, body });
            }
        }
        self.dropped.extend(asked.drops.into_iter().map(|reason| (self.now, node.0, reason)));
        self.notices.extend(asked.notices.into_iter().map(|notice| (self.now, node.0, notice)));
    }

    fn leave(&mut self, by: NodeId, to: NodeId, body: Body<Datagram>) {
        let mut hello = false;
        if let Body::Routing(routing::Message::Olsr(message)) = body {
            self.sent.push((self.now, by.0, message));
            hello = matches!(message.content, Content::Hello(_));
        }
        let number = self.hellos[by.index()];
        self.hellos[by.index()] += u64::from(hello);
        for n in 0..self.nodes.len() as u16 {
            let wanted = to.is_broadcast() || to == NodeId(n);
            if wanted && self.links.contains(&(by.0, n)) && !(hello && (self.misses)(by.0, n, number)) {
                let air = Duration::from_secs_f64(self.rng.uniform_in(0.0005, 0.002));
                self.push(self.now + air, Event::Arrive { from: by, at: NodeId(n), body });
            }
        }
    }

    fn push(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    pub fn hops(&self, from: u16, to: u16) -> Option<u8> {
        self.nodes[usize::from(from)].route(NodeId(to)).map(|route| route.hops)
    }

    /// Distances from one node by breadth-first search over links that work in both directions.
    pub fn distances(&self, from: u16) -> Vec<Option<u8>> {
        let mut distance = vec![None; self.nodes.len()];
        distance[usize::from(from)] = Some(0);
        let mut reached = VecDeque::from([from]);
        while let Some(at) = reached.pop_front() {
            for to in 0..self.nodes.len() as u16 {
                let link = self.links.contains(&(at, to)) && self.links.contains(&(to, at));
                if link && distance[usize::from(to)].is_none() {
                    distance[usize::from(to)] = distance[usize::from(at)].map(|hops: u8| hops + 1);
                    reached.push_back(to);
                }
            }
        }
        distance
    }

    /// Largest distance between connected nodes.
    pub fn diameter(&self) -> u8 {
        (0..self.nodes.len() as u16).flat_map(|n| self.distances(n)).flatten().max().unwrap()
    }

    /// Panics unless every route is a shortest path, and routes exist exactly between connected
    /// nodes.
    pub fn assert_shortest(&self, case: &str) {
        let nodes = self.nodes.len() as u16;
        let all: Vec<_> = (0..nodes).map(|n| self.distances(n)).collect();
        for from in 0..nodes {
            for to in (0..nodes).filter(|&to| to != from) {
                let expected = all[usize::from(from)][usize::from(to)];
                assert_eq!(self.hops(from, to), expected, "{case}: from {from} to {to} at {}", self.now);
                if let Some(next) = self.nodes[usize::from(from)].route(NodeId(to)).map(|route| route.next_hop) {
                    assert!(self.links.contains(&(from, next.0)));
                    let rest = all[next.index()][usize::from(to)];
                    assert_eq!(rest.map(|hops| hops + 1), expected, "{case}: {from} sends over {next} to {to}");
                }
            }
        }
    }

    /// Number of pairs of nodes between which the next hops form a loop.
    pub fn loops(&self) -> u32 {
        let nodes = self.nodes.len() as u16;
        let mut loops = 0;
        for to in 0..nodes {
            for from in 0..nodes {
                let (mut at, mut steps) = (from, 0);
                while at != to
                    && let Some(next) = self.nodes[usize::from(at)].route(NodeId(to)).map(|route| route.next_hop)
                {
                    (at, steps) = (next.0, steps + 1);
                    if steps > nodes {
                        loops += 1;
                        break;
                    }
                }
            }
        }
        loops
    }
}

//! A network of AODV state machines without radio or MAC: links that work or do not, and a clock.

use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, FlowId, NodeId, Rng, Time};
use meshpace_mesh::routing::aodv::{Message, Reply, Request, Unreachable};
use meshpace_mesh::routing::{self, Actions, Aodv, DropReason, Protocol};
use meshpace_mesh::{AodvConfig, Body, LocalRepair, Packet};
use std::collections::{BTreeMap, BTreeSet};

/// A packet of the tests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    pub id: u32,
    pub source: NodeId,
    pub destination: NodeId,
    pub ttl: u8,
    pub hops: u8,
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
        self.id
    }
    fn hops(&self) -> u8 {
        self.hops
    }
    fn count_hop(&mut self) {
        self.hops += 1;
    }
    fn decrement_ttl(&mut self) -> bool {
        self.ttl -= 1;
        self.ttl > 0
    }
}

/// Collects the actions that a state machine requests.
#[derive(Default)]
pub struct Asked {
    pub sends: Vec<(Body<Datagram>, NodeId, Duration)>,
    pub drops: Vec<(Datagram, DropReason)>,
    pub flushes: Vec<NodeId>,
    pub notices: Vec<Notice>,
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
    fn drop_packet(&mut self, packet: Datagram, reason: DropReason) {
        self.drops.push((packet, reason));
    }
    fn flush_queue(&mut self, next_hop: NodeId) {
        self.flushes.push(next_hop);
    }
    fn route_lost(&mut self, destination: NodeId) {
        self.notices.push(Notice::Lost(destination.0));
    }
    fn route_found(&mut self, destination: NodeId) {
        self.notices.push(Notice::Found(destination.0));
    }
}

/// A message that a node sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Time at which it was passed to the link layer.
    pub at: Time,
    pub by: NodeId,
    pub to: NodeId,
    pub body: Body<Datagram>,
}

enum Event {
    /// A delayed frame leaves.
    Leave { by: NodeId, to: NodeId, body: Body<Datagram> },
    /// A frame arrives.
    Arrive { from: NodeId, at: NodeId, body: Body<Datagram> },
    /// The MAC gives up a frame.
    Fail { by: NodeId, to: NodeId, body: Body<Datagram> },
}

/// The network.
pub struct World {
    pub now: Time,
    pub nodes: Vec<Aodv<Datagram>>,
    links: BTreeSet<(u16, u16)>,
    /// Number of the next data frames between two nodes that the MAC gives up although the link
    /// works.
    pub false_failures: BTreeMap<(u16, u16), u32>,
    /// Probability that a routing message is lost at one receiver.
    pub message_loss: f64,
    /// Time on the air of a frame in seconds, uniformly distributed between the two values.
    pub air: (f64, f64),
    /// If true, a loop in the routes to any destination is an error. Checked after every event.
    pub forbid_loops: bool,
    pub loops_seen: u32,
    pub sent: Vec<Sent>,
    pub delivered: Vec<(Time, Datagram)>,
    pub dropped: Vec<(Time, NodeId, Datagram, DropReason)>,
    pub flushed: Vec<(Time, NodeId, NodeId)>,
    /// Time and node of each notice.
    pub notices: Vec<(Time, u16, Notice)>,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    next_id: u32,
    rng: Rng,
}

impl World {
    /// A network of `nodes` state machines with the given links.
    pub fn new(nodes: u16, links: &[(u16, u16)], local_repair: LocalRepair, seed: u64) -> Self {
        World::running(nodes, links, AodvConfig::repairing(local_repair), seed)
    }

    /// A network of `nodes` state machines with the given links and configuration.
    pub fn running(nodes: u16, links: &[(u16, u16)], config: AodvConfig, seed: u64) -> Self {
        let rng = |n| Rng::stream(seed, Purpose::RoutingJitter, u64::from(n));
        let machine = |n| Aodv::new(NodeId(n), config, rng(n));
        let mut world = World {
            now: Time::ZERO,
            nodes: (0..nodes).map(machine).collect(),
            links: BTreeSet::new(),
            false_failures: BTreeMap::new(),
            message_loss: 0.0,
            air: (0.001, 0.001),
            forbid_loops: true,
            loops_seen: 0,
            sent: Vec::new(),
            delivered: Vec::new(),
            dropped: Vec::new(),
            flushed: Vec::new(),
            notices: Vec::new(),
            events: BTreeMap::new(),
            count: 0,
            next_id: 0,
            rng: Rng::stream(seed, Purpose::Test, 0),
        };
        for &(a, b) in links {
            world.set_link(a, b, true);
        }
        world
    }

    /// A chain of the nodes 0 to `hops`.
    pub fn chain(hops: u16, local_repair: LocalRepair) -> Self {
        let links: Vec<_> = (0..hops).map(|n| (n, n + 1)).collect();
        World::new(hops + 1, &links, local_repair, 1)
    }

    pub fn set_link(&mut self, a: u16, b: u16, up: bool) {
        self.set_direction(a, b, up);
        self.set_direction(b, a, up);
    }

    /// Switches one direction of a link.
    pub fn set_direction(&mut self, from: u16, to: u16, up: bool) {
        if up {
            self.links.insert((from, to));
        } else {
            self.links.remove(&(from, to));
        }
    }

    pub fn has_link(&self, a: u16, b: u16) -> bool {
        self.links.contains(&(a, b))
    }

    /// The transport at `source` sends a packet.
    pub fn originate(&mut self, source: u16, destination: u16) -> u32 {
        let id = self.next_id;
        self.next_id += 1;
        let packet = Datagram { id, source: NodeId(source), destination: NodeId(destination), ttl: 30, hops: 0 };
        let now = self.now;
        self.with(NodeId(source), |node, out| node.on_packet(now, packet, None, out));
        id
    }

    /// Advances the time to `end`.
    pub fn run_until(&mut self, end: f64) {
        let end = Time::ZERO + Duration::from_secs_f64(end);
        loop {
            let event = self.events.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
            let (timer, at) = (0..self.nodes.len()).map(|n| (self.nodes[n].next_wakeup(), n)).min().unwrap();
            let next = event.min(timer);
            if next > end {
                break;
            }
            assert!(next >= self.now, "a wake-up in the past: {next} at {}", self.now);
            self.now = next;
            if timer <= event {
                self.with(NodeId(at as u16), |node, out| node.on_timer(next, out));
                assert!(self.nodes[at].next_wakeup() > next, "the timer does not move on");
            } else {
                let (_, event) = self.events.pop_first().unwrap();
                self.happen(event);
            }
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Leave { by, to, body } => self.leave(by, to, body),
            Event::Fail { by, to, body } => {
                self.with(by, |node, out| node.on_link_failure(now, to, body.into_packet(), out))
            }
            Event::Arrive { from, at, body: Body::Routing(routing::Message::Aodv(message)) } => {
                self.with(at, |node, out| node.on_message(now, from, message, out));
            }
            Event::Arrive { from, at, body: Body::Data(mut packet) } => {
                packet.count_hop();
                if packet.destination == at {
                    self.delivered.push((now, packet));
                } else {
                    self.with(at, |node, out| node.on_packet(now, packet, Some(from), out));
                }
            }
            Event::Arrive { .. } => unreachable!("no ARP here"),
        }
    }

    /// Calls a state machine and carries out its actions.
    fn with(&mut self, node: NodeId, call: impl FnOnce(&mut Aodv<Datagram>, &mut Asked)) {
        let mut asked = Asked::default();
        call(&mut self.nodes[node.index()], &mut asked);
        for (body, to, delay) in asked.sends {
            if delay == Duration::ZERO {
                self.leave(node, to, body);
            } else {
                self.push(self.now + delay, Event::Leave { by: node, to, body });
            }
        }
        self.dropped.extend(asked.drops.into_iter().map(|(packet, reason)| (self.now, node, packet, reason)));
        self.flushed.extend(asked.flushes.into_iter().map(|to| (self.now, node, to)));
        self.notices.extend(asked.notices.into_iter().map(|notice| (self.now, node.0, notice)));
        self.check_loops();
    }

    /// The transport at `node` requests a route to `destination` without sending a packet.
    pub fn seek(&mut self, node: u16, destination: u16) {
        let now = self.now;
        self.with(NodeId(node), |aodv, out| aodv.seek(now, NodeId(destination), out));
    }

    fn leave(&mut self, by: NodeId, to: NodeId, body: Body<Datagram>) {
        self.sent.push(Sent { at: self.now, by, to, body });
        let routing = matches!(body, Body::Routing(_));
        for n in 0..self.nodes.len() as u16 {
            let wanted = to.is_broadcast() || to == NodeId(n);
            if wanted && self.has_link(by.0, n) && !(routing && self.rng.uniform() < self.message_loss) {
                if !routing && self.fails_falsely(by, to) {
                    continue;
                }
                let air = Duration::from_secs_f64(self.rng.uniform_in(self.air.0, self.air.1));
                self.push(self.now + air, Event::Arrive { from: by, at: NodeId(n), body });
                if !to.is_broadcast() {
                    return;
                }
            }
        }
        if !to.is_broadcast() {
            self.push(self.now + Duration::from_millis(20), Event::Fail { by, to, body });
        }
    }

    fn fails_falsely(&mut self, by: NodeId, to: NodeId) -> bool {
        match self.false_failures.get_mut(&(by.0, to.0)) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }

    fn push(&mut self, at: Time, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    /// Follows the next hops to every destination from every node.
    fn check_loops(&mut self) {
        let nodes = self.nodes.len();
        for destination in 0..nodes as u16 {
            for start in 0..nodes as u16 {
                let (mut at, mut steps) = (start, 0);
                while at != destination
                    && let Some(next) = self.nodes[usize::from(at)].next_hop(self.now, NodeId(destination))
                {
                    (at, steps) = (next.0, steps + 1);
                    if steps > nodes {
                        assert!(!self.forbid_loops, "at {}: a loop towards {destination} from {start}", self.now);
                        self.loops_seen += 1;
                        break;
                    }
                }
            }
        }
    }

    pub fn hops(&self, from: u16, to: u16) -> Option<u8> {
        self.nodes[usize::from(from)].hops(self.now, NodeId(to))
    }

    fn messages<T>(&self, by: u16, pick: impl Fn(&Message) -> Option<T>) -> Vec<(f64, T)> {
        let of = self.sent.iter().filter(|sent| sent.by == NodeId(by));
        let picked = of.filter_map(|sent| match &sent.body {
            Body::Routing(routing::Message::Aodv(message)) => pick(message).map(|what| (sent.at.as_secs_f64(), what)),
            _ => None,
        });
        picked.collect()
    }

    /// Requests that a node has sent or forwarded, with the times in seconds.
    pub fn requests(&self, by: u16) -> Vec<(f64, Request)> {
        self.messages(by, |message| if let Message::Request(request) = message { Some(*request) } else { None })
    }

    /// Replies that a node has sent or forwarded.
    pub fn replies(&self, by: u16) -> Vec<(f64, Reply)> {
        self.messages(by, |message| if let Message::Reply(reply) = message { Some(*reply) } else { None })
    }

    /// Errors that a node has sent.
    pub fn errors(&self, by: u16) -> Vec<(f64, Unreachable)> {
        self.messages(by, |message| if let Message::Error(lost) = message { Some(*lost) } else { None })
    }

    /// Arrival times of the packets in seconds, with their numbers.
    pub fn arrivals(&self) -> Vec<(f64, u32)> {
        self.delivered.iter().map(|(at, packet)| (at.as_secs_f64(), packet.id)).collect()
    }
}

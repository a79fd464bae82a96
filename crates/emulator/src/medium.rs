//! The mesh between the nodes' devices: the simulator's engine, with the time given by the caller.

use crate::address;
use crate::frame;
use crate::observer::Observer;
use crate::packet::CarriedFrame;
use crate::state::Losses;
use crate::traffic::Traffic;
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::mac::Timing;
use meshpace_mesh::{Packet, Position, RoutingConfig};
use meshpace_sim::mobility::{Mobility, Motion};
use meshpace_sim::{Config, Engine, Event, Indication, Interests, Probe};

/// Place where routing runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// In the mesh, by the routing protocol of the scenario. To programs the mesh looks like one
    /// subnet.
    #[default]
    Ours,
    /// In the nodes' kernels, possibly controlled by daemons. A frame goes to the neighbour to
    /// which it is addressed, or is lost.
    Kernel,
}

/// Probe of all media: counts losses and passes all events to the observer. All media use this one
/// type, so that the engine is compiled for one type only.
pub(crate) struct Watch {
    pub(crate) losses: Losses,
    pub(crate) observer: Box<dyn Observer>,
}

impl Probe<CarriedFrame> for Watch {
    fn interests(&self) -> Interests {
        self.observer.interests()
    }

    fn on(&mut self, now: Time, event: Event<'_, CarriedFrame>) {
        if let Event::Loss { lost, reason, .. } = event {
            self.losses.count(lost, reason);
        }
        self.observer.on(now, event);
    }
}

/// A frame that has arrived at a node.
#[derive(Debug)]
pub struct Delivery {
    /// Time of arrival by the mesh's clock.
    pub due: Time,
    /// Node at which it arrived.
    pub node: NodeId,
    /// The frame.
    pub packet: CarriedFrame,
    /// Time on the air of its last hop.
    pub air_time: Duration,
}

/// The mesh.
pub struct Medium {
    engine: Engine<CarriedFrame, Watch>,
    mode: Mode,
    nodes: usize,
    timing: Timing,
    next_id: u32,
    /// Traffic that crossed the mesh.
    pub traffic: Traffic,
}

impl Medium {
    /// Creates the mesh of `config`. Its nodes are at rest or move as the configuration says.
    /// `observer` sees all events.
    pub fn new(config: &Config, mode: Mode, seed: u64, observer: Box<dyn Observer>) -> Medium {
        let nodes = config.positions.len();
        let all = || (0..nodes).map(|node| NodeId(node as u16));
        // With moving nodes the engine computes its tables at every transmission, so links can be
        // cut at any time.
        let still = Mobility::Scripted(Vec::new());
        let mobility = if config.mobility == Mobility::Still { &still } else { &config.mobility };
        let mut motion = Motion::new(&config.positions, mobility, seed);
        let drawn = motion.as_mut().map(|motion| motion.positions(Time::ZERO));
        let positions = drawn.as_deref().unwrap_or(&config.positions);
        let mut mesh = config.mesh.clone();
        if mode == Mode::Kernel {
            mesh.routing = RoutingConfig::Static;
        }
        let timing = Timing::new(&mesh.mac, &mesh.radio);
        let mut engine = Engine::new(positions, &mesh, all(), seed, Watch { losses: Losses::default(), observer });
        if let Some(links) = &config.firewall {
            engine.set_firewall(links, all());
        }
        if let Some(motion) = motion {
            engine.set_motion(motion);
        }
        Medium { engine, mode, nodes, timing, next_id: 0, traffic: Traffic::new(config.warmup) }
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Length of a slot of the MAC.
    pub fn slot(&self) -> Duration {
        self.timing.slot
    }

    /// Number of transmissions so far.
    pub fn frames(&self) -> u64 {
        self.engine.frames()
    }

    /// Packets lost so far.
    pub fn losses(&mut self) -> Losses {
        self.engine.probe().losses
    }

    /// The observer of the events.
    pub fn observer(&mut self) -> &mut dyn Observer {
        &mut *self.engine.probe().observer
    }

    /// Positions of the nodes now.
    pub fn places(&mut self) -> Vec<Position> {
        let now = self.engine.now();
        self.engine.motion().map(|motion| motion.positions(now)).unwrap_or_default()
    }

    /// Sends a frame of `node` now, that is at the time to which the mesh was advanced. A frame
    /// that is returned is a reply to the node itself.
    pub fn send<'a>(&mut self, node: NodeId, bytes: &[u8], reply: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let destination = frame::destination(bytes).and_then(|mac| address::node_of_mac(mac, self.nodes))?;
        if self.mode == Mode::Ours
            && let Some(answer) = frame::arp_reply(bytes, node, self.nodes)
        {
            reply.clear();
            reply.extend_from_slice(&answer);
            return Some(reply);
        }
        if destination == node {
            return None;
        }
        let facts = frame::facts(bytes);
        let flow = self.traffic.sent(self.engine.now(), node, destination, &facts);
        let packet = CarriedFrame::new(bytes, facts, node, destination, flow, self.next_id);
        self.next_id = self.next_id.wrapping_add(1);
        if self.mode == Mode::Kernel || destination.is_broadcast() {
            self.engine.inject_to_neighbour(node, destination, packet);
        } else {
            self.engine.inject(node, packet);
        }
        None
    }

    /// Advances the mesh until a frame arrives, or until `until`; returns `None` in the second
    /// case.
    pub fn advance(&mut self, until: Time) -> Option<Delivery> {
        while let Some(indication) = self.engine.advance(until) {
            if let Indication::Delivered { node, packet, .. } = indication {
                let due = self.engine.now();
                self.traffic.delivered(due, &packet);
                let bytes = packet.size() + self.timing.rules.data_overhead;
                let air_time = self.timing.data_air(bytes, packet.destination().is_broadcast());
                return Some(Delivery { due, node, packet, air_time });
            }
        }
        None
    }

    /// Time of the next event.
    pub fn next_event(&self) -> Time {
        self.engine.next_event()
    }

    /// Cuts the link between two nodes, as a wall between them would, or restores it.
    pub fn set_link(&mut self, one: NodeId, other: NodeId, up: bool) {
        let takes_effect = self.engine.set_blocked(one, other, !up);
        debug_assert!(takes_effect, "the mesh is made of moving nodes");
    }

    /// Number of packets queued at `node`.
    pub fn queue(&self, node: NodeId) -> usize {
        self.engine.station(node).queue
    }

    /// The nodes over which routing sends packets now, both ends included. Empty without a route,
    /// and if the kernels route.
    pub fn path(&self, from: NodeId, to: NodeId) -> Vec<NodeId> {
        let mut path = vec![from];
        while self.mode == Mode::Ours && path.len() <= self.nodes {
            let Some(&last) = path.last() else { break };
            if last == to {
                return path;
            }
            let Some(next) = self.engine.next_hop(last, to) else { break };
            path.push(next);
        }
        Vec::new()
    }

    /// Number of hops between two nodes, according to the routing of the first.
    pub fn hops(&self, from: NodeId, to: NodeId) -> Option<u8> {
        match self.mode {
            Mode::Ours => self.engine.hops(from, to),
            Mode::Kernel => None,
        }
    }
}

//! The engine: the mesh's nodes under one clock that somebody else advances.
//!
//! It runs until a given time or until something happens that concerns its driver: a packet reached the node it is for,
//! or one of the driver's timers fired. The simulator drives it with transports, the emulator from the machine's clock,
//! a viewer frame by frame. It is generic over the packets it carries and over the [`Probe`] that watches.
//!
//! A transmission is told to every station that senses it when it begins ([`Dcf::on_departure`]); a station lives through
//! the frames that are past before anything else happens to it. What a station does, and when, is exactly what it would be
//! if both ends of a frame were events at every receiver, but an event is only the end of a frame at a station that it may
//! be for (`on_air`).

use crate::mobility::Motion;
use crate::on_air::{Audience, OnAir};
use crate::probe::{Loss, Probe};
use crate::queue::{DELAYED_RANK, DELAYED_RANKS, Event, EventQueue, HOST_RANK, Key, LINK_RANK, Owner};
use crate::slab::Slab;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Rng, Time};
use meshpace_mesh::config::{AodvDetection, Position, Reception};
use meshpace_mesh::link::arp::{Arp, Resolve};
use meshpace_mesh::link::discipline::{Attempt, Discipline, LinkState};
use meshpace_mesh::link::queue::Queued;
use meshpace_mesh::mac::{Action, Arrival, Dcf, Frame, Heard, Moment, Timing};
use meshpace_mesh::radio::{Arriving, Channel, Neighbour, Neighbours, power};
use meshpace_mesh::routing::aodv::{DropReason, Sink};
use meshpace_mesh::routing::{Aodv, HopCount, Olsr, StaticRoutes};
use meshpace_mesh::{Body, MeshConfig, Packet, RoutingConfig};

/// What ns-2's link layer takes each way.
const LINK_DELAY: Duration = Duration::from_micros(25);
/// What ns-2's ARP takes for a packet of its own or one it releases.
const ARP_DELAY: Duration = Duration::from_micros(5);
/// From so many nodes on their state is not all in a processor's cache.
const LARGE: usize = 1_000;
/// How many packets ahead routing's state is read.
const AHEAD: usize = 16;

/// Something the driver has to see to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Happening<P> {
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
        /// Where the route leads.
        destination: NodeId,
        /// Whether it was found; lost otherwise.
        found: bool,
    },
    /// The driver's timer `number` fired.
    Timer {
        /// As given to [`Engine::set_timer`].
        number: u32,
    },
}

struct Node<P> {
    mac: Dcf<P>,
    queue: Discipline<P>,
    arp: Arp<P>,
}

/// A packet inside the link layer, up or down.
enum InLink<P> {
    Up { from: NodeId, body: Body<P> },
    Down(Queued<P>),
}

/// A packet that waits elsewhere: routing's jitter before the link layer, or ARP's delay before the queue.
struct Delayed<P> {
    node: NodeId,
    queued: Queued<P>,
    past_link: bool,
}

enum Routing<P> {
    Static,
    Aodv(Vec<Aodv<P>>),
    Olsr(Vec<Olsr>),
}

/// What a routing protocol asked for, in order.
enum Asked<P> {
    Send { body: Body<P>, next_hop: NodeId, delay: Duration },
    Drop { packet: P, reason: DropReason },
    Flush { next_hop: NodeId },
    Notice { destination: NodeId, found: bool },
}

struct Wishes<P>(Vec<Asked<P>>);

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

/// Static routes, if they are used: a tree per destination is much in a large mesh.
fn trees<P>(
    routing: &Routing<P>,
    links: &[Vec<NodeId>],
    destinations: impl IntoIterator<Item = NodeId>,
) -> StaticRoutes {
    let is_used = matches!(routing, Routing::Static);
    StaticRoutes::new(links, destinations.into_iter().filter(|_| is_used))
}

/// A mesh under way.
pub struct Engine<P, O> {
    now: Time,
    timing: Timing,
    neighbours: Neighbours,
    /// Where nodes move; their neighbour tables are then made anew for each transmission.
    motion: Option<Motion>,
    /// By node, the neighbours from which it accepts frames, sorted; empty if all accept everything.
    firewall: Vec<Vec<NodeId>>,
    /// Who can exchange frames with whom, by node.
    links: Vec<Vec<NodeId>>,
    /// The routes under static routing; no tree in it otherwise.
    shortest: StaticRoutes,
    routing: Routing<P>,
    nodes: Vec<Node<P>>,
    queue: EventQueue,
    /// Packets that cross a link layer, which takes the same time everywhere: first in, first out.
    link: VecDeque<(Time, NodeId, InLink<P>)>,
    /// Packets in `link` for which routing's state has been read ahead.
    touched: usize,
    delayed: Slab<Delayed<P>>,
    /// How many there have been.
    delays: u32,
    /// The frames of which somebody is still to be told.
    on_air: Slab<OnAir<P>>,
    /// What the queue disciplines ask for, the same at all nodes: see [`Discipline`].
    overhears: bool,
    reports_attempts: bool,
    holds_back: bool,
    /// Whether every station must be told of the end of every frame: a receiver that adds up powers cannot say before when
    /// the medium will be idle.
    tells_everybody: bool,
    /// Whether every station that can decode a frame must be told of it, whomever it is for.
    tells_decoders: bool,
    /// Notices of routes that the driver has not been told yet.
    notices: VecDeque<(NodeId, NodeId, bool)>,
    wishes: Wishes<P>,
    frames: u64,
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
        let timing = Timing::new(config);
        let channel = Channel::new(&config.radio);
        let neighbours = Neighbours::new(&channel, positions);
        let links = neighbours.adjacency();
        let ids = || (0..positions.len()).map(|i| NodeId(i as u16));
        let stream = |purpose, node: NodeId| Rng::stream(seed, purpose, u64::from(node.0));
        let aodv = |local_repair, detection| {
            let machine = |node| Aodv::detecting(node, local_repair, detection, stream(Purpose::RoutingJitter, node));
            Routing::Aodv(ids().map(machine).collect())
        };
        let routing = match config.routing {
            RoutingConfig::Static => Routing::Static,
            RoutingConfig::Aodv { local_repair } => aodv(local_repair, AodvDetection::LinkLayer),
            RoutingConfig::AodvHello { local_repair, link_layer: false } => aodv(local_repair, AodvDetection::Hello),
            RoutingConfig::AodvHello { local_repair, link_layer: true } => aodv(local_repair, AodvDetection::Both),
            RoutingConfig::Olsr { metric, link_layer } => Routing::Olsr(
                ids().map(|node| Olsr::new(node, metric, link_layer, stream(Purpose::RoutingJitter, node))).collect(),
            ),
        };
        let nodes: Vec<Node<P>> = ids()
            .map(|node| {
                let queue = Discipline::new(node, config, &timing, stream(Purpose::Marking, node));
                Node {
                    mac: Dcf::new(node, &timing, stream(Purpose::Backoff, node))
                        .with_receiver(channel.new_receiver(stream(Purpose::Radio, node)))
                        .reporting_attempts(queue.wants_attempts()),
                    queue,
                    arp: Arp::new(node),
                }
            })
            .collect();
        let shortest = trees(&routing, &links, destinations);
        let any = |wants: fn(&Discipline<P>) -> bool| nodes.iter().any(|node| wants(&node.queue));
        let (overhears, reports_attempts) = (any(Discipline::wants_overheard), any(Discipline::wants_attempts));
        let holds_back = any(Discipline::holds_back);
        let mut engine = Engine {
            now: Time::ZERO,
            timing,
            neighbours,
            motion: None,
            firewall: Vec::new(),
            links,
            shortest,
            routing,
            nodes,
            queue: EventQueue::default(),
            link: VecDeque::new(),
            touched: 0,
            delayed: Slab::default(),
            delays: 0,
            on_air: Slab::default(),
            tells_everybody: config.radio.reception == Reception::Sinr,
            tells_decoders: O::DECODED || overhears,
            overhears,
            reports_attempts,
            holds_back,
            notices: VecDeque::new(),
            wishes: Wishes(Vec::new()),
            frames: 0,
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
        self.shortest = trees(&self.routing, &self.links, destinations);
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
        match &self.routing {
            Routing::Static => self.shortest.hops(from, to).map(|hops| hops.min(255) as u8),
            Routing::Aodv(nodes) => nodes[from.index()].hops_to(self.now, to),
            Routing::Olsr(nodes) => nodes[from.index()].hops_to(to),
        }
    }

    /// The neighbour to which routing at `from` would send a packet for `to`.
    pub fn next_hop(&self, from: NodeId, to: NodeId) -> Option<NodeId> {
        match &self.routing {
            Routing::Static => self.shortest.next_hop(from, to),
            Routing::Aodv(nodes) => nodes[from.index()].next_hop(self.now, to),
            Routing::Olsr(nodes) => nodes[from.index()].next_hop(to),
        }
    }

    /// What the link layer of `node` knows about the way toward `destination`; None without a route.
    pub fn link_state(&mut self, node: NodeId, destination: NodeId) -> Option<LinkState> {
        let (next_hop, hops) = (self.next_hop(node, destination)?, self.hops(node, destination)?);
        Some(self.nodes[node.index()].queue.link_state(self.now, next_hop, destination, hops))
    }

    /// The power in dBm with which `receiver` hears `sender`, as their places were when its neighbours were last found.
    pub fn received_power_dbm(&self, receiver: NodeId, sender: NodeId) -> Option<f32> {
        let neighbour = self.neighbours.of(sender).iter().find(|neighbour| neighbour.node == receiver)?;
        Some(power::dbm(neighbour.power) as f32)
    }

    /// Lets routing at `node` look for a route to `destination` without a packet: for a transport that is silent until
    /// [`Happening::Route`] tells of one. OLSR needs no such request.
    pub fn seek_route(&mut self, node: NodeId, destination: NodeId) {
        if let Routing::Aodv(nodes) = &mut self.routing {
            nodes[node.index()].seek(self.now, destination, &mut self.wishes);
            self.grant(node);
        }
    }

    /// Hops on the shortest path, if there is one: a search, for outcomes.
    pub fn shortest_hops(&self, from: NodeId, to: NodeId) -> Option<u8> {
        HopCount::default().between(&self.links, from, to, u64::MAX).map(|hops| hops.min(255) as u8)
    }

    /// Sets the driver's timer `number` (small numbers, they index a table), which belongs to `node`. [`Time::NEVER`]
    /// cancels it.
    #[inline]
    pub fn set_timer(&mut self, number: u32, node: NodeId, at: Time) {
        self.queue.set(Owner::Host, number, Key::timer(at, node, HOST_RANK + number));
    }

    /// The transport of `node` sends `packet`.
    pub fn inject(&mut self, node: NodeId, packet: P) {
        self.probe.on_inject(self.now, node, &packet);
        self.route(node, packet, None);
    }

    /// When something happens next, whomever it concerns. [`Time::NEVER`] if nothing ever does.
    pub fn next_event(&self) -> Time {
        self.queue.time().min(self.link_key().time())
    }

    /// Runs until something happens that concerns the driver, or until `until`; then returns None.
    pub fn advance(&mut self, until: Time) -> Option<Happening<P>> {
        loop {
            if let Some((node, destination, found)) = self.notices.pop_front() {
                return Some(Happening::Route { node, destination, found });
            }
            let link_key = self.link_key();
            let Event { key: first, owner, index } = self.queue.first();
            if link_key < first {
                if link_key.time() > until {
                    break;
                }
                self.touch_routing();
                let Some((time, node, item)) = self.link.pop_front() else { break };
                self.now = time;
                match item {
                    InLink::Down(queued) => self.enqueue(node, queued),
                    InLink::Up { from, body } => {
                        if let Some(packet) = self.receive(node, from, body) {
                            self.mix(node, 4, packet.size());
                            self.probe.on_deliver(time, node, &packet);
                            return Some(Happening::Delivered { node, previous_hop: from, packet });
                        }
                    }
                }
                continue;
            }
            if first.time() > until || first.time() == Time::NEVER {
                break;
            }
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
                    state.mac.catch_up(Moment::timer(self.now), &self.timing);
                    if state.mac.next_wakeup(&self.timing) <= self.now {
                        let action = state.mac.on_timer(self.now, &self.timing);
                        self.settle(node, action);
                    } else {
                        self.schedule_mac(node);
                    }
                }
                Owner::Routing => {
                    let node = NodeId(index as u16);
                    match &mut self.routing {
                        Routing::Static => {}
                        Routing::Aodv(nodes) => nodes[index as usize].on_timer(self.now, &mut self.wishes),
                        Routing::Olsr(nodes) => nodes[index as usize].on_timer(self.now, &mut self.wishes),
                    }
                    self.grant(node);
                }
                Owner::Delayed => {
                    if let Some(Delayed { node, queued, past_link }) = self.delayed.remove(index) {
                        if past_link { self.enqueue(node, queued) } else { self.send_down(node, queued) }
                    }
                }
                Owner::Link => {
                    let node = NodeId(index as u16);
                    let state = &mut self.nodes[index as usize];
                    state.queue.on_timer(self.now);
                    self.offer(node);
                }
                Owner::Host => return Some(Happening::Timer { number: index }),
            }
        }
        self.now = until.max(self.now);
        None
    }

    #[inline]
    fn link_key(&self) -> Key {
        self.link.front().map_or(Key::NEVER, |item| Key::timer(item.0, item.1, LINK_RANK))
    }

    /// Whether an event at `key` comes before everything else, and not after `until`.
    #[inline]
    fn is_next(&mut self, key: Key, until: Time) -> bool {
        key.time() <= until && key < self.queue.first().key && key < self.link_key()
    }

    /// Transmission `id` ends at the next of its listeners, and at those after it as long as nothing else comes first.
    fn trailing_edge(&mut self, id: u32, until: Time) {
        if let Some(air) = self.on_air.get(id) {
            self.touch(air.listener, air.end, Some(air.audience));
        }
        loop {
            let Some(air) = self.on_air.get_mut(id) else { return };
            let receiver = *self.neighbours.entry(air.listener);
            let ends = air.ends_at(&receiver);
            self.now = ends;
            let Node { mac, queue, .. } = &mut self.nodes[receiver.node.index()];
            if O::DECODED || self.overhears {
                mac.catch_up(Moment::end(ends, air.frame.from), &self.timing);
                if mac.decodes(ends, air.number) {
                    self.probe.on_decoded(ends, receiver.node, &air.frame, receiver.power);
                    if let Some(Body::Data(packet)) = &air.frame.body {
                        queue.on_overheard(ends, air.frame.from, packet);
                    }
                }
            }
            let heard = Heard { id: air.number, power: receiver.power, frame: &air.frame };
            let action = mac.on_frame_end(ends, heard, &self.timing);
            let next = air.next_listener(&self.neighbours);
            if matches!(action, Action::None) && !self.overhears {
                self.schedule_mac(receiver.node);
            } else {
                self.settle(receiver.node, action);
            }
            let Some(key) = next else {
                self.on_air.remove(id);
                return;
            };
            if !self.is_next(key, until) {
                self.queue.set(Owner::FrameEnd, id, key);
                return;
            }
        }
    }

    /// Carries out what a MAC asks for, feeds it, and sets its timer.
    #[inline]
    fn settle(&mut self, node: NodeId, action: Action<P>) {
        if self.reports_attempts
            && let Some(attempt) = self.nodes[node.index()].mac.take_attempt()
        {
            let (air_time, acknowledged) = (attempt.air_time, attempt.acknowledged);
            let attempt =
                Attempt { next_hop: attempt.queued.next_hop, body: &attempt.queued.body, air_time, acknowledged };
            self.nodes[node.index()].queue.on_attempt(self.now, attempt);
        }
        match action {
            Action::None => {}
            Action::Sent { next_hop, retries, data_air } => {
                let state = &mut self.nodes[node.index()];
                let extra = state.queue.on_sent(self.now, next_hop, retries, data_air);
                if extra > Duration::ZERO {
                    state.mac.extend_backoff(extra);
                }
            }
            Action::Transmit(frame) => self.transmit(frame),
            Action::Deliver { from, .. } if self.refuses(node, from) => {}
            Action::Deliver { from, body } => match body {
                Body::Arp { request, sender, target } => {
                    let heard = self.nodes[node.index()].arp.on_packet(request, sender, target);
                    for queued in heard.release.into_iter().chain(heard.reply) {
                        self.delay(Delayed { node, queued, past_link: true }, ARP_DELAY);
                    }
                }
                body => self.link.push_back((self.now + LINK_DELAY, node, InLink::Up { from, body })),
            },
            Action::Failed { queued, retries } => {
                self.nodes[node.index()].queue.on_failed(retries);
                self.link_failed(node, queued);
            }
        }
        self.feed(node);
    }

    /// Whether the firewall of `node` drops what `from` sends.
    #[inline]
    fn refuses(&self, node: NodeId, from: NodeId) -> bool {
        !self.firewall.is_empty() && self.firewall[node.index()].binary_search(&from).is_err()
    }

    /// Something new is in the queue of `node`.
    #[inline]
    fn offer(&mut self, node: NodeId) {
        let state = &mut self.nodes[node.index()];
        if state.mac.wants_packet() {
            state.mac.catch_up(Moment::timer(self.now), &self.timing);
            self.feed(node);
        } else {
            self.schedule_queue(node);
        }
    }

    /// Gives the MAC, to which everything until now has happened, its next packet if it can take one.
    #[inline]
    fn feed(&mut self, node: NodeId) {
        let state = &mut self.nodes[node.index()];
        if state.mac.wants_packet() {
            let (now, probe) = (self.now, &mut self.probe);
            match state.queue.pop(now, |lost, why| probe.on_loss(now, node, &lost, Loss::Queue(why))) {
                Some(queued) => state.mac.send(self.now, queued, &self.timing),
                None => state.mac.rest(),
            }
        }
        self.schedule_queue(node);
        self.schedule_mac(node);
    }

    /// Sets the timer of a discipline that holds packets back.
    #[inline]
    fn schedule_queue(&mut self, node: NodeId) {
        if self.holds_back {
            let at = self.nodes[node.index()].queue.next_wakeup();
            self.queue.set_timer(Owner::Link, node, at);
        }
    }

    #[inline]
    fn schedule_mac(&mut self, node: NodeId) {
        let at = self.nodes[node.index()].mac.next_wakeup(&self.timing);
        if at != self.queue.timer(Owner::Mac, node) {
            self.queue.set_timer(Owner::Mac, node, at);
        }
    }

    #[inline]
    fn schedule_routing(&mut self, node: NodeId) {
        let at = match &self.routing {
            Routing::Static => return,
            Routing::Aodv(nodes) => nodes[node.index()].next_wakeup(),
            Routing::Olsr(nodes) => nodes[node.index()].next_wakeup(),
        };
        self.queue.set_timer(Owner::Routing, node, at);
    }

    /// Reads what the stations under the cursors keep for a frame, so that the cache misses of a large mesh come together.
    #[inline]
    fn touch(&self, first: u32, end: u32, audience: Option<Audience>) {
        if self.nodes.len() < LARGE {
            return;
        }
        let mut sum = 0;
        for neighbour in self.neighbours.slice(first, end) {
            if audience.is_none_or(|audience| audience.has(neighbour.node, neighbour.decodable)) {
                let mac = &self.nodes[neighbour.node.index()].mac;
                sum ^= if audience.is_some() { mac.touch_more() } else { mac.touch() };
                sum ^= self.queue.timer(Owner::Mac, neighbour.node).0;
            }
        }
        core::hint::black_box(sum);
    }

    /// Reads what routing keeps for the packets that come up next, in the same way.
    #[inline]
    fn touch_routing(&mut self) {
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

    fn transmit(&mut self, frame: Frame<P>) {
        let sender = frame.from;
        self.frames += 1;
        self.mix(sender, frame.kind as u64, frame.bytes);
        self.probe.on_air(self.now, &frame);
        let (first, end) = match &mut self.motion {
            None => self.neighbours.range(sender),
            // Kept under the place of the transmission, which it gets below.
            Some(motion) => motion.table(sender, self.now, self.on_air.next(), &mut self.neighbours),
        };
        let audience = Audience::of(&frame, self.tells_everybody, self.tells_decoders, self.timing.profile);
        let Frame { nav, air_time, at_data_rate, .. } = frame;
        let (began, moment) = (self.now, Moment::timer(self.now));
        // No frame is in the air for 2^32 transmissions.
        let number = self.frames as u32;
        let mut listeners = None;
        self.touch(first, end, None);
        for (place, &Neighbour { node, decodable, delay, power }) in
            self.neighbours.slice(first, end).iter().enumerate()
        {
            let start = began + delay;
            let is_told = audience.has(node, decodable);
            if is_told {
                let place = first + place as u32;
                listeners = Some((listeners.map_or(place, |(first, _)| first), place + 1));
            }
            let frame = Arriving { id: number, power, decodable, at_data_rate, end: start + air_time };
            let arrival = Arrival { start, frame, nav_ns: nav.0 as u32, sender, is_told };
            let mac = &mut self.nodes[node.index()].mac;
            if mac.on_departure(moment, arrival, &self.timing) {
                // It costs less to move a timer that is not the next than to find out later that it woke for nothing.
                let due = self.queue.timer(Owner::Mac, node);
                if due <= arrival.frame.end || mac.is_crowded() {
                    let at = mac.next_wakeup(&self.timing);
                    if at != due {
                        self.queue.set_timer(Owner::Mac, node, at);
                    }
                }
            }
        }
        if let Some((listener, end)) = listeners {
            let air = OnAir { frame, number, began, audience, listener, end };
            let key = air.key(&self.neighbours);
            let id = self.on_air.insert(air);
            self.queue.set(Owner::FrameEnd, id, key);
        }
    }

    /// A packet from below: returns it if it is for this node's transport.
    fn receive(&mut self, node: NodeId, from: NodeId, body: Body<P>) -> Option<P> {
        match body {
            Body::Data(packet) => {
                if packet.destination() == node {
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

    fn route(&mut self, node: NodeId, mut packet: P, previous_hop: Option<NodeId>) {
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
    fn grant(&mut self, node: NodeId) {
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
    fn send_down(&mut self, node: NodeId, queued: Queued<P>) {
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

    fn delay(&mut self, what: Delayed<P>, delay: Duration) {
        let node = what.node;
        let rank = DELAYED_RANK + self.delays % DELAYED_RANKS;
        self.delays = self.delays.wrapping_add(1);
        let number = self.delayed.insert(what);
        self.queue.set(Owner::Delayed, number, Key::timer(self.now + delay, node, rank));
    }

    fn enqueue(&mut self, node: NodeId, queued: Queued<P>) {
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

    fn link_failed(&mut self, node: NodeId, queued: Queued<P>) {
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

    #[inline]
    fn mix(&mut self, node: NodeId, kind: u64, bytes: u32) {
        // FNV-1a over two words per event.
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let what = u64::from(node.0) << 40 | kind << 32 | u64::from(bytes);
        self.fingerprint = ((self.fingerprint ^ self.now.0).wrapping_mul(PRIME) ^ what).wrapping_mul(PRIME);
    }
}

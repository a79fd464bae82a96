//! Writing of the stream of one run.

use super::{FlowHeader, Header, OF_EMULATION, OF_RUN, STREAM};
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::link::discipline::QueueLoss;
use meshpace_mesh::mac::{Frame, FrameKind};
use meshpace_mesh::radio::power::dbm;
use meshpace_mesh::radio::{Channel, connectivity};
use meshpace_mesh::routing::{DropReason, MessageKind};
use meshpace_mesh::{Body, Packet, Position, Queued};
use meshpace_scenario::Point;
use meshpace_sim::world::{FlowCounters, ProbedWorld};
use meshpace_sim::{Config, Event, Interests, Loss, Outcome, Probe};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::io::{self, Write};

/// Time between two samples.
const SAMPLE: Duration = Duration::from_millis(100);

/// Runs `point` with `seed` and writes the events to `out`. The random parts of `point` must be
/// drawn already. The outcome is valid even if the stream could not be written; the second result
/// tells whether it was.
pub fn record<W: Write>(scenario: &str, point: &Point, seed: u64, out: W) -> (Outcome, io::Result<()>) {
    let config = &point.config;
    let writer = RefCell::new(Writer::new(out, config.positions.len()));
    let mut samples: Option<Samples> = None;
    let outcome = meshpace_sim::run_sampled(config, seed, &mut &writer, SAMPLE, &mut |at, world| {
        let out = &mut *writer.borrow_mut();
        match &mut samples {
            Some(samples) => samples.take(out, world, at),
            None => {
                let header = header(scenario, point, seed, world);
                out.header(&header);
                samples = Some(Samples::new(config, header.nodes));
            }
        }
    });
    let ended = Time((outcome.ended_s * 1e9) as u64);
    let written = writer.into_inner().end(ended, outcome.frames, &format!("{:016x}", outcome.fingerprint));
    (outcome, written)
}

/// Header of a run whose world is at time zero.
fn header(scenario: &str, point: &Point, seed: u64, world: &mut ProbedWorld<'_, '_>) -> Header {
    let config = &point.config;
    let places = match world.engine_mut().motion() {
        Some(motion) => motion.positions(Time::ZERO),
        None => config.positions.clone(),
    };
    let nodes: Vec<[f64; 2]> = places.iter().map(|place| [place.x, place.y]).collect();
    let links = connectivity::links(&places, &Channel::new(&config.mesh.radio), config.firewall.as_deref());
    let flows = config.flows.iter().zip(&point.transports).zip(&point.names).enumerate();
    Header {
        point: point.values.iter().cloned().collect(),
        sample_ns: SAMPLE.0,
        links: links.into_iter().map(|(one, other)| [one, other]).collect(),
        flows: flows
            .map(|(id, ((flow, transport), name))| FlowHeader {
                id,
                name: name.clone(),
                from: flow.from.0,
                to: flow.to.0,
                transport: transport.clone(),
            })
            .collect(),
        ..Header::new(OF_RUN, scenario, seed, config, nodes)
    }
}

impl Header {
    fn new(format: u32, scenario: &str, seed: u64, config: &Config, nodes: Vec<[f64; 2]>) -> Header {
        Header {
            stream: STREAM.to_owned(),
            format,
            model: meshpace_sim::MODEL_REVISION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: scenario.to_owned(),
            seed,
            point: Map::new(),
            duration_ns: config.duration.0,
            warmup_ns: config.warmup.0,
            sample_ns: 0,
            nodes,
            links: Vec::new(),
            flows: Vec::new(),
        }
    }

    /// Header of an emulation that is sampled every `sample`. Its flows begin when programs start
    /// to communicate, and the whole time is measured.
    pub fn of_emulation(scenario: &str, seed: u64, config: &Config, sample: Duration) -> Header {
        let nodes = config.positions.iter().map(|place| [place.x, place.y]).collect();
        let channel = Channel::new(&config.mesh.radio);
        let links = connectivity::links(&config.positions, &channel, config.firewall.as_deref());
        Header {
            warmup_ns: 0,
            sample_ns: sample.0,
            links: links.into_iter().map(|(one, other)| [one, other]).collect(),
            ..Header::new(OF_EMULATION, scenario, seed, config, nodes)
        }
    }
}

/// Probe that writes the stream.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// Number of frames so far.
    frames: u64,
    /// For each node, the number of the frame that it sent last.
    last: Vec<u64>,
    /// First error. Nothing is written after it.
    failure: Option<io::Error>,
}

impl<W: Write> Writer<W> {
    /// Creates a writer into `out` for a mesh of `nodes` nodes.
    pub fn new(out: W, nodes: usize) -> Writer<W> {
        Writer { out, frames: 0, last: vec![0; nodes], failure: None }
    }

    fn line(&mut self, line: std::fmt::Arguments) {
        if self.failure.is_none() {
            self.failure = writeln!(self.out, "{line}").err();
        }
    }

    /// Writes the first line.
    pub fn header(&mut self, header: &Header) {
        let header = serde_json::to_string(header).unwrap_or_default();
        self.line(format_args!("{header}"));
    }

    /// Writes that a flow begins.
    pub fn begin(&mut self, now: Time, flow: &FlowHeader) {
        let FlowHeader { id, name: _, from, to, transport } = flow;
        let transport = Value::from(transport.as_str());
        self.line(format_args!("[\"begin\",{},{id},{from},{to},{transport}]", now.0));
    }

    /// Writes a sample of a flow whose endpoints are unknown, so that only its packets in the mesh
    /// were counted.
    pub fn counted(&mut self, now: Time, flow: usize, delivered: u64, segments_sent: u64, retransmissions: u64) {
        self.line(format_args!(
            "[\"flow\",{},{flow},{delivered},{segments_sent},{retransmissions},null,null,null,null,null]",
            now.0
        ));
    }

    /// Flushes what was written so far.
    pub fn flush(&mut self) {
        if self.failure.is_none() {
            self.failure = self.out.flush().err();
        }
    }

    /// Writes the last line.
    ///
    /// # Errors
    /// The first error, if not everything could be written.
    pub fn end(&mut self, now: Time, frames: u64, fingerprint: &str) -> io::Result<()> {
        self.line(format_args!("[\"end\",{},{frames},\"{fingerprint}\"]", now.0));
        self.flush();
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// Kind of a packet: data or acknowledgement.
fn what(packet: &impl Packet) -> &'static str {
    if packet.is_pure_ack() { "ack" } else { "data" }
}

/// Content of a frame as JSON.
fn body(body: Option<&Body<impl Packet>>) -> String {
    match body {
        None => "null".to_owned(),
        Some(Body::Data(packet)) => {
            format!("[\"packet\",{},{},\"{}\",{}]", packet.id(), packet.flow().0, what(packet), packet.hops())
        }
        Some(Body::Routing(message)) => {
            let what = match message.kind() {
                MessageKind::Request => "request",
                MessageKind::Reply => "reply",
                MessageKind::Error => "error",
                MessageKind::Announcement => "announcement",
            };
            format!("[\"routing\",\"{what}\"]")
        }
        Some(Body::Arp { request, .. }) => format!("[\"arp\",\"{}\"]", if *request { "request" } else { "reply" }),
    }
}

/// Reason of a loss, as the format names it.
fn why(loss: Loss) -> &'static str {
    match loss {
        Loss::Queue(QueueLoss::Full) => "queue-full",
        Loss::Queue(QueueLoss::Lred) => "lred",
        Loss::Queue(QueueLoss::CoDel) => "codel",
        Loss::ArpDisplaced => "arp-displaced",
        Loss::Flushed => "flushed",
        Loss::Routing(DropReason::NoRoute) => "no-route",
        Loss::Routing(DropReason::Loop) => "loop",
        Loss::Routing(DropReason::TtlExpired) => "ttl-expired",
        Loss::Routing(DropReason::LinkFailure) => "link-failure",
        Loss::Routing(DropReason::BufferFull) => "buffer-full",
        Loss::Routing(DropReason::BufferTimeout) => "buffer-timeout",
    }
}

/// A node as JSON; null for a broadcast.
fn node(node: NodeId) -> String {
    if node.is_broadcast() { "null".to_owned() } else { node.0.to_string() }
}

/// A number as JSON; null if it is missing or not finite.
fn number(value: Option<f64>) -> String {
    match value.filter(|value| value.is_finite()) {
        Some(value) => format!("{value}"),
        None => "null".to_owned(),
    }
}

impl<P: Packet, W: Write> Probe<P> for Writer<W> {
    fn interests(&self) -> Interests {
        Interests::ALL
    }

    fn on(&mut self, now: Time, event: Event<'_, P>) {
        match event {
            Event::OnAir { frame } => self.frame(now, frame),
            Event::Decoded { node, frame, power } => {
                let n = self.last[frame.from.index()];
                self.line(format_args!("[\"got\",{},{n},{},{:.1}]", now.0, node.0, dbm(power)));
            }
            Event::Collision { node, frame } => {
                let n = self.last[frame.from.index()];
                self.line(format_args!("[\"collision\",{},{n},{}]", now.0, node.0));
            }
            Event::Inject { node, packet } => {
                let (id, flow, what, bytes) = (packet.id(), packet.flow().0, what(packet), packet.size());
                self.line(format_args!("[\"sent\",{},{},{id},{flow},\"{what}\",{bytes}]", now.0, node.0));
            }
            Event::Deliver { node, packet } => {
                let (id, flow, hops) = (packet.id(), packet.flow().0, packet.hops());
                self.line(format_args!("[\"arrived\",{},{},{id},{flow},{hops}]", now.0, node.0));
            }
            Event::Loss { node, lost, reason } => self.lost(now, node, lost, reason),
            Event::Sent { .. } | Event::LinkFailure { .. } | Event::Route { .. } => {}
        }
    }
}

impl<W: Write> Writer<W> {
    fn frame(&mut self, now: Time, frame: &Frame<impl Packet>) {
        let kind = match frame.kind {
            FrameKind::Rts => "rts",
            FrameKind::Cts => "cts",
            FrameKind::Data => "data",
            FrameKind::Ack => "ack",
            FrameKind::BlockAck => "block-ack",
            FrameKind::BlockAckReq => "block-ack-request",
        };
        let (n, to, body) = (self.frames, node(frame.to), body(frame.body.as_ref()));
        let Frame { from, bytes, air_time, nav, retry, .. } = frame;
        self.line(format_args!(
            "[\"frame\",{},{n},{},{to},\"{kind}\",{bytes},{},{},{retry},{body}]",
            now.0, from.0, air_time.0, nav.0
        ));
        self.last[from.index()] = n;
        self.frames += 1;
    }

    fn lost(&mut self, now: Time, at: NodeId, lost: &Queued<impl Packet>, loss: Loss) {
        let (why, next_hop) = (why(loss), node(lost.next_hop));
        match &lost.body {
            Body::Data(packet) => self.line(format_args!(
                "[\"lost\",{},{},\"{why}\",{},{},{next_hop}]",
                now.0,
                at.0,
                packet.id(),
                packet.flow().0
            )),
            _ => self.line(format_args!("[\"lost\",{},{},\"{why}\",null,null,{next_hop}]", now.0, at.0)),
        }
    }
}

/// State that samples report only if it has changed.
#[derive(Debug)]
pub struct Changes {
    queues: Vec<usize>,
    /// Route of each flow. The outer `None` means that it was not reported yet.
    routes: Vec<Option<Option<Vec<u16>>>>,
    places: Vec<[f64; 2]>,
}

impl Changes {
    /// Begins with the state in the header, which had the nodes at `places`.
    pub fn new(places: Vec<[f64; 2]>) -> Changes {
        Changes { queues: vec![0; places.len()], routes: Vec::new(), places }
    }

    /// Reports the number of packets in a node's queue, if it has changed.
    pub fn queue<W: Write>(&mut self, out: &mut Writer<W>, now: Time, node: usize, queue: usize) {
        if std::mem::replace(&mut self.queues[node], queue) != queue {
            out.line(format_args!("[\"queue\",{},{node},{queue}]", now.0));
        }
    }

    /// Reports the route of a flow, if it has changed.
    pub fn route<W: Write>(&mut self, out: &mut Writer<W>, now: Time, flow: usize, route: Option<Vec<u16>>) {
        if self.routes.len() <= flow {
            self.routes.resize(flow + 1, None);
        }
        if self.routes[flow].as_ref() != Some(&route) {
            let told = serde_json::to_string(&route).unwrap_or_default();
            out.line(format_args!("[\"route\",{},{flow},{told}]", now.0));
            self.routes[flow] = Some(route);
        }
    }

    /// Reports the position of a node, rounded to 0.01 m, if it has changed.
    pub fn place<W: Write>(&mut self, out: &mut Writer<W>, now: Time, node: usize, place: Position) {
        let place = [(place.x * 100.0).round() / 100.0, (place.y * 100.0).round() / 100.0];
        if std::mem::replace(&mut self.places[node], place) != place {
            let [x, y] = place;
            out.line(format_args!("[\"place\",{},{node},{x},{y}]", now.0));
        }
    }
}

/// State at the previous sample.
struct Samples {
    changes: Changes,
    counted: Vec<FlowCounters>,
    ends: Vec<(NodeId, NodeId)>,
}

impl Samples {
    /// Begins with the state in the header, which had the nodes at `places`.
    fn new(config: &Config, places: Vec<[f64; 2]>) -> Samples {
        Samples {
            changes: Changes::new(places),
            counted: vec![FlowCounters::default(); config.flows.len()],
            ends: config.flows.iter().map(|flow| (flow.from, flow.to)).collect(),
        }
    }

    fn take<W: Write>(&mut self, out: &mut Writer<W>, world: &mut ProbedWorld<'_, '_>, at: Time) {
        for node in 0..self.changes.queues.len() {
            let queue = world.engine().station(NodeId(node as u16)).queue;
            self.changes.queue(out, at, node, queue);
        }
        for flow in 0..self.counted.len() {
            self.take_flow(out, world, at, flow);
        }
        let places = world.engine_mut().motion().map(|motion| motion.positions(at));
        for (node, place) in places.into_iter().flatten().enumerate() {
            self.changes.place(out, at, node, place);
        }
    }

    fn take_flow<W: Write>(&mut self, out: &mut Writer<W>, world: &ProbedWorld<'_, '_>, at: Time, flow: usize) {
        let (from, to) = self.ends[flow];
        self.changes.route(out, at, flow, route(world, from, to));
        let now = at.0;
        let counted = world.flow_counters(flow);
        let before = std::mem::replace(&mut self.counted[flow], counted);
        let (s, b) = (&counted.sender, &before.sender);
        let mean = |sum: f64, samples: u64| (samples > 0).then(|| sum / samples as f64);
        let rtt = mean(s.rtt_sum_s - b.rtt_sum_s, s.rtt_samples - b.rtt_samples);
        let cov = mean(s.cov_sum - b.cov_sum, s.cov_samples - b.cov_samples);
        let sender = world.sender(flow);
        let (window, interval) = (sender.and_then(|end| end.window()), sender.and_then(|end| end.interval_s()));
        let whole = |seconds: Option<f64>| number(seconds.map(|seconds| (seconds * 1e9).round()));
        let (window, interval, rtt, cov) = (number(window), whole(interval), whole(rtt), number(cov));
        out.line(format_args!(
            "[\"flow\",{now},{flow},{},{},{},{},{window},{interval},{rtt},{cov}]",
            counted.delivered, s.segments_sent, s.retransmissions, s.timeouts
        ));
    }
}

/// Nodes from `from` to `to` along which routing would send a packet now. `None` without a route.
fn route(world: &ProbedWorld<'_, '_>, from: NodeId, to: NodeId) -> Option<Vec<u16>> {
    let mut nodes = vec![from.0];
    let mut at = from;
    while at != to {
        at = world.engine().next_hop(at, to)?;
        if nodes.contains(&at.0) {
            return None;
        }
        nodes.push(at.0);
    }
    Some(nodes)
}

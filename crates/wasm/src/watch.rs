//! Events of a run, for drawing: a probe that keeps events while the page shows them.

use crate::air::AirTime;
use crate::packets::Passed;
use meshpace_core::{NodeId, Time};
use meshpace_mesh::mac::{Frame, FrameKind};
use meshpace_mesh::routing::DropReason;
use meshpace_mesh::{Body, Packet};
use meshpace_sim::SimPacket;
use meshpace_sim::probe::{self, Interests, Loss, Probe};

/// Content of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carried {
    /// No content: RTS, CTS, ACK, block ACK and block ACK request.
    Control = 0,
    /// Data of a transport.
    Data = 1,
    /// An acknowledgement of a transport, or another segment without payload.
    TransportAck = 2,
    /// A message of the routing protocol.
    Routing = 3,
    /// Address resolution.
    Arp = 4,
}

/// An event of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// A frame leaves its sender.
    OnAir {
        /// Number of the frame, from 1 on.
        number: u32,
        /// Transmitter.
        from: NodeId,
        /// Addressee, or broadcast.
        to: NodeId,
        /// 0 RTS, 1 CTS, 2 data, 3 ACK, 5 block ACK, 6 block ACK request.
        kind: u8,
        /// Time on the air, seconds.
        air_time_s: f64,
        /// Length of the MPDU, bytes.
        bytes: u32,
        /// Flow of the packet that the frame carries or, if it is an ACK, acknowledges.
        flow: Option<u16>,
        /// Kind of the content.
        carried: Carried,
        /// True if the frame is a retransmission.
        retry: bool,
    },
    /// A frame was received by an addressee.
    Received {
        /// Number of the frame.
        number: u32,
        /// Node that received the frame.
        node: NodeId,
    },
    /// A frame was lost at its addressee to another frame.
    Collided {
        /// Number of the frame.
        number: u32,
        /// Addressee.
        node: NodeId,
    },
    /// A packet was lost at a node.
    Lost {
        /// Node at which the packet was lost.
        node: NodeId,
        /// Flow of the packet, if it belonged to one.
        flow: Option<u16>,
        /// Reason: 0 queue full, 1 dropped by the queue discipline, 2 displaced in address
        /// resolution, 3 flushed with its link, 4 no route, 5 link failure, 6 another reason of
        /// routing.
        why: u8,
    },
    /// A station gave up a neighbour at its retry limit.
    LinkFailed {
        /// Station that gave up.
        node: NodeId,
        /// Neighbour that was given up.
        next_hop: NodeId,
    },
    /// Routing lost or found a route.
    Route {
        /// Node of the routing protocol.
        node: NodeId,
        /// Destination of the route.
        destination: NodeId,
        /// True if the route was found, false if it was lost.
        found: bool,
    },
}

impl Event {
    /// Number of values per event.
    pub const FIELDS: usize = 12;

    /// Writes the event as values. The first is the kind of the event, the second its time in
    /// seconds. Broadcast and "no flow" are -1.
    ///
    /// | kind | other values |
    /// |---|---|
    /// | 1 on air | number, from, to, kind, air time, bytes, flow, carried, retry |
    /// | 2 received | number, node |
    /// | 3 collided | number, node |
    /// | 4 lost | node, flow, why |
    /// | 5 link failed | node, next hop |
    /// | 6 route | node, destination, found |
    pub fn write(&self, at: Time, out: &mut Vec<f64>) {
        let id = |node: NodeId| if node.is_broadcast() { -1.0 } else { f64::from(node.0) };
        let of_flow = |flow: Option<u16>| flow.map_or(-1.0, f64::from);
        let end = out.len() + Event::FIELDS;
        let mut put = |kind: u8, values: &[f64]| {
            out.extend([f64::from(kind), at.as_secs_f64()]);
            out.extend_from_slice(values);
            out.resize(end, 0.0);
        };
        match *self {
            Event::OnAir { number, from, to, kind, air_time_s, bytes, flow, carried, retry } => put(
                1,
                &[
                    f64::from(number),
                    id(from),
                    id(to),
                    f64::from(kind),
                    air_time_s,
                    f64::from(bytes),
                    of_flow(flow),
                    f64::from(carried as u8),
                    f64::from(u8::from(retry)),
                ],
            ),
            Event::Received { number, node } => put(2, &[f64::from(number), id(node)]),
            Event::Collided { number, node } => put(3, &[f64::from(number), id(node)]),
            Event::Lost { node, flow, why } => put(4, &[id(node), of_flow(flow), f64::from(why)]),
            Event::LinkFailed { node, next_hop } => put(5, &[id(node), id(next_hop)]),
            Event::Route { node, destination, found } => {
                put(6, &[id(node), id(destination), f64::from(u8::from(found))]);
            }
        }
    }
}

/// The probe. What it keeps is taken from it after every step of a run, so that a copy of the run
/// stays small.
#[derive(Clone, Default)]
pub struct Watch {
    /// True if events of frames and packets are kept. Failures of links and changes of routes are
    /// always kept.
    pub keeps_frames: bool,
    /// Events since they were last taken.
    pub events: Vec<(Time, Event)>,
    /// Packets that transports sent and received since they were last taken.
    pub packets: Vec<(Time, Passed)>,
    /// Air time by link until now.
    pub air: AirTime,
    /// Time at which the last frame was sent.
    pub last_frame: Option<Time>,
    frames: u32,
    /// Number of the frame that each node sent last.
    last_of: Vec<u32>,
    /// Flow of the data frame that each node sent last.
    flow_of: Vec<Option<u16>>,
}

impl Watch {
    /// Creates a probe for `nodes` nodes.
    pub fn new(nodes: usize) -> Watch {
        Watch { last_of: vec![0; nodes], flow_of: vec![None; nodes], ..Watch::default() }
    }
}

fn carried(frame: &Frame<SimPacket>) -> (Carried, Option<u16>) {
    match &frame.body {
        None => (Carried::Control, None),
        Some(Body::Data(packet)) if packet.is_pure_ack() => (Carried::TransportAck, Some(packet.flow.0)),
        Some(Body::Data(packet)) => (Carried::Data, Some(packet.flow.0)),
        Some(Body::Routing(_)) => (Carried::Routing, None),
        Some(Body::Arp { .. }) => (Carried::Arp, None),
    }
}

impl Watch {
    fn on_air(&mut self, now: Time, frame: &Frame<SimPacket>) {
        self.frames = self.frames.wrapping_add(1);
        self.last_frame = Some(now);
        self.last_of[frame.from.index()] = self.frames;
        self.air.add(frame);
        let (carried, mut flow) = carried(frame);
        match frame.kind {
            FrameKind::Data => self.flow_of[frame.from.index()] = flow,
            // The frame acknowledges the last data frame of its addressee.
            FrameKind::Ack | FrameKind::BlockAck => flow = self.flow_of[frame.to.index()],
            _ => {}
        }
        if self.keeps_frames {
            self.events.push((
                now,
                Event::OnAir {
                    number: self.frames,
                    from: frame.from,
                    to: frame.to,
                    kind: frame.kind as u8,
                    air_time_s: frame.air_time.as_secs_f64(),
                    bytes: frame.bytes,
                    flow,
                    carried,
                    retry: frame.retry,
                },
            ));
        }
    }
}

impl Probe<SimPacket> for Watch {
    fn interests(&self) -> Interests {
        Interests::ALL
    }

    fn on(&mut self, now: Time, event: probe::Event<'_, SimPacket>) {
        let kept = match event {
            probe::Event::OnAir { frame } => return self.on_air(now, frame),
            probe::Event::LinkFailure { node, next_hop } => Event::LinkFailed { node, next_hop },
            probe::Event::Route { node, destination, found } => Event::Route { node, destination, found },
            probe::Event::Inject { node, packet } => {
                return self.packets.push((now, Passed { node, packet: *packet, arrived: false }));
            }
            probe::Event::Deliver { node, packet } => {
                return self.packets.push((now, Passed { node, packet: *packet, arrived: true }));
            }
            _ if !self.keeps_frames => return,
            // A station sends its next frame at least a SIFS later, so this frame is still its last
            // one.
            probe::Event::Decoded { node, frame, .. } if frame.to == node || frame.to.is_broadcast() => {
                Event::Received { number: self.last_of[frame.from.index()], node }
            }
            probe::Event::Collision { node, frame } => {
                Event::Collided { number: self.last_of[frame.from.index()], node }
            }
            probe::Event::Loss { node, lost, reason: loss } => {
                let flow = if let Body::Data(packet) = &lost.body { Some(packet.flow.0) } else { None };
                Event::Lost { node, flow, why: reason(loss) }
            }
            probe::Event::Decoded { .. } | probe::Event::Sent { .. } => return,
        };
        self.events.push((now, kept));
    }
}

fn reason(loss: Loss) -> u8 {
    use meshpace_mesh::link::discipline::QueueLoss;
    match loss {
        Loss::Queue(QueueLoss::Full) => 0,
        Loss::Queue(QueueLoss::Lred | QueueLoss::CoDel) => 1,
        Loss::ArpDisplaced => 2,
        Loss::Flushed => 3,
        Loss::Routing(DropReason::NoRoute) => 4,
        Loss::Routing(DropReason::LinkFailure) => 5,
        Loss::Routing(_) => 6,
    }
}

//! Two endpoints at two nodes of the simulator's mesh. Tests of equal traces compare the wire with
//! them.
//!
//! The nodes communicate over one hop of 802.11 in the simulator's engine. Packets are lost by
//! their number in each direction. The driver delays each packet by a given time before it passes
//! the packet to the mesh; no packet overtakes another.

use meshpace_core::{Duration, FlowId, NodeId, Time};
use meshpace_mesh::MeshConfig;
use meshpace_mesh::config::Position;
use meshpace_sim::engine::{Engine, Indication, TimerId};
use meshpace_sim::packet::SimPacket;
use meshpace_transport::{Arrival, Machine, Segment, pump};
use std::collections::{BTreeSet, VecDeque};

/// Timer of packets that are delayed before they enter the mesh.
const HELD: TimerId = TimerId(2);
/// Timer of the applications.
const APPLICATION: TimerId = TimerId(3);
/// Time at which a conversation ends in any case.
pub const END: Time = Time(300_000_000_000);

/// A sent segment: the side that sent it, whether it was lost, and the segment.
pub type Sent<S> = (usize, bool, S);

/// Endpoint of a conversation.
pub trait Speaker: Machine {
    /// The segment in the form that the mesh carries.
    fn wrap(segment: Self::Segment) -> Segment;
    /// Handles a segment that arrives.
    fn hear(&mut self, now: Time, segment: &Segment, arrival: Arrival);
}

impl Speaker for meshpace_transport::Endpoint {
    fn wrap(segment: Segment) -> Segment {
        segment
    }
    fn hear(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        self.on_segment(now, segment, arrival);
    }
}

impl Speaker for meshpace_transport::tpa::Connection {
    fn wrap(segment: meshpace_transport::tpa::Segment) -> Segment {
        Segment::Tpa(segment)
    }
    fn hear(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        let Segment::Tpa(segment) = segment else { panic!("not TPA") };
        self.on_segment(now, segment, arrival);
    }
}

/// Runs the conversation until neither end has anything to send. `act` stands for the applications:
/// it is called after every event, and returns the time at which it has to be called without an
/// event. `hops` is the number of hops that packets appear to have travelled. `delay` is the time
/// for which each packet waits before it enters the mesh.
pub fn converse<M: Speaker>(
    ends: &mut [M; 2],
    losses: &[BTreeSet<u64>; 2],
    hops: u8,
    mut delay: impl FnMut() -> Duration,
    mut act: impl FnMut(Time, &mut [M; 2]) -> Time,
) -> Vec<Sent<M::Segment>>
where
    M::Segment: Copy,
{
    let nodes = [NodeId(0), NodeId(1)];
    let positions = [Position { x: 0.0, y: 0.0 }, Position { x: 200.0, y: 0.0 }];
    let mut engine: Engine<SimPacket, ()> = Engine::new(&positions, &MeshConfig::default(), nodes, 1, ());
    let (mut trace, mut counts, mut id) = (Vec::new(), [0u64; 2], 0);
    let mut held: VecDeque<(Time, usize, Segment)> = VecDeque::new();
    loop {
        let now = engine.now();
        let acts_at = act(now, ends);
        for side in 0..2 {
            let wakeup = pump(&mut ends[side], now, |_, segment| {
                let lost = losses[side].contains(&counts[side]);
                counts[side] += 1;
                trace.push((side, lost, segment));
                if !lost {
                    let earliest = held.back().map_or(Time::ZERO, |(at, ..)| *at);
                    held.push_back(((now + delay()).max(earliest), side, M::wrap(segment)));
                }
            });
            engine.set_timer(TimerId(side as u32), nodes[side], wakeup);
        }
        engine.set_timer(HELD, nodes[0], held.front().map_or(Time::NEVER, |(at, ..)| *at));
        engine.set_timer(APPLICATION, nodes[0], acts_at);
        let Some(indication) = engine.advance(END) else { return trace };
        match indication {
            Indication::Delivered { node, packet, .. } => {
                let arrival = Arrival { hops, ..Arrival::default() };
                ends[node.index()].hear(engine.now(), &packet.segment, arrival);
            }
            Indication::Timer { id: HELD } => {
                let Some((_, side, segment)) = held.pop_front() else { continue };
                id += 1;
                let packet = SimPacket {
                    id,
                    source: nodes[side],
                    destination: nodes[1 - side],
                    flow: FlowId(0),
                    connection: 0,
                    ttl: 64,
                    hops: 0,
                    ce: false,
                    dscp: 0,
                    segment,
                };
                engine.inject(nodes[side], packet);
            }
            // `pump` handles the timers of the endpoints, and `act` those of the applications.
            Indication::Timer { .. } | Indication::Route { .. } => {}
        }
    }
}

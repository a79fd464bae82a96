//! The packets of a run for plots: the time-sequence graph of each flow, and how long its data was under way.
//!
//! A time-sequence graph has what its sender knows, as tcptrace draws it (S. Ostermann, "tcptrace", tsg): each segment when it is sent, over the
//! bytes of it, and the bytes that are acknowledged, when the acknowledgement arrives.

use meshpace_core::{NodeId, Time};
use meshpace_sim::SimPacket;
use meshpace_transport::Segment;
use meshpace_transport::flags::Flags;

/// The most events that are kept, of all flows together: 13 MB.
const MOST: usize = 400_000;
/// Packets whose time of departure is remembered.
const REMEMBERED: usize = 1 << 14;

/// Something that a packet did.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Passed {
    /// The node whose transport sent or got it.
    pub node: NodeId,
    /// The packet.
    pub packet: SimPacket,
    /// Got; sent otherwise.
    pub arrived: bool,
}

/// Kind of an event in a time-sequence graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A segment is sent for the first time; its first byte, and the byte after its last.
    Sent = 0,
    /// The same of a segment with bytes that were sent before.
    Again = 1,
    /// An acknowledgement of new bytes arrives; what was acknowledged before, and what is now.
    Acked = 2,
    /// An acknowledgement of nothing new arrives; what is acknowledged, twice.
    Duplicate = 3,
}

/// One flow.
#[derive(Clone, Default)]
struct Flow {
    /// The connection under way; a flow of files has one after the other, which follow each other in the graph.
    connection: u16,
    base: u64,
    highest: u64,
    acked: u64,
    events: Vec<(Time, Kind, u64, u64)>,
    delay_sum_s: f64,
    delays: u64,
}

/// All flows of a run, from time zero on.
pub struct Packets {
    senders: Vec<NodeId>,
    flows: Vec<Flow>,
    /// By the lowest bits of a packet's number: the number, and when it was sent.
    sent: Vec<(u32, Time)>,
    kept: usize,
    /// From when on no events are kept any more.
    full: Option<Time>,
}

impl Packets {
    /// Of flows with these senders.
    pub fn new(senders: impl Iterator<Item = NodeId>) -> Packets {
        let senders: Vec<NodeId> = senders.collect();
        let flows = vec![Flow::default(); senders.len()];
        Packets { senders, flows, sent: vec![(u32::MAX, Time::ZERO); REMEMBERED], kept: 0, full: None }
    }

    /// Notes what happened, in the order of time.
    pub fn note(&mut self, at: Time, passed: Passed) {
        let Passed { node, packet, arrived } = passed;
        let Some(flow) = self.flows.get_mut(packet.flow.index()) else { return };
        let place = packet.id as usize % REMEMBERED;
        let is_sender = node == self.senders[packet.flow.index()];
        if !flow.is_of_present(packet.connection) {
            return;
        }
        let event = match (arrived, is_sender) {
            (false, true) => {
                self.sent[place] = (packet.id, at);
                range(&packet.segment).map(|(from, to)| flow.send(from, to))
            }
            (true, true) => acknowledged(&packet.segment).and_then(|to| flow.acknowledge(to)),
            (true, false) if packet.segment.payload() > 0 => {
                let (id, sent) = self.sent[place];
                if id == packet.id {
                    flow.delay_sum_s += at.since(sent).as_secs_f64();
                    flow.delays += 1;
                }
                None
            }
            _ => None,
        };
        let Some((kind, from, to)) = event else { return };
        if self.kept == MOST {
            self.full.get_or_insert(at);
            return;
        }
        self.kept += 1;
        flow.events.push((at, kind, from, to));
    }

    /// Sum of the one-way delays of a flow's data so far, seconds, and their number.
    pub fn delays(&self, flow: usize) -> (f64, u64) {
        (self.flows[flow].delay_sum_s, self.flows[flow].delays)
    }

    /// The events of a flow between two times, four numbers each: seconds, kind, from, to. From when on none are kept stands before them, seconds; NaN
    /// if all are.
    pub fn events(&self, flow: usize, from: Time, to: Time) -> Vec<f64> {
        let full = self.full.map_or(f64::NAN, Time::as_secs_f64);
        let events = self.flows.get(flow).map_or(&[][..], |flow| &flow.events);
        let begin = events.partition_point(|(at, ..)| *at < from);
        let end = events.partition_point(|(at, ..)| *at <= to).max(begin);
        let numbers = events[begin..end]
            .iter()
            .flat_map(|&(at, kind, from, to)| [at.as_secs_f64(), f64::from(kind as u8), from as f64, to as f64]);
        [full].into_iter().chain(numbers).collect()
    }
}

impl Flow {
    /// True if a packet is of the connection under way, which a later one becomes.
    fn is_of_present(&mut self, connection: u16) -> bool {
        let later = connection.wrapping_sub(self.connection);
        if later == 0 {
            return true;
        }
        if later >= 1 << 15 {
            return false;
        }
        (self.connection, self.base, self.acked) = (connection, self.highest, self.highest);
        true
    }

    fn send(&mut self, from: u64, to: u64) -> (Kind, u64, u64) {
        let (from, to) = (self.base + from, self.base + to);
        let kind = if from < self.highest { Kind::Again } else { Kind::Sent };
        self.highest = self.highest.max(to);
        (kind, from, to)
    }

    fn acknowledge(&mut self, to: u64) -> Option<(Kind, u64, u64)> {
        // A FIN counts as one byte, but is none.
        let to = (self.base + to).min(self.highest);
        match to.cmp(&self.acked) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal if to < self.highest => Some((Kind::Duplicate, to, to)),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => {
                let before = std::mem::replace(&mut self.acked, to);
                Some((Kind::Acked, before, to))
            }
        }
    }
}

/// The bytes of the stream that a segment carries, if it carries any.
fn range(segment: &Segment) -> Option<(u64, u64)> {
    let payload = u64::from(segment.payload());
    let first = match segment {
        Segment::Tcp(segment) => segment.seq,
        Segment::Train(segment) => segment.seq,
        Segment::Flush(segment) => segment.offset,
        Segment::Tpa(segment) => segment.offset,
        Segment::Udp(datagram) => datagram.number * payload,
    };
    (payload > 0).then_some((first, first + payload))
}

/// The byte up to which a segment acknowledges the stream. TPA names blocks and UDP acknowledges nothing.
fn acknowledged(segment: &Segment) -> Option<u64> {
    match segment {
        Segment::Tcp(segment) => segment.flags.has(Flags::ACK).then_some(segment.ack),
        Segment::Train(segment) => segment.flags.has(Flags::ACK).then_some(segment.ack),
        Segment::Flush(segment) => segment.flags.has(Flags::ACK).then_some(segment.offset),
        Segment::Tpa(_) | Segment::Udp(_) => None,
    }
}

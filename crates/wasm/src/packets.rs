//! Packets of a run, for plots: the time-sequence graph of each flow, and the one-way delays of its
//! data.
//!
//! A time-sequence graph contains what the sender knows, as tcptrace draws it (S. Ostermann,
//! "tcptrace", tsg). It has each segment with its range of bytes at the time when it is sent, and
//! the acknowledged bytes at the time when the acknowledgement arrives.

use meshpace_core::{NodeId, Time};
use meshpace_sim::SimPacket;
use meshpace_transport::Segment;
use meshpace_transport::flags::Flags;

/// Largest number of events that are kept, for all flows together: 13 MB.
const MOST: usize = 400_000;
/// Number of packets whose time of departure is remembered.
const REMEMBERED: usize = 1 << 14;

/// A packet that was sent or received.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Passed {
    /// Node whose transport sent or received the packet.
    pub node: NodeId,
    /// The packet.
    pub packet: SimPacket,
    /// True if the packet was received, false if it was sent.
    pub arrived: bool,
}

/// Kind of an event in a time-sequence graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A segment is sent for the first time. Values: its first byte, and the byte after its last.
    Sent = 0,
    /// A segment is sent that contains bytes which were sent before. Values as for `Sent`.
    Again = 1,
    /// An acknowledgement of new bytes arrives. Values: the byte up to which the stream was
    /// acknowledged before, and is acknowledged now.
    Acked = 2,
    /// An acknowledgement arrives that acknowledges nothing new. Both values are the byte up to
    /// which the stream is acknowledged.
    Duplicate = 3,
}

/// State of one flow.
#[derive(Clone, Default)]
struct Flow {
    /// Current connection. A flow of files has successive connections, which follow each other in
    /// the graph.
    connection: u16,
    base: u64,
    highest: u64,
    acked: u64,
    events: Vec<(Time, Kind, u64, u64)>,
    delay_sum_s: f64,
    delays: u64,
}

/// Packets of all flows of a run since time zero.
pub struct Packets {
    senders: Vec<NodeId>,
    flows: Vec<Flow>,
    /// Number and time of departure of a packet, by the lowest bits of its number.
    sent: Vec<(u32, Time)>,
    kept: usize,
    /// Time from which events are no longer kept; `None` while they are.
    full: Option<Time>,
}

impl Packets {
    /// Creates the state for flows with these senders.
    pub fn new(senders: impl Iterator<Item = NodeId>) -> Packets {
        let senders: Vec<NodeId> = senders.collect();
        let flows = vec![Flow::default(); senders.len()];
        Packets { senders, flows, sent: vec![(u32::MAX, Time::ZERO); REMEMBERED], kept: 0, full: None }
    }

    /// Records a packet. The calls must be in the order of time.
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

    /// Sum of the one-way delays of a flow's data so far, in seconds, and number of delays.
    pub fn delays(&self, flow: usize) -> (f64, u64) {
        (self.flows[flow].delay_sum_s, self.flows[flow].delays)
    }

    /// Events of a flow between two times, four values each: seconds, kind, from, to. They are
    /// preceded by the time, in seconds, from which events are no longer kept; NaN if all events
    /// are kept.
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
    /// True if a packet belongs to the current connection. A packet of a later connection makes
    /// that connection the current one.
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
        // A FIN has a sequence number but is no byte of the stream.
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

/// Range of bytes of the stream that a segment carries; `None` if it carries none.
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

/// Byte up to which a segment acknowledges the stream. `None` for TPA, which acknowledges blocks,
/// and for UDP, which acknowledges nothing.
fn acknowledged(segment: &Segment) -> Option<u64> {
    match segment {
        Segment::Tcp(segment) => segment.flags.has(Flags::ACK).then_some(segment.ack),
        Segment::Train(segment) => segment.flags.has(Flags::ACK).then_some(segment.ack),
        Segment::Flush(segment) => segment.flags.has(Flags::ACK).then_some(segment.offset),
        Segment::Tpa(_) | Segment::Udp(_) => None,
    }
}

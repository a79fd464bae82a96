//! Traffic over the mesh, per conversation, counted where packets enter and leave it.
//!
//! Goodput and retransmissions do not come from the programs. They are read from the headers, as in
//! a capture at both ends. A TCP segment whose sequence number is below the end of what was sent
//! before counts as a retransmission (as in tshark, if the capture was made at the sender). Payload
//! counts when it arrives for the first time.

use crate::frame::{Conversation, Facts};
use crate::packet::CarriedFrame;
use meshpace_core::{Duration, FlowId, NodeId, Time};
use meshpace_mesh::Packet;
use std::collections::BTreeMap;

/// Largest number of streams that are counted separately. Packets of later ones are added to the
/// last.
const MOST: usize = 10_000;
/// Length of the windows of the short-term Jain index.
pub const WINDOW: Duration = Duration::from_secs(2);

/// Counts of a stream over a period.
#[derive(Clone, PartialEq, Debug)]
pub struct Counted {
    /// Beginning of the period, or the time at which the first packet entered the mesh if that is
    /// later.
    pub began: Time,
    /// Time at which the last packet with payload arrived.
    pub ended: Time,
    /// Number of packets with payload that entered the mesh.
    pub segments_sent: u64,
    /// Number of those that were retransmissions; TCP only.
    pub retransmissions: u64,
    /// Number of packets that entered.
    pub packets_sent: u64,
    /// Number of packets that arrived.
    pub packets_delivered: u64,
    /// Payload that arrived for the first time, bytes.
    pub delivered_bytes: u64,
    /// The same payload by [`WINDOW`] of the mesh's time, from the beginning of the period on.
    pub windows: Vec<u64>,
}

impl Counted {
    fn new(began: Time) -> Counted {
        Counted {
            began,
            ended: began,
            segments_sent: 0,
            retransmissions: 0,
            packets_sent: 0,
            packets_delivered: 0,
            delivered_bytes: 0,
            windows: Vec::new(),
        }
    }

    fn sent(&mut self, facts: &Facts, again: bool) {
        self.packets_sent += 1;
        self.segments_sent += u64::from(facts.payload > 0);
        self.retransmissions += u64::from(again);
    }

    /// Counts a packet that has arrived at `now`, `since` after the beginning of the period.
    /// `bytes` of its payload are new.
    fn arrived(&mut self, now: Time, since: Duration, facts: &Facts, bytes: u32) {
        self.packets_delivered += 1;
        if facts.payload == 0 {
            return;
        }
        self.ended = now;
        let window = (since.0 / WINDOW.0) as usize;
        if self.windows.len() <= window {
            self.windows.resize(window + 1, 0);
        }
        self.windows[window] += u64::from(bytes);
        self.delivered_bytes += u64::from(bytes);
    }

    /// Payload per second between the first packet and the last arrival, bit/s; NaN if nothing
    /// arrived.
    pub fn goodput_bps(&self) -> f64 {
        self.delivered_bytes as f64 * 8.0 / self.ended.since(self.began).as_secs_f64()
    }
}

/// One direction of a conversation.
#[derive(Clone, PartialEq, Debug)]
pub struct Stream {
    /// The conversation.
    pub conversation: Conversation,
    /// Node that sends.
    pub from: NodeId,
    /// Node to which the frames are addressed; with kernel routes a neighbour.
    pub to: NodeId,
    /// Counts from the start of the mesh.
    pub whole: Counted,
    /// Counts from the end of the warm-up.
    pub measured: Counted,
    /// Number of hops that the last packet travelled.
    pub hops: u8,
    /// Sequence numbers at the end of the data sent, and at the end of the data that arrived in
    /// order.
    sent_to: Option<u32>,
    arrived_to: Option<u32>,
    /// Ranges of sequence numbers that arrived beyond the first gap.
    beyond: Vec<(u32, u32)>,
}

impl Stream {
    fn new(conversation: Conversation, from: NodeId, to: NodeId, now: Time, warmup: Time) -> Stream {
        Stream {
            conversation,
            from,
            to,
            whole: Counted::new(now),
            measured: Counted::new(now.max(warmup)),
            hops: 0,
            sent_to: None,
            arrived_to: None,
            beyond: Vec::new(),
        }
    }

    fn sent(&mut self, now: Time, warmup: Time, facts: &Facts) {
        let again = facts.payload > 0 && self.is_again(facts);
        self.whole.sent(facts, again);
        if now >= warmup {
            self.measured.sent(facts, again);
        }
    }

    /// Updates the end of the data sent. Returns true if a packet with payload was sent before, at
    /// least in part.
    fn is_again(&mut self, facts: &Facts) -> bool {
        let Some(tcp) = facts.tcp else { return false };
        let end = tcp.sequence.wrapping_add(facts.payload);
        match self.sent_to {
            Some(before) if !is_after(end, before) => true,
            // A part is new, for example if the sender has divided its data into segments anew.
            before => {
                self.sent_to = Some(end);
                before.is_some_and(|before| is_after(before, tcp.sequence))
            }
        }
    }

    fn arrived(&mut self, now: Time, warmup: Time, facts: &Facts) {
        let bytes = self.new_bytes(facts);
        self.whole.arrived(now, now.since(Time::ZERO), facts, bytes);
        if now >= warmup {
            self.measured.arrived(now, now.since(warmup), facts, bytes);
        }
    }

    /// Number of bytes in order that this packet adds.
    fn new_bytes(&mut self, facts: &Facts) -> u32 {
        let Some(tcp) = facts.tcp.filter(|_| facts.payload > 0) else { return facts.payload };
        let (begin, end) = (tcp.sequence, tcp.sequence.wrapping_add(facts.payload));
        let expected = *self.arrived_to.get_or_insert(begin);
        if !is_after(end, expected) {
            return 0;
        }
        if is_after(begin, expected) {
            self.beyond.push((begin, end));
            return 0;
        }
        let reached = join(&mut self.beyond, end);
        self.arrived_to = Some(reached);
        reached.wrapping_sub(expected)
    }
}

/// True if sequence number `a` is after `b` (RFC 9293, section 3.4).
fn is_after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Returns the end of the data in order, now that the data up to `end` has arrived. Removes the
/// ranges that have become part of it.
fn join(beyond: &mut Vec<(u32, u32)>, mut end: u32) -> u32 {
    while let Some(at) = beyond.iter().position(|&(begin, _)| !is_after(begin, end)) {
        let (_, other) = beyond.swap_remove(at);
        if is_after(other, end) {
            end = other;
        }
    }
    end
}

/// All conversations.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Beginning of the measured period.
    warmup: Time,
    numbers: BTreeMap<(Conversation, NodeId, NodeId), FlowId>,
    streams: Vec<Stream>,
}

impl Traffic {
    /// Empty counts; the streams are measured from `warmup` on.
    pub fn new(warmup: Duration) -> Traffic {
        Traffic { warmup: Time(warmup.0), ..Traffic::default() }
    }

    /// Counts a packet that enters the mesh. Returns the number of its stream.
    pub fn sent(&mut self, now: Time, from: NodeId, to: NodeId, facts: &Facts) -> FlowId {
        let key = (facts.conversation, from, to);
        let next = FlowId(self.streams.len().min(MOST - 1) as u16);
        let flow = *self.numbers.entry(key).or_insert(next);
        if flow.index() == self.streams.len() {
            self.streams.push(Stream::new(facts.conversation, from, to, now, self.warmup));
        }
        self.streams[flow.index()].sent(now, self.warmup, facts);
        flow
    }

    /// Counts a packet that has arrived.
    pub fn delivered(&mut self, now: Time, packet: &CarriedFrame) {
        if let Some(stream) = self.streams.get_mut(packet.flow().index()) {
            stream.hops = packet.hops();
            stream.arrived(now, self.warmup, &packet.facts);
        }
    }

    /// Copy of the first streams, at most `most`, for readers.
    pub fn first(&self, most: usize) -> Traffic {
        let streams = self.streams.iter().take(most).cloned().collect();
        Traffic { warmup: self.warmup, numbers: BTreeMap::new(), streams }
    }

    /// Every direction of every conversation, in the order of their first packets.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::TcpFacts;
    use std::net::Ipv4Addr;

    fn segment(sequence: u32, payload: u32) -> Facts {
        Facts {
            conversation: Conversation { protocol: Some(6), addresses: [Ipv4Addr::LOCALHOST; 2], ports: [1, 2] },
            ttl: 64,
            ecn_capable: false,
            dscp: 0,
            tcp: Some(TcpFacts { sequence, is_control: false }),
            payload,
        }
    }

    #[test]
    fn payload_counts_once_and_repetitions_are_seen() {
        let (from, to) = (NodeId(0), NodeId(1));
        let warmup = Time(2);
        let mut stream = Stream::new(segment(0, 0).conversation, from, to, Time::ZERO, warmup);
        // The sequence numbers wrap around. The third segment is lost, then sent again.
        let start = u32::MAX - 149;
        for number in 0..4 {
            stream.sent(Time(u64::from(number)), warmup, &segment(start.wrapping_add(number * 100), 100));
        }
        stream.sent(Time(4), warmup, &segment(start.wrapping_add(200), 100));
        assert_eq!((stream.whole.segments_sent, stream.whole.retransmissions), (5, 1));
        assert_eq!(
            (stream.measured.segments_sent, stream.measured.retransmissions, stream.measured.began),
            (3, 1, warmup)
        );
        let arrive = |stream: &mut Stream, number: u32| {
            stream.arrived(Time(u64::from(number)), warmup, &segment(start.wrapping_add(number * 100), 100));
            stream.whole.delivered_bytes
        };
        let counts: Vec<u64> = [0, 1, 3, 3, 1, 2, 2].map(|number| arrive(&mut stream, number)).to_vec();
        assert_eq!(counts, [100, 200, 200, 200, 200, 400, 400]);
        // After the warm-up the third segment arrived, which also completed the fourth.
        assert_eq!((stream.measured.delivered_bytes, stream.measured.ended), (200, Time(2)));
    }

    #[test]
    fn every_direction_is_a_stream_of_its_own() {
        let mut traffic = Traffic::default();
        let there = segment(0, 10);
        let mut back = there;
        back.conversation.ports = [2, 1];
        assert_eq!(traffic.sent(Time::ZERO, NodeId(0), NodeId(1), &there), FlowId(0));
        assert_eq!(traffic.sent(Time::ZERO, NodeId(1), NodeId(0), &back), FlowId(1));
        assert_eq!(traffic.sent(Time::ZERO, NodeId(0), NodeId(1), &there), FlowId(0));
        assert_eq!(traffic.streams().len(), 2);
        assert_eq!(traffic.streams()[0].whole.packets_sent, 2);
        assert_eq!(traffic.first(1).streams(), &traffic.streams()[..1]);
        assert_eq!(traffic.first(usize::MAX).streams(), traffic.streams());
    }
}

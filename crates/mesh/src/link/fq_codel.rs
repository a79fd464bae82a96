//! FQ-CoDel: one queue per flow, served in turn, flows with few packets first, and each controlled
//! by CoDel. It is the default of many Linux systems.
//!
//! Source: RFC 8290, sections 4.1 (enqueue), 4.2 (dequeue), 5.2 (parameters); CoDel: RFC 8289.
//! Departures: a flow is identified by its source, destination and flow number instead of a hash of
//! the 5-tuple, so flows share a queue only if there are more than [`FqCodelConfig::flows`]. All
//! packets that are not user packets (routing, ARP) form one more flow, which is served early
//! without a special rule because it has few packets. The CE threshold of section 5.2.7 is left
//! out.
//!
//! A MAC that sends aggregates takes further packets for the neighbour of its current batch out of
//! turn, from the first flow that has such a packet at its head. The flow is charged for them and
//! waits longer for its next turn, so that flows get equal numbers of bytes, as without aggregates.
//! A flow may be ahead of its turn by one aggregate, 65,535 bytes.

use super::codel::{Codel, CodelDecision, CodelParameters};
use crate::body::{Body, Queued};
use crate::packet::Packet;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, FlowId, NodeId, Time, parameters};

/// Largest number of packets that are dropped at once from the longest queue when the limit is
/// exceeded (RFC 8290, 4.1).
const DROP_BATCH: usize = 64;

/// Number of bytes, in addition to a packet, by which a flow may be ahead of its turn: one
/// aggregate.
const MAX_AHEAD: i64 = 65_535;

parameters! {
    /// Parameters of FQ-CoDel (RFC 8290, 5.2).
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct FqCodelConfig {
        /// bytes that a queue may send per turn
        quantum: u32 = 1514 => SIZE.from(256.0).to(65_535.0), Expert, "RFC 8290, 5.2.4";
        /// standing queueing delay that is tolerated
        target: Duration = Duration::from_millis(5) => TIME.from(10e-6).to(10.0), Expert, "RFC 8289";
        /// time for which a higher delay is tolerated; at least the target
        interval: Duration = Duration::from_millis(100) => TIME.from(10e-6).to(100.0), Expert, "RFC 8289";
        /// largest number of packets in all queues together
        limit: usize = 10_240 => whole("packets", 1, 1_000_000), Basic, "RFC 8290, 5.2.3";
        /// number of queues; with fq-codel-airtime the number per neighbour
        flows: usize = 1024 => whole("queues", 1, 65_535), Expert, "RFC 8290, 5.2.5";
        /// whether packets are marked instead of dropped if their transport supports it; with
        /// fq-codel-airtime not for slow neighbours
        ecn: bool = true => FLAG, Expert, "RFC 8290, 5.2.6";
    }
    also |config| require(config.interval >= config.target, "interval", config.interval, "at least target");
}

/// Key of a flow: source, destination and flow number. `None` for packets that are not user
/// packets.
type FlowKey = Option<(NodeId, NodeId, FlowId)>;

/// Queue of one flow.
#[derive(Clone, Debug)]
struct Flow<P> {
    key: FlowKey,
    waiting: VecDeque<(Time, Queued<P>)>,
    bytes: u32,
    /// Number of bytes that the flow may still send in this round.
    credits: i64,
    /// True if the flow is in one of the two lists.
    listed: bool,
    codel: Codel,
}

impl<P: Packet> Flow<P> {
    fn pop(&mut self) -> Option<(Time, Queued<P>)> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.1.body.size();
        Some(head)
    }

    /// Returns the next packet that CoDel lets pass, possibly marked, if it `fits`.
    fn judge(
        &mut self,
        now: Time,
        (codel, ecn): (&CodelParameters, bool),
        fits: impl Fn(&Queued<P>) -> bool,
        lost: &mut impl FnMut(Queued<P>),
    ) -> Judged<P> {
        loop {
            if self.waiting.front().is_some_and(|(_, packet)| !fits(packet)) {
                return Judged::Stays;
            }
            let Some((arrived, mut packet)) = self.pop() else { break };
            match self.codel.judge(now, arrived, self.bytes, codel) {
                CodelDecision::Pass => return Judged::Passes(packet),
                CodelDecision::Drop => match &mut packet.body {
                    Body::Data(data) if ecn && data.ecn_capable() => {
                        data.mark_ce();
                        self.codel.on_marked(codel);
                        return Judged::Passes(packet);
                    }
                    _ => lost(packet),
                },
            }
        }
        self.codel.on_empty();
        Judged::Empty
    }
}

/// Result for the packet at the head of a flow.
enum Judged<P> {
    /// The packet leaves.
    Passes(Queued<P>),
    /// The packet does not fit and stays.
    Stays,
    /// The flow has no packet left.
    Empty,
}

/// Queues of one node.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    config: FqCodelConfig,
    codel: CodelParameters,
    ecn: bool,
    flows: Vec<Flow<P>>,
    /// Flows that have become active since they were last served, by number.
    new: VecDeque<u16>,
    /// Other active flows, in the order of service.
    old: VecDeque<u16>,
    len: usize,
}

impl<P: Packet> FqCodel<P> {
    /// Creates a state without flows.
    pub fn new(config: FqCodelConfig) -> Self {
        let codel = CodelParameters { target: config.target, interval: config.interval };
        let ecn = config.ecn;
        FqCodel { config, codel, ecn, flows: Vec::new(), new: VecDeque::new(), old: VecDeque::new(), len: 0 }
    }

    /// Sets the parameters of CoDel, and whether packets are marked instead of dropped.
    pub fn set_codel(&mut self, codel: CodelParameters, ecn: bool) {
        (self.codel, self.ecn) = (codel, ecn);
    }

    /// Number of packets waiting.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a packet. If the limit is exceeded, `lost` is called for packets of the flow with the
    /// most bytes: for half of its packets, from its head, at most 64.
    pub fn push(&mut self, now: Time, packet: Queued<P>, lost: impl FnMut(Queued<P>)) {
        let at = self.flow(key(&packet));
        let flow = &mut self.flows[at];
        flow.bytes += packet.body.size();
        flow.waiting.push_back((now, packet));
        self.len += 1;
        if !flow.listed {
            flow.listed = true;
            flow.credits = i64::from(self.config.quantum);
            self.new.push_back(at as u16);
        }
        if self.len > self.config.limit {
            self.drop_most(lost);
        }
    }

    /// Number of bytes of the flow with the most bytes.
    pub fn most_bytes(&self) -> u32 {
        self.flows.iter().map(|flow| flow.bytes).max().unwrap_or(0)
    }

    /// Drops packets of the flow with the most bytes: half of its packets, from its head, at most
    /// 64. `lost` is called for each.
    pub fn drop_most(&mut self, mut lost: impl FnMut(Queued<P>)) {
        // If flows have equal numbers of bytes, the first one is chosen.
        let mut longest = 0;
        for at in 1..self.flows.len() {
            if self.flows[at].bytes > self.flows[longest].bytes {
                longest = at;
            }
        }
        let Some(flow) = self.flows.get_mut(longest) else { return };
        for _ in 0..flow.waiting.len().div_ceil(2).min(DROP_BATCH) {
            if let Some((_, packet)) = flow.pop() {
                self.len -= 1;
                lost(packet);
            }
        }
    }

    /// Removes and returns the next packet for the MAC, possibly marked. `lost` is called for each
    /// packet that CoDel drops before it.
    pub fn pop(&mut self, now: Time, lost: impl FnMut(Queued<P>)) -> Option<Queued<P>> {
        self.pop_if(now, |_| true, lost)
    }

    /// Removes and returns the next packet for the MAC, as [`FqCodel::pop`], if it `fits`; `None`
    /// if it does not.
    pub fn pop_if(
        &mut self,
        now: Time,
        fits: impl Fn(&Queued<P>) -> bool,
        mut lost: impl FnMut(Queued<P>),
    ) -> Option<Queued<P>> {
        loop {
            let (from_new, at) = match (self.new.front(), self.old.front()) {
                (Some(&at), _) => (true, at),
                (None, Some(&at)) => (false, at),
                (None, None) => return None,
            };
            let flow = &mut self.flows[usize::from(at)];
            if flow.credits <= 0 {
                flow.credits += i64::from(self.config.quantum);
                self.unlist(from_new);
                self.old.push_back(at);
                continue;
            }
            let before = flow.waiting.len();
            let judged = flow.judge(now, (&self.codel, self.ecn), &fits, &mut lost);
            self.len -= before - flow.waiting.len();
            match judged {
                Judged::Passes(packet) => {
                    flow.credits -= i64::from(packet.body.size());
                    return Some(packet);
                }
                Judged::Stays => return None,
                Judged::Empty => {
                    self.unlist(from_new);
                    if from_new {
                        // The flow is moved behind the old flows once, so that a flow that becomes
                        // active again at once is not always treated as new.
                        self.old.push_back(at);
                    } else {
                        self.flows[usize::from(at)].listed = false;
                    }
                }
            }
        }
    }

    /// Removes and returns a packet for `next_hop` of at most `bytes`, out of turn, to be added to
    /// an aggregate.
    pub fn take_within(
        &mut self,
        now: Time,
        (next_hop, bytes): (NodeId, u32),
        mut lost: impl FnMut(Queued<P>),
    ) -> Option<Queued<P>> {
        let is_for = |packet: &Queued<P>| packet.next_hop == next_hop;
        let heads = |&at: &u16| {
            let flow = &self.flows[usize::from(at)];
            flow.credits > -MAX_AHEAD && flow.waiting.front().is_some_and(|head| is_for(&head.1))
        };
        let at = self.new.iter().chain(&self.old).copied().find(heads)?;
        let flow = &mut self.flows[usize::from(at)];
        let before = flow.waiting.len();
        let fits = |packet: &Queued<P>| is_for(packet) && packet.body.size() <= bytes;
        let judged = flow.judge(now, (&self.codel, self.ecn), fits, &mut lost);
        self.len -= before - flow.waiting.len();
        // A flow that is empty now is removed from the lists at its next turn.
        let Judged::Passes(packet) = judged else { return None };
        flow.credits -= i64::from(packet.body.size());
        Some(packet)
    }

    /// Removes and returns a packet for `next_hop`.
    pub fn take_for(&mut self, next_hop: NodeId) -> Option<Queued<P>> {
        let (flow, at) = self.flows.iter_mut().find_map(|flow| {
            let at = flow.waiting.iter().position(|(_, packet)| packet.next_hop == next_hop)?;
            Some((flow, at))
        })?;
        let (_, packet) = flow.waiting.remove(at)?;
        flow.bytes -= packet.body.size();
        self.len -= 1;
        Some(packet)
    }

    /// Removes the first flow of one of the two lists.
    fn unlist(&mut self, from_new: bool) {
        if from_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }

    /// Index of the queue for `key`: its own queue, that of an inactive flow, or, if all queues are
    /// active, a queue that it has to share.
    fn flow(&mut self, key: FlowKey) -> usize {
        if let Some(at) = self.flows.iter().position(|flow| flow.key == key) {
            return at;
        }
        if self.flows.len() < self.config.flows {
            self.flows.push(Flow {
                key,
                waiting: VecDeque::new(),
                bytes: 0,
                credits: 0,
                listed: false,
                codel: Codel::default(),
            });
            return self.flows.len() - 1;
        }
        match self.flows.iter().position(|flow| !flow.listed) {
            Some(at) => {
                (self.flows[at].key, self.flows[at].codel) = (key, Codel::default());
                at
            }
            None => key.map_or(0, |(source, destination, flow)| {
                (source.index() + 31 * destination.index() + 961 * flow.index()) % self.flows.len()
            }),
        }
    }
}

fn key<P: Packet>(packet: &Queued<P>) -> FlowKey {
    match &packet.body {
        Body::Data(data) => Some((data.source(), data.destination(), data.flow())),
        _ => None,
    }
}

//! FQ-CoDel: a queue per flow, served in turn, thin flows first, each watched by CoDel. The default of many Linux systems.
//!
//! Source: RFC 8290, sections 4.1 (enqueue), 4.2 (dequeue), 5.2 (parameters); CoDel: RFC 8289. Departures: a flow is known
//! by its source, destination and flow number instead of a hash over the 5-tuple, so flows share a queue only when there
//! are more than [`FqCodelConfig::flows`]; everything that is not a user's packet (routing, ARP) is one flow more, which
//! as a thin flow comes first without a rule of its own; 5.2.7 (CE threshold) is left out.
//!
//! A MAC that sends aggregates takes further packets for the neighbour of its current batch out of turn, from the first flow that has one at its head. The flow is
//! charged, and so waits longer for its next turn: flows get equal bytes, as without aggregates. It may be ahead by one aggregate, 65,535 bytes.

use super::codel::{Codel, CodelDecision, CodelParameters};
use crate::body::{Body, Queued};
use crate::packet::Packet;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, FlowId, NodeId, Time, parameters};

/// Packets dropped at once from the longest queue when there is no room, at most (RFC 8290, 4.1).
const DROP_BATCH: usize = 64;

/// Bytes that a flow may be ahead of its turn, beside a packet: an aggregate.
const AHEAD: i64 = 65_535;

parameters! {
    /// FQ-CoDel's parameters (RFC 8290, 5.2).
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct FqCodelConfig {
        /// bytes of a queue's turn
        quantum: u32 = 1514 => SIZE.from(256.0).to(65_535.0), Expert, "RFC 8290, 5.2.4";
        /// the standing delay that is borne
        target: Duration = Duration::from_millis(5) => TIME.from(10e-6).to(10.0), Expert, "RFC 8289";
        /// how long it is borne; at least the target
        interval: Duration = Duration::from_millis(100) => TIME.from(10e-6).to(100.0), Expert, "RFC 8289";
        /// packets in all queues
        limit: usize = 10_240 => whole("packets", 1, 1_000_000), Basic, "RFC 8290, 5.2.3";
        /// queues; with fq-codel-airtime those of a neighbour
        flows: usize = 1024 => whole("queues", 1, 65_535), Expert, "RFC 8290, 5.2.5";
        /// marks rather than drops where it can; with fq-codel-airtime not for slow neighbours
        ecn: bool = true => FLAG, Expert, "RFC 8290, 5.2.6";
    }
    also |config| require(config.interval >= config.target, "interval", config.interval, "at least target");
}

/// Key of a flow: source, destination, flow number; None for what is not a user's packet.
type FlowKey = Option<(NodeId, NodeId, FlowId)>;

/// One flow's queue.
#[derive(Clone, Debug)]
struct Flow<P> {
    key: FlowKey,
    waiting: VecDeque<(Time, Queued<P>)>,
    bytes: u32,
    /// Bytes it may still send in this round.
    credits: i64,
    /// True if it is in one of the two lists.
    listed: bool,
    codel: Codel,
}

impl<P: Packet> Flow<P> {
    fn pop(&mut self) -> Option<(Time, Queued<P>)> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.1.body.size();
        Some(head)
    }

    /// The next packet that CoDel lets pass, perhaps marked, if it `fits`.
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

/// Decision on the head of a flow.
enum Judged<P> {
    /// It may leave.
    Passes(Queued<P>),
    /// It does not fit.
    Stays,
    /// There is none.
    Empty,
}

/// One node's queues.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    config: FqCodelConfig,
    codel: CodelParameters,
    ecn: bool,
    flows: Vec<Flow<P>>,
    /// Flows that have become active since they were last served, by number.
    new: VecDeque<u16>,
    /// The other active flows, in the order of service.
    old: VecDeque<u16>,
    len: usize,
}

impl<P: Packet> FqCodel<P> {
    /// No flows yet.
    pub fn new(config: FqCodelConfig) -> Self {
        let codel = CodelParameters { target: config.target, interval: config.interval };
        let ecn = config.ecn;
        FqCodel { config, codel, ecn, flows: Vec::new(), new: VecDeque::new(), old: VecDeque::new(), len: 0 }
    }

    /// Other parameters of CoDel from now on, and whether packets are marked instead of dropped.
    pub fn set_codel(&mut self, codel: CodelParameters, ecn: bool) {
        (self.codel, self.ecn) = (codel, ecn);
    }

    /// The number of packets waiting.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes in a packet. If there are too many now, `lost` gets packets of the flow with the most bytes: from its head,
    /// half of them, at most 64.
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

    /// The bytes of the flow that has the most.
    pub fn most_bytes(&self) -> u32 {
        self.flows.iter().map(|flow| flow.bytes).max().unwrap_or(0)
    }

    /// Takes packets of that flow out: from its head, half of them, at most 64.
    pub fn drop_most(&mut self, mut lost: impl FnMut(Queued<P>)) {
        // The first of equals.
        let mut fattest = 0;
        for at in 1..self.flows.len() {
            if self.flows[at].bytes > self.flows[fattest].bytes {
                fattest = at;
            }
        }
        let Some(flow) = self.flows.get_mut(fattest) else { return };
        for _ in 0..flow.waiting.len().div_ceil(2).min(DROP_BATCH) {
            if let Some((_, packet)) = flow.pop() {
                self.len -= 1;
                lost(packet);
            }
        }
    }

    /// The next packet for the MAC, perhaps marked. `lost` gets what CoDel drops on the way.
    pub fn pop(&mut self, now: Time, lost: impl FnMut(Queued<P>)) -> Option<Queued<P>> {
        self.pop_if(now, |_| true, lost)
    }

    /// The same if it `fits`; None if it does not.
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
                        // Once round the others, lest a flow that returns at once is new for ever.
                        self.old.push_back(at);
                    } else {
                        self.flows[usize::from(at)].listed = false;
                    }
                }
            }
        }
    }

    /// The next packet for `next_hop` if it has `bytes` at most, whosever turn it is: to join others in an aggregate.
    pub fn take_within(
        &mut self,
        now: Time,
        (next_hop, bytes): (NodeId, u32),
        mut lost: impl FnMut(Queued<P>),
    ) -> Option<Queued<P>> {
        let is_for = |packet: &Queued<P>| packet.next_hop == next_hop;
        let heads = |&at: &u16| {
            let flow = &self.flows[usize::from(at)];
            flow.credits > -AHEAD && flow.waiting.front().is_some_and(|head| is_for(&head.1))
        };
        let at = self.new.iter().chain(&self.old).copied().find(heads)?;
        let flow = &mut self.flows[usize::from(at)];
        let before = flow.waiting.len();
        let fits = |packet: &Queued<P>| is_for(packet) && packet.body.size() <= bytes;
        let judged = flow.judge(now, (&self.codel, self.ecn), fits, &mut lost);
        self.len -= before - flow.waiting.len();
        // One that is empty now is found so when its turn comes.
        let Judged::Passes(packet) = judged else { return None };
        flow.credits -= i64::from(packet.body.size());
        Some(packet)
    }

    /// Takes out a packet for `next_hop`.
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

    fn unlist(&mut self, from_new: bool) {
        if from_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }

    /// The queue of `key`: its own, that of a flow that is not active, or, if all are active, one it has to share.
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

//! LLAP: each node adapts its delay to that of its successor, so that the rate of the bottleneck
//! reaches the source hop by hop.
//!
//! Source: A. Antony Franklin et al., "A Link Layer Adaptive Pacing Scheme for Improving
//! Performance of Wireless Mesh Networks" (LLAP), section III. The scheme needs no control packets
//! and no header: a node overhears how long its successor keeps a packet.
//!
//! Each node has one FIFO input queue per destination and one FIFO transmission queue. The
//! scheduler moves a packet from its input queue to the transmission queue
//!
//! | node | when |
//! |---|---|
//! | source, two hops or more | PD = min(h, 4) NHT after the previous packet; at once while NHT is unknown |
//! | relay | PD after the packet's arrival; PD += NHT - HT with every packet sent |
//! | last relay, source one hop away | at once: the next node is the destination and forwards nothing |
//!
//! The readings where the paper is silent are options ([`LlapConfig`]). The following readings are
//! fixed. HT is sampled from relayed packets only, because at the source it would contain the
//! pacing itself. A packet that the MAC gives up gives no sample. Packets wait in the input queue
//! while the transmission queue is full, so that a paced packet is never lost after its delay.
//! Routing, ARP and broadcasts are not paced, and routing packets go first. A source that does not
//! know its distance uses k = 4.

pub mod config;
pub mod estimate;
pub mod overhearing;

pub use config::{DelayBase, DelayUpdate, LlapConfig, QueueLimit, RelayDelay};
pub use estimate::Estimate;

use crate::body::{Body, Queued};
use crate::packet::Packet;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Time};
use overhearing::Overhearing;

/// A path reuses the channel every fourth hop, so k never exceeds this number (LLAP, III.D).
pub const REUSE_HOPS: u8 = 4;

/// True if a packet belongs to the routing protocol.
fn is_routing<P>(body: &Body<P>) -> bool {
    matches!(body, Body::Routing(_))
}

/// State of a packet that LLAP paces or measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    id: u32,
    destination: NodeId,
    next_hop: NodeId,
    arrived: Time,
    /// Time for which the packet waited for its PD.
    waited: Duration,
    /// True if this node is the source of the packet.
    local: bool,
}

impl Entry {
    /// True if the next node forwards the packet.
    fn is_forwarded(&self) -> bool {
        self.next_hop != self.destination
    }
}

/// Input queue of one destination (and origin).
#[derive(Clone, Debug)]
struct Input<P> {
    destination: NodeId,
    local: bool,
    waiting: VecDeque<(Entry, Queued<P>)>,
    /// Time at which the last packet moved to the transmission queue.
    released: Option<Time>,
    /// Number of hops to the destination, as of the last packet.
    hops: u8,
}

/// Queues and scheduler of one node.
#[derive(Clone, Debug)]
pub struct Llap<P> {
    me: NodeId,
    config: LlapConfig,
    inputs: Vec<Input<P>>,
    transmission: VecDeque<(Option<Entry>, Queued<P>)>,
    /// Packet that the MAC is sending.
    sending: Option<Entry>,
    estimates: Vec<(NodeId, Estimate)>,
    overhearing: Overhearing,
    /// Time at which the next packet may move; [`Time::NEVER`] if no packet waits or the
    /// transmission queue is full.
    wakeup: Time,
}

impl<P: Packet> Llap<P> {
    /// Creates the empty queues of node `me`.
    pub fn new(me: NodeId, config: LlapConfig) -> Self {
        Llap {
            me,
            config,
            inputs: Vec::new(),
            transmission: VecDeque::with_capacity(config.queue),
            sending: None,
            estimates: Vec::new(),
            overhearing: Overhearing::new(config.patience),
            wakeup: Time::NEVER,
        }
    }

    /// Number of packets waiting.
    pub fn len(&self) -> usize {
        self.transmission.len() + self.inputs.iter().map(|input| input.waiting.len()).sum::<usize>()
    }

    /// True if no packet waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Averages and delay for the path to `destination`.
    pub fn estimate(&self, destination: NodeId) -> Option<&Estimate> {
        self.estimates.iter().find(|(node, _)| *node == destination).map(|(_, estimate)| estimate)
    }

    /// Time at which the scheduler must run next.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        self.wakeup
    }

    /// Adds a packet. Returns the packet that is dropped if the queue is full. `hops` is the number
    /// of hops to its destination.
    pub fn push(&mut self, now: Time, packet: Queued<P>, hops: Option<u8>) -> Option<Queued<P>> {
        let entry = match &packet.body {
            Body::Data(data) if !packet.next_hop.is_broadcast() && (self.config.pace_acks || !data.is_pure_ack()) => {
                Entry {
                    id: data.id(),
                    destination: data.destination(),
                    next_hop: packet.next_hop,
                    arrived: now,
                    waited: Duration::ZERO,
                    local: data.source() == self.me,
                }
            }
            _ => return self.push_unpaced(packet),
        };
        let at = self.input(entry.destination, entry.local && self.config.by_origin);
        let held = match self.config.limit {
            QueueLimit::PerQueue => self.inputs[at].waiting.len(),
            QueueLimit::PerNode => self.inputs.iter().map(|input| input.waiting.len()).sum(),
        };
        if held >= self.config.queue {
            return Some(packet);
        }
        let input = &mut self.inputs[at];
        if entry.local {
            input.hops = hops.unwrap_or(REUSE_HOPS);
        }
        input.waiting.push_back((entry, packet));
        self.schedule(now);
        None
    }

    /// Adds a packet that is not paced. A routing packet goes to the front of a queue and, if the
    /// queue is full, displaces the last packet. Other packets go to the end if there is room.
    fn push_unpaced(&mut self, packet: Queued<P>) -> Option<Queued<P>> {
        let full = self.transmission.len() >= self.config.queue;
        if is_routing(&packet.body) {
            let pushed_out = if full { self.transmission.pop_back() } else { None };
            self.transmission.push_front((None, packet));
            pushed_out.map(|(_, packet)| packet)
        } else if full {
            Some(packet)
        } else {
            self.transmission.push_back((None, packet));
            None
        }
    }

    /// Removes and returns the next packet for the MAC.
    pub fn pop(&mut self, now: Time) -> Option<Queued<P>> {
        self.sending = None;
        let (entry, packet) = self.transmission.pop_front()?;
        self.sending = entry;
        self.schedule(now);
        Some(packet)
    }

    /// Removes and returns a packet for `next_hop`, first from the transmission queue.
    pub fn take_for(&mut self, next_hop: NodeId) -> Option<Queued<P>> {
        let for_it = |(_, packet): &(_, Queued<P>)| packet.next_hop == next_hop;
        if let Some(at) = self.transmission.iter().position(for_it) {
            return self.transmission.remove(at).map(|(_, packet)| packet);
        }
        // The wake-up time may now be too early, which only runs the scheduler once more.
        self.inputs.iter_mut().find_map(|input| {
            let at = input.waiting.iter().position(|(entry, _)| entry.next_hop == next_hop)?;
            input.waiting.remove(at).map(|(_, packet)| packet)
        })
    }

    /// Moves packets that are due to the transmission queue.
    pub fn schedule(&mut self, now: Time) {
        loop {
            let next = (0..self.inputs.len()).filter_map(|at| Some((self.due(&self.inputs[at])?, at)));
            // At equal times, the queue that was created first is served.
            let Some((due, at)) = next.min() else {
                self.wakeup = Time::NEVER;
                return;
            };
            if self.transmission.len() >= self.config.queue {
                self.wakeup = Time::NEVER;
                return;
            }
            if due > now {
                self.wakeup = due;
                return;
            }
            let input = &mut self.inputs[at];
            if let Some((mut entry, packet)) = input.waiting.pop_front() {
                input.released = Some(now);
                entry.waited = now.since(entry.arrived);
                self.transmission.push_back((Some(entry), packet));
            }
        }
    }

    /// Time at which the first packet of `input` may move.
    fn due(&self, input: &Input<P>) -> Option<Time> {
        let (entry, _) = input.waiting.front()?;
        if !entry.is_forwarded() {
            return Some(entry.arrived);
        }
        let estimate = self.estimate(input.destination);
        let (spaced, delay) = if entry.local {
            let delay = estimate.and_then(|e| e.source_delay(input.hops)).unwrap_or(0.0);
            // One hop away, the next node is the destination, even if routing names another node.
            (true, if input.hops <= 1 { 0.0 } else { delay })
        } else {
            (self.config.relay_delay == RelayDelay::Space, estimate.map_or(0.0, Estimate::relay_delay))
        };
        let delay = Duration::from_secs_f64(delay).min(self.config.max_delay);
        Some(match (spaced, input.released) {
            (false, _) => entry.arrived + delay,
            (true, Some(released)) => entry.arrived.max(released + delay),
            (true, None) => entry.arrived,
        })
    }

    /// Notes that the packet popped last was acknowledged, or that its broadcast has ended.
    pub fn on_sent(&mut self, now: Time) {
        let Some(entry) = self.sending.take() else { return };
        if !entry.local {
            let stay = now.since(entry.arrived).as_secs_f64();
            let config = self.config;
            self.estimate_mut(entry.destination).on_stay(stay, entry.waited.as_secs_f64(), &config);
        }
        if entry.is_forwarded() {
            self.overhearing.expect(now, entry.id, entry.next_hop, entry.destination);
        }
        self.schedule(now);
    }

    /// Notes that the MAC has given up the packet popped last.
    pub fn on_failed(&mut self) {
        self.sending = None;
    }

    /// Notes that `transmitter` was overheard sending packet `id`.
    pub fn on_overheard(&mut self, now: Time, transmitter: NodeId, id: u32) {
        if let Some((destination, stay)) = self.overhearing.on_overheard(now, transmitter, id) {
            let config = self.config;
            self.estimate_mut(destination).on_next_stay(stay.as_secs_f64(), &config);
            self.schedule(now);
        }
    }

    /// Index of the input queue for a destination and origin, created if it is new.
    fn input(&mut self, destination: NodeId, local: bool) -> usize {
        let known = self.inputs.iter().position(|input| input.destination == destination && input.local == local);
        known.unwrap_or_else(|| {
            self.inputs.push(Input {
                destination,
                local,
                waiting: VecDeque::with_capacity(self.config.queue),
                released: None,
                hops: REUSE_HOPS,
            });
            self.inputs.len() - 1
        })
    }

    fn estimate_mut(&mut self, destination: NodeId) -> &mut Estimate {
        let at = match self.estimates.iter().position(|(node, _)| *node == destination) {
            Some(at) => at,
            None => {
                self.estimates.push((destination, Estimate::default()));
                self.estimates.len() - 1
            }
        };
        &mut self.estimates[at].1
    }
}

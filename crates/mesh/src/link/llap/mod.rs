//! LLAP: each node becomes as slow as its successor, so that the bottleneck's pace reaches the source hop by hop.
//!
//! Source: A. Antony Franklin et al., "A Link Layer Adaptive Pacing Scheme for Improving Performance of Wireless Mesh
//! Networks" (LLAP), section III. No control packets, no header: a node overhears how long its successor
//! keeps a packet.
//!
//! Per node one FIFO input queue per destination and one FIFO transmission queue. The scheduler moves a packet from the
//! former to the latter
//!
//! | node | when |
//! |---|---|
//! | source, two hops or more | PD = min(h, 4) NHT after the one before; at once while NHT is unknown |
//! | relay | PD after its arrival, PD += NHT - HT with every packet sent |
//! | last relay, source one hop away | at once: the next node is the destination and forwards nothing |
//!
//! Readings where the paper is silent are options ([`LlapConfig`]). Fixed here: HT is sampled from relayed packets only (at
//! the source it would contain the pacing itself); a packet the MAC gives up gives no sample; packets wait in the input
//! queue while the transmission queue is full, so that a paced packet is never lost behind the pacing; routing, ARP and
//! broadcasts are not paced, routing packets go first. A source that does not know its distance takes k = 4.

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

/// A path reuses the channel every fourth hop: k never exceeds this (LLAP, III.D).
pub const REUSE_HOPS: u8 = 4;

/// True if a packet belongs to the routing protocol.
fn is_routing<P>(body: &Body<P>) -> bool {
    matches!(body, Body::Routing(_))
}

/// State of a packet that takes part in the scheme.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Entry {
    id: u32,
    destination: NodeId,
    next_hop: NodeId,
    arrived: Time,
    /// Its wait for its PD.
    waited: Duration,
    /// True if this node is its source.
    local: bool,
}

impl Entry {
    /// True if the next node forwards it.
    fn goes_on(&self) -> bool {
        self.next_hop != self.destination
    }
}

/// The input queue of one destination (and origin).
#[derive(Clone, Debug)]
struct Input<P> {
    destination: NodeId,
    local: bool,
    waiting: VecDeque<(Entry, Queued<P>)>,
    /// Time at which the last packet left for the transmission queue.
    released: Option<Time>,
    /// Hops to the destination, as last told.
    hops: u8,
}

/// One node's queues and scheduler.
#[derive(Clone, Debug)]
pub struct Llap<P> {
    me: NodeId,
    config: LlapConfig,
    inputs: Vec<Input<P>>,
    transmission: VecDeque<(Option<Entry>, Queued<P>)>,
    /// The packet the MAC has.
    sending: Option<Entry>,
    estimates: Vec<(NodeId, Estimate)>,
    overhearing: Overhearing,
    /// Time at which the next packet may move; [`Time::NEVER`] if none waits or there is no room.
    wakeup: Time,
}

impl<P: Packet> Llap<P> {
    /// The empty queues of node `me`.
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

    /// The number of packets waiting.
    pub fn len(&self) -> usize {
        self.transmission.len() + self.inputs.iter().map(|input| input.waiting.len()).sum::<usize>()
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// State of the path to `destination`.
    pub fn estimate(&self, destination: NodeId) -> Option<&Estimate> {
        self.estimates.iter().find(|(node, _)| *node == destination).map(|(_, estimate)| estimate)
    }

    /// Time at which the scheduler must run next.
    #[inline]
    pub fn next_wakeup(&self) -> Time {
        self.wakeup
    }

    /// Takes in a packet; returns the one that has to go if there is no room. `hops`: the way to its destination.
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

    /// Routing packets go to the front and push out the last; others join the end if there is room.
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

    /// The next packet for the MAC.
    pub fn pop(&mut self, now: Time) -> Option<Queued<P>> {
        self.sending = None;
        let (entry, packet) = self.transmission.pop_front()?;
        self.sending = entry;
        self.schedule(now);
        Some(packet)
    }

    /// Takes out a packet for `next_hop`, the transmission queue first.
    pub fn take_for(&mut self, next_hop: NodeId) -> Option<Queued<P>> {
        let for_it = |(_, packet): &(_, Queued<P>)| packet.next_hop == next_hop;
        if let Some(at) = self.transmission.iter().position(for_it) {
            return self.transmission.remove(at).map(|(_, packet)| packet);
        }
        // A wake-up that has become too early only runs the scheduler once more.
        self.inputs.iter_mut().find_map(|input| {
            let at = input.waiting.iter().position(|(entry, _)| entry.next_hop == next_hop)?;
            input.waiting.remove(at).map(|(_, packet)| packet)
        })
    }

    /// Moves what is due to the transmission queue.
    pub fn schedule(&mut self, now: Time) {
        loop {
            let next = (0..self.inputs.len()).filter_map(|at| Some((self.due(&self.inputs[at])?, at)));
            // Equal times: the queue that was opened first.
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
        if !entry.goes_on() {
            return Some(entry.arrived);
        }
        let estimate = self.estimate(input.destination);
        let (spaced, delay) = if entry.local {
            let delay = estimate.and_then(|e| e.source_delay(input.hops)).unwrap_or(0.0);
            // One hop away the next node is the destination, whatever routing calls it.
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

    /// The packet popped last has been acknowledged, or broadcast.
    pub fn on_sent(&mut self, now: Time) {
        let Some(entry) = self.sending.take() else { return };
        if !entry.local {
            let stay = now.since(entry.arrived).as_secs_f64();
            let config = self.config;
            self.estimate_mut(entry.destination).on_stay(stay, entry.waited.as_secs_f64(), &config);
        }
        if entry.goes_on() {
            self.overhearing.expect(now, entry.id, entry.next_hop, entry.destination);
        }
        self.schedule(now);
    }

    /// The MAC has given up the packet popped last.
    pub fn on_failed(&mut self) {
        self.sending = None;
    }

    /// `transmitter` has been heard to send packet `id`.
    pub fn on_overheard(&mut self, now: Time, transmitter: NodeId, id: u32) {
        if let Some((destination, stay)) = self.overhearing.on_overheard(now, transmitter, id) {
            let config = self.config;
            self.estimate_mut(destination).on_next_stay(stay.as_secs_f64(), &config);
            self.schedule(now);
        }
    }

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

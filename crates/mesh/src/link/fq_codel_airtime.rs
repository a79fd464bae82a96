//! Air-time scheduling of Linux for Wi-Fi: FQ-CoDel for each neighbour, neighbours scheduled by air
//! time, and a limit on the air time that the MAC holds.
//!
//! Source: T. Høiland-Jørgensen, M. Kazior, D. Täht, P. Hurtig, A. Brunstrom, "Ending the Anomaly:
//! Achieving Low Latency and Airtime Fairness in WiFi", USENIX ATC 2017: queues for each station
//! and traffic class, CoDel on slow links (section 3.1), the scheduler (3.2, algorithm 3); RFC 8290
//! and RFC 8289 inside each queue ([`FqCodel`]). The values are those of Linux's mac80211, which
//! implements all of this (TXQs, airtime fairness, AQL).
//!
//! | Parameter | Default | Linux |
//! |---|---|---|
//! | quantum of air time | 256 us | `IEEE80211_DEFAULT_AIRTIME_WEIGHT`, us; the paper: 300 us |
//! | quantum of a flow | 300 bytes | 300 bytes |
//! | target, interval | 20 ms, 100 ms, with marks | 20 ms, 100 ms, with marks |
//! | target, interval of a slow neighbour | 50 ms, 300 ms, without marks | equal until 6.15; since then every station has the values above |
//! | slow below | 12 Mbit/s | the paper; Linux until 6.15: 6 Mbit/s times the number of stations |
//! | packets | 8192 | 8192, and 4 MB with 802.11n |
//! | limits on air time (AQL) | 5 ms, or 12 ms while all neighbours together are below 24 ms | `IEEE80211_DEFAULT_AQL_TXQ_LIMIT_L`, `_H`, `IEEE80211_AQL_THRESHOLD` |
//!
//! Each neighbour has a deficit of air time. The neighbour may be served while its deficit is not
//! below zero. Otherwise it gains a quantum and moves behind the other neighbours. Every attempt,
//! successful or not, is charged with the time for which this station transmitted, including the
//! RTS. A neighbour whose queue was empty comes first when a packet arrives for it (the paper's
//! optimisation for sparse stations), with an unchanged deficit. All neighbours have the same
//! weight.
//!
//! Departures:
//! - The packets in the hardware are here the packets that the MAC holds: one aggregate for one
//!   neighbour, per category. A packet may join the aggregate while it is its neighbour's turn and
//!   the held packets would take less than the limit. The limit may therefore be exceeded by one
//!   packet, as in Linux. The air time is computed as bytes over the rate of the last attempt with
//!   data (before the first attempt: the lowest rate), without preambles.
//! - MPDUs that a block ACK did not list stay in the MAC and are sent again before the next
//!   neighbour's turn. Linux puts them first into the next aggregate of their station.
//! - A neighbour is slow according to the rate of its last attempt times the share of bytes that
//!   arrive (a moving average, weight 1/8). Linux uses the expected throughput of its rate control,
//!   which includes overhead.
//! - Frames received from a neighbour are not charged to it. Linux charges them.
//! - Broadcasts form a neighbour of their own, which is charged with their bytes at the basic rate.
//!   In Linux they have no deficit.

use super::codel::CodelParameters;
use super::fq_codel::{FqCodel, FqCodelConfig};
use crate::body::Queued;
use crate::category::Category;
use crate::mac::{AttemptContent, Timing};
use crate::packet::Packet;
use crate::radio::FrameRate;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, NodeId, Rate, Time, parameters};

/// Weight of one attempt in the moving average of the share of bytes that arrive.
const SHARE_WEIGHT: f64 = 0.125;

parameters! {
    /// Parameters of the air-time scheduler.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct FqCodelAirtimeConfig {
        /// air time that a neighbour gains per round
        airtime_quantum: Duration = Duration::from_micros(256) => TIME.from(100e-6).to(1.0), Expert,
            "Linux, IEEE80211_DEFAULT_AIRTIME_WEIGHT; ATC 2017, section 3.2";
        /// air time that the MAC may hold for a neighbour, whatever it holds for others
        aql_low: Duration = Duration::from_millis(5) => TIME.to(10.0), Expert, "Linux, IEEE80211_DEFAULT_AQL_TXQ_LIMIT_L";
        /// air time that the MAC may hold for a neighbour while it holds less than aql_threshold
        /// for all together; at least aql_low
        aql_high: Duration = Duration::from_millis(12) => TIME.to(10.0), Expert, "Linux, IEEE80211_DEFAULT_AQL_TXQ_LIMIT_H";
        /// air time held for all neighbours together from which aql_low applies
        aql_threshold: Duration = Duration::from_millis(24) => TIME.to(10.0), Expert, "Linux, IEEE80211_AQL_THRESHOLD";
        /// throughput below which a neighbour counts as slow; 0 switches this off
        slow_below: Rate = Rate::from_mbps(12) => RATE, Expert, "ATC 2017, section 3.1";
        /// CoDel target for slow neighbours
        slow_target: Duration = Duration::from_millis(50) => TIME.from(10e-6).to(10.0), Expert, "ATC 2017, section 3.1";
        /// CoDel interval for slow neighbours; at least slow_target
        slow_interval: Duration = Duration::from_millis(300) => TIME.from(10e-6).to(100.0), Expert, "ATC 2017, section 3.1";
    }
    parts {
        /// Parameters of the queues of a neighbour. `limit` applies to the packets for all
        /// neighbours together.
        queues: FqCodelConfig = FqCodelConfig {
            quantum: 300,
            target: Duration::from_millis(20),
            limit: 8192,
            flows: 4096,
            ..FqCodelConfig::default()
        };
    }
    also |config| require(config.aql_high >= config.aql_low, "aql_high", config.aql_high, "at least aql_low")
        .and(require(config.slow_interval >= config.slow_target, "slow_interval", config.slow_interval, "at least slow_target"));
}

impl FqCodelAirtimeConfig {
    /// CoDel parameters for slow neighbours.
    fn slow(&self) -> CodelParameters {
        CodelParameters { target: self.slow_target, interval: self.slow_interval }
    }
}

/// State of a neighbour that is common to all categories.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    node: NodeId,
    /// Rate of the last attempt with data.
    rate: Rate,
    /// Share of the transmitted bytes that were acknowledged, a moving average.
    share: f64,
    is_slow: bool,
}

/// Queue for a neighbour and category.
#[derive(Clone, Debug)]
struct NeighbourQueue<P> {
    queue: FqCodel<P>,
    /// Air time that the neighbour may still use in this round, in ns.
    deficit_ns: i64,
    /// True if the neighbour is in one of the two lists.
    listed: bool,
}

/// Queues of a category. Their indices are those of [`FqCodelAirtime::neighbours`].
#[derive(Clone, Debug)]
struct Class<P> {
    waiting: Vec<NeighbourQueue<P>>,
    /// Neighbours that have become active since they were last considered.
    new: VecDeque<u16>,
    /// Other active neighbours, in the order of service.
    old: VecDeque<u16>,
    /// Air time of the packets that the MAC holds.
    held: Duration,
}

/// Queues of one node.
#[derive(Clone, Debug)]
pub struct FqCodelAirtime<P> {
    config: FqCodelAirtimeConfig,
    neighbours: Vec<Neighbour>,
    /// One entry for each category if the MAC has categories; otherwise one entry.
    classes: Box<[Class<P>]>,
    /// Rate that is assumed for a neighbour before the first attempt.
    lowest: Rate,
    /// Rate of broadcasts.
    basic: Rate,
    /// Bytes of an MPDU in addition to its packet.
    overhead: u32,
    len: usize,
}

impl<P: Packet> FqCodelAirtime<P> {
    /// Creates a state without neighbours.
    pub fn new(config: FqCodelAirtimeConfig, timing: &Timing) -> Self {
        let class = || Class { waiting: Vec::new(), new: VecDeque::new(), old: VecDeque::new(), held: Duration::ZERO };
        let lowest = if timing.rates.is_some() { FrameRate::chosen(0) } else { FrameRate::DATA };
        FqCodelAirtime {
            config,
            neighbours: Vec::new(),
            classes: (0..if timing.edca { Category::COUNT } else { 1 }).map(|_| class()).collect(),
            lowest: timing.rate_of(lowest),
            basic: timing.basic_rate,
            overhead: timing.rules.data_overhead,
            len: 0,
        }
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
    /// most bytes among all neighbours: for half of its packets, from its head, at most 64.
    pub fn push(&mut self, now: Time, packet: Queued<P>, mut lost: impl FnMut(Queued<P>)) {
        let class = self.class_of(packet.body.category());
        let place = self.place(packet.next_hop);
        let Class { waiting, new, .. } = &mut self.classes[class];
        let neighbour = &mut waiting[place];
        neighbour.queue.push(now, packet, |_| {});
        if !neighbour.listed {
            neighbour.listed = true;
            new.push_back(place as u16);
        }
        self.len += 1;
        if self.len > self.config.queues.limit {
            let all = self.classes.iter_mut().flat_map(|class| &mut class.waiting);
            if let Some(NeighbourQueue { queue, .. }) = all.max_by_key(|waiting| waiting.queue.most_bytes()) {
                let len = &mut self.len;
                queue.drop_most(|packet| {
                    *len -= 1;
                    lost(packet);
                });
            }
        }
    }

    /// Removes and returns the next packet for the MAC, which holds no packet of its category.
    pub fn pop(&mut self, now: Time, mut lost: impl FnMut(Queued<P>)) -> Option<Queued<P>> {
        (0..self.classes.len()).rev().find_map(|class| self.pop_class(now, class, &mut lost))
    }

    /// Removes and returns the next packet of one category for the MAC, which holds no packet of
    /// that category.
    pub fn pop_of(&mut self, now: Time, category: Category, lost: impl FnMut(Queued<P>)) -> Option<Queued<P>> {
        self.pop_class(now, self.class_of(category), lost)
    }

    /// Removes and returns the next packet of a class for the MAC, which holds no packet of that
    /// class.
    fn pop_class(&mut self, now: Time, class: usize, mut lost: impl FnMut(Queued<P>)) -> Option<Queued<P>> {
        self.classes[class].held = Duration::ZERO;
        loop {
            let place = self.turn(class)?;
            let Some(packet) = self.take(now, class, place, |_| true, &mut lost) else { continue };
            let bytes = packet.body.size() + self.overhead;
            let Class { waiting, held, .. } = &mut self.classes[class];
            if packet.next_hop.is_broadcast() {
                waiting[place].deficit_ns -= self.basic.time_for(bytes).0 as i64;
            } else {
                *held = self.neighbours[place].rate.time_for(bytes);
            }
            return Some(packet);
        }
    }

    /// Removes and returns the next packet for `next_hop`, to be added to the packets that the MAC
    /// holds for it. `None` unless the packet has at most `bytes`, it is the turn of this
    /// neighbour, and the MAC may hold more.
    pub fn take_within(
        &mut self,
        now: Time,
        category: Category,
        (next_hop, bytes): (NodeId, u32),
        lost: impl FnMut(Queued<P>),
    ) -> Option<Queued<P>> {
        let class = self.class_of(category);
        let place = self.turn(class).filter(|&place| self.neighbours[place].node == next_hop)?;
        let all = self.classes.iter().fold(Duration::ZERO, |sum, class| sum + class.held);
        let limit = if all < self.config.aql_threshold { self.config.aql_high } else { self.config.aql_low };
        if self.classes[class].held >= limit {
            return None;
        }
        let packet = self.take(now, class, place, |packet| packet.body.size() <= bytes, lost)?;
        let Class { held, .. } = &mut self.classes[class];
        *held = *held + self.neighbours[place].rate.time_for(packet.body.size() + self.overhead);
        Some(packet)
    }

    /// Removes and returns a packet of a neighbour if it `fits`.
    fn take(
        &mut self,
        now: Time,
        class: usize,
        place: usize,
        fits: impl Fn(&Queued<P>) -> bool,
        lost: impl FnMut(Queued<P>),
    ) -> Option<Queued<P>> {
        let queue = &mut self.classes[class].waiting[place].queue;
        let before = queue.len();
        let packet = queue.pop_if(now, fits, lost);
        self.len -= before - queue.len();
        packet
    }

    /// Neighbour whose turn it is: the first one with air time left and a packet to send.
    fn turn(&mut self, class: usize) -> Option<usize> {
        let quantum = self.config.airtime_quantum.0 as i64;
        let Class { waiting, new, old, .. } = &mut self.classes[class];
        loop {
            let (list, is_new) = if new.is_empty() { (&mut *old, false) } else { (&mut *new, true) };
            let &place = list.front()?;
            let neighbour = &mut waiting[usize::from(place)];
            let is_empty = neighbour.queue.is_empty();
            if !is_empty && neighbour.deficit_ns >= 0 {
                return Some(usize::from(place));
            }
            list.pop_front();
            if is_empty && !is_new {
                neighbour.listed = false;
                continue;
            }
            // A neighbour that is found empty is moved behind the old neighbours once, so that it
            // is not always treated as new.
            if !is_empty {
                neighbour.deficit_ns += quantum;
            }
            old.push_back(place);
        }
    }

    /// Removes and returns a packet for `next_hop`.
    pub fn take_for(&mut self, next_hop: NodeId) -> Option<Queued<P>> {
        let place = self.neighbours.iter().position(|neighbour| neighbour.node == next_hop)?;
        let packet = self.classes.iter_mut().find_map(|class| class.waiting[place].queue.take_for(next_hop))?;
        self.len -= 1;
        Some(packet)
    }

    /// Notes the end of an attempt to send to `node`, in which this station transmitted for
    /// `air_time`.
    pub fn on_attempt(&mut self, node: NodeId, air_time: Duration, carried: &AttemptContent) {
        let class = self.class_of(carried.category);
        let place = self.place(node);
        let neighbour = &mut self.neighbours[place];
        self.classes[class].waiting[place].deficit_ns -= air_time.0 as i64;
        if carried.bytes > 0 {
            neighbour.rate = carried.rate;
            let share = f64::from(carried.acknowledged) / f64::from(carried.bytes);
            neighbour.share += SHARE_WEIGHT * (share - neighbour.share);
        }
        self.classes[class].held = neighbour.rate.time_for(carried.held);
        let throughput = neighbour.rate.as_bps_f64() * neighbour.share;
        let is_slow = throughput < self.config.slow_below.as_bps_f64();
        if is_slow != neighbour.is_slow && carried.bytes > 0 {
            neighbour.is_slow = is_slow;
            let FqCodelConfig { target, interval, ecn, .. } = self.config.queues;
            let (codel, ecn) =
                if is_slow { (self.config.slow(), false) } else { (CodelParameters { target, interval }, ecn) };
            for class in &mut self.classes {
                class.waiting[place].queue.set_codel(codel, ecn);
            }
        }
    }

    fn class_of(&self, category: Category) -> usize {
        if self.classes.len() > 1 { category as usize } else { 0 }
    }

    /// Index of a neighbour, which is added if it is new.
    fn place(&mut self, node: NodeId) -> usize {
        if let Some(place) = self.neighbours.iter().position(|neighbour| neighbour.node == node) {
            return place;
        }
        self.neighbours.push(Neighbour { node, rate: self.lowest, share: 1.0, is_slow: false });
        let deficit_ns = self.config.airtime_quantum.0 as i64;
        // The configured limit applies to all queues together, so the single queues have none.
        let queues = FqCodelConfig { limit: usize::MAX, ..self.config.queues };
        for class in &mut self.classes {
            class.waiting.push(NeighbourQueue { queue: FqCodel::new(queues), deficit_ns, listed: false });
        }
        self.neighbours.len() - 1
    }
}

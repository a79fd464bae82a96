//! History of a run, for plots and for the time line. The history stays the same if the run goes
//! back and is played again.

use crate::packets::{Packets, Passed};
use meshpace_core::{Duration, NodeId, Time};
use meshpace_sim::outcome::jain;
use meshpace_sim::{Config, Probe, SimPacket, World};

/// Largest number of samples of a run.
const MOST: u64 = 4_000;
/// Shortest time between two samples.
const SHORTEST: Duration = Duration::from_millis(100);
/// Window of the short-term Jain index, the same as for measurements.
const JAIN_WINDOW: Duration = Duration::from_secs(2);

/// A remarkable event of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// The retransmission timer of a flow's sender expired.
    Timeout = 1,
    /// A station gave up a neighbour that, as far as the station could know, still exists.
    LinkFailure = 2,
    /// A node lost a route in use.
    RouteLost = 3,
    /// A node found a route again.
    RouteFound = 4,
}

/// Samples and marks from time zero to the latest time that was reached.
pub struct History {
    every: Duration,
    flows: usize,
    /// Values of all samples, one sample after the other.
    samples: Vec<f64>,
    count: u64,
    /// Number of packets in the queue of each node at each sample.
    queues: Vec<u16>,
    nodes: usize,
    packets: Packets,
    marks: Vec<(Time, Mark, u16)>,
    /// Time until which marks are complete.
    known: Time,
    timeouts: Vec<u64>,
    /// End of the current window of Jain's index.
    window_end: Time,
    before: Vec<u64>,
    /// Jain's index of the last complete window.
    jain: f64,
}

impl History {
    /// Number of values per sample besides those of the flows.
    pub const HEAD: usize = 2;
    /// Number of values per sample and flow.
    pub const PER_FLOW: usize = 11;

    /// Creates the history of a run of `config`.
    pub fn new(config: &Config) -> History {
        let flows = config.flows.len();
        // The windows of a measurement begin with the warm-up. These windows have the same
        // boundaries.
        let first = Time(config.warmup.0 % JAIN_WINDOW.0);
        History {
            every: Duration(config.duration.0 / MOST).max(SHORTEST),
            flows,
            samples: Vec::new(),
            count: 0,
            queues: Vec::new(),
            nodes: config.positions.len(),
            packets: Packets::new(config.flows.iter().map(|flow| flow.from)),
            marks: Vec::new(),
            known: Time::ZERO,
            timeouts: vec![0; flows],
            window_end: first + JAIN_WINDOW,
            before: vec![0; flows],
            jain: f64::NAN,
        }
    }

    /// Time at which the run has to stop next for a sample.
    pub fn next(&self) -> Time {
        (Time::ZERO + self.every * (self.count + 1)).min(self.window_end)
    }

    /// Time until which the history is complete.
    pub fn known(&self) -> Time {
        self.known
    }

    /// Adds a mark, unless its time is in the complete part of the history.
    pub fn mark(&mut self, at: Time, mark: Mark, whose: u16) {
        if at > self.known {
            self.marks.push((at, mark, whose));
        }
    }

    /// Adds what happened to a packet, unless its time is in the complete part of the history.
    pub fn packet(&mut self, at: Time, passed: Passed) {
        if at > self.known {
            self.packets.note(at, passed);
        }
    }

    /// Extends the history to the present time of the run.
    pub fn reached<O: Probe<SimPacket>>(&mut self, world: &World<'_, O>) {
        let now = world.engine().now();
        for flow in 0..self.flows {
            let timeouts = world.flow_counters(flow).sender.timeouts;
            if timeouts > self.timeouts[flow] {
                self.timeouts[flow] = timeouts;
                self.marks.push((now, Mark::Timeout, flow as u16));
            }
        }
        self.known = now;
        if now == self.window_end {
            let delivered: Vec<u64> = (0..self.flows).map(|flow| world.flow_counters(flow).delivered).collect();
            let shares: Vec<f64> =
                delivered.iter().zip(&self.before).map(|(after, before)| (after - before) as f64).collect();
            self.jain = jain(&shares).unwrap_or(f64::NAN);
            self.before = delivered;
            self.window_end += JAIN_WINDOW;
        }
        if now == Time::ZERO + self.every * (self.count + 1) {
            self.count += 1;
            self.samples.extend([now.as_secs_f64(), self.jain]);
            let queue = |node| world.engine().station(NodeId(node as u16)).queue.min(u16::MAX as usize) as u16;
            self.queues.extend((0..self.nodes).map(queue));
            for flow in 0..self.flows {
                let counted = world.flow_counters(flow);
                let (delay_sum_s, delays) = self.packets.delays(flow);
                let sender = world.sender(flow);
                let unknown = f64::NAN;
                self.samples.extend([
                    counted.delivered as f64,
                    sender.and_then(|end| end.window()).unwrap_or(unknown),
                    sender.and_then(|end| end.interval_s()).unwrap_or(unknown),
                    counted.sender.cov_sum,
                    counted.sender.cov_samples as f64,
                    counted.sender.retransmissions as f64,
                    counted.sender.timeouts as f64,
                    counted.sender.rtt_sum_s,
                    counted.sender.rtt_samples as f64,
                    delay_sum_s,
                    delays as f64,
                ]);
            }
        }
    }

    /// Samples from number `from` on. Values that do not exist are NaN. Each sample has the time in
    /// seconds and Jain's index of the last window of 2 s, followed by these values of every flow:
    ///
    /// - bytes delivered so far,
    /// - window, in segments,
    /// - pacing interval, in seconds,
    /// - sum of the coefficients of variation of the RTT, and their number,
    /// - retransmissions and timeouts so far,
    /// - sum of the RTT samples, in seconds, and their number,
    /// - sum of the one-way delays of the data that arrived, in seconds, and their number.
    pub fn samples(&self, from: usize) -> Vec<f64> {
        let start = from * (History::HEAD + History::PER_FLOW * self.flows);
        self.samples.get(start..).unwrap_or_default().to_vec()
    }

    /// Number of packets in the queue of a node at each sample from number `from` on. If `node` is
    /// negative, the number of packets in all queues.
    pub fn queues(&self, node: i32, from: usize) -> Vec<f64> {
        let rows = self.queues.chunks(self.nodes.max(1)).skip(from);
        match usize::try_from(node) {
            Ok(node) => rows.map(|row| row.get(node).map_or(f64::NAN, |queue| f64::from(*queue))).collect(),
            Err(_) => rows.map(|row| row.iter().map(|queue| f64::from(*queue)).sum()).collect(),
        }
    }

    /// Time-sequence graph of a flow; see [`Packets::events`].
    pub fn sequence(&self, flow: usize, from: Time, to: Time) -> Vec<f64> {
        self.packets.events(flow, from, to)
    }

    /// Marks, as three values each: time in seconds, kind (1 timeout, 2 link given up, 3 route
    /// lost, 4 route found), and number of the flow for a timeout, or of the node for the other
    /// kinds.
    pub fn marks(&self) -> Vec<f64> {
        self.marks
            .iter()
            .flat_map(|&(at, mark, whose)| [at.as_secs_f64(), f64::from(mark as u8), f64::from(whose)])
            .collect()
    }
}

//! The history of a run, for plots and for the time line. If the run is taken back and played again, the history is the same.

use crate::packets::{Packets, Passed};
use meshpace_core::{Duration, NodeId, Time};
use meshpace_sim::outcome::jain;
use meshpace_sim::{Config, Probe, SimPacket, World};

/// The most samples of a run.
const MOST: u64 = 4_000;
/// The shortest time between two.
const SHORTEST: Duration = Duration::from_millis(100);
/// The window of the short-term Jain index, which measurements have, too.
const JAIN_WINDOW: Duration = Duration::from_secs(2);

/// Something that stands out in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// The retransmission timer of a flow's sender expired.
    Timeout = 1,
    /// A station gave up a neighbour that is still there, for all it could know.
    LinkFailure = 2,
    /// A node lost a route in use.
    RouteLost = 3,
    /// A node found a route again.
    RouteFound = 4,
}

/// Samples and marks from time zero to the farthest time that was reached.
pub struct History {
    every: Duration,
    flows: usize,
    /// The samples, one after the other.
    samples: Vec<f64>,
    count: u64,
    /// Packets in the queue of each node at each sample.
    queues: Vec<u16>,
    nodes: usize,
    packets: Packets,
    marks: Vec<(Time, Mark, u16)>,
    /// Until when marks are complete.
    known: Time,
    timeouts: Vec<u64>,
    /// Of the window of Jain's index under way.
    window_end: Time,
    before: Vec<u64>,
    /// Of the last complete window.
    jain: f64,
}

impl History {
    /// Numbers per sample besides those of the flows.
    pub const HEAD: usize = 2;
    /// Numbers per sample and flow.
    pub const PER_FLOW: usize = 11;

    /// Of a run of `config`.
    pub fn new(config: &Config) -> History {
        let flows = config.flows.len();
        // Windows as a measurement has them are counted from the warm-up on.
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

    /// When the run has to stop next for a sample.
    pub fn next(&self) -> Time {
        (Time::ZERO + self.every * (self.count + 1)).min(self.window_end)
    }

    /// Until when everything is known.
    pub fn known(&self) -> Time {
        self.known
    }

    /// Notes a mark that is not known yet.
    pub fn mark(&mut self, at: Time, mark: Mark, whose: u16) {
        if at > self.known {
            self.marks.push((at, mark, whose));
        }
    }

    /// Notes what a packet did, if it is not known yet.
    pub fn packet(&mut self, at: Time, passed: Passed) {
        if at > self.known {
            self.packets.note(at, passed);
        }
    }

    /// The run has come to a time beyond which nothing is known.
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

    /// The samples from number `from` on: time in seconds and Jain's index of the last window of 2 s; then of every flow the bytes delivered
    /// so far, the window in segments, the pacing interval in seconds, the sum of the coefficients of variation of its RTT and their number,
    /// retransmissions and timeouts so far, the sum of its RTT samples in seconds and their number, the sum of the one-way delays of its data that
    /// arrived, in seconds, and their number. What there is not is NaN.
    pub fn samples(&self, from: usize) -> Vec<f64> {
        let start = from * (History::HEAD + History::PER_FLOW * self.flows);
        self.samples.get(start..).unwrap_or_default().to_vec()
    }

    /// Packets in the queue of a node at each sample from number `from` on; of a negative node, in all queues together.
    pub fn queues(&self, node: i32, from: usize) -> Vec<f64> {
        let rows = self.queues.chunks(self.nodes.max(1)).skip(from);
        match usize::try_from(node) {
            Ok(node) => rows.map(|row| row.get(node).map_or(f64::NAN, |queue| f64::from(*queue))).collect(),
            Err(_) => rows.map(|row| row.iter().map(|queue| f64::from(*queue)).sum()).collect(),
        }
    }

    /// The time-sequence graph of a flow: [`Packets::events`].
    pub fn sequence(&self, flow: usize, from: Time, to: Time) -> Vec<f64> {
        self.packets.events(flow, from, to)
    }

    /// Time in seconds, kind (1 timeout, 2 link given up, 3 route lost, 4 route found) and whose it is: the flow's number, for the others
    /// the node's.
    pub fn marks(&self) -> Vec<f64> {
        self.marks
            .iter()
            .flat_map(|&(at, mark, whose)| [at.as_secs_f64(), f64::from(mark as u8), f64::from(whose)])
            .collect()
    }
}

//! DCC's congestion index: packets on links that lose frames and use much air time are marked, so
//! that flows that use much air time slow down.
//!
//! Source: Y. Xu, Y. Wang, J. Lui and D.-M. Chiu, "Balancing Throughput and Fairness for TCP Flows
//! in Multihop Ad-Hoc Networks" (DCC), IV.B (Eq. 9 and 10), figure 6 part 1, V.A. Per outgoing link
//! and interval:
//!
//! ```text
//! gamma_s = failed / attempts (0 without attempts)        T_s = air time / 0.125 s
//! gamma = (1 - w) gamma + w gamma_s                       T = (1 - w) T + w T_s
//! F = gamma T^2      p = min(1, k_p F)                    p_flow = (T_flow / T) p
//! ```
//!
//! Departures: there is no timer. Intervals are counted from time zero, at all nodes alike.
//! Intervals that have passed are included in the averages when the link is used next, which gives
//! the same result as a timer. A link whose averages have fallen below 1e-12 starts again from
//! zero, and a flow below 1e-12 is removed. "Normalized transmission time" is the time for which
//! this station transmits. The paper gives k_p a range of 0 to 0.1 and a default of 13.2030; the
//! default is used. Its "EWMA weighting factor" of 0.125 is taken as the weight of the *old* value,
//! w = 0.875. This reading comes closer to its figures 10, 16 and 20 than the other one:
//! docs/link-disciplines.md.

use alloc::vec::Vec;
use meshpace_core::{Duration, FlowId, NodeId, Time, parameters, words};

/// Averages below this value are set to zero.
const NEGLIGIBLE: f64 = 1e-12;

/// Frames that are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DccCounts {
    /// Data frames: packets with payload. "The TCP data packet collision probability" (DCC, IV.B).
    #[default]
    Data,
    /// Packets with payload and TCP ACKs, but neither routing nor ARP.
    DataAndAcks,
}

/// Values that are averaged over intervals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DccAverages {
    /// Collision probability and air time.
    #[default]
    GammaAndAirTime,
    /// Collision probability only; the air time is that of the last interval.
    Gamma,
}

words! { DccCounts: "data" = Data, "data-and-acks" = DataAndAcks }
words! { DccAverages: "gamma-and-air-time" = GammaAndAirTime, "gamma" = Gamma }

parameters! {
    /// Parameters of DCC in the MAC.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct DccConfig {
        /// factor from the congestion index to the marking probability
        k_p: f64 = 13.203 => number(0.0, 1e4), Basic, "DCC, sections IV.B and V";
        /// length of the intervals in which the index is measured
        interval: Duration = Duration::from_millis(125) => TIME.from(1e-3).to(60.0), Basic, "DCC, section V.A";
        /// weight of the new value in the moving averages of the congestion index
        weight: f64 = 0.875 => number(0.0, 1.0).above(0.0), Basic, "DCC, section V";
        /// packets whose attempts are counted in the congestion index
        counts: DccCounts = DccCounts::Data => choice(DccCounts::WORDS), Basic, "DCC, section IV.B";
        /// whether the ACK of the MAC counts as air time
        mac_ack: bool = false => FLAG, Basic, "DCC, section IV.B";
        /// parts of the congestion index that are averaged over intervals
        averages: DccAverages = DccAverages::GammaAndAirTime => choice(DccAverages::WORDS), Basic, "DCC, section IV.B";
    }
}

/// Congestion index of a link with collision probability `gamma` and normalized air time `air`: F =
/// gamma T^2.
pub fn congestion_index(gamma: f64, air: f64) -> f64 {
    gamma * air * air
}

/// Marking probability of a link: p = min(1, k_p F), DCC Eq. 10.
pub fn marking_probability(k_p: f64, gamma: f64, air: f64) -> f64 {
    (k_p * congestion_index(gamma, air)).min(1.0)
}

/// Probability that a packet is marked on at least one link of a path whose links have the marking
/// probabilities `links`, DCC Eq. 9.
pub fn path_probability(links: impl IntoIterator<Item = f64>) -> f64 {
    1.0 - links.into_iter().fold(1.0, |unmarked, p| unmarked * (1.0 - p))
}

/// Share of a flow in the air time of a link.
#[derive(Clone, Copy, Debug)]
struct Share {
    flow: FlowId,
    /// Source of the packets. A flow has two directions, which are distinguished by it.
    source: NodeId,
    /// Air time in the current interval.
    on_air: Duration,
    /// Moving average of the normalized air time.
    average: f64,
}

/// State of an outgoing link.
#[derive(Clone, Debug)]
struct Link {
    next_hop: NodeId,
    /// Number of the interval to which the counters belong.
    interval: u64,
    attempts: u32,
    failed: u32,
    on_air: Duration,
    gamma: f64,
    air: f64,
    shares: Vec<Share>,
}

impl Link {
    /// Includes the intervals before number `interval` in the averages.
    fn catch_up(&mut self, interval: u64, config: &DccConfig) {
        while self.interval < interval {
            self.interval += 1;
            let sample = if self.attempts > 0 { f64::from(self.failed) / f64::from(self.attempts) } else { 0.0 };
            let span = config.interval.as_secs_f64();
            let air_weight = if config.averages == DccAverages::Gamma { 1.0 } else { config.weight };
            self.gamma = smooth(self.gamma, sample, config.weight);
            self.air = smooth(self.air, self.on_air.as_secs_f64() / span, air_weight);
            for share in &mut self.shares {
                share.average = smooth(share.average, share.on_air.as_secs_f64() / span, air_weight);
                share.on_air = Duration::ZERO;
            }
            self.shares.retain(|share| share.average >= NEGLIGIBLE);
            (self.attempts, self.failed, self.on_air) = (0, 0, Duration::ZERO);
            if self.gamma < NEGLIGIBLE && self.air < NEGLIGIBLE {
                (self.gamma, self.air) = (0.0, 0.0);
                self.interval = interval;
            }
        }
    }
}

fn smooth(old: f64, sample: f64, weight: f64) -> f64 {
    (1.0 - weight) * old + weight * sample
}

/// State of DCC at one node.
#[derive(Clone, Debug)]
pub struct Dcc {
    config: DccConfig,
    /// SIFS + MAC ACK, which is added to a successful attempt if the configuration says so.
    ack_time: Duration,
    links: Vec<Link>,
}

impl Dcc {
    /// Creates a state without links. `ack_time` is SIFS + MAC ACK.
    pub fn new(config: DccConfig, ack_time: Duration) -> Self {
        Dcc { config, ack_time, links: Vec::new() }
    }

    /// True if frames with pure TCP ACKs are counted.
    pub fn counts_acks(&self) -> bool {
        self.config.counts == DccCounts::DataAndAcks
    }

    /// Notes the end of an attempt to send a packet of `flow` from `source` to `next_hop`, in which
    /// this station transmitted for `air_time`.
    pub fn on_attempt(
        &mut self,
        now: Time,
        next_hop: NodeId,
        (flow, source): (FlowId, NodeId),
        air_time: Duration,
        acknowledged: bool,
    ) {
        let mut air_time = air_time;
        if acknowledged && self.config.mac_ack {
            air_time = air_time + self.ack_time;
        }
        let link = self.link(now, next_hop);
        link.attempts += 1;
        link.failed += u32::from(!acknowledged);
        link.on_air = link.on_air + air_time;
        match link.shares.iter_mut().find(|share| share.flow == flow && share.source == source) {
            Some(share) => share.on_air = share.on_air + air_time,
            None => link.shares.push(Share { flow, source, on_air: air_time, average: 0.0 }),
        }
    }

    /// Collision probability and normalized air time of the link to `next_hop`, each from 0 to 1.
    pub fn link_state(&mut self, now: Time, next_hop: NodeId) -> (f64, f64) {
        let link = self.link(now, next_hop);
        (link.gamma, link.air)
    }

    /// Probability with which a packet of `flow` from `source` is marked when it leaves for
    /// `next_hop`.
    pub fn probability(&mut self, now: Time, next_hop: NodeId, (flow, source): (FlowId, NodeId)) -> f64 {
        let k_p = self.config.k_p;
        let link = self.link(now, next_hop);
        if link.air <= 0.0 {
            return 0.0;
        }
        let share = link.shares.iter().find(|share| share.flow == flow && share.source == source);
        share.map_or(0.0, |share| share.average / link.air * marking_probability(k_p, link.gamma, link.air))
    }

    /// State of the link to `next_hop`, with every interval before that of `now` included in the
    /// averages.
    fn link(&mut self, now: Time, next_hop: NodeId) -> &mut Link {
        let interval = now.0 / self.config.interval.0;
        let at = match self.links.iter().position(|link| link.next_hop == next_hop) {
            Some(at) => at,
            None => {
                self.links.push(Link {
                    next_hop,
                    interval,
                    attempts: 0,
                    failed: 0,
                    on_air: Duration::ZERO,
                    gamma: 0.0,
                    air: 0.0,
                    shares: Vec::new(),
                });
                self.links.len() - 1
            }
        };
        let link = &mut self.links[at];
        link.catch_up(interval, &self.config);
        link
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: NodeId = NodeId(1);
    const FLOW: (FlowId, NodeId) = (FlowId(0), NodeId(0));
    const OTHER: (FlowId, NodeId) = (FlowId(1), NodeId(0));
    const ACK: Duration = Duration::from_micros(314);

    /// Configuration of the test vectors, in which the new value has the weight 0.125.
    fn slow() -> DccConfig {
        DccConfig { weight: 0.125, ..DccConfig::default() }
    }

    /// Time shortly after the start of interval `n`.
    fn in_interval(n: u64) -> Time {
        Time(n * 125_000_000 + 1)
    }

    fn close(value: f64, expected: f64, unit: f64) {
        assert!((value - expected).abs() <= 0.5 * unit * 1.0001, "{value}, expected {expected}");
    }

    #[test]
    fn intervals_systems_11_7() {
        // The columns are: attempts, failures, air time in us; gamma, T, F, p; and the unit of the
        // last digit given for F and p.
        let rows = [
            (4, 0, 18_000, 0.0, 0.018, 0.0, 0.0, 1e-9, 1e-9),
            (5, 1, 22_500, 0.025, 0.038250, 3.6577e-5, 4.8292e-4, 1e-9, 1e-8),
            (6, 2, 27_000, 0.063542, 0.060469, 2.3234e-4, 3.0676e-3, 1e-8, 1e-7),
            (8, 3, 36_000, 0.102474, 0.088910, 8.1006e-4, 1.0695e-2, 1e-8, 1e-6),
            (7, 1, 31_500, 0.107522, 0.109296, 1.2844e-3, 1.6958e-2, 1e-7, 1e-6),
            (0, 0, 0, 0.094082, 0.095634, 8.6046e-4, 1.1361e-2, 1e-8, 1e-6),
            (3, 0, 13_500, 0.082321, 0.097180, 7.7744e-4, 1.0265e-2, 1e-8, 1e-6),
        ];
        let mut dcc = Dcc::new(slow(), ACK);
        for (n, &(attempts, failed, air, gamma, air_time, index, p, index_unit, p_unit)) in rows.iter().enumerate() {
            for attempt in 0..attempts {
                let span = Duration::from_micros(air / attempts);
                dcc.on_attempt(in_interval(n as u64), NEXT, FLOW, span, attempt >= failed);
            }
            let after = in_interval(n as u64 + 1);
            let state = dcc.link_state(after, NEXT);
            close(state.0, gamma, 1e-6);
            close(state.1, air_time, 1e-6);
            close(congestion_index(state.0, state.1), index, index_unit);
            close(dcc.probability(after, NEXT, FLOW), p, p_unit);
        }
    }

    #[test]
    fn marking_probability_systems_11_7() {
        let k_p = DccConfig::default().k_p;
        for (gamma, air, expected) in
            [(0.05, 0.2, 0.026406), (0.1, 0.3, 0.118827), (0.2, 0.3, 0.237654), (0.1, 0.5, 0.330075), (0.3, 0.6, 1.0)]
        {
            close(marking_probability(k_p, gamma, air), expected, 1e-6);
        }
        close(k_p * congestion_index(0.3, 0.6), 1.4259, 1e-4);
    }

    #[test]
    fn flows_share_a_links_probability_by_air_time_systems_11_7() {
        // One interval with weight 1 gives the link gamma 0.1 and T 0.3, where 0.2 and 0.1 belong
        // to the flows: 20 attempts, 2 failed, 25 ms and 12.5 ms in 125 ms.
        let mut dcc = Dcc::new(DccConfig { weight: 1.0, ..DccConfig::default() }, ACK);
        for n in 0..20 {
            let flow = if n < 10 { FLOW } else { OTHER };
            let span = Duration::from_micros(if n < 10 { 2_500 } else { 1_250 });
            dcc.on_attempt(in_interval(0), NEXT, flow, span, n % 10 != 0);
        }
        let after = in_interval(1);
        close(dcc.probability(after, NEXT, FLOW), 0.079218, 1e-6);
        close(dcc.probability(after, NEXT, OTHER), 0.039609, 1e-6);
        assert_eq!(dcc.probability(after, NEXT, (FlowId(2), NodeId(0))), 0.0);
        assert_eq!(dcc.probability(after, NodeId(2), FLOW), 0.0);
    }

    #[test]
    fn marks_add_up_along_a_path_systems_11_7() {
        for (links, p, expected) in [(4, 0.02, 0.077632), (8, 0.01188, 0.091181), (8, 0.05, 0.336580)] {
            close(path_probability((0..links).map(|_| p)), expected, 1e-6);
        }
    }

    #[test]
    fn readings_of_what_counts() {
        let after_one = |config: DccConfig| {
            let mut dcc = Dcc::new(config, ACK);
            dcc.on_attempt(in_interval(0), NEXT, FLOW, Duration::from_micros(4_464), true);
            dcc.on_attempt(in_interval(0), NEXT, FLOW, Duration::from_micros(4_464), false);
            dcc.link_state(in_interval(1), NEXT)
        };
        let air = 2.0 * 4.464e-3 / 0.125;
        let default = slow();
        assert_eq!(after_one(default), (0.0625, 0.125 * air));
        // Only one attempt was acknowledged, so one ACK is added.
        close(after_one(DccConfig { mac_ack: true, ..default }).1, 0.125 * (air + 0.314e-3 / 0.125), 1e-12);
        let plain = after_one(DccConfig { averages: DccAverages::Gamma, ..default });
        assert_eq!(plain.0, 0.0625);
        close(plain.1, air, 1e-12);
        // The old value has the weight 0.125, which is the default.
        close(after_one(DccConfig::default()).0, 0.875 * 0.5, 1e-12);
    }

    #[test]
    fn a_silent_link_fades_as_by_a_timer_and_is_forgotten() {
        let busy = |dcc: &mut Dcc| dcc.on_attempt(in_interval(0), NEXT, FLOW, Duration::from_millis(50), false);
        let mut seldom = Dcc::new(slow(), ACK);
        let mut often = seldom.clone();
        busy(&mut seldom);
        busy(&mut often);
        for n in 1..40 {
            often.link_state(in_interval(n), NEXT);
        }
        assert_eq!(seldom.link_state(in_interval(40), NEXT), often.link_state(in_interval(40), NEXT));
        // After an hour the averages are zero and the flow is forgotten.
        assert_eq!(seldom.link_state(in_interval(8 * 3600), NEXT), (0.0, 0.0));
        assert!(seldom.links[0].shares.is_empty());
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let fails = |config: DccConfig| config.check().map_err(|e| e.name.into_owned());
        let default = DccConfig::default();
        assert_eq!(fails(default), Ok(()));
        assert_eq!(fails(DccConfig { k_p: f64::NAN, ..default }), Err("k_p".into()));
        assert_eq!(fails(DccConfig { interval: Duration::ZERO, ..default }), Err("interval".into()));
        assert_eq!(fails(DccConfig { weight: 0.0, ..default }), Err("weight".into()));
    }
}

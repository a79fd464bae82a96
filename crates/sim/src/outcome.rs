//! Measurements of a run.

use crate::engine::Counters;
use crate::traffic::Completion;
use alloc::vec::Vec;
use meshpace_mesh::link::LinkState;

/// Result of one run. Goodput, Jain's index and the retransmission index cover the measured
/// interval [warmup, duration]; counters of segments cover the whole run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Length of the measured interval in seconds.
    pub measured_s: f64,
    /// Sum of the flows' goodputs, in bit/s.
    pub aggregate_goodput_bps: f64,
    /// Jain's index of the flows' goodputs.
    pub jain: f64,
    /// Mean of Jain's index over windows of 2 seconds from `warmup` on. Windows without any
    /// delivery are skipped; NaN if all were.
    pub jain_2s: f64,
    /// Number of windows that were skipped.
    pub idle_windows: u32,
    /// Total retransmissions over total distinct segments received, both in the measured interval.
    pub retransmission_index: f64,
    /// Number of transmissions in the whole run, including control frames.
    pub frames: u64,
    /// Number of broadcasts among the transmissions.
    pub broadcasts: u64,
    /// Number of stations that sensed a transmission, summed over all transmissions. The computing
    /// time of a run is proportional to it.
    pub sensed: u64,
    /// Counters of losses and of routing packets in the whole run.
    pub counters: Counters,
    /// Hash of every transmission and delivery.
    pub fingerprint: u64,
    /// Results of each flow.
    pub flows: Vec<FlowOutcome>,
    /// Time at which the run ended, in seconds. It is earlier than the duration if the last batch
    /// was complete before.
    pub ended_s: f64,
    /// Time series; `None` if it was not requested.
    pub series: Option<Series>,
    /// Complete batches; empty if none were requested.
    pub batches: Vec<Batch>,
}

/// Time series: a run in windows of time from its start.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Length of a window in seconds.
    pub window_s: f64,
    /// Complete windows, each with one entry per flow.
    pub windows: Vec<Vec<FlowWindow>>,
    /// State of every link of [`Config::watch`](crate::Config::watch) at the end of each window;
    /// `None` while the node has no route.
    pub links: Vec<Vec<Option<LinkState>>>,
}

/// One batch of delivered packets.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// Start of the batch in seconds.
    pub start_s: f64,
    /// End of the batch in seconds.
    pub end_s: f64,
    /// Sum of the flows' goodputs, in bit/s.
    pub aggregate_goodput_bps: f64,
    /// Jain's index of the flows' goodputs.
    pub jain: f64,
    /// Retransmissions over distinct segments received.
    pub retransmission_index: f64,
    /// Measurements of each flow.
    pub flows: Vec<FlowWindow>,
}

/// Measurements of one flow in a part of a run. A mean is NaN if there was nothing to average.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowWindow {
    /// Goodput in bit/s.
    pub goodput_bps: f64,
    /// Payload that was delivered in order, in bytes.
    pub delivered_bytes: u64,
    /// Mean of the RTT samples, in seconds.
    pub rtt_mean_s: f64,
    /// Mean coefficient of variation of the last N RTT samples.
    pub cov_rtt: f64,
    /// Mean pacing interval, in seconds.
    pub interval_s: f64,
    /// Number of data segments that arrived for the first time.
    pub segments_received: u64,
    /// Number of data segments that were sent again.
    pub retransmissions: u64,
    /// Number of expiries of the retransmission timer.
    pub timeouts: u64,
    /// Time in seconds during which a file transfer was in progress; zero for other traffic.
    pub transferring_s: f64,
    /// Number of hops of the route at the end; `None` without a route.
    pub hops: Option<u8>,
}

/// Results of one flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowOutcome {
    /// Goodput in the measured interval, in bit/s.
    pub goodput_bps: f64,
    /// Payload that was delivered in order in the measured interval, in bytes.
    pub delivered_bytes: u64,
    /// Number of hops from source to destination at the end (of the shortest path if the route is
    /// down).
    pub hops: u8,
    /// Number of data segments sent in the whole run, including retransmissions.
    pub segments_sent: u64,
    /// Number of retransmitted data segments in the whole run.
    pub retransmissions: u64,
    /// Number of expiries of the retransmission timer in the whole run.
    pub timeouts: u64,
    /// Segments sent again over distinct segments received, both in the measured interval (TPA,
    /// section 4.2); NaN if no segment was received.
    pub retransmission_index: f64,
    /// Share of the datagrams sent in the measured interval that had not arrived at its end (RFC
    /// 7680). NaN for transports other than UDP, and if no datagram was sent.
    pub loss_ratio: f64,
    /// Mean of the RTT samples in the measured interval, in seconds; NaN without samples.
    pub rtt_mean_s: f64,
    /// Mean, over samples, of the coefficient of variation of the last N RTT samples, where N is
    /// `history` of the pacing; NaN without samples.
    pub cov_rtt: f64,
    /// Number of ACKs sent in the whole run.
    pub acks_sent: u64,
    /// One-way delays, from transport to transport, of the packets with data that arrived in the
    /// measured interval.
    pub delay: DelayOutcome,
    /// Longest time in seconds without a delivered byte while the flow had data to send, within the
    /// measured interval and until its application stops; 0 if the flow never had data. Between
    /// files there is nothing to send. For a datagram, the time begins with its write.
    pub longest_gap_s: f64,
    /// Means of the pacing estimator in the measured interval.
    pub pacing: PacingMeans,
    /// Files that arrived completely within the measured interval (HTTP-like traffic), in order.
    pub completions: Vec<Completion>,
    /// Time in seconds of the measured interval during which a file transfer was in progress; NaN
    /// for other traffic.
    pub transferring_s: f64,
    /// Time in seconds of the measured interval during which the source's routing had no route to
    /// the destination, sampled every 0.1 s; NaN if nodes do not move.
    pub time_without_route_s: f64,
    /// Time in seconds of the measured interval during which there was no path of links between the
    /// ends, sampled every 0.1 s. If nodes do not move: all of the interval if there is no path, NaN
    /// if there is one.
    pub time_without_path_s: f64,
    /// Longest gap as in `longest_gap_s`, but of each gap only the time during which there was a
    /// path of links between the ends counts, sampled every 0.1 s. If nodes do not move: 0 if there
    /// is no path, NaN if there is one.
    pub longest_gap_with_path_s: f64,
}

/// Delays of a flow's packets; NaN if there were too few packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DelayOutcome {
    /// Mean delay in seconds.
    pub mean_s: f64,
    /// Median delay in seconds. All quantiles have a resolution of 1.6 %.
    pub p50_s: f64,
    /// 95th percentile of the delay, in seconds.
    pub p95_s: f64,
    /// 99th percentile of the delay, in seconds.
    pub p99_s: f64,
    /// Mean absolute difference between packets that arrive one after another (IPDV, RFC 3393), in
    /// seconds.
    pub jitter_s: f64,
}

/// Means of the pacing estimator over the measured interval; NaN if there is nothing to average.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacingMeans {
    /// Smoothed n-hop delay over samples, in seconds.
    pub delay_s: f64,
    /// Coefficient of variation over samples.
    pub cov: f64,
    /// Mean absolute deviation over mean, over samples.
    pub mean_rel_abs_dev: f64,
    /// Interval per paced send (`released`: per timer tick), in seconds.
    pub interval_s: f64,
    /// Smoothed n-hop delay at the times at which `interval_s` is sampled, in seconds.
    pub interval_delay_s: f64,
    /// Dispersion at the times at which `interval_s` is sampled.
    pub interval_dispersion: f64,
}

/// Jain's fairness index (R. Jain, D. Chiu, W. Hawe, 1984): 1 for equal shares, 1/n if one flow has
/// everything. `None` if all shares are zero.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_vectors() {
        // The values are worked examples; 0.64 is quoted in AP05, Fig. 23.
        let cases: [(&[f64], f64); 7] = [
            (&[1.0, 1.0], 1.0),
            (&[9.0, 1.0], 0.609_756),
            (&[0.875, 0.125], 0.64),
            (&[3.0, 2.0], 0.961_538),
            (&[5.0, 4.0, 3.0, 2.0, 1.0], 0.818_182),
            (&[12.0, 1.0, 1.0, 1.0, 1.0, 12.0], 0.447_489),
            (&[10.0, 10.0, 1.0, 1.0, 1.0, 1.0], 0.470_588),
        ];
        for (shares, expected) in cases {
            assert!((jain(shares).unwrap() - expected).abs() < 5e-7, "{shares:?}");
        }
        assert_eq!(jain(&[0.0, 0.0]), None);
    }
}

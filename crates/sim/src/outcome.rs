//! Measurements of a run.

use crate::engine::Counters;
use crate::traffic::Completion;
use alloc::vec::Vec;
use meshpace_mesh::link::LinkState;

/// The result of one run. Definitions: goodput, Jain's index and the retransmission index cover the measured interval
/// [warmup, duration]; counters of segments cover the whole run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Length of the measured interval in seconds.
    pub measured_s: f64,
    /// Sum of the flows' goodputs, bit/s.
    pub aggregate_goodput_bps: f64,
    /// Jain's index of the flows' goodputs.
    pub jain: f64,
    /// Mean of Jain's index over 2-second windows from `warmup`, windows without any delivery skipped. NaN if all were.
    pub jain_2s: f64,
    /// Number of those windows that were skipped.
    pub idle_windows: u32,
    /// Total retransmissions over total distinct segments received, both in the measured interval.
    pub retransmission_index: f64,
    /// Transmissions put on the air in the whole run, control frames included.
    pub frames: u64,
    /// Number of broadcasts among them.
    pub broadcasts: u64,
    /// Stations that sensed a transmission, summed over all transmissions: the time that a run takes is proportional to it.
    pub sensed: u64,
    /// Counters of losses and of routing's packets, in the whole run.
    pub counters: Counters,
    /// Hash of every transmission and delivery.
    pub fingerprint: u64,
    /// One entry per flow.
    pub flows: Vec<FlowOutcome>,
    /// When the run ended, seconds: earlier than its duration if the last batch was complete.
    pub ended_s: f64,
    /// Windows of time, if they were asked for.
    pub series: Option<Series>,
    /// Complete batches, if they were asked for.
    pub batches: Vec<Batch>,
}

/// A run in windows of time from its start.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Length of a window, seconds.
    pub window_s: f64,
    /// The complete windows, each with one entry per flow.
    pub windows: Vec<Vec<FlowWindow>>,
    /// At the end of each window, the state of every link of [`Config::watch`](crate::Config::watch); none while the node knows no route.
    pub links: Vec<Vec<Option<LinkState>>>,
}

/// One batch of delivered packets.
#[derive(Clone, PartialEq, Debug)]
pub struct Batch {
    /// Its start, seconds.
    pub start_s: f64,
    /// Its end, seconds.
    pub end_s: f64,
    /// Sum of the flows' goodputs, bit/s.
    pub aggregate_goodput_bps: f64,
    /// Jain's index of them.
    pub jain: f64,
    /// Retransmissions over distinct segments received.
    pub retransmission_index: f64,
    /// One entry per flow.
    pub flows: Vec<FlowWindow>,
}

/// Measurements of one flow in a piece of a run. Means are NaN where there was nothing to average.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowWindow {
    /// Goodput, bit/s.
    pub goodput_bps: f64,
    /// In-order payload delivered, bytes.
    pub delivered_bytes: u64,
    /// Mean of the RTT samples, seconds.
    pub rtt_mean_s: f64,
    /// Mean coefficient of variation of the last N RTT samples.
    pub cov_rtt: f64,
    /// Mean pacing interval, seconds.
    pub interval_s: f64,
    /// Data segments that arrived for the first time.
    pub segments_received: u64,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Seconds in which a file was under way; zero for other traffic than files.
    pub transferring_s: f64,
    /// Hops of the route at the end; none without a route.
    pub hops: Option<u8>,
}

/// Results of one flow.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowOutcome {
    /// Goodput in the measured interval, bit/s.
    pub goodput_bps: f64,
    /// In-order payload delivered in the measured interval, bytes.
    pub delivered_bytes: u64,
    /// Hops from source to destination at the end (shortest path if the route is down).
    pub hops: u8,
    /// Data segments sent in the whole run, retransmissions included.
    pub segments_sent: u64,
    /// Retransmitted data segments in the whole run.
    pub retransmissions: u64,
    /// Retransmission timer expiries in the whole run.
    pub timeouts: u64,
    /// Segments sent again over distinct segments received, both in the measured interval (TPA, section 4.2); NaN if
    /// none were.
    pub retransmission_index: f64,
    /// Share of the datagrams sent in the measured interval that had not arrived at its end (RFC 7680); NaN for other transports than
    /// UDP, and if none was sent.
    pub loss_ratio: f64,
    /// Mean of the RTT samples in the measured interval, seconds; NaN without samples.
    pub rtt_mean_s: f64,
    /// Mean over samples of the coefficient of variation of the last N RTT samples, N being `history` of the pacing; NaN without samples.
    pub cov_rtt: f64,
    /// ACKs sent in the whole run.
    pub acks_sent: u64,
    /// One-way delays of the packets with data that arrived in the measured interval, from transport to transport.
    pub delay: DelayOutcome,
    /// The longest time without a delivered byte while the flow had data to send, within the measured interval and until its application
    /// stops, seconds; 0 if it never had any. Between files nothing is there to send. A datagram is waited for from its write on.
    pub longest_gap_s: f64,
    /// Means of the pacing estimator in the measured interval.
    pub pacing: PacingMeans,
    /// Files that arrived completely within the measured interval (HTTP-like traffic), in order.
    pub completions: Vec<Completion>,
    /// Seconds of the measured interval in which a file was under way; NaN for other traffic.
    pub transferring_s: f64,
    /// Seconds of the measured interval in which the source's routing knew no route to the destination, sampled every
    /// 0.1 s; NaN if nodes do not move.
    pub time_without_route_s: f64,
    /// Seconds of the measured interval in which there was no path of links between the ends, sampled likewise; NaN if
    /// nodes do not move.
    pub time_without_path_s: f64,
    /// As `longest_gap_s`, of each gap only the time in which there was a path of links between the ends, sampled likewise; NaN
    /// if nodes do not move.
    pub longest_gap_with_path_s: f64,
}

/// Delays of a flow's packets; NaN where there were too few.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DelayOutcome {
    /// Mean, seconds.
    pub mean_s: f64,
    /// Median, seconds, as all quantiles to 1.6 %.
    pub p50_s: f64,
    /// 95th percentile, seconds.
    pub p95_s: f64,
    /// 99th percentile, seconds.
    pub p99_s: f64,
    /// Mean absolute difference between packets that arrive one after another (IPDV, RFC 3393), seconds.
    pub jitter_s: f64,
}

/// Means of the pacing estimator over the measured interval; NaN where there is nothing to average.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PacingMeans {
    /// Smoothed n-hop delay over samples, seconds.
    pub delay_s: f64,
    /// Coefficient of variation over samples.
    pub cov: f64,
    /// Mean absolute deviation over mean, over samples.
    pub mean_rel_abs_dev: f64,
    /// Interval per paced send (`released`: per timer tick), seconds.
    pub interval_s: f64,
    /// Smoothed n-hop delay, read whenever `interval_s` is, seconds.
    pub interval_delay_s: f64,
    /// Dispersion, read at the same times.
    pub interval_dispersion: f64,
}

/// Jain's fairness index (R. Jain, D. Chiu, W. Hawe, 1984): 1 for equal shares, 1/n if one has all; None if there is nothing.
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
        // Worked examples; 0.64 is quoted in AP05, Fig. 23.
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

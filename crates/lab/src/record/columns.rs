//! Table of columns: every field of a record, with its meaning and the expression that computes its
//! value from the outcome of a run. JSON, CSV, Parquet, Python and the page docs/records.md are
//! made from this table. `metrics` has the quantities that people compare.

use super::column::{columns, measured as known, number};
use super::{BatchRecord, NodeRecord, SeriesRecord, line, measured};
use meshpace_scenario::{Point, Scenario};
use meshpace_sim::traffic::Completion;
use meshpace_sim::{Flow, FlowOutcome, Outcome};
use meshpace_transport::{Config, pacing};
use serde_json::{Map, Value};

/// Simulated run from which a record is made.
#[derive(Clone, Copy)]
pub(super) struct Simulated<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) point: &'a Point,
    pub(super) seed: u64,
    pub(super) outcome: &'a Outcome,
}

/// Flow of a simulated run.
#[derive(Clone, Copy)]
struct SimulatedFlow<'a> {
    id: usize,
    flow: &'a Flow,
    transport: &'a str,
    name: Option<&'a str>,
    outcome: &'a FlowOutcome,
}

columns! {
    /// One run. The order of the fields is that of the JSON line. A value that could not be
    /// measured is NaN here and `null` in JSON.
    pub struct Record from run: Simulated<'_> {
        /// Title of the scenario, or the name of its file without extension.
        scenario: String = run.scenario.name.clone(), at 0;
        /// Seed of the run.
        seed: u64 = run.seed, at 1;
        /// Values of the swept keys.
        point: Map<String, Value> = run.point.values.iter().cloned().collect();
        /// Simulated time, seconds; for a run in batches, the time at which the last batch was
        /// complete.
        #[serde(deserialize_with = "number")]
        duration_s: f64 = run.outcome.ended_s, at 2;
        /// Sum of the flows' goodputs, bit/s.
        #[serde(deserialize_with = "number")]
        aggregate_goodput_bps: f64 = run.outcome.aggregate_goodput_bps, at 3;
        /// Jain's index of the goodputs of all flows in the measured interval, including flows of
        /// different kinds.
        #[serde(deserialize_with = "number")]
        jain: f64 = run.outcome.jain, at 4;
        /// Mean of Jain's index over windows of 2 s.
        #[serde(deserialize_with = "number")]
        jain_2s: f64 = run.outcome.jain_2s, at 5;
        /// Number of windows that are not averaged because nothing was delivered in them.
        idle_windows: u32 = run.outcome.idle_windows, at 6;
        /// Ratio of retransmissions to distinct segments received.
        #[serde(deserialize_with = "number")]
        retransmission_index: f64 = run.outcome.retransmission_index, at 7;
        /// Number of frames sent.
        frames: u64 = run.outcome.frames, at 8;
        /// Results of each flow.
        flows: Vec<FlowRecord> = flows(run);
        /// Start of the measured interval, seconds.
        #[serde(deserialize_with = "number")]
        warmup_s: f64 = run.point.config.warmup.as_secs_f64();
        /// Hash of every transmission and delivery, in hexadecimal, because JSON numbers are exact
        /// only up to 2^53.
        fingerprint: String = format!("{:016x}", run.outcome.fingerprint);
        /// Version of the format of the line, [`line::FORMAT`].
        format: u32 = line::FORMAT;
        /// Frames that the MAC gave up at the retry limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        mac_drops: Option<u64> = Some(run.outcome.counters.mac_drops);
        /// Unicast frames lost at their addressee to another frame that arrived at the same time.
        #[serde(skip_serializing_if = "Option::is_none")]
        collisions: Option<u64> = Some(run.outcome.counters.collisions);
        /// Packets and routing messages dropped by an interface queue or its marker.
        #[serde(skip_serializing_if = "Option::is_none")]
        queue_drops: Option<u64> = Some(run.outcome.counters.queue_drops);
        /// Route requests sent, including forwarded ones.
        #[serde(skip_serializing_if = "Option::is_none")]
        route_requests: Option<u64> = Some(run.outcome.counters.route_requests);
        /// Route replies sent, including forwarded ones.
        #[serde(skip_serializing_if = "Option::is_none")]
        route_replies: Option<u64> = Some(run.outcome.counters.route_replies);
        /// Route errors sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        route_errors: Option<u64> = Some(run.outcome.counters.route_errors);
        /// Route discoveries that nodes began for a packet. Repeated requests belong to the same
        /// discovery.
        #[serde(skip_serializing_if = "Option::is_none")]
        discoveries: Option<u64> = Some(run.outcome.counters.discoveries);
        /// Revision of the model that made the record, [`meshpace_sim::MODEL_REVISION`]; 0 for
        /// measurements on a real network.
        model: u32 = meshpace_sim::MODEL_REVISION;
        /// Losses and air time of each node; only with `--per-node`.
        #[serde(skip_serializing_if = "Option::is_none")]
        nodes: Option<Vec<NodeRecord>> = None;
        /// Results in windows of time; only if the scenario has `series`.
        #[serde(skip_serializing_if = "Option::is_none")]
        series: Option<SeriesRecord> = run.outcome.series.as_ref().map(SeriesRecord::new);
        /// Results in batches of delivered packets; only if the scenario has `batches`.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches: Option<Vec<BatchRecord>> =
            run.point.config.batches.map(|_| run.outcome.batches.iter().map(BatchRecord::new).collect());
        /// Verdict on the timing and its measurements; only for emulated runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        real_time: Option<Value> = None;
        /// Longest gap of a flow that does not count as starved, seconds: the scenario's
        /// `starved_after` times the measured interval.
        #[serde(skip_serializing_if = "Option::is_none")]
        starved_after_s: Option<f64> = Some(run.point.starved_after * run.outcome.measured_s);
        /// Number of flows that others starve: they had data to send and a path, but delivered
        /// nothing, or nothing for longer than `starved_after_s`.
        #[serde(skip_serializing_if = "Option::is_none")]
        starved_flows: Option<usize> = None, at 26;
        /// Number of flows that were silent because there was no path. They do not count as
        /// starved.
        #[serde(skip_serializing_if = "Option::is_none")]
        flows_without_path: Option<usize> = None;
        /// Jain's index of the transfers alone; only if a run has several of them and flows of
        /// other kinds. The kinds are transfers, files with pauses between them, and datagrams at a
        /// given rate. Flows of different kinds are not meant to get equal shares.
        #[serde(skip_serializing_if = "Option::is_none")]
        jain_transfers: Option<f64> = None;
        /// Jain's index of the flows of files alone; only if a run has several of them and flows of
        /// other kinds.
        #[serde(skip_serializing_if = "Option::is_none")]
        jain_files: Option<f64> = None;
        /// Jain's index of the flows of datagrams alone; only if a run has several of them and
        /// flows of other kinds.
        #[serde(skip_serializing_if = "Option::is_none")]
        jain_datagrams: Option<f64> = None;
    }
}

columns! {
    /// One flow of a run.
    pub struct FlowRecord from of: SimulatedFlow<'_> {
        /// Number of the flow, from 0.
        id: usize = of.id, at 10;
        /// Name of the flow; only if the scenario gives it one.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String> = of.name.map(str::to_owned), at 27;
        /// Node that sends.
        from: u16 = of.flow.from.0, at 11;
        /// Node that receives.
        to: u16 = of.flow.to.0, at 12;
        /// Hops between these nodes at the end of the run.
        hops: u8 = of.outcome.hops, at 13;
        /// Transport of the flow.
        transport: String = of.transport.to_owned(), at 14;
        /// Goodput: payload delivered in order in the measured interval, bit/s.
        #[serde(deserialize_with = "number")]
        goodput_bps: f64 = of.outcome.goodput_bps, at 15;
        /// In-order payload delivered in the measured interval, bytes.
        delivered_bytes: Option<u64> = Some(of.outcome.delivered_bytes), at 16;
        /// Data segments sent in the whole run.
        segments_sent: u64 = of.outcome.segments_sent, at 17;
        /// Data segments of these that were retransmissions.
        retransmissions: u64 = of.outcome.retransmissions, at 18;
        /// Expiries of the retransmission timer in the whole run; `null` if only the kernels of emulated programs know.
        timeouts: Option<u64> = Some(of.outcome.timeouts), at 19;
        /// ACKs that the receiver sent; only if the receiver counts them.
        #[serde(skip_serializing_if = "Option::is_none")]
        acks_sent: Option<u64> = Some(of.outcome.acks_sent);
        /// Ratio of retransmissions to distinct segments received, both in the measured interval.
        #[serde(deserialize_with = "number")]
        retransmission_index: f64 = of.outcome.retransmission_index;
        /// Share of the datagrams sent in the measured interval that had not arrived at its end;
        /// only for UDP.
        #[serde(skip_serializing_if = "Option::is_none")]
        loss_ratio: Option<f64> = measured(of.outcome.loss_ratio), at 22;
        /// Mean RTT, seconds.
        #[serde(deserialize_with = "number")]
        rtt_mean_s: f64 = of.outcome.rtt_mean_s, at 20;
        /// Mean coefficient of variation of the RTT.
        #[serde(deserialize_with = "number")]
        cov_rtt: f64 = of.outcome.cov_rtt, at 21;
        /// Mean one-way delay of packets with data that arrived in the measured interval, seconds;
        /// only for simulated runs.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        delay_mean_s: Option<f64> = Some(of.outcome.delay.mean_s);
        /// Median of these one-way delays, seconds. Quantiles are exact to 1.6 %.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        delay_p50_s: Option<f64> = Some(of.outcome.delay.p50_s);
        /// 95th percentile of these one-way delays, seconds.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        delay_p95_s: Option<f64> = Some(of.outcome.delay.p95_s), at 23;
        /// 99th percentile of these one-way delays, seconds.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        delay_p99_s: Option<f64> = Some(of.outcome.delay.p99_s);
        /// Mean absolute difference between the delays of packets that arrive one after another
        /// (IPDV, RFC 3393), seconds.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        jitter_s: Option<f64> = Some(of.outcome.delay.jitter_s);
        /// Longest time without a delivered byte while the flow had data to send, seconds; within
        /// the measured interval and until its application stops. 0 if it never had data to send. A
        /// flow has nothing to send between files. Only for simulated runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        longest_gap_s: Option<f64> = Some(of.outcome.longest_gap_s), at 24;
        /// Means of the pacing estimator; `null` in JSON for a flow without adaptive pacing.
        pacing: Option<PacingRecord> = is_paced(&of.flow.transport).then(|| PacingRecord::new(of.outcome));
        /// Files that arrived in the measured interval; only for http traffic.
        #[serde(skip_serializing_if = "Option::is_none")]
        completions: Option<Vec<CompletionRecord>> = (!of.outcome.transferring_s.is_nan())
            .then(|| of.outcome.completions.iter().map(CompletionRecord::of).collect());
        /// Time of the measured interval in which a file was being transferred, seconds; only for
        /// http traffic.
        #[serde(skip_serializing_if = "Option::is_none")]
        transferring_s: Option<f64> = measured(of.outcome.transferring_s);
        /// Time of the measured interval in which the source knew no route, seconds; only if nodes
        /// move.
        #[serde(skip_serializing_if = "Option::is_none")]
        time_without_route_s: Option<f64> = measured(of.outcome.time_without_route_s);
        /// Time of the measured interval without a path of links between the ends, seconds; only if
        /// nodes move, or if there is no path at all.
        #[serde(skip_serializing_if = "Option::is_none")]
        time_without_path_s: Option<f64> = measured(of.outcome.time_without_path_s);
        /// Longest gap (`longest_gap_s`) minus the time in it without a path, seconds; only if
        /// nodes move, or if there is no path at all.
        #[serde(skip_serializing_if = "Option::is_none")]
        longest_gap_with_path_s: Option<f64> = measured(of.outcome.longest_gap_with_path_s);
        /// "nothing" or "gap" if others starve the flow: it had data to send and a path, but
        /// delivered nothing, or nothing for longer than `starved_after_s`.
        #[serde(skip_serializing_if = "Option::is_none")]
        starved: Option<String> = None, at 25;
        /// "nothing" or "gap" if the flow was silent like a starved one because there was no path.
        #[serde(skip_serializing_if = "Option::is_none")]
        without_path: Option<String> = None;
    }
}

columns! {
    /// One transferred file.
    pub struct CompletionRecord from file: &Completion {
        /// Time at which its application began to connect or to write, seconds.
        #[serde(deserialize_with = "number")]
        start_s: f64 = file.start.as_secs_f64();
        /// Time at which its last byte arrived, seconds.
        #[serde(deserialize_with = "number")]
        end_s: f64 = file.end.as_secs_f64();
        /// Size, bytes.
        bytes: u64 = file.bytes;
    }
}

columns! {
    /// Means of the pacing estimator over the measured interval.
    pub struct PacingRecord {
        /// Smoothed n-hop delay, seconds.
        #[serde(deserialize_with = "number")]
        delay_s: f64;
        /// Coefficient of variation of the RTT.
        #[serde(deserialize_with = "number")]
        cov: f64;
        /// Mean absolute deviation of the RTT, divided by its mean.
        #[serde(deserialize_with = "number")]
        mean_rel_abs_dev: f64;
        /// Pacing interval, seconds.
        #[serde(deserialize_with = "number")]
        interval_s: f64;
    }
}

impl PacingRecord {
    fn new(outcome: &FlowOutcome) -> PacingRecord {
        let meshpace_sim::outcome::PacingMeans { delay_s, cov, mean_rel_abs_dev, interval_s, .. } = outcome.pacing;
        PacingRecord { delay_s, cov, mean_rel_abs_dev, interval_s }
    }
}

impl Record {
    /// Creates the record of a simulated run.
    pub fn new(scenario: &Scenario, point: &Point, seed: u64, outcome: &Outcome) -> Record {
        Record::of(Simulated { scenario, point, seed, outcome }).judged()
    }
}

/// Creates the records of the flows of a run.
fn flows(run: Simulated<'_>) -> Vec<FlowRecord> {
    // Drawing with this seed succeeded before the run, so the fallback is never used.
    let drawn = run.point.drawn(run.seed).unwrap_or(std::borrow::Cow::Borrowed(run.point));
    let labels = run.point.transports.iter().zip(&run.point.names);
    let flows = drawn.config.flows.iter().zip(labels).zip(&run.outcome.flows).enumerate();
    let flow = |(id, ((flow, (transport, name)), outcome))| {
        let (transport, name): (&String, &Option<String>) = (transport, name);
        FlowRecord::of(SimulatedFlow { id, flow, transport, name: name.as_deref(), outcome })
    };
    flows.map(flow).collect()
}

/// True if the transport uses adaptive pacing. The record then has averages of the pacing
/// estimator.
fn is_paced(transport: &Config) -> bool {
    match transport {
        Config::Tcp(tcp) => matches!(tcp.pacing, pacing::Config::Adaptive(_)),
        Config::Tpa(tpa) => matches!(tpa.pacing, pacing::Config::Adaptive(_)),
        Config::Udp(_) | Config::Train(_) | Config::Flush(_) => false,
    }
}

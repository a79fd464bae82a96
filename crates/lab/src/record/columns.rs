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
    /// One run. The order of the fields is that of the JSON line. A value that could not be measured is NaN here and `null`
    /// there.
    pub struct Record from run: Simulated<'_> {
        /// The scenario's title, or its file's name without extension.
        scenario: String = run.scenario.name.clone(), at 0;
        /// The seed.
        seed: u64 = run.seed, at 1;
        /// The values of the sweep.
        point: Map<String, Value> = run.point.values.iter().cloned().collect();
        /// Simulated time, seconds; of a run in batches, when the last of them was complete.
        #[serde(deserialize_with = "number")]
        duration_s: f64 = run.outcome.ended_s, at 2;
        /// Sum of the flows' goodputs, bit/s.
        #[serde(deserialize_with = "number")]
        aggregate_goodput_bps: f64 = run.outcome.aggregate_goodput_bps, at 3;
        /// Jain's index of the goodputs of all flows over the measured interval, whatever their kind.
        #[serde(deserialize_with = "number")]
        jain: f64 = run.outcome.jain, at 4;
        /// Mean of Jain's index over windows of 2 s.
        #[serde(deserialize_with = "number")]
        jain_2s: f64 = run.outcome.jain_2s, at 5;
        /// Windows skipped because nothing was delivered in them.
        idle_windows: u32 = run.outcome.idle_windows, at 6;
        /// Retransmissions over distinct segments received, a ratio.
        #[serde(deserialize_with = "number")]
        retransmission_index: f64 = run.outcome.retransmission_index, at 7;
        /// Frames put on the air.
        frames: u64 = run.outcome.frames, at 8;
        /// The flows.
        flows: Vec<FlowRecord> = flows(run);
        /// Start of the measured interval, seconds.
        #[serde(deserialize_with = "number")]
        warmup_s: f64 = run.point.config.warmup.as_secs_f64();
        /// Hash of every transmission and delivery, in hexadecimal (JSON numbers end at 2^53).
        fingerprint: String = format!("{:016x}", run.outcome.fingerprint);
        /// The format of the line, [`line::FORMAT`].
        format: u32 = line::FORMAT;
        /// Frames that the MAC gave up at its retry limit.
        #[serde(skip_serializing_if = "Option::is_none")]
        mac_drops: Option<u64> = Some(run.outcome.counters.mac_drops);
        /// Unicast frames lost at their addressee to another frame that arrived at the same time.
        #[serde(skip_serializing_if = "Option::is_none")]
        collisions: Option<u64> = Some(run.outcome.counters.collisions);
        /// Packets and routing messages that an interface queue or its marker dropped.
        #[serde(skip_serializing_if = "Option::is_none")]
        queue_drops: Option<u64> = Some(run.outcome.counters.queue_drops);
        /// Route requests sent, forwarded ones included.
        #[serde(skip_serializing_if = "Option::is_none")]
        route_requests: Option<u64> = Some(run.outcome.counters.route_requests);
        /// Route replies sent, likewise.
        #[serde(skip_serializing_if = "Option::is_none")]
        route_replies: Option<u64> = Some(run.outcome.counters.route_replies);
        /// Route errors sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        route_errors: Option<u64> = Some(run.outcome.counters.route_errors);
        /// Searches for a route that a node began for a packet; repeated requests belong to the same search.
        #[serde(skip_serializing_if = "Option::is_none")]
        discoveries: Option<u64> = Some(run.outcome.counters.discoveries);
        /// The revision of the model that made it, [`meshpace_sim::MODEL_REVISION`]; 0 for what was measured on a real network.
        model: u32 = meshpace_sim::MODEL_REVISION;
        /// What each node lost and sent; only with `--per-node`.
        #[serde(skip_serializing_if = "Option::is_none")]
        nodes: Option<Vec<NodeRecord>> = None;
        /// The run in windows of time; only if the scenario asks for them.
        #[serde(skip_serializing_if = "Option::is_none")]
        series: Option<SeriesRecord> = run.outcome.series.as_ref().map(SeriesRecord::new);
        /// The run in batches of delivered packets; only if the scenario asks for them.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches: Option<Vec<BatchRecord>> =
            run.point.config.batches.map(|_| run.outcome.batches.iter().map(BatchRecord::new).collect());
        /// How well the machine kept the time; only for emulated runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        real_time: Option<Value> = None;
        /// The longest gap of a flow that is not starved, seconds: the scenario's `starved_after` times the measured interval.
        #[serde(skip_serializing_if = "Option::is_none")]
        starved_after_s: Option<f64> = Some(run.point.starved_after * run.outcome.measured_s);
        /// Flows that others starve: with data to send and a path, they delivered nothing, or nothing for longer than `starved_after_s`.
        #[serde(skip_serializing_if = "Option::is_none")]
        starved_flows: Option<usize> = None, at 26;
        /// Flows whose silence a missing path explains; they do not count as starved.
        #[serde(skip_serializing_if = "Option::is_none")]
        flows_without_path: Option<usize> = None;
        /// Jain's index of the transfers alone; only where a run has several of them beside flows of another kind. Kinds are transfers, files
        /// with pauses between them, and datagrams at a rate of their own: nobody wants the shares of different kinds to be equal.
        #[serde(skip_serializing_if = "Option::is_none")]
        jain_transfers: Option<f64> = None;
        /// Jain's index of the flows of files alone, likewise.
        #[serde(skip_serializing_if = "Option::is_none")]
        jain_files: Option<f64> = None;
        /// Jain's index of the flows of datagrams alone, likewise.
        #[serde(skip_serializing_if = "Option::is_none")]
        jain_datagrams: Option<f64> = None;
    }
}

columns! {
    /// One flow of a run.
    pub struct FlowRecord from of: SimulatedFlow<'_> {
        /// Its number.
        id: usize = of.id, at 10;
        /// Its name; only if the scenario gives it one.
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String> = of.name.map(str::to_owned), at 27;
        /// The node that sends.
        from: u16 = of.flow.from.0, at 11;
        /// The node that receives.
        to: u16 = of.flow.to.0, at 12;
        /// Hops between them at the end of the run.
        hops: u8 = of.outcome.hops, at 13;
        /// Its transport.
        transport: String = of.transport.to_owned(), at 14;
        /// Goodput: payload delivered in order in the measured interval, bit/s.
        #[serde(deserialize_with = "number")]
        goodput_bps: f64 = of.outcome.goodput_bps, at 15;
        /// In-order payload delivered in the measured interval, bytes.
        delivered_bytes: Option<u64> = Some(of.outcome.delivered_bytes), at 16;
        /// Data segments sent in the whole run.
        segments_sent: u64 = of.outcome.segments_sent, at 17;
        /// Those of them sent again.
        retransmissions: u64 = of.outcome.retransmissions, at 18;
        /// Expiries of the retransmission timer in the whole run; `null` if only the kernels of emulated programs know.
        timeouts: Option<u64> = Some(of.outcome.timeouts), at 19;
        /// Acknowledgements that the receiver sent; only where the receiver counts them.
        #[serde(skip_serializing_if = "Option::is_none")]
        acks_sent: Option<u64> = Some(of.outcome.acks_sent);
        /// Segments sent again over distinct segments received, both in the measured interval, a ratio.
        #[serde(deserialize_with = "number")]
        retransmission_index: f64 = of.outcome.retransmission_index;
        /// Share of the datagrams sent in the measured interval that had not arrived at its end, a ratio; only for UDP.
        #[serde(skip_serializing_if = "Option::is_none")]
        loss_ratio: Option<f64> = measured(of.outcome.loss_ratio), at 22;
        /// Mean RTT, seconds.
        #[serde(deserialize_with = "number")]
        rtt_mean_s: f64 = of.outcome.rtt_mean_s, at 20;
        /// Mean coefficient of variation of the RTT.
        #[serde(deserialize_with = "number")]
        cov_rtt: f64 = of.outcome.cov_rtt, at 21;
        /// Mean one-way delay of the packets with data that arrived in the measured interval, seconds; only for simulated runs.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        delay_mean_s: Option<f64> = Some(of.outcome.delay.mean_s);
        /// Median of those delays, seconds; quantiles are known to 1.6 %.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        delay_p50_s: Option<f64> = Some(of.outcome.delay.p50_s);
        /// What 95 % of them do not exceed, seconds.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        delay_p95_s: Option<f64> = Some(of.outcome.delay.p95_s), at 23;
        /// What 99 % of them do not exceed, seconds.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        delay_p99_s: Option<f64> = Some(of.outcome.delay.p99_s);
        /// Mean absolute difference of the delays of packets that arrive one after another (IPDV, RFC 3393), seconds.
        #[serde(deserialize_with = "known", skip_serializing_if = "Option::is_none")]
        jitter_s: Option<f64> = Some(of.outcome.delay.jitter_s);
        /// The longest time without a delivered byte while the flow had data to send, within the measured interval and until its application
        /// stops, seconds; 0 if it never had any. Nothing is there to send between files. Only for simulated runs.
        #[serde(skip_serializing_if = "Option::is_none")]
        longest_gap_s: Option<f64> = Some(of.outcome.longest_gap_s), at 24;
        /// What the pacing estimator averaged; `null` in JSON for a flow without adaptive pacing.
        pacing: Option<PacingRecord> = is_paced(&of.flow.transport).then(|| PacingRecord::new(of.outcome));
        /// Files that arrived within the measured interval; only for http traffic.
        #[serde(skip_serializing_if = "Option::is_none")]
        completions: Option<Vec<CompletionRecord>> = (!of.outcome.transferring_s.is_nan())
            .then(|| of.outcome.completions.iter().map(CompletionRecord::of).collect());
        /// Seconds of the measured interval in which a file was under way; only for http traffic.
        #[serde(skip_serializing_if = "Option::is_none")]
        transferring_s: Option<f64> = measured(of.outcome.transferring_s);
        /// Seconds of the measured interval in which the source knew no route; only where nodes move.
        #[serde(skip_serializing_if = "Option::is_none")]
        time_without_route_s: Option<f64> = measured(of.outcome.time_without_route_s);
        /// Seconds of the measured interval without a path of links between the ends; only where nodes move, or where there is no path at all.
        #[serde(skip_serializing_if = "Option::is_none")]
        time_without_path_s: Option<f64> = measured(of.outcome.time_without_path_s);
        /// The longest gap (`longest_gap_s`) without its time without a path, seconds; only where nodes move, or where there is no path at all.
        #[serde(skip_serializing_if = "Option::is_none")]
        longest_gap_with_path_s: Option<f64> = measured(of.outcome.longest_gap_with_path_s);
        /// "nothing" or "gap" if others starve the flow: with data to send and a path it delivered nothing, or nothing for long.
        #[serde(skip_serializing_if = "Option::is_none")]
        starved: Option<String> = None, at 25;
        /// "nothing" or "gap" if the flow was silent like a starved one, and a missing path explains that.
        #[serde(skip_serializing_if = "Option::is_none")]
        without_path: Option<String> = None;
    }
}

columns! {
    /// A file that arrived.
    pub struct CompletionRecord from file: &Completion {
        /// When its application began to connect or to write, seconds.
        #[serde(deserialize_with = "number")]
        start_s: f64 = file.start.as_secs_f64();
        /// When its last byte arrived, seconds.
        #[serde(deserialize_with = "number")]
        end_s: f64 = file.end.as_secs_f64();
        /// Its size.
        bytes: u64 = file.bytes;
    }
}

columns! {
    /// Means of the pacing estimator over the measured interval.
    pub struct PacingRecord {
        /// Smoothed n-hop delay, seconds.
        #[serde(deserialize_with = "number")]
        delay_s: f64;
        /// Coefficient of variation.
        #[serde(deserialize_with = "number")]
        cov: f64;
        /// Mean absolute deviation over mean.
        #[serde(deserialize_with = "number")]
        mean_rel_abs_dev: f64;
        /// Interval, seconds.
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

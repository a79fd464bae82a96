//! The record of a run: its results, as JSON, CSV or a row of a table.

pub mod csv;
pub mod directory;
pub mod fields;
pub mod line;
pub mod merge;
pub mod nodes;
pub mod parquet;
mod pieces;
mod places;
pub mod silence;
pub mod store;
pub mod summary;
pub mod table;
mod write;

pub use crate::words::{plain, told, told_values};
pub use nodes::NodeRecord;
pub use pieces::{BatchRecord, FlowPiece, FlowSeries, LinkSeries, SeriesRecord};
pub use write::{is_kept, make_directory, write_whole, write_whole_by};

/// Records as a table for spreadsheets.
pub const TABLE: &str = "records.csv";
/// The same with types, for analysis.
pub const PARQUET: &str = "records.parquet";

use crate::summary::starvation::{self, Starved};
use meshpace_scenario::{Point, Scenario};
use meshpace_sim::{FlowOutcome, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// One run. The order of the fields is that of the JSON line. A value that could not be measured is NaN here and `null`
/// there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The scenario's title, or its file's name without extension.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// The values of the sweep.
    pub point: Map<String, Value>,
    /// Simulated time, seconds; of a run in batches, when the last of them was complete.
    #[serde(deserialize_with = "number")]
    pub duration_s: f64,
    /// Sum of the flows' goodputs, bit/s.
    #[serde(deserialize_with = "number")]
    pub aggregate_goodput_bps: f64,
    /// Jain's index of the goodputs over the measured interval.
    #[serde(deserialize_with = "number")]
    pub jain: f64,
    /// Mean of Jain's index over windows of 2 s.
    #[serde(deserialize_with = "number")]
    pub jain_2s: f64,
    /// Windows skipped because nothing was delivered in them.
    pub idle_windows: u32,
    /// Retransmissions over distinct segments received, a ratio.
    #[serde(deserialize_with = "number")]
    pub retransmission_index: f64,
    /// Frames put on the air.
    pub frames: u64,
    /// The flows.
    pub flows: Vec<FlowRecord>,
    /// Start of the measured interval, seconds.
    #[serde(deserialize_with = "number")]
    pub warmup_s: f64,
    /// Hash of every transmission and delivery, in hexadecimal (JSON numbers end at 2^53).
    pub fingerprint: String,
    /// The format of the line, [`line::FORMAT`].
    pub format: u32,
    /// Losses, and the messages that routing sent; only for simulated runs.
    #[serde(flatten)]
    pub network: Option<NetworkRecord>,
    /// The revision of the model that made it, [`meshpace_sim::MODEL_REVISION`]; 0 for what was measured on a real network.
    pub model: u32,
    /// What each node lost and sent; only with `--per-node`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<Vec<NodeRecord>>,
    /// The run in windows of time; only if the scenario asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<SeriesRecord>,
    /// The run in batches of delivered packets; only if the scenario asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<Vec<BatchRecord>>,
}

/// One flow of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FlowRecord {
    /// Its number.
    pub id: usize,
    /// Its name; only if the scenario gives it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The node that sends.
    pub from: u16,
    /// The node that receives.
    pub to: u16,
    /// Hops between them at the end of the run.
    pub hops: u8,
    /// Its transport.
    pub transport: String,
    /// Goodput: payload delivered in order in the measured interval, bit/s.
    #[serde(deserialize_with = "number")]
    pub goodput_bps: f64,
    /// In-order payload delivered in the measured interval, bytes.
    pub delivered_bytes: u64,
    /// Data segments sent in the whole run.
    pub segments_sent: u64,
    /// Those of them sent again.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer in the whole run.
    pub timeouts: u64,
    /// Acknowledgements that the receiver sent; only where the receiver counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acks_sent: Option<u64>,
    /// Segments sent again over distinct segments received, both in the measured interval, a ratio.
    #[serde(deserialize_with = "number")]
    pub retransmission_index: f64,
    /// Share of the datagrams sent in the measured interval that had not arrived at its end, a ratio; only for UDP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_ratio: Option<f64>,
    /// Mean RTT, seconds.
    #[serde(deserialize_with = "number")]
    pub rtt_mean_s: f64,
    /// Mean coefficient of variation of the RTT.
    #[serde(deserialize_with = "number")]
    pub cov_rtt: f64,
    /// One-way delays of data; only for simulated runs.
    #[serde(flatten)]
    pub delay: Option<DelayRecord>,
    /// The longest time without a delivered byte while the flow had data to send, within the measured interval and until its application
    /// stops, seconds; 0 if it never had any. Nothing is there to send between files. Only for simulated runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_gap_s: Option<f64>,
    /// What the pacing estimator averaged; `null` in JSON for a flow without adaptive pacing.
    pub pacing: Option<PacingRecord>,
    /// Files that arrived within the measured interval; only for http traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completions: Option<Vec<CompletionRecord>>,
    /// Seconds of the measured interval in which a file was under way; only for http traffic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transferring_s: Option<f64>,
    /// Seconds of the measured interval in which the source knew no route; only where nodes move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_without_route_s: Option<f64>,
    /// Seconds of the measured interval without a path of links between the ends; only where nodes move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_without_path_s: Option<f64>,
}

/// Losses and routing messages of a whole run, at all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NetworkRecord {
    /// Frames that the MAC gave up at its retry limit.
    pub mac_drops: u64,
    /// Unicast frames lost at their addressee to another frame that arrived at the same time.
    pub collisions: u64,
    /// Packets and routing messages that an interface queue or its marker dropped.
    pub queue_drops: u64,
    /// Route requests sent, forwarded ones included.
    pub route_requests: u64,
    /// Route replies sent, likewise.
    pub route_replies: u64,
    /// Route errors sent.
    pub route_errors: u64,
    /// Searches for a route that a node began for a packet; repeated requests belong to the same search.
    pub discoveries: u64,
}

impl From<meshpace_sim::engine::Counters> for NetworkRecord {
    fn from(counters: meshpace_sim::engine::Counters) -> NetworkRecord {
        let meshpace_sim::engine::Counters {
            mac_drops,
            collisions,
            internal_collisions: _,
            queue_drops,
            route_requests,
            route_replies,
            route_errors,
            discoveries,
        } = counters;
        NetworkRecord { mac_drops, collisions, queue_drops, route_requests, route_replies, route_errors, discoveries }
    }
}

/// One-way delays of the packets with data that arrived in the measured interval, from transport to transport, seconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DelayRecord {
    /// Mean one-way delay of the packets with data that arrived in the measured interval, seconds; only for simulated runs.
    #[serde(deserialize_with = "number")]
    pub delay_mean_s: f64,
    /// Median of those delays, seconds; quantiles are known to 1.6 %.
    #[serde(deserialize_with = "number")]
    pub delay_p50_s: f64,
    /// What 95 % of them do not exceed, seconds.
    #[serde(deserialize_with = "number")]
    pub delay_p95_s: f64,
    /// What 99 % of them do not exceed, seconds.
    #[serde(deserialize_with = "number")]
    pub delay_p99_s: f64,
    /// Mean absolute difference of the delays of packets that arrive one after another (IPDV, RFC 3393), seconds.
    #[serde(deserialize_with = "number")]
    pub jitter_s: f64,
}

/// A file that arrived.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CompletionRecord {
    /// When its application began to connect or to write, seconds.
    #[serde(deserialize_with = "number")]
    pub start_s: f64,
    /// When its last byte arrived, seconds.
    #[serde(deserialize_with = "number")]
    pub end_s: f64,
    /// Its size.
    pub bytes: u64,
}

/// Means of the pacing estimator over the measured interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PacingRecord {
    /// Smoothed n-hop delay, seconds.
    #[serde(deserialize_with = "number")]
    pub delay_s: f64,
    /// Coefficient of variation.
    #[serde(deserialize_with = "number")]
    pub cov: f64,
    /// Mean absolute deviation over mean.
    #[serde(deserialize_with = "number")]
    pub mean_rel_abs_dev: f64,
    /// Interval, seconds.
    #[serde(deserialize_with = "number")]
    pub interval_s: f64,
}

impl Record {
    /// Starvation of one of its flows.
    pub fn starved(&self, flow: &FlowRecord) -> Option<Starved> {
        starvation::starved(Some(flow.delivered_bytes), flow.longest_gap_s, self.duration_s - self.warmup_s)
    }

    /// The record of a run.
    pub fn new(scenario: &Scenario, point: &Point, seed: u64, outcome: &Outcome) -> Record {
        // The run was made of the same draw, so there is one.
        let drawn = point.drawn(seed).unwrap_or(std::borrow::Cow::Borrowed(point));
        let labels = point.transports.iter().zip(&point.names);
        let flows = drawn.config.flows.iter().zip(labels).zip(&outcome.flows).enumerate();
        Record {
            scenario: scenario.name.clone(),
            seed,
            point: point.values.iter().cloned().collect(),
            duration_s: outcome.ended_s,
            aggregate_goodput_bps: outcome.aggregate_goodput_bps,
            jain: outcome.jain,
            jain_2s: outcome.jain_2s,
            idle_windows: outcome.idle_windows,
            retransmission_index: outcome.retransmission_index,
            frames: outcome.frames,
            flows: flows.map(|(id, ((flow, labels), outcome))| FlowRecord::new(id, flow, labels, outcome)).collect(),
            warmup_s: point.config.warmup.as_secs_f64(),
            fingerprint: format!("{:016x}", outcome.fingerprint),
            format: line::FORMAT,
            network: Some(outcome.counters.into()),
            model: meshpace_sim::MODEL_REVISION,
            nodes: None,
            series: outcome.series.as_ref().map(SeriesRecord::new),
            batches: point.config.batches.map(|_| outcome.batches.iter().map(BatchRecord::new).collect()),
        }
    }

    /// The line of JSON, with its checksum and its newline.
    pub fn json_line(&self) -> String {
        line::seal(&serde_json::to_string(self).expect("a record has nothing that JSON lacks"))
    }

    /// The record in a line, without its newline.
    ///
    /// # Errors
    /// A sentence on what is wrong with the line.
    pub fn from_line(line: &str) -> Result<Record, String> {
        line::open(line).map_err(str::to_owned)?;
        serde_json::from_str(line).map_err(|error| format!("is none of this format: {error}"))
    }
}

/// A number, NaN here where it could not be measured and is `null` there.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Option::<f64>::deserialize(deserializer).map(|number| number.unwrap_or(f64::NAN))
}

impl FlowRecord {
    /// Name of the flow for people: its own, or "flow 3".
    pub fn told(&self) -> String {
        self.name.clone().unwrap_or_else(|| format!("flow {}", self.id))
    }

    fn new(
        id: usize,
        flow: &meshpace_sim::Flow,
        (transport, name): (&String, &Option<String>),
        outcome: &FlowOutcome,
    ) -> FlowRecord {
        let pacing = outcome.pacing;
        FlowRecord {
            id,
            name: name.clone(),
            from: flow.from.0,
            to: flow.to.0,
            hops: outcome.hops,
            transport: transport.clone(),
            goodput_bps: outcome.goodput_bps,
            delivered_bytes: outcome.delivered_bytes,
            segments_sent: outcome.segments_sent,
            retransmissions: outcome.retransmissions,
            timeouts: outcome.timeouts,
            acks_sent: Some(outcome.acks_sent),
            retransmission_index: outcome.retransmission_index,
            loss_ratio: measured(outcome.loss_ratio),
            rtt_mean_s: outcome.rtt_mean_s,
            cov_rtt: outcome.cov_rtt,
            delay: Some(DelayRecord {
                delay_mean_s: outcome.delay.mean_s,
                delay_p50_s: outcome.delay.p50_s,
                delay_p95_s: outcome.delay.p95_s,
                delay_p99_s: outcome.delay.p99_s,
                jitter_s: outcome.delay.jitter_s,
            }),
            longest_gap_s: Some(outcome.longest_gap_s),
            pacing: is_paced(flow).then_some(PacingRecord {
                delay_s: pacing.delay_s,
                cov: pacing.cov,
                mean_rel_abs_dev: pacing.mean_rel_abs_dev,
                interval_s: pacing.interval_s,
            }),
            completions: (!outcome.transferring_s.is_nan()).then(|| completions(outcome)),
            transferring_s: measured(outcome.transferring_s),
            time_without_route_s: measured(outcome.time_without_route_s),
            time_without_path_s: measured(outcome.time_without_path_s),
        }
    }
}

fn measured(value: f64) -> Option<f64> {
    (!value.is_nan()).then_some(value)
}

fn completions(outcome: &FlowOutcome) -> Vec<CompletionRecord> {
    let record = |file: &meshpace_sim::traffic::Completion| CompletionRecord {
        start_s: file.start.as_secs_f64(),
        end_s: file.end.as_secs_f64(),
        bytes: file.bytes,
    };
    outcome.completions.iter().map(record).collect()
}

fn is_paced(flow: &meshpace_sim::Flow) -> bool {
    use meshpace_transport::{Config, pacing};
    match &flow.transport {
        Config::Tcp(tcp) => matches!(tcp.pacing, pacing::Config::Adaptive(_)),
        Config::Tpa(tpa) => matches!(tpa.pacing, pacing::Config::Adaptive(_)),
        Config::Udp(_) | Config::Train(_) | Config::Flush(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_scenario::Source;
    use std::path::Path;

    #[test]
    fn a_record_comes_back_from_its_line_to_the_bit() {
        // A flow that delivers, one whose answers are lost on the way, a series, watched links, batches.
        let text = "duration = '6 s'\nseries = '1 s'\nwatch = [{ node = 0, toward = 2 }]\ntopology.hops = 3\n\
            batches = { packets = 5, count = 3 }\n[[flow]]\nfrom = 0\nto = 3\ntransport = 'tcp-ap'\n[[flow]]\nfrom = 3\n\
            to = 0\ntraffic = 'http'\npause = '1 s'\nstart = '5.99 s'\n";
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        let scenario =
            Scenario::read(source, Path::new("."), "test").unwrap_or_else(|why| panic!("{}", why.render(false)));
        let outcome = meshpace_sim::run(&scenario.points[0].config, 1);
        let record = Record::new(&scenario, &scenario.points[0], 1, &outcome);
        let line = record.json_line();
        assert!(line.contains("null"), "something was not measured: {line}");
        let back = Record::from_line(line.trim_end()).unwrap();
        assert_eq!(back.json_line(), line);
    }
}

//! A recording: the events of a run as a stream of lines, written during the run and read by
//! viewers and scripts. `docs/record-stream.md` describes the format.

mod read;
mod write;

pub use read::{Event, Reader};
pub use write::{Changes, Writer, record};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Latest format that is read.
pub const FORMAT: u32 = 2;
/// Format of a run of the simulator. All of its flows are known when it begins.
const OF_RUN: u32 = 1;
/// Format of an emulation. Its flows begin when programs start to communicate.
const OF_EMULATION: u32 = 2;
/// Name of the file type in the header.
const STREAM: &str = "meshpace";

/// First line of the stream: what was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Always "meshpace".
    pub stream: String,
    /// Number of the format: the first format that has all kinds of lines in the file.
    pub format: u32,
    /// [`meshpace_sim::MODEL_REVISION`] of the simulator that made the stream.
    pub model: u32,
    /// Version of the program.
    pub version: String,
    /// Title of the scenario.
    pub scenario: String,
    /// Seed of the run.
    pub seed: u64,
    /// Values of the sweep.
    pub point: Map<String, Value>,
    /// Length of the run, ns.
    pub duration_ns: u64,
    /// Start of the measured interval, ns.
    pub warmup_ns: u64,
    /// Time between two samples, ns.
    pub sample_ns: u64,
    /// Positions of the nodes at time zero, metres.
    pub nodes: Vec<[f64; 2]>,
    /// Pairs of nodes that can exchange frames at time zero.
    pub links: Vec<[usize; 2]>,
    /// Flows that are known when the stream begins.
    pub flows: Vec<FlowHeader>,
}

/// A flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowHeader {
    /// Number of the flow.
    pub id: usize,
    /// Name of the flow. `None` if the scenario does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Source node.
    pub from: u16,
    /// Destination node.
    pub to: u16,
    /// Name of the transport.
    pub transport: String,
}

#[cfg(test)]
mod tests;

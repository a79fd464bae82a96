//! A recording: what happened in a run as a stream of lines, written during the run and read by viewers and scripts.
//! `docs/record-stream.md` describes the format.

mod read;
mod write;

pub use read::{Event, Reader};
pub use write::{Changes, Writer, record};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The latest format that is read.
pub const FORMAT: u32 = 2;
/// The format of a run of the simulator, whose flows are all known when it begins.
const OF_RUN: u32 = 1;
/// The format of an emulation, whose flows begin when programs talk.
const OF_EMULATION: u32 = 2;
/// Kind of the file.
const STREAM: &str = "meshpace";

/// The first line: what was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Always "meshpace".
    pub stream: String,
    /// The format: the first that has all kinds of lines of the file.
    pub format: u32,
    /// [`meshpace_sim::MODEL_REVISION`] of the simulator that made it.
    pub model: u32,
    /// Version of the program.
    pub version: String,
    /// The scenario's title.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// The values of the sweep.
    pub point: Map<String, Value>,
    /// Length of the run.
    pub duration_ns: u64,
    /// Start of the measured interval.
    pub warmup_ns: u64,
    /// Time between two samples.
    pub sample_ns: u64,
    /// Places at time zero, metres.
    pub nodes: Vec<[f64; 2]>,
    /// Pairs of nodes that can exchange frames at time zero.
    pub links: Vec<[usize; 2]>,
    /// The flows.
    pub flows: Vec<FlowHeader>,
}

/// A flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FlowHeader {
    /// Its number.
    pub id: usize,
    /// Its name; only if the scenario gives it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its source.
    pub from: u16,
    /// Its destination.
    pub to: u16,
    /// Its transport.
    pub transport: String,
}

#[cfg(test)]
mod tests;

//! Checked configuration of a run.

use crate::mobility::Mobility;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rate, Time, parameters};
use meshpace_mesh::MeshConfig;
use meshpace_mesh::config::Position;

/// One point of a scenario: all parameters of a run except the seed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Config {
    /// Simulated time.
    pub duration: Duration,
    /// Start of the measured interval, which ends with `duration`.
    pub warmup: Duration,
    /// Positions of the nodes at time zero, by node number. Under random waypoint only their number
    /// matters.
    pub positions: Vec<Position>,
    /// Movement of the nodes.
    pub mobility: Mobility,
    /// Links over which frames are accepted, each in both directions, as if every node ran a
    /// firewall with the addresses of its neighbours. `None` accepts all frames.
    pub firewall: Option<Vec<(NodeId, NodeId)>>,
    /// Configuration of radio, MAC, link layer and routing.
    pub mesh: MeshConfig,
    /// Flows, by flow number.
    pub flows: Vec<Flow>,
    /// Traces that flows replay, each in the order of time.
    pub traces: Vec<Vec<TraceWrite>>,
    /// Length of the windows of the time series, which are measured one by one from time zero;
    /// `None` without a series.
    pub series: Option<Duration>,
    /// Links whose state is recorded at the end of every window of the series.
    pub watch: Vec<Watch>,
    /// Batches of delivered packets that are measured one by one from `warmup` on; `None` without
    /// batches. The run ends with the last batch, or with `duration` if that is earlier.
    pub batches: Option<Batches>,
}

/// The link that a node uses towards a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// Node whose link is recorded.
    pub node: NodeId,
    /// Destination of the route over the link.
    pub toward: NodeId,
}

parameters! {
    /// Batches of a run.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Batches {
        /// packets of a batch: data segments of all flows together that arrive for the first time
        packets: u64 = 5000 => whole("packets", 1, 1_000_000_000), Basic, "AP05, section 5";
        /// number of batches; the first one is left out of the results
        count: u32 = 11 => whole("batches", 2, 10_000), Basic, "AP05, section 5";
    }
}

/// One flow from a node to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Node that sends the data.
    pub from: NodeId,
    /// Node that receives the data.
    pub to: NodeId,
    /// Transport with its parameters.
    pub transport: meshpace_transport::Config,
    /// Traffic of the application.
    pub traffic: Traffic,
    /// Time at which the application starts.
    pub start: Time,
    /// Width of the random delay that is added to `start`: uniform on [0, `start_jitter`), drawn
    /// from the flow's own stream.
    pub start_jitter: Duration,
    /// Time at which the application stops writing; `None` if it does not stop before the end of
    /// the run.
    pub stop: Option<Time>,
    /// Code point of differentiated services of its packets in both directions, 0 to 63.
    pub dscp: u8,
}

/// Traffic of an application.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Traffic {
    /// Bulk transfer: there is always data to send.
    Ftp,
    /// One datagram of the flow's segment size every `8 * size / rate`.
    Cbr {
        /// Rate of the payload.
        rate: Rate,
    },
    /// Like `Cbr`, but each write is later than planned by a time uniform on [0, `jitter`).
    FixedRate {
        /// Rate of the payload.
        rate: Rate,
        /// Largest delay of a write; at most the time between two writes.
        jitter: Duration,
    },
    /// Files with pauses in between.
    Http {
        /// Mean size of a file in bytes. The sizes have a Pareto distribution.
        mean_size: f64,
        /// Shape of that distribution, above 1.
        shape: f64,
        /// Mean of the exponential pause from the arrival of a file to the start of the next.
        mean_pause: Duration,
        /// True if one connection serves all files; false if each file has its own connection.
        persistent: bool,
    },
    /// Replay of a recorded trace.
    Trace {
        /// Index of the trace in [`Config::traces`].
        number: u16,
    },
}

/// One write of a recorded trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceWrite {
    /// Time of the write from the start of the flow.
    pub after: Duration,
    /// Size of the write in bytes.
    pub bytes: u64,
}

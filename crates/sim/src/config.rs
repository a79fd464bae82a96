//! A checked scenario, ready to run.

use crate::mobility::Mobility;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rate, Time, parameters};
use meshpace_mesh::MeshConfig;
use meshpace_mesh::config::Position;

/// One point of a scenario: everything a run needs besides the seed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Config {
    /// Simulated time.
    pub duration: Duration,
    /// The start of the measured interval, which ends with `duration`.
    pub warmup: Duration,
    /// Where the nodes are at time zero, by node number; under random waypoint only their number counts.
    pub positions: Vec<Position>,
    /// Movement of the nodes.
    pub mobility: Mobility,
    /// The links over which frames are accepted, each in both directions, as if every node ran a firewall that knows its
    /// neighbours' addresses; `None` accepts all.
    pub firewall: Option<Vec<(NodeId, NodeId)>>,
    /// Radio, MAC and routing.
    pub mesh: MeshConfig,
    /// The flows, by flow number.
    pub flows: Vec<Flow>,
    /// The traces that flows replay, each in the order of time.
    pub traces: Vec<Vec<TraceWrite>>,
    /// Windows of time that are measured one by one, from time zero on.
    pub series: Option<Duration>,
    /// Links whose state is noted at the end of every window of the series.
    pub watch: Vec<Watch>,
    /// Batches of delivered packets that are measured one by one from `warmup` on; the run ends with the last of them,
    /// or with `duration` if that is earlier.
    pub batches: Option<Batches>,
}

/// The link that a node uses toward a destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The node.
    pub node: NodeId,
    /// The destination.
    pub toward: NodeId,
}

parameters! {
    /// Batches of a run.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct Batches {
        /// packets of a batch: data segments, of all flows together, that arrive for the first time
        packets: u64 = 5000 => whole("packets", 1, 1_000_000_000), Basic, "AP05, section 5";
        /// batches, of which the first is left out
        count: u32 = 11 => whole("batches", 2, 10_000), Basic, "AP05, section 5";
    }
}

/// One flow from a node to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// The node that sends the data.
    pub from: NodeId,
    /// The node that receives it.
    pub to: NodeId,
    /// The transport with its parameters.
    pub transport: meshpace_transport::Config,
    /// Traffic of the application.
    pub traffic: Traffic,
    /// Time at which the application starts.
    pub start: Time,
    /// A delay uniform on [0, this) is added to `start`, drawn from the flow's own stream.
    pub start_jitter: Duration,
    /// Time at which the application stops writing.
    pub stop: Option<Time>,
    /// The code point of differentiated services of its packets, in both directions, 0 to 63.
    pub dscp: u8,
}

/// Traffic of an application.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Traffic {
    /// Always data to send.
    Ftp,
    /// One datagram of the flow's segment size every `8 * size / rate`.
    Cbr {
        /// Payload rate.
        rate: Rate,
    },
    /// As `Cbr`, each write later than planned by a time uniform on [0, `jitter`).
    FixedRate {
        /// Payload rate.
        rate: Rate,
        /// Longest delay of a write; not above the time between two.
        jitter: Duration,
    },
    /// Files with pauses in between.
    Http {
        /// Mean size of a file, bytes; the sizes have a Pareto distribution.
        mean_size: f64,
        /// Shape of that distribution, above 1.
        shape: f64,
        /// Mean of the exponential pause from a file's arrival to the start of the next.
        mean_pause: Duration,
        /// True if one connection serves all files, instead of one each.
        persistent: bool,
    },
    /// A recorded trace.
    Trace {
        /// Its place in [`Config::traces`].
        number: u16,
    },
}

/// One write of a recorded trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceWrite {
    /// Time of the write from the start of the flow.
    pub after: Duration,
    /// Size, bytes.
    pub bytes: u64,
}

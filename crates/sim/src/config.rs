//! A checked scenario, ready to run.

use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::MeshConfig;
use meshpace_mesh::config::Position;

/// One point of a scenario: everything a run needs besides the seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Simulated time.
    pub duration: Duration,
    /// The start of the measured interval, which ends with `duration`.
    pub warmup: Duration,
    /// Where the nodes are, by node number.
    pub positions: Vec<Position>,
    /// Radio, MAC and routing.
    pub mesh: MeshConfig,
    /// The flows, by flow number.
    pub flows: Vec<Flow>,
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
    /// What the application does.
    pub traffic: Traffic,
    /// When the application starts.
    pub start: Time,
    /// A delay uniform on [0, this) is added to `start`, drawn from the flow's own stream.
    pub start_jitter: Duration,
    /// When the application stops writing.
    pub stop: Option<Time>,
}

/// What an application writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// Always data to send.
    Ftp,
    /// One datagram of the flow's segment size every `8 * size / rate`.
    Cbr {
        /// Payload rate.
        rate: Rate,
    },
}

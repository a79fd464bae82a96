//! The configuration of a mesh: checked values of a scenario. Each layer defines its part.

pub use crate::link::config::{Jitter, LinkConfig, MarkerConfig, QueueConfig, Repeats};
pub use crate::mac::config::{EdcaConfig, HtConfig, MacConfig, MacProfile, RetryLimits, RtsPolicy};
pub use crate::position::Position;
pub use crate::radio::config::{Propagation, RadioConfig, RateControl, Reception};
pub use crate::radio::plcp::Preamble;
pub use crate::routing::aodv::{AodvConfig, AodvDetection, LocalRepair};
pub use crate::routing::config::RoutingConfig;
pub use crate::routing::olsr::{OlsrConfig, OlsrMetric};

/// Everything below the transport.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MeshConfig {
    /// The radio.
    pub radio: RadioConfig,
    /// The MAC.
    pub mac: MacConfig,
    /// The routing protocol.
    pub routing: RoutingConfig,
    /// The link layer between routing and MAC.
    pub link: LinkConfig,
}

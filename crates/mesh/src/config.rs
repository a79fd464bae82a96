//! Configuration of a mesh: the checked values of a scenario. Each layer defines its part.

pub use crate::link::config::{Jitter, LinkConfig, MarkerConfig, QueueConfig, Repeats};
pub use crate::mac::config::{EdcaConfig, HtConfig, MacConfig, MacProfile, RetryLimits, RtsPolicy};
pub use crate::position::Position;
pub use crate::radio::config::{Propagation, RadioConfig, RateControl, Reception};
pub use crate::radio::plcp::Preamble;
pub use crate::routing::aodv::{AodvConfig, AodvDetection, LocalRepair};
pub use crate::routing::config::RoutingConfig;
pub use crate::routing::olsr::{OlsrConfig, OlsrMetric};

/// Configuration of everything below the transport.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MeshConfig {
    /// Parameters of the radio.
    pub radio: RadioConfig,
    /// Parameters of the MAC.
    pub mac: MacConfig,
    /// Parameters of the routing protocol.
    pub routing: RoutingConfig,
    /// Parameters of the link layer between routing and MAC.
    pub link: LinkConfig,
}

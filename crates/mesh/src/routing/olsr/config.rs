//! The configuration of OLSR.

use crate::routing::protocol::RoutingParameters;

/// What OLSR minimises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OlsrMetric {
    /// The number of hops (RFC 3626).
    #[default]
    Hops,
    /// The expected number of transmissions: the sum over links of 1 / (d_f d_r), d_f and d_r being the delivery ratios of
    /// HELLOs in the two directions.
    Etx,
}

/// How OLSR is run: hysteresis off; links are lost when three HELLOs were missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OlsrConfig {
    /// What makes a path short.
    pub metric: OlsrMetric,
    /// Whether the MAC's failures also end a link (RFC 3626, section 13).
    pub link_layer: bool,
}

impl RoutingParameters for OlsrConfig {}

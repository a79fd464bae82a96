//! The configuration of OLSR.

use crate::routing::protocol::RoutingParameters;
use meshpace_core::{parameters, words};

/// Metric that OLSR minimises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OlsrMetric {
    /// The number of hops (RFC 3626).
    #[default]
    Hops,
    /// The expected number of transmissions: the sum over links of 1 / (d_f d_r), d_f and d_r being the delivery ratios of
    /// HELLOs in the two directions.
    Etx,
}

words! { OlsrMetric: "hops" = Hops, "etx" = Etx }

parameters! {
    /// Parameters of OLSR: hysteresis off; links are lost when three HELLOs were missed.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct OlsrConfig {
        /// what OLSR minimizes
        metric: OlsrMetric = OlsrMetric::Hops => choice(OlsrMetric::WORDS), Basic,
            "RFC 3626; De Couto et al., MobiCom 2003 (etx)";
    }
    others {
        /// True if the MAC's failures also end a link (RFC 3626, section 13).
        link_layer: bool = false;
    }
}

impl RoutingParameters for OlsrConfig {}

//! Configuration of OLSR.

use crate::routing::protocol::RoutingParameters;
use meshpace_core::{parameters, words};

/// Metric that OLSR minimises.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OlsrMetric {
    /// Number of hops (RFC 3626).
    #[default]
    Hops,
    /// Expected number of transmissions: the sum over links of 1 / (d_f d_r), where d_f and d_r are
    /// the delivery ratios of HELLOs in the two directions.
    Etx,
}

words! { OlsrMetric: "hops" = Hops, "etx" = Etx }

parameters! {
    /// Parameters of OLSR. Hysteresis is off; a link is lost when three HELLOs were missed.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct OlsrConfig {
        /// metric that OLSR minimizes
        metric: OlsrMetric = OlsrMetric::Hops => choice(OlsrMetric::WORDS), Basic,
            "RFC 3626; De Couto et al., MobiCom 2003 (etx)";
    }
    others {
        /// True if a failure reported by the MAC also ends a link (RFC 3626, section 13).
        link_layer: bool = false;
    }
}

impl RoutingParameters for OlsrConfig {}

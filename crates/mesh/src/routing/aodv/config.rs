//! The configuration of AODV.

use super::ACTIVE_ROUTE_TIMEOUT;
use super::search::NETWORK_DIAMETER;
use crate::routing::protocol::RoutingParameters;
use meshpace_core::{Duration, parameters, words};

/// Reaction of AODV when a link towards a near destination breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LocalRepair {
    /// As compiled into ns-2.35: the RREQ keeps the old sequence number, so neighbours answer with stale routes.
    #[default]
    Ns2,
    /// RFC 3561, section 6.12: the RREQ asks for a newer sequence number.
    Rfc3561,
    /// The node sends a RERR and leaves the repair to the source.
    Off,
}

/// Detection of lost links by AODV.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AodvDetection {
    /// The MAC gave up a data packet at its retry limit.
    #[default]
    LinkLayer,
    /// Two HELLOs of the neighbour were missed (RFC 3561, section 6.9).
    Hello,
    /// Either.
    Both,
}

words! { LocalRepair: "ns2" = Ns2, "rfc3561" = Rfc3561, "off" = Off }
words! { AodvDetection: "link-layer" = LinkLayer, "hello" = Hello, "both" = Both }

parameters! {
    /// Parameters of AODV.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct AodvConfig {
        /// how AODV mends a route near its end
        local_repair: LocalRepair = LocalRepair::Ns2 => choice(LocalRepair::WORDS), Basic, "RFC 3561, 6.12; ns-2.35";
        /// how a lost neighbour is noticed; HELLOs also teach neighbours
        detection: AodvDetection = AodvDetection::LinkLayer
            => choice(AodvDetection::WORDS).or("link-layer under AODV, hello under OLSR"), Basic, "RFC 3561, 6.10";
        /// how long AODV remembers a lost route at least, for its sequence number, and mostly at most twice as long
        delete_period: Option<Duration> = None => TIME.from(ACTIVE_ROUTE_TIMEOUT.0 as f64 / 1e9).or("for ever, as ns-2.35"), Basic,
            "RFC 3561, section 10";
    }
}

impl AodvConfig {
    /// Link-layer detection, and no route is ever forgotten.
    pub const fn repairing(local_repair: LocalRepair) -> Self {
        AodvConfig { local_repair, detection: AodvDetection::LinkLayer, delete_period: None }
    }
}

/// ns-2 sets the network diameter.
impl RoutingParameters for AodvConfig {
    const TIME_TO_LIVE: u8 = NETWORK_DIAMETER;
}

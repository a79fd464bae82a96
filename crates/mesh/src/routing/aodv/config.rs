//! Configuration of AODV.

use super::ACTIVE_ROUTE_TIMEOUT;
use super::search::NETWORK_DIAMETER;
use crate::routing::protocol::RoutingParameters;
use meshpace_core::{Duration, parameters, words};

/// Reaction of AODV when a link breaks near the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LocalRepair {
    /// Behaviour compiled into ns-2.35: the RREQ keeps the old sequence number, so neighbours
    /// answer with stale routes.
    #[default]
    Ns2,
    /// RFC 3561, section 6.12: the RREQ requests a newer sequence number.
    Rfc3561,
    /// The node sends a RERR and leaves the repair to the source.
    Off,
}

/// Method by which AODV detects lost links.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AodvDetection {
    /// A link is lost when the MAC gives up a data packet at its retry limit.
    #[default]
    LinkLayer,
    /// A link is lost when two HELLOs of the neighbour were missed (RFC 3561, section 6.9).
    Hello,
    /// A link is lost by either of the two.
    Both,
}

words! { LocalRepair: "ns2" = Ns2, "rfc3561" = Rfc3561, "off" = Off }
words! { AodvDetection: "link-layer" = LinkLayer, "hello" = Hello, "both" = Both }

parameters! {
    /// Parameters of AODV.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct AodvConfig {
        /// how AODV repairs a route near its end
        local_repair: LocalRepair = LocalRepair::Ns2 => choice(LocalRepair::WORDS), Basic, "RFC 3561, 6.12; ns-2.35";
        /// how a lost neighbour is detected; HELLOs also announce neighbours
        detection: AodvDetection = AodvDetection::LinkLayer
            => choice(AodvDetection::WORDS).or("link-layer under AODV, hello under OLSR"), Basic, "RFC 3561, 6.10";
        /// least time for which AODV remembers a lost route, for its sequence number; usually at
        /// most twice as long
        delete_period: Option<Duration> = None => TIME.from(ACTIVE_ROUTE_TIMEOUT.0 as f64 / 1e9).or("for ever, as ns-2.35"), Basic,
            "RFC 3561, section 10";
    }
}

impl AodvConfig {
    /// AODV with link-layer detection that never deletes a route.
    pub const fn repairing(local_repair: LocalRepair) -> Self {
        AodvConfig { local_repair, detection: AodvDetection::LinkLayer, delete_period: None }
    }
}

/// The time to live is the network diameter of ns-2.
impl RoutingParameters for AodvConfig {
    const TIME_TO_LIVE: u8 = NETWORK_DIAMETER;
}

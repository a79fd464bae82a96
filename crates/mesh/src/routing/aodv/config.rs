//! The configuration of AODV.

use super::search::NETWORK_DIAMETER;
use crate::routing::protocol::RoutingParameters;
use meshpace_core::Duration;

/// What AODV does when a link towards a near destination breaks.
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

/// How AODV finds out that a link is lost.
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

/// How AODV is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AodvConfig {
    /// What a node near the destination does about a broken link.
    pub local_repair: LocalRepair,
    /// How a node learns that a link is lost. HELLOs also teach neighbours.
    pub detection: AodvDetection,
    /// How long a lost route is remembered at least, for its sequence number (DELETE_PERIOD of RFC 3561, section 10, at least
    /// [`ACTIVE_ROUTE_TIMEOUT`](super::ACTIVE_ROUTE_TIMEOUT), 50 s by its rule), and mostly at most twice as
    /// long. None: for ever, as in ns-2.35.
    pub delete_period: Option<Duration>,
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

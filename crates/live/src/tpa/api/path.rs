//! Where a connection learns how many hops away its peer is and how fast the channel: the interface, and what implements it.

pub use crate::tpa::runtime::route_metric::RouteMetric;
pub use crate::tpa::session::path::{Fixed, PathSource, TimeToLive, hops_travelled};

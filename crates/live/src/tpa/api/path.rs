//! Sources of path information: how a connection learns the number of hops to its peer and the data
//! rate of the channel. Exports the interface and its implementations.

pub use crate::tpa::runtime::route_metric::RouteMetric;
pub use meshpace_session::path::{Fixed, PathSource, TimeToLive, hops_travelled};

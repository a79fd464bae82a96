//! Routing: who is the next hop.

pub mod aodv;
pub mod olsr;
pub mod static_routes;

pub use aodv::Aodv;
pub use olsr::Olsr;
pub use static_routes::{HopCount, StaticRoutes};

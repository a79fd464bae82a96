//! Routing: who is the next hop.

pub mod aodv;
pub mod static_routes;

pub use aodv::Aodv;
pub use static_routes::StaticRoutes;

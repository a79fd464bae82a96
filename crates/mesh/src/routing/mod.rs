//! Routing: determines the next hop of packets. All protocols have one interface ([`Protocol`] of a
//! node, [`Router`] of a mesh); `table.rs` lists them.

pub mod actions;
pub mod aodv;
pub mod config;
pub mod flooding;
pub mod message;
pub mod olsr;
pub mod protocol;
pub mod router;
pub mod static_routes;
mod table;

pub use actions::{Action, Actions, DropReason};
pub use aodv::Aodv;
pub use config::RoutingConfig;
pub use message::Message;
pub use olsr::Olsr;
pub use protocol::{MessageKind, Protocol, RoutingMessage};
pub use router::{ActionList, Router};
pub use static_routes::{HopCount, StaticRoutes};

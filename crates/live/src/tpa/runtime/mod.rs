//! TPA over UDP on sockets: the thread that runs the sessions, and how applications reach it.

pub mod backlog;
mod connection;
pub mod handle;
pub mod kernel_route;
pub mod keylog;
pub mod keys;
pub mod mailbox;
mod randomness;
pub mod route_metric;
pub mod service;
pub mod shared;
pub mod socket;
pub mod wait;
mod worker;

pub use randomness::{Machine, random};

//! Between routing and MAC: address resolution, queue disciplines, markers.

pub mod arp;
pub mod config;
pub mod discipline;
pub mod queue;

pub use config::{LinkConfig, MarkerConfig, QueueConfig};
pub use discipline::{Attempt, Discipline, QueueLoss};

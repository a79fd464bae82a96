//! Link layer between routing and MAC: address resolution, queue disciplines, markers.

pub mod arp;
pub mod codel;
pub mod config;
pub mod dcc;
pub mod dcc_model;
pub mod discipline;
pub mod fq_codel;
pub mod fq_codel_airtime;
pub mod llap;
pub mod lred;
pub mod queue;

pub use config::{LinkConfig, MarkerConfig, QueueConfig};
pub use discipline::{Attempt, Discipline, LinkState, QueueLoss};

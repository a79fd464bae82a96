//! The simulator: an event queue, the mesh's nodes, traffic and probes. A run is a pure function (scenario, seed) -> outcome.
#![no_std]

extern crate alloc;

pub mod config;
pub mod outcome;

pub use config::{Config, Flow, Traffic};
pub use outcome::{FlowOutcome, Outcome};

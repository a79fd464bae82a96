//! The simulator: an event queue, the mesh's nodes, traffic and probes. A run is a pure function (scenario, seed) ->
//! outcome.
#![no_std]

extern crate alloc;

pub mod config;
pub mod engine;
pub mod mobility;
mod on_air;
pub mod outcome;
pub mod packet;
pub mod probe;
pub mod queue;
mod slab;
mod tournament;
pub mod traffic;
pub mod world;

pub use config::{Config, Flow, Traffic};
pub use engine::{Engine, Happening};
pub use mobility::Mobility;
pub use outcome::{FlowOutcome, Outcome};
pub use packet::SimPacket;
pub use probe::{Loss, Probe};
pub use world::{World, run, run_with};

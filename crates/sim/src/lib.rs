//! Simulator: an event queue, the nodes of the mesh, transports, traffic and probes. A run is a
//! pure function of scenario and seed.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::missing_errors_doc)]
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

/// Revision of the model, that is, of everything that determines the result of a run. It grows by
/// one with every change that alters some run. Every record and manifest contains it, so that
/// records of different models are not combined into one campaign. `validation/fingerprints.txt`
/// lists the changes of each revision.
pub const MODEL_REVISION: u32 = 11;

pub use config::{Config, Flow, Traffic};
pub use engine::{Engine, Indication, Station, TimerId};
pub use mobility::Mobility;
pub use outcome::{FlowOutcome, Outcome};
pub use packet::SimPacket;
pub use probe::{Aggregate, Event, Interests, Loss, Probe, Received};
pub use world::{FlowCounters, Measurement, ProbedWorld, World, run, run_sampled, run_with};

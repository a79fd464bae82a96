//! The simulator: an event queue, the mesh's nodes, transports, traffic and probes. A run is a pure function of scenario and seed.
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

/// The revision of the model: of everything that decides what a run does. It goes up by one with every change after which some run
/// differs, and stands in every record and manifest, so that records of different models are not taken for one campaign.
/// `validation/fingerprints.txt` tells what each revision changed.
pub const MODEL_REVISION: u32 = 11;

pub use config::{Config, Flow, Traffic};
pub use engine::{Engine, Indication, Station, TimerId};
pub use mobility::Mobility;
pub use outcome::{FlowOutcome, Outcome};
pub use packet::SimPacket;
pub use probe::{Aggregate, Event, Interests, Loss, Probe, Received};
pub use world::{Counted, Measurement, Watched, World, run, run_sampled, run_with};

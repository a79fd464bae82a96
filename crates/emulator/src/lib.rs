//! The emulator: real programs over an emulated mesh.
//!
//! Every node is a network namespace with a TAP device. What programs send comes out of the TAP devices, crosses the
//! simulator's own mesh ([`meshpace_sim::Engine`]: radio, MAC, queues, routing), driven by the machine's clock, and goes
//! into the TAP device of the node it is for. How late that happens is measured, and so is how long the programs waited
//! for a processor: [`Verdict`] says whether the result can be trusted.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

pub mod address;
pub mod capture;
pub mod chaos;
pub mod control;
pub mod device;
pub mod doctor;
pub mod emulation;
pub mod frame;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod hwsim;
pub mod lateness;
pub mod medium;
pub mod node;
pub mod observer;
pub mod packet;
pub mod plan;
pub mod program;
pub mod radio_words;
mod realtime;
pub mod run_dir;
pub mod starvation;
pub mod state;
mod sys;
pub mod sysctl;
pub mod traffic;
pub mod verdict;

pub use emulation::{Emulation, Ended, Failure, Options, Result};
pub use medium::Mode;
pub use observer::Observer;
pub use program::Spec;
pub use verdict::Verdict;

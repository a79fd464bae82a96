//! The emulator: real programs over an emulated mesh.
//!
//! Every node is a network namespace with a TAP device. Packets that programs send leave through
//! the TAP device of their node. They cross the same mesh as in the simulator
//! ([`meshpace_sim::Engine`]: radio, MAC, queues, routing), driven by the machine's clock. They
//! enter their destination through the TAP device there. The lateness of deliveries is measured,
//! and so is the time for which programs waited for a processor. The [`Verdict`] says whether the
//! result can be trusted.
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

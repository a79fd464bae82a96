//! Transports on real networks: their clocks, sockets and bytes.
//!
//! The protocol code is the code that the simulator runs. This crate passes it the time of a
//! monotonic clock and the received segments, and sleeps until the code's next deadline. It also
//! stores the bytes of the ranges that the code decides about.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::missing_errors_doc)]

mod accept;
#[doc(hidden)]
pub mod chaos;
pub mod clock;
pub mod doctor;
pub mod fallback;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod generator;
pub mod hosts;
mod memory;
mod netlink;
pub mod poll;
pub mod process;
mod sys;
pub mod tcp;
pub mod testbed;
pub mod tpa;
pub mod tun;
pub mod tunnel;

pub use clock::Clock;

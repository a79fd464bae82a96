//! The transports on real networks: their clocks, sockets and bytes.
//!
//! The protocol code is the one the simulator runs. This crate tells it the time of a monotonic clock and what arrived,
//! keeps the bytes behind the ranges it decides about, and sleeps until it wants to be woken.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::missing_errors_doc)]

mod accept;
pub mod budget;
#[doc(hidden)]
pub mod chaos;
pub mod clock;
pub mod doctor;
pub mod drive;
pub mod fallback;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
pub mod generator;
pub mod hosts;
mod memory;
mod netlink;
mod networks;
pub mod poll;
pub mod process;
pub mod ring;
mod sys;
pub mod tcp;
pub mod testbed;
pub mod tpa;
pub mod tun;
pub mod tunnel;

pub use clock::Clock;

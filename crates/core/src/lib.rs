//! Basis of all other crates: integer time, deadlines, rates, identifiers, parameter checks and
//! seeded random streams.
//!
//! The crate contains no protocol. It is `no_std`, so that it cannot use clocks, sockets or
//! threads.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::missing_errors_doc)]
#![no_std]
extern crate alloc;

pub mod deadlines;
pub mod id;
pub mod parameter;
pub mod rate;
pub mod rng;
pub mod time;

pub use deadlines::Deadlines;
pub use id::{FlowId, NodeId};
pub use parameter::{Parameter, ParameterError};
pub use rate::Rate;
pub use rng::Rng;
pub use time::{Duration, Time};

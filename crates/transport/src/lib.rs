//! Transport protocols as state machines without input or output: the caller tells an endpoint the time and what arrived,
//! and asks what to send and when to call it again.
//!
//! An endpoint never holds payload. It decides about ranges of a byte stream; its caller keeps the bytes, or, in
//! the simulator, has none. The caller's loop is: call any `on_*` method, then [`pump`] until there is nothing more to
//! transmit, then call again at the time that it returned.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, clippy::missing_errors_doc)]
#![no_std]
extern crate alloc;
#[cfg(any(test, feature = "count-work"))]
extern crate std;

pub mod about;
pub mod bbr;
pub mod checksum;
pub mod closing;
pub mod config;
pub mod endpoint;
pub mod flags;
pub mod flush;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
#[cfg(test)]
mod hostile;
pub mod names;
pub mod output;
pub mod pacing;
mod path;
pub mod ranges;
mod receiving;
mod segment;
pub mod stats;
pub mod tcp;
pub mod tpa;
pub mod train;
pub mod udp;
pub mod work;

pub use config::Config;
pub use endpoint::Endpoint;
pub use output::{Machine, Output, pump};
pub use path::{Arrival, PathInfo, Role};
pub use receiving::grown_window;
pub use segment::Segment;
pub use stats::Stats;

//! Transport protocols as state machines that do no input or output. The caller gives an endpoint
//! the time and the segments that arrived, and asks which segments to send and when to call again.
//!
//! An endpoint never holds payload. It decides about ranges of a byte stream; the caller keeps the
//! bytes, or has none, as in the simulator. The caller calls any `on_*` method, then [`pump`] until
//! there is nothing more to transmit, and calls again at the time that [`pump`] returned.
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

//! Reading of the project's configuration files. [`value`]s know their place in the file, and
//! [`quantity`] has numbers with units. [`form`] and [`recording`] describe what may be written for
//! a key, and [`diagnostic`] has the error messages that point at a place.
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

pub mod diagnostic;
pub mod form;
pub mod quantity;
pub mod recording;
pub mod value;
mod words;

pub use diagnostic::{Problem, Refusal, Source};
pub use words::{nearest, one_of};

//! What every configuration file of the project is read with: values that know their place in the file ([`value`]), quantities with
//! units ([`quantity`]), what may be written for a key ([`form`], [`recording`]), and error messages that point at the place
//! ([`diagnostic`]).
#![warn(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr)]

pub mod diagnostic;
pub mod form;
pub mod quantity;
pub mod recording;
pub mod value;
mod words;

pub use diagnostic::{Problem, Refusal, Source};
pub use words::{nearest, one_of};

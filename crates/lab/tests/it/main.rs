//! The integration tests of this crate, in one program: one link instead of many.

mod evidence;
mod fingerprints;
mod flush;
mod ht;
mod register;
mod trains;
mod watching;

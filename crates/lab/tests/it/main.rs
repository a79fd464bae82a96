//! Integration tests of this crate in one program, which needs one link step instead of many.

mod advise_meshes;
mod evidence;
mod fingerprints;
mod flush;
mod grow;
mod ht;
mod register;
mod trains;
mod watching;

//! The integration tests of this crate, in one program: one link instead of many.

mod dist;
mod node;
mod playback;
mod plots;

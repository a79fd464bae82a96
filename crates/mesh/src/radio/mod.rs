//! The radio: who hears whom how strongly, and which of several frames a receiver keeps.

pub mod neighbours;
pub mod reception;
pub mod two_ray;

pub use neighbours::{Neighbour, Neighbours, Vicinity};
pub use reception::{FrameEnd, FrameStart, Receiver};

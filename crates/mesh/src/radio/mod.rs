//! The radio: who hears whom how strongly, and which of several frames a receiver keeps.

pub mod bit_errors;
pub mod channel;
pub mod config;
pub mod connectivity;
pub mod first_lock;
pub mod frame;
pub mod log_distance;
pub mod neighbours;
pub mod plcp;
pub mod power;
pub mod reception;
pub mod sinr;
pub mod two_ray;

pub use bit_errors::Modulation;
pub use channel::{Channel, Neighbour};
pub use frame::{Arriving, FrameEnd, FrameStart};
pub use log_distance::LogDistance;
pub use neighbours::{Neighbours, Vicinity};
pub use reception::Receiver;

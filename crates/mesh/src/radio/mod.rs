//! Radio: the power with which nodes receive each other, and the reception models.

pub mod bit_errors;
pub mod channel;
pub mod coded;
pub mod config;
pub mod connectivity;
pub mod first_lock;
pub mod frame;
pub mod links;
pub mod log_distance;
pub mod neighbours;
pub mod ofdm;
pub mod plcp;
pub mod power;
pub mod rate_model;
pub mod reception;
pub mod sinr;
pub mod two_ray;

pub use bit_errors::Modulation;
pub use channel::{Channel, Neighbour};
pub use frame::{Arriving, FrameEnd, FrameRate, FrameStart, RateKind};
pub use links::Links;
pub use log_distance::LogDistance;
pub use neighbours::{Neighbours, Vicinity};
pub use ofdm::{Band, Ofdm, OfdmRate};
pub use reception::Receiver;

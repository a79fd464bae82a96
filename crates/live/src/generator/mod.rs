//! Traffic over real networks, measured as the simulator measures.
//!
//! A [`Carrier`] carries bytes to a host: our TCP on raw IP ([`tcp`]), TPA over UDP ([`tpa`]), UDP at a rate ([`udp`]), the
//! kernel's TCP ([`kernel`]). [`send`] loads it, the functions of [`receive`] are what it is loaded against. Definitions are
//! those of the simulator: goodput counts payload that the far end has (here: has acknowledged), counters of segments
//! cover the whole run.

mod carrier;
pub mod kernel;
pub mod receive;
mod send;
pub mod tcp;
pub mod tpa;
pub mod udp;

pub use carrier::{Carrier, Progress};
pub use send::{File, Load, Measured, Tick, send};

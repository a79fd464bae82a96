//! Traffic generator for real networks, which measures as the simulator does.
//!
//! A [`Carrier`] transports bytes to a host. There are carriers for our TCP on raw IP ([`tcp`]),
//! TPA over UDP ([`tpa`]), UDP at a given rate ([`udp`]), and the kernel's TCP ([`kernel`]).
//! [`send`] sends data through a carrier, and the functions of [`receive`] are the receivers. The
//! definitions are those of the simulator. Goodput counts payload that the far end has received
//! (here: has acknowledged), and counters of segments cover the whole run.

mod carrier;
pub mod kernel;
pub mod receive;
mod send;
pub mod tcp;
pub mod tpa;
pub mod udp;

pub use carrier::{Carrier, Progress};
pub use send::{File, Load, Measured, Tick, send};

//! TCP on raw IP: the transports that the simulator runs, in connections with the TCP of any host.
//!
//! [`Stack`] stores connections and their data, and exchanges IP packets through an [`Interface`].
//! The interface has either an address behind a TUN device that this process owns ([`Device`]), or
//! one of the host's own addresses ([`Raw`]). In the latter case a packet filter ([`filter`])
//! prevents the host's TCP from resetting the connections that it does not know.

pub mod device;
pub mod filter;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;
mod interface;
pub mod packet;
pub mod raw;
mod stack;

pub use device::Device;
pub use interface::Interface;
pub use raw::Raw;
pub use stack::{Conversation, Id, Limits, Protocol, Stack, Status, Trouble};

//! TCP on raw IP: the transports that the simulator runs, talking to any host's TCP.
//!
//! [`Stack`] keeps connections and the bytes behind them over an [`Interface`], which brings IP packets: an address behind a
//! TUN device that this process owns ([`Device`]), or an address of the host's own ([`Raw`]), where a packet filter
//! keeps the host's TCP from resetting what it knows nothing of ([`filter`]).

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

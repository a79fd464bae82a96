//! Network with configurable impairments, for tests. What happens to each packet follows from a
//! seed or from a list.

pub mod account;
mod carrier;
pub mod impairment;
pub mod namespace;
pub mod relay;
pub mod tun_link;
pub mod veth;

pub use account::Traffic;
pub use carrier::Passed;
pub use impairment::{Impairment, Loss};
pub use namespace::Namespace;
pub use relay::Relay;
pub use tun_link::Link;

//! Between routing and MAC: the interface queue and address resolution.

pub mod arp;
pub mod queue;

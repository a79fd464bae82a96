//! Routing: who is the next hop.

pub mod aodv;

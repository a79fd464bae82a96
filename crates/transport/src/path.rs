//! Information of the network for an endpoint, on a packet and its path, and the role of an endpoint in its connection.

use meshpace_core::Rate;

/// Which end of the connection this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Opens the connection and sends the data.
    Sender,
    /// Listens and receives the data.
    Receiver,
}

/// Properties of an arriving packet that the network knows.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Arrival {
    /// Hops the packet travelled; 0 if unknown.
    pub hops: u8,
    /// True if a node on the way marked it "congestion experienced" (RFC 3168).
    pub ce: bool,
    /// Power of the last hop's frame in dBm, where the radio tells.
    pub received_power_dbm: Option<f32>,
}

/// Properties of the path to the peer, from the routing table and the radio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathInfo {
    /// Hops to the peer, at least 1.
    pub hops: u8,
    /// Channel data rate; TCP and quiet trains keep what they knew of the path if it is 0.
    pub rate: Rate,
    /// Power at which the next hop is received, in dBm, where the radio tells.
    pub received_power_dbm: Option<f32>,
}

impl PathInfo {
    /// One hop at 2 Mbit/s: what is assumed until the network tells.
    pub(crate) const UNKNOWN: PathInfo = PathInfo { hops: 1, rate: Rate(2_000_000), received_power_dbm: None };
}

/// More bytes than any application writes: the backlog of one that always has more to send.
pub(crate) const ENDLESS: u64 = u64::MAX / 2;

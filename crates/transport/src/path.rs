//! Information that the network gives an endpoint about a packet and its path, and the role of an
//! endpoint in its connection.

use meshpace_core::Rate;

/// The end of the connection that an endpoint is.
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
    /// Number of hops that the packet travelled; 0 if unknown.
    pub hops: u8,
    /// True if a node on the path marked the packet "congestion experienced" (RFC 3168).
    pub ce: bool,
    /// Power in dBm at which the frame of the last hop was received; `None` if the radio does not
    /// report it.
    pub received_power_dbm: Option<f32>,
}

/// Properties of the path to the peer, from the routing table and the radio.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathInfo {
    /// Number of hops to the peer, at least 1.
    pub hops: u8,
    /// Channel data rate. If it is 0, TCP and quiet trains keep their earlier information about the
    /// path.
    pub rate: Rate,
    /// Power in dBm at which the next hop is received; `None` if the radio does not report it.
    pub received_power_dbm: Option<f32>,
}

impl PathInfo {
    /// One hop at 2 Mbit/s, which is assumed until the network reports the path.
    pub(crate) const UNKNOWN: PathInfo = PathInfo { hops: 1, rate: Rate(2_000_000), received_power_dbm: None };
}

/// More bytes than any application writes. It is the backlog of an application that always has more
/// to send.
pub(crate) const ENDLESS: u64 = u64::MAX / 2;

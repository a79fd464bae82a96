//! Between whom a datagram travels.

use std::net::{IpAddr, SocketAddr};

/// A datagram's sender or receiver, and its own address where the socket is bound to all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// The other end.
    pub peer: SocketAddr,
    /// Ours; none if the socket has just one.
    pub own: Option<IpAddr>,
}

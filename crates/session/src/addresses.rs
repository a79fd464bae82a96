//! Source and destination addresses of a datagram.

use std::net::{IpAddr, SocketAddr};

/// Peer's address of a datagram, and the local address where the socket is bound to all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// Address of the peer.
    pub peer: SocketAddr,
    /// Local address. `None` if the socket is bound to a single address.
    pub own: Option<IpAddr>,
}

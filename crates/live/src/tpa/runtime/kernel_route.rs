//! Entries of the kernel's tables for the path to an address, read over rtnetlink: the route
//! itself, and the MTU of its device.
//!
//! The kernel's cached path MTU is deliberately not used. The kernel updates it from ICMP messages,
//! and accepts any message that quotes the addresses and ports of a socket. An attacker could
//! thereby make connections begin with small segments for ten minutes.

use crate::netlink::{link, route, socket};
use std::io;
use std::net::IpAddr;

/// Returns the MTU that the route to `peer` sets, or else the MTU of its device. `None` if the
/// route has neither, as a route with several next hops.
///
/// # Errors
///
/// There is no route, or the request to the kernel failed.
pub(crate) fn mtu(peer: IpAddr) -> io::Result<Option<u32>> {
    let socket = socket()?;
    let route = route(&socket, peer)?;
    if let Some(mtu) = route.set_mtu() {
        return Ok(Some(mtu));
    }
    let Some(index) = route.device() else { return Ok(None) };
    Ok(link(&socket, index)?.mtu())
}

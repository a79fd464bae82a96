//! Entries of the kernel's tables for the way to an address, over rtnetlink: the route itself, as it stands there, and the MTU of its
//! device.
//!
//! Not what follows from them: the kernel also keeps what ICMP messages have said about a way, and believes whoever quotes the addresses and ports
//! of a socket. So anybody could have had connections begin with small segments for ten minutes.

use crate::netlink::{link, route, socket};
use std::io;
use std::net::IpAddr;

/// The MTU that the route to `peer` sets, or its device has; none if it names neither, as one with several ways does.
///
/// # Errors
///
/// There is no route, or the kernel could not be asked.
pub(crate) fn mtu(peer: IpAddr) -> io::Result<Option<u32>> {
    let socket = socket()?;
    let route = route(&socket, peer)?;
    if let Some(mtu) = route.set_mtu() {
        return Ok(Some(mtu));
    }
    let Some(index) = route.device() else { return Ok(None) };
    Ok(link(&socket, index)?.mtu())
}

//! What the kernel's tables say of the way to an address, over rtnetlink: the route itself, as it stands there, and the MTU of its
//! device.
//!
//! Not what follows from them: the kernel also keeps what ICMP messages have said about a way, and believes whoever quotes the addresses and ports
//! of a socket. So anybody could have had connections begin with small segments for ten minutes.

use crate::netlink::{another, ask, socket};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage::{GetLink, GetRoute, NewLink, NewRoute};
use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteMetric};
use netlink_sys::Socket;
use std::io;
use std::net::IpAddr;

/// The route to `peer`.
///
/// # Errors
///
/// There is none, or the kernel could not be asked.
pub(crate) fn route(socket: &Socket, peer: IpAddr) -> io::Result<RouteMessage> {
    let mut question = RouteMessage::default();
    let (family, bits, destination) = match peer {
        IpAddr::V4(peer) => (AddressFamily::Inet, 32, RouteAddress::Inet(peer)),
        IpAddr::V6(peer) => (AddressFamily::Inet6, 128, RouteAddress::Inet6(peer)),
    };
    question.header.address_family = family;
    question.header.destination_prefix_length = bits;
    question.header.flags = RouteFlags::FibMatch;
    question.attributes.push(RouteAttribute::Destination(destination));
    match ask(socket, GetRoute(question))? {
        NewRoute(route) => Ok(route),
        _ => Err(another()),
    }
}

/// The MTU that the route to `peer` sets, or its device has; none if it names neither, as one with several ways does.
///
/// # Errors
///
/// There is no route, or the kernel could not be asked.
pub(crate) fn mtu(peer: IpAddr) -> io::Result<Option<u32>> {
    let socket = socket()?;
    let route = route(&socket, peer)?;
    let set = |metric: &RouteMetric| if let RouteMetric::Mtu(mtu) = metric { Some(*mtu) } else { None };
    let metrics = route.attributes.iter().filter_map(|attribute| match attribute {
        RouteAttribute::Metrics(metrics) => metrics.iter().find_map(set),
        _ => None,
    });
    if let Some(mtu) = metrics.min() {
        return Ok(Some(mtu));
    }
    let device =
        |attribute: &RouteAttribute| if let RouteAttribute::Oif(index) = attribute { Some(*index) } else { None };
    let Some(index) = route.attributes.iter().find_map(device) else { return Ok(None) };
    let mut question = LinkMessage::default();
    question.header.index = index;
    let NewLink(link) = ask(&socket, GetLink(question))? else { return Err(another()) };
    let of = |attribute: &LinkAttribute| if let LinkAttribute::Mtu(mtu) = attribute { Some(*mtu) } else { None };
    Ok(link.attributes.iter().find_map(of))
}

//! What the kernel is asked of routes and devices, and what it is told of them: rtnetlink(7), always in the network namespace of the
//! calling thread.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::AddressFamily;
use netlink_packet_route::RouteNetlinkMessage::{self, DelRoute, DelRule, NewAddress, NewRoute, NewRule, SetLink};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::net::if_::if_nametoindex;
use std::io;
use std::net::Ipv4Addr;

/// Longest answer of the kernel to one question, with room to spare.
const ANSWER: usize = 1 << 15;

/// What is asked to be made is to be new.
const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;

/// A socket to ask with.
///
/// # Errors
///
/// The system gives none.
pub(crate) fn socket() -> io::Result<Socket> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

pub(crate) fn another() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "rtnetlink: another answer than was asked for")
}

/// Sends a message; the answer.
fn send(socket: &Socket, message: RouteNetlinkMessage, flags: u16) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut answer = Vec::with_capacity(ANSWER);
    socket.recv(&mut answer, 0)?;
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, format!("rtnetlink: {error}"));
    Ok(NetlinkMessage::deserialize(&answer).map_err(invalid)?.payload)
}

/// Asks what has one answer.
///
/// # Errors
///
/// The kernel's, or it could not be asked.
pub(crate) fn ask(socket: &Socket, question: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
    match send(socket, question, 0)? {
        NetlinkPayload::InnerMessage(answer) => Ok(answer),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(another()),
    }
}

/// Has the kernel do something; `what` is that in words.
fn tell(what: &str, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
    let done = socket().and_then(|socket| match send(&socket, message, NLM_F_ACK | flags)? {
        // An error without a number says that there is none.
        NetlinkPayload::Error(error) if error.code.is_none() => Ok(()),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(another()),
    });
    done.map_err(|error| io::Error::new(error.kind(), format!("{what}: {error}")))
}

/// The number of a device.
fn index(device: &str) -> io::Result<u32> {
    let number = if_nametoindex(device).map_err(io::Error::from);
    number.map_err(|error| io::Error::new(error.kind(), format!("device {device}: {error}")))
}

/// Gives a device an address with its peer behind it.
///
/// # Errors
///
/// There is no such device, it has the address, or no rights.
pub(crate) fn assign(device: &str, own: Ipv4Addr, peer: Ipv4Addr) -> io::Result<()> {
    let mut message = AddressMessage::default();
    (message.header.family, message.header.prefix_len) = (AddressFamily::Inet, 32);
    message.header.index = index(device)?;
    message.attributes = vec![AddressAttribute::Local(own.into()), AddressAttribute::Address(peer.into())];
    tell(&format!("address {own} with {peer} behind it, device {device}"), NewAddress(message), NEW)
}

/// Switches a device on, with an MTU in bytes if there is one to set.
///
/// # Errors
///
/// There is no such device, it has no such MTU, or no rights.
pub(crate) fn switch_on(device: &str, mtu: Option<u16>) -> io::Result<()> {
    let mut message = LinkMessage::default();
    message.header.index = index(device)?;
    (message.header.flags, message.header.change_mask) = (LinkFlags::Up, LinkFlags::Up);
    message.attributes.extend(mtu.map(|mtu| LinkAttribute::Mtu(mtu.into())));
    tell(&format!("switching device {device} on"), SetLink(message), 0)
}

/// Has packets with the mark `number` delivered to this host, wherever they are to go: by a table of routes of that number.
///
/// # Errors
///
/// There is such a table or rule, or no rights.
pub(crate) fn deliver_marked(family: AddressFamily, number: u32) -> io::Result<()> {
    let (route, rule) = delivery(family, number)?;
    tell(&format!("a route in table {number}"), NewRoute(route), NEW)?;
    tell(&format!("a rule for mark {number}"), NewRule(rule), NEW)
}

/// No longer.
///
/// # Errors
///
/// There is nothing of the kind, or no rights.
pub(crate) fn deliver_no_longer(family: AddressFamily, number: u32) -> io::Result<()> {
    let (route, rule) = delivery(family, number)?;
    let rule = tell(&format!("a rule for mark {number}"), DelRule(rule), 0);
    tell(&format!("a route in table {number}"), DelRoute(route), 0).and(rule)
}

/// The route and the rule that do so.
fn delivery(family: AddressFamily, number: u32) -> io::Result<(RouteMessage, RuleMessage)> {
    let mut route = RouteMessage::default();
    route.header.address_family = family;
    (route.header.kind, route.header.protocol) = (RouteType::Local, RouteProtocol::Boot);
    if family == AddressFamily::Inet {
        route.header.scope = RouteScope::Host;
    }
    route.attributes = vec![RouteAttribute::Oif(index("lo")?), RouteAttribute::Table(number)];
    let mut rule = RuleMessage::default();
    (rule.header.family, rule.header.action) = (family, RuleAction::ToTable);
    rule.attributes = vec![RuleAttribute::FwMark(number), RuleAttribute::Table(number)];
    Ok((route, rule))
}

//! Requests to the kernel about routes and devices, and the kernel's answers: rtnetlink(7). The
//! requests apply to the network namespace of the calling thread.

use netlink_packet_core::{
    DecodeError, Emitable, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable, Nla, NlaBuffer, NlasIterator,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::libc;
use nix::net::if_::if_nametoindex;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// Size of the buffer for one answer of the kernel, bytes; larger than any answer.
const ANSWER: usize = 1 << 15;

/// Flags of a request to create an entry. The request fails if the entry exists.
const NEW: u16 = NLM_F_CREATE | NLM_F_EXCL;

// Constants that `libc` does not define: linux/if_link.h, linux/if_addr.h, linux/fib_rules.h,
// linux/rtnetlink.h.
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const FRA_FWMARK: u16 = 10;
const FRA_TABLE: u16 = 15;
const FR_ACT_TO_TBL: u8 = 1;
const RTAX_MTU: u16 = 2;
const RTM_F_FIB_MATCH: u32 = 0x2000;

/// An rtnetlink message: the bytes of the structure at its head, and the attributes after it.
/// `netlink-packet-core` encodes and decodes both and their envelope. The types are the few that
/// this crate requests. `netlink-packet-route`, which supports all types, would make a program of 2
/// MB 475 kB larger.
#[derive(Debug)]
pub(crate) struct Message {
    kind: u16,
    head: Vec<u8>,
    attributes: Vec<Attribute>,
}

#[derive(Debug)]
struct Attribute {
    kind: u16,
    value: Vec<u8>,
}

impl Nla for Attribute {
    fn value_len(&self) -> usize {
        self.value.len()
    }

    fn kind(&self) -> u16 {
        self.kind
    }

    fn emit_value(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.value);
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.kind
    }

    fn buffer_len(&self) -> usize {
        self.head.len() + self.attributes.as_slice().buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let (head, attributes) = buffer.split_at_mut(self.head.len());
        head.copy_from_slice(&self.head);
        self.attributes.as_slice().emit(attributes);
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Message, DecodeError> {
        let length = match header.message_type {
            libc::RTM_NEWLINK => LINK,
            libc::RTM_NEWROUTE => ROUTE,
            kind => return Err(format!("a message of type {kind}").into()),
        };
        let (head, rest) =
            payload.split_at_checked(length).ok_or_else(|| DecodeError::buffer_too_small(payload.len(), length))?;
        Ok(Message { kind: header.message_type, head: head.to_vec(), attributes: attributes(rest)? })
    }
}

/// Length of `struct ifinfomsg` in bytes.
/// Length of `struct rtmsg` in bytes.
const LINK: usize = 16;
const ROUTE: usize = 12;

fn attributes(bytes: &[u8]) -> Result<Vec<Attribute>, DecodeError> {
    let read = |attribute: NlaBuffer<&[u8]>| Attribute { kind: attribute.kind(), value: attribute.value().to_vec() };
    NlasIterator::new(bytes).map(|attribute| attribute.map(read)).collect()
}

/// The 32-bit number in an attribute's value. `None` if the value does not have four bytes.
fn number(value: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(value.try_into().ok()?))
}

impl Message {
    fn new(kind: u16, head: Vec<u8>) -> Message {
        Message { kind, head, attributes: Vec::new() }
    }

    fn with(mut self, kind: u16, value: &[u8]) -> Message {
        self.attributes.push(Attribute { kind, value: value.to_vec() });
        self
    }

    /// Message about a device, with a `struct ifinfomsg`: family, padding, type, index, flags, and
    /// the mask of the flags to change.
    fn link(kind: u16, index: u32, flags: u32) -> Message {
        let words = [0, index, flags, flags];
        Message::new(kind, words.iter().flat_map(|word: &u32| word.to_ne_bytes()).collect())
    }

    fn values(&self, kind: u16) -> impl Iterator<Item = &[u8]> {
        self.attributes
            .iter()
            .filter(move |attribute| attribute.kind == kind)
            .map(|attribute| attribute.value.as_slice())
    }

    fn number(&self, kind: u16) -> Option<u32> {
        self.values(kind).find_map(number)
    }

    /// Prefix length of a route, bits.
    pub(crate) fn bits(&self) -> u8 {
        self.head[1]
    }

    /// Metric of a route. `None` if the route has none.
    pub(crate) fn priority(&self) -> Option<u32> {
        self.number(libc::RTA_PRIORITY)
    }

    /// Index of a route's device. `None` if the route has several next hops.
    pub(crate) fn device(&self) -> Option<u32> {
        self.number(libc::RTA_OIF)
    }

    /// Indexes of the devices of all next hops of a route.
    pub(crate) fn devices(&self) -> Vec<u32> {
        let several = self.values(libc::RTA_MULTIPATH).flat_map(ways);
        self.device().into_iter().chain(several).collect()
    }

    /// MTU in bytes that a route sets. `None` if the route sets none.
    pub(crate) fn set_mtu(&self) -> Option<u32> {
        let of = |metrics: &[u8]| {
            attributes(metrics)
                .ok()?
                .iter()
                .filter(|metric| metric.kind == RTAX_MTU)
                .find_map(|metric| number(&metric.value))
        };
        self.values(libc::RTA_METRICS).filter_map(of).min()
    }

    /// Whether the kernel passes packets through a device. That begins some time after the device has been switched on.
    pub(crate) fn is_running(&self) -> bool {
        self.head.get(8..12).and_then(number).is_some_and(|flags| flags & libc::IFF_RUNNING as u32 != 0)
    }

    /// MTU of a device in bytes.
    pub(crate) fn mtu(&self) -> Option<u32> {
        self.number(IFLA_MTU)
    }

    /// Name of a device.
    pub(crate) fn name(&self) -> Option<String> {
        let text = self.values(IFLA_IFNAME).next()?;
        Some(std::str::from_utf8(text).ok()?.trim_end_matches('\0').to_owned())
    }
}

/// Device indexes in a list of `struct rtnexthop`: length, flags, hops, device, and attributes up
/// to that length.
fn ways(mut list: &[u8]) -> Vec<u32> {
    let mut devices = Vec::new();
    while let Some((length, device)) = list.first_chunk().zip(list.get(4..8).and_then(number)) {
        devices.push(device);
        let length = usize::from(u16::from_ne_bytes(*length)).max(8).next_multiple_of(4);
        list = list.get(length..).unwrap_or_default();
    }
    devices
}

/// Address family as rtnetlink encodes it.
fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

/// Opens a socket for requests.
///
/// # Errors
///
/// The system provides no socket.
pub(crate) fn socket() -> io::Result<Socket> {
    let socket = Socket::new(NETLINK_ROUTE)?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

fn another() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "rtnetlink: another answer than was asked for")
}

/// Sends a message and returns the answer.
fn send(socket: &Socket, message: Message, flags: u16) -> io::Result<NetlinkPayload<Message>> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | flags;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut answer = Vec::with_capacity(ANSWER);
    socket.recv(&mut answer, 0)?;
    let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, format!("rtnetlink: {error}"));
    Ok(NetlinkMessage::deserialize(&answer).map_err(invalid)?.payload)
}

/// Sends a request that has exactly one answer, of type `kind`.
fn ask(socket: &Socket, question: Message, kind: u16) -> io::Result<Message> {
    match send(socket, question, 0)? {
        NetlinkPayload::InnerMessage(answer) if answer.kind == kind => Ok(answer),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(another()),
    }
}

/// Route to `peer` as it is in the routing table. Exceptions that the kernel has cached for the
/// address are not included.
///
/// # Errors
///
/// There is no route, or the request to the kernel failed.
pub(crate) fn route(socket: &Socket, peer: IpAddr) -> io::Result<Message> {
    let destination = match peer {
        IpAddr::V4(peer) => peer.octets().to_vec(),
        IpAddr::V6(peer) => peer.octets().to_vec(),
    };
    // Fields of `struct rtmsg`: family, bits of destination and source, type of service, table,
    // protocol, scope, type, flags.
    let mut head = vec![family(peer), destination.len() as u8 * 8, 0, 0, 0, 0, 0, 0];
    head.extend(RTM_F_FIB_MATCH.to_ne_bytes());
    let question = Message::new(libc::RTM_GETROUTE, head).with(libc::RTA_DST, &destination);
    ask(socket, question, libc::RTM_NEWROUTE)
}

/// Entry of the kernel for the device with this index.
///
/// # Errors
///
/// There is no device with this index, or the request to the kernel failed.
pub(crate) fn link(socket: &Socket, index: u32) -> io::Result<Message> {
    ask(socket, Message::link(libc::RTM_GETLINK, index, 0), libc::RTM_NEWLINK)
}

/// Sends a request that changes something. `what` describes the change in error messages.
fn tell(what: &str, message: Message, flags: u16) -> io::Result<()> {
    let done = socket().and_then(|socket| match send(&socket, message, NLM_F_ACK | flags)? {
        // An error without a code is an acknowledgement.
        NetlinkPayload::Error(error) if error.code.is_none() => Ok(()),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(another()),
    });
    done.map_err(|error| io::Error::new(error.kind(), format!("{what}: {error}")))
}

/// Index of a device.
pub(crate) fn index(device: &str) -> io::Result<u32> {
    let number = if_nametoindex(device).map_err(io::Error::from);
    number.map_err(|error| io::Error::new(error.kind(), format!("device {device}: {error}")))
}

/// Gives a device a local address and the address of the peer behind the device.
///
/// # Errors
///
/// The device does not exist or already has the address, or the process lacks the rights.
pub(crate) fn assign(device: &str, own: Ipv4Addr, peer: Ipv4Addr) -> io::Result<()> {
    // Fields of `struct ifaddrmsg`: family, bits, flags, scope, device.
    let mut head = vec![libc::AF_INET as u8, 32, 0, 0];
    head.extend(index(device)?.to_ne_bytes());
    let message =
        Message::new(libc::RTM_NEWADDR, head).with(IFA_LOCAL, &own.octets()).with(IFA_ADDRESS, &peer.octets());
    tell(&format!("address {own} with {peer} behind it, device {device}"), message, NEW)
}

/// Sets a device up, and sets its MTU in bytes if `mtu` is given.
///
/// # Errors
///
/// The device does not exist or does not support the MTU, or the process lacks the rights.
pub(crate) fn switch_on(device: &str, mtu: Option<u16>) -> io::Result<()> {
    let mut message = Message::link(libc::RTM_SETLINK, index(device)?, libc::IFF_UP as u32);
    if let Some(mtu) = mtu {
        message = message.with(IFLA_MTU, &u32::from(mtu).to_ne_bytes());
    }
    tell(&format!("switching device {device} on"), message, 0)
}

/// Delivers packets with the mark `number` to this host, whatever their destination, by a routing
/// table of that number. `any` is an address of the packets' address family.
///
/// # Errors
///
/// The route or rule exists already, or the process lacks the rights.
pub(crate) fn deliver_marked(any: IpAddr, number: u32) -> io::Result<()> {
    tell(&format!("a route in table {number}"), everywhere_here(libc::RTM_NEWROUTE, any, number)?, NEW)?;
    tell(&format!("a rule for mark {number}"), marked(libc::RTM_NEWRULE, any, number), NEW)
}

/// Reverts [`deliver_marked`].
///
/// # Errors
///
/// There is no such route or rule, or the process lacks the rights.
pub(crate) fn deliver_no_longer(any: IpAddr, number: u32) -> io::Result<()> {
    let rule = tell(&format!("a rule for mark {number}"), marked(libc::RTM_DELRULE, any, number), 0);
    let route = everywhere_here(libc::RTM_DELROUTE, any, number)?;
    tell(&format!("a route in table {number}"), route, 0).and(rule)
}

/// Route that delivers all packets to this host.
fn everywhere_here(kind: u16, any: IpAddr, number: u32) -> io::Result<Message> {
    let scope = if any.is_ipv4() { libc::RT_SCOPE_HOST } else { libc::RT_SCOPE_UNIVERSE };
    let head = vec![family(any), 0, 0, 0, 0, libc::RTPROT_BOOT, scope, libc::RTN_LOCAL, 0, 0, 0, 0];
    let device = index("lo")?.to_ne_bytes();
    Ok(Message::new(kind, head).with(libc::RTA_OIF, &device).with(libc::RTA_TABLE, &number.to_ne_bytes()))
}

/// Rule by which packets with the mark `number` use the routing table of that number. `struct
/// fib_rule_hdr` is a `struct rtmsg` with an action in place of the type.
fn marked(kind: u16, any: IpAddr, number: u32) -> Message {
    let head = vec![family(any), 0, 0, 0, 0, 0, 0, FR_ACT_TO_TBL, 0, 0, 0, 0];
    let number = number.to_ne_bytes();
    Message::new(kind, head).with(FRA_FWMARK, &number).with(FRA_TABLE, &number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netlink_packet_core::NLA_F_NESTED;

    #[test]
    fn the_ways_of_a_route_end_with_its_bytes_whatever_lengths_they_tell() {
        let way = |length: u16, device: u32| [&length.to_ne_bytes()[..], &[0, 0], &device.to_ne_bytes()].concat();
        let gateway = [&way(16, 3)[..], &[8, 0, 5, 0, 10, 0, 0, 1]].concat();
        assert_eq!(ways(&[gateway, way(8, 7)].concat()), [3, 7]);
        assert_eq!(ways(&[way(0, 1), way(u16::MAX, 2), way(8, 3)].concat()), [1, 2]);
        assert!(ways(&[8, 0, 0]).is_empty() && ways(&[]).is_empty());
    }

    #[test]
    fn what_the_kernel_answers_is_read_or_refused() {
        let read = |kind, payload: &[u8]| {
            let mut header = NetlinkHeader::default();
            header.message_type = kind;
            Message::deserialize(&header, payload)
        };
        let attribute =
            |kind: u16, value: &[u8]| [&(value.len() as u16 + 4).to_ne_bytes(), &kind.to_ne_bytes(), value].concat();
        let metrics = attribute(libc::RTA_METRICS | NLA_F_NESTED, &attribute(RTAX_MTU, &1400u32.to_ne_bytes()));
        let route = [&[0; ROUTE][..], &attribute(libc::RTA_PRIORITY, &3u32.to_ne_bytes()), &metrics].concat();
        let route = read(libc::RTM_NEWROUTE, &route).unwrap();
        assert_eq!((route.priority(), route.set_mtu(), route.device()), (Some(3), Some(1400), None));
        let link = read(libc::RTM_NEWLINK, &[&[0; LINK][..], &attribute(IFLA_IFNAME, b"bat\0")].concat()).unwrap();
        assert_eq!((link.name().as_deref(), link.mtu()), (Some("bat"), None));
        assert!(read(libc::RTM_NEWLINK, &[0; 15]).is_err() && read(libc::RTM_NEWADDR, &[0; 64]).is_err());
        assert!(read(libc::RTM_NEWROUTE, &[&[0; ROUTE][..], &[200, 0, 1, 0]].concat()).is_err());
    }
}

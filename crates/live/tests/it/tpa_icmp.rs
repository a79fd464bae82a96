//! Tests with hand-made ICMP messages about a connection of TPA over UDP (RFC 5927). An attacker
//! who cannot quote the connection's tag changes nothing.
//!
//! The tests run in a network namespace of their own, and need the privilege to create one. The
//! kernel of this host believes the messages, and remembers for ten minutes that the path to the
//! host itself has a small MTU.

use crate::common::{listener, ms, noise};
use crate::puppet::{Puppet, plain};
use meshpace_live::testbed::Namespace;
use meshpace_live::tpa::socket::Socket;
use meshpace_testing::{Class, skipped};
use meshpace_transport::tpa::{Flags, Segment, wire};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket as system_socket,
};
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};

/// Sends ICMP errors from this host to itself.
struct Liar(OwnedFd);

/// Types and codes of ICMP (RFC 792; RFC 1191).
const UNREACHABLE: u8 = 3;
const HOST: u8 = 1;
const PORT: u8 = 3;
const TOO_BIG: u8 = 4;

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

impl Liar {
    fn new() -> Liar {
        let socket = system_socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Icmp);
        Liar(socket.expect("who may make a network may have a raw socket in it"))
    }

    /// Reports to the sender `from` an error about its datagram to `to`, which began with
    /// `content`.
    fn tell(&self, code: u8, mtu: u16, from: SocketAddrV4, to: SocketAddrV4, content: &[u8]) {
        let udp = 8 + content.len().max(100) as u16;
        let mut quoted = vec![0x45, 0];
        quoted.extend((20 + udp).to_be_bytes());
        quoted.extend([0, 1, 0x40, 0, 64, 17, 0, 0]);
        quoted.extend(from.ip().octets());
        quoted.extend(to.ip().octets());
        let sum = checksum(&quoted);
        quoted[10..12].copy_from_slice(&sum.to_be_bytes());
        for half in [from.port(), to.port(), udp, 0] {
            quoted.extend(half.to_be_bytes());
        }
        quoted.extend(content);
        let mut message = vec![UNREACHABLE, code, 0, 0, 0, 0];
        message.extend(mtu.to_be_bytes());
        message.extend(quoted);
        let sum = checksum(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let address = SockaddrIn::from(SocketAddrV4::new(*from.ip(), 0));
        sendto(self.0.as_raw_fd(), &message, &address, MsgFlags::empty()).unwrap();
    }
}

fn v4(address: std::net::SocketAddr) -> SocketAddrV4 {
    match address {
        std::net::SocketAddr::V4(address) => address,
        std::net::SocketAddr::V6(_) => unreachable!("bound to IPv4"),
    }
}

#[test]
fn finding_3_forged_icmp_counts_only_with_the_tag() {
    match Namespace::new() {
        Ok(network) => network.run(forged_icmp),
        Err(error) => skipped(Class::Rights, format_args!("no network of its own here ({error}); needs root")),
    }
}

fn forged_icmp() {
    let liar = Liar::new();
    let listener = listener(plain());
    let puppet = Puppet::new(listener.local_addr().unwrap()).open();
    let mut stream = listener.accept().unwrap().0;
    let (own, peer) = (v4(listener.local_addr().unwrap()), v4(puppet.socket.local_addr().unwrap()));
    // Datagrams of the listener begin with the peer's tag.
    let segment = wire::encode_inside_udp(&Segment { flags: Flags::ACK, ..Segment::default() });
    let quote = |tag: u64| [&tag.to_be_bytes()[..], &segment].concat();
    let right = puppet.opening.opener;
    for round in 0..50u64 {
        for content in [quote(right ^ 1 << (round % 64)), quote(puppet.other_tag), quote(0), Vec::new()] {
            liar.tell(PORT, 0, own, peer, &content);
            liar.tell(HOST, 0, own, peer, &content);
            for mtu in [0, 68, 576, 1500, 65_535] {
                liar.tell(TOO_BIG, mtu, own, peer, &content);
            }
        }
        // The right tag, with an MTU that is large enough.
        liar.tell(TOO_BIG, 1500, own, peer, &quote(right));
    }
    // Other connections still begin with segments of the previous length.
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse::<u32>().unwrap();
    assert_eq!(Socket::mtu_between((Ipv4Addr::LOCALHOST, 0).into(), peer.into()).unwrap(), mtu);
    // The connection continues. New data arrives, and the data sent in return has the previous
    // segment size.
    puppet.say(Segment { block: puppet.block, place: 1, tx: 1, last: true, ..Segment::default() }, &noise(1, 1452));
    let mut got = vec![0; 1452];
    stream.read_exact(&mut got).unwrap();
    assert!(got == noise(1, 1452));
    std::io::Write::write_all(&mut stream, &noise(2, 1452)).unwrap();
    let payload = loop {
        let (segment, payload) = puppet.hear().expect("the stream's answer");
        if segment.place != 0 {
            break payload;
        }
    };
    assert!(payload == noise(2, 1452), "{} bytes", payload.len());
    // The messages do arrive: with the tag they end the connection once the peer has been silent
    // for a while, although it is probed.
    stream.set_read_timeout(Some(ms(200))).unwrap();
    let error = (0..300)
        .find_map(|_| {
            liar.tell(PORT, 0, own, peer, &quote(right));
            stream.read(&mut [0]).err().filter(|error| error.kind() != ErrorKind::WouldBlock)
        })
        .expect("it is still there");
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
}

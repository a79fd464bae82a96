//! Ethernet frames of the nodes' devices: the fields that the mesh needs, and those that a router
//! changes.
//!
//! Sources: IEEE Std 802.3, 3.1 (frame); RFC 826 (ARP); RFC 791, section 3.1 (time to live, header
//! checksum); RFC 3168, section 5 (ECN field); RFC 1624, equation 3 (a checksum after a change).

use crate::address::{self, Mac};
use etherparse::{Ipv4HeaderSlice, TcpHeaderSlice, UdpHeaderSlice};
use meshpace_core::NodeId;
use std::net::Ipv4Addr;

/// Length of an Ethernet header in bytes.
pub const HEADER: usize = 14;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
/// Length of an ARP message for IPv4 over Ethernet in bytes.
const ARP_BYTES: usize = 28;
/// Beginning of such a message: hardware type 1, protocol IPv4, address lengths 6 and 4.
const ARP_KIND: [u8; 6] = [0, 1, 0x08, 0, 6, 4];
const ARP_REQUEST: [u8; 2] = [0, 1];
const ARP_REPLY: [u8; 2] = [0, 2];
/// Offsets in a frame of the ECN field, the time to live and the header checksum.
const TOS: usize = HEADER + 1;
const TTL: usize = HEADER + 8;
const CHECKSUM: usize = HEADER + 10;
/// ECN codepoints: not ECN-capable transport, and congestion experienced.
const NOT_ECT: u8 = 0;
const CE: u8 = 3;

/// Destination of a frame. `None` if the bytes are too short for a frame.
pub fn destination(frame: &[u8]) -> Option<Mac> {
    if frame.len() < HEADER { None } else { frame.first_chunk().copied() }
}

/// Reply to an ARP request for the address of one of `nodes`, sent by a mesh that knows them all.
/// `None` for all other frames. `None` also for a node that requests its own address to detect a
/// conflict (RFC 5227).
pub fn arp_reply(frame: &[u8], asker: NodeId, nodes: usize) -> Option<[u8; HEADER + ARP_BYTES]> {
    let arp = frame.get(HEADER..HEADER + ARP_BYTES)?;
    if frame[12..14] != ETHERTYPE_ARP || arp[..6] != ARP_KIND || arp[6..8] != ARP_REQUEST {
        return None;
    }
    let (asker_mac, asker_ip, wanted) = (&arp[8..14], &arp[14..18], &arp[24..28]);
    let wanted_ip = Ipv4Addr::from(*wanted.first_chunk::<4>()?);
    let node = address::node_of(wanted_ip, nodes).filter(|&node| node != asker)?;
    let mac = address::mac(node);
    let mut reply = [0; HEADER + ARP_BYTES];
    let parts: [&[u8]; 9] = [asker_mac, &mac, &ETHERTYPE_ARP, &ARP_KIND, &ARP_REPLY, &mac, wanted, asker_mac, asker_ip];
    let mut at = 0;
    for part in parts {
        reply[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    Some(reply)
}

/// A conversation: protocol, addresses, and ports if the protocol has ports.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Conversation {
    /// Number of the protocol (IANA); `None` for frames other than IPv4.
    pub protocol: Option<u8>,
    /// Source and destination address.
    pub addresses: [Ipv4Addr; 2],
    /// Source and destination port; zero for protocols without ports.
    pub ports: [u16; 2],
}

/// Facts about a frame that the mesh and the measurements need.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Facts {
    /// The conversation to which the frame belongs.
    pub conversation: Conversation,
    /// Time to live; 255 for frames other than IPv4.
    pub ttl: u8,
    /// True if the transport reacts to congestion marks.
    pub ecn_capable: bool,
    /// DiffServ code point; 0 for frames other than IPv4.
    pub dscp: u8,
    /// Fields of the TCP segment, if it is one.
    pub tcp: Option<TcpFacts>,
    /// Payload of the transport in bytes.
    pub payload: u32,
}

/// Fields of a TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpFacts {
    /// Sequence number.
    pub sequence: u32,
    /// True if the segment has the SYN, FIN or RST flag.
    pub is_control: bool,
}

/// Reads the headers of a frame.
pub fn facts(frame: &[u8]) -> Facts {
    let unknown = Facts {
        conversation: Conversation { protocol: None, addresses: [Ipv4Addr::UNSPECIFIED; 2], ports: [0; 2] },
        ttl: u8::MAX,
        ecn_capable: false,
        dscp: 0,
        tcp: None,
        payload: 0,
    };
    let Some(packet) = ipv4(frame) else { return unknown };
    let Ok(header) = Ipv4HeaderSlice::from_slice(packet) else { return unknown };
    let addresses = [header.source_addr(), header.destination_addr()];
    let protocol = header.protocol().0;
    let length = usize::from(header.total_len()).min(packet.len());
    let inside = packet.get(header.slice().len()..length).unwrap_or_default();
    // Only the first fragment contains the ports.
    let is_first = header.fragments_offset().value() == 0;
    let (mut ports, mut tcp, mut payload) = ([0; 2], None, inside.len());
    if is_first && protocol == 6 {
        if let Ok(segment) = TcpHeaderSlice::from_slice(inside) {
            ports = [segment.source_port(), segment.destination_port()];
            let is_control = segment.syn() || segment.fin() || segment.rst();
            tcp = Some(TcpFacts { sequence: segment.sequence_number(), is_control });
            payload = inside.len() - segment.slice().len();
        }
    } else if is_first
        && protocol == 17
        && let Ok(datagram) = UdpHeaderSlice::from_slice(inside)
    {
        ports = [datagram.source_port(), datagram.destination_port()];
        payload = inside.len() - datagram.slice().len();
    }
    Facts {
        conversation: Conversation { protocol: Some(protocol), addresses, ports },
        ttl: header.ttl(),
        ecn_capable: header.ecn().value() != NOT_ECT,
        dscp: header.dcp().value(),
        tcp,
        payload: payload as u32,
    }
}

fn ipv4(frame: &[u8]) -> Option<&[u8]> {
    (frame.get(12..14)? == ETHERTYPE_IPV4).then(|| &frame[HEADER..])
}

/// Updates the frame of an IPv4 packet on arrival: writes its time to live, and the congestion mark
/// if the packet is marked and ECN-capable.
pub fn arrive(frame: &mut [u8], ttl: u8, is_marked: bool) {
    if ipv4(frame).is_none_or(|packet| packet.len() < 20) {
        return;
    }
    if frame[TTL] != ttl {
        change(frame, TTL, ttl);
    }
    if is_marked && frame[TOS] & CE != NOT_ECT {
        change(frame, TOS, frame[TOS] | CE);
    }
}

/// Changes one byte of the IP header and updates the checksum.
fn change(frame: &mut [u8], at: usize, to: u8) {
    let word_at = at & !1;
    let word = |frame: &[u8], at: usize| u16::from_be_bytes([frame[at], frame[at + 1]]);
    let before = word(frame, word_at);
    frame[at] = to;
    let after = word(frame, word_at);
    let checksum = word(frame, CHECKSUM);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    frame[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn tcp_frame(payload: &[u8], ecn: u8) -> Vec<u8> {
        let (from, to) = (NodeId(0), NodeId(7));
        let mut ip =
            etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::TCP, [10, 99, 0, 1], [10, 99, 0, 8]).unwrap();
        ip.ecn = etherparse::IpEcn::try_new(ecn).unwrap();
        let builder = PacketBuilder::ethernet2(address::mac(from), address::mac(to))
            .ip(etherparse::IpHeaders::Ipv4(ip, Default::default()))
            .tcp(40_000, 5201, 77, 1000);
        let mut frame = Vec::new();
        builder.write(&mut frame, payload).unwrap();
        frame
    }

    #[test]
    fn a_segment_says_what_it_is() {
        let frame = tcp_frame(&[7; 100], 2);
        let facts = facts(&frame);
        assert_eq!(destination(&frame), Some(address::mac(NodeId(7))));
        assert_eq!((facts.ttl, facts.ecn_capable, facts.payload), (64, true, 100));
        assert_eq!(facts.tcp, Some(TcpFacts { sequence: 77, is_control: false }));
        assert_eq!(facts.conversation.ports, [40_000, 5201]);
        assert_eq!(facts.conversation.addresses, [Ipv4Addr::new(10, 99, 0, 1), Ipv4Addr::new(10, 99, 0, 8)]);
    }

    #[test]
    fn what_a_router_changes_keeps_the_checksum_right() {
        for (ecn, marked) in [(0, false), (0, true), (1, true), (2, true), (2, false)] {
            for ttl in [1, 58, 63] {
                let mut frame = tcp_frame(&[1, 2, 3], ecn);
                arrive(&mut frame, ttl, marked);
                let (header, _) = etherparse::Ipv4Header::from_slice(&frame[HEADER..]).unwrap();
                assert_eq!(header.header_checksum, header.calc_header_checksum(), "{ecn} {marked} {ttl}");
                assert_eq!(header.time_to_live, ttl);
                let expected = if marked && ecn != 0 { 3 } else { ecn };
                assert_eq!(header.ecn.value(), expected);
            }
        }
    }

    #[test]
    fn the_mesh_answers_for_its_nodes() {
        // Fields as in RFC 826, written out by hand.
        let mut request = vec![0xff; 6];
        request.extend(address::mac(NodeId(1)));
        request.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
        request.extend(address::mac(NodeId(1)));
        request.extend([10, 99, 0, 2, 0, 0, 0, 0, 0, 0, 10, 99, 0, 4]);
        let reply = arp_reply(&request, NodeId(1), 8).unwrap();
        assert_eq!(reply[..6], address::mac(NodeId(1)));
        assert_eq!(reply[6..12], address::mac(NodeId(3)));
        assert_eq!(reply[20..22], [0, 2]);
        assert_eq!(reply[22..28], address::mac(NodeId(3)));
        assert_eq!(reply[28..32], [10, 99, 0, 4]);
        assert_eq!(reply[32..38], address::mac(NodeId(1)));
        assert_eq!(reply[38..42], [10, 99, 0, 2]);
        assert_eq!(arp_reply(&request, NodeId(3), 8), None, "its own address");
        assert_eq!(arp_reply(&request, NodeId(1), 3), None, "no such node");
        assert_eq!(arp_reply(&request[..30], NodeId(1), 8), None, "cut short");
        request[21] = 2;
        assert_eq!(arp_reply(&request, NodeId(1), 8), None, "a reply");
    }

    #[test]
    fn strange_frames_are_carried_without_knowing_them() {
        for frame in [&[][..], &[0; 13], &[0xff; 14], &[0x08; 60]] {
            let facts = facts(frame);
            assert_eq!((facts.conversation.protocol, facts.tcp), (None, None));
            let mut copy = frame.to_vec();
            arrive(&mut copy, 1, true);
            assert_eq!(copy, frame);
        }
        let mut short = tcp_frame(&[], 0);
        short.truncate(HEADER + 12);
        assert_eq!(facts(&short).conversation.protocol, None);
        let before = short.clone();
        arrive(&mut short, 1, true);
        assert_eq!(short, before);
    }
}

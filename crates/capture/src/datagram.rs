//! Finds the UDP datagram in a captured packet, and builds the same packet with another payload.

use etherparse::{IpHeaders, UdpHeader, ip_number};
use pcap_file::DataLink;

/// A UDP datagram in a captured packet.
#[derive(Debug)]
pub struct Datagram<'a> {
    /// Bytes before the IP header.
    link: &'a [u8],
    ip: IpHeaders,
    udp: UdpHeader,
    /// Payload of the datagram.
    pub content: &'a [u8],
}

/// Ethernet types of the payloads that are recognised.
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const VLAN: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];

/// Position of the IP packet; `None` if there is none.
fn ip_at(link: DataLink, packet: &[u8]) -> Option<usize> {
    let kind = |at: usize| packet.get(at..at + 2)?.first_chunk::<2>().copied();
    let is_ip = |kind: Option<[u8; 2]>| kind == Some(IPV4) || kind == Some(IPV6);
    match link {
        DataLink::ETHERNET => {
            let mut at = 12;
            while kind(at).is_some_and(|kind| VLAN.contains(&kind)) {
                at += 4;
            }
            is_ip(kind(at)).then_some(at + 2)
        }
        DataLink::LINUX_SLL => is_ip(kind(14)).then_some(16),
        DataLink::LINUX_SLL2 => is_ip(kind(0)).then_some(20),
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Some(0),
        DataLink::NULL | DataLink::LOOP => Some(4),
        _ => None,
    }
}

impl Datagram<'_> {
    /// Finds the UDP datagram in a packet of this link type. `None` if there is none or if it is a
    /// fragment.
    pub fn find(link: DataLink, packet: &[u8]) -> Option<Datagram<'_>> {
        let (link, rest) = packet.split_at_checked(ip_at(link, packet)?)?;
        let (ip, payload) = IpHeaders::from_slice(rest).ok()?;
        if payload.ip_number != ip_number::UDP || payload.fragmented {
            return None;
        }
        let (udp, content) = UdpHeader::from_slice(payload.payload).ok()?;
        Some(Datagram { link, ip, udp, content })
    }

    /// Builds the packet with `content` as payload, with correct lengths and checksums.
    pub fn with(&self, content: &[u8]) -> Vec<u8> {
        let mut ip = self.ip.clone();
        let UdpHeader { source_port, destination_port, .. } = self.udp;
        // The payload is never longer than the captured one, so that every length fits.
        let udp = match &ip {
            IpHeaders::Ipv4(ip, _) => UdpHeader::with_ipv4_checksum(source_port, destination_port, ip, content),
            IpHeaders::Ipv6(ip, _) => UdpHeader::with_ipv6_checksum(source_port, destination_port, ip, content),
        };
        let mut packet = self.link.to_vec();
        if let Ok(udp) = udp
            && ip.set_payload_len(UdpHeader::LEN + content.len()).is_ok()
            && ip.write(&mut packet).is_ok()
        {
            packet.extend(udp.to_bytes());
            packet.extend(content);
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    /// Function that builds the bytes before an IP packet of the given Ethernet type.
    type Head = fn([u8; 2]) -> Vec<u8>;

    /// With every link type, the payload that was put in is found, and so is the one that replaces
    /// it, with correct checksums.
    #[test]
    fn contents_are_found_and_replaced() {
        let v4 = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 60).udp(7800, 9);
        let v6 = PacketBuilder::ipv6([1; 16], [2; 16], 60).udp(7800, 9);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        v4.write(&mut a, b"something long").unwrap();
        v6.write(&mut b, b"something long").unwrap();
        let links: [(DataLink, Head); 6] = [
            (DataLink::ETHERNET, |kind| [&[7; 12][..], &kind].concat()),
            (DataLink::ETHERNET, |kind| [&[7; 12][..], &[0x81, 0, 0, 5], &kind].concat()),
            (DataLink::LINUX_SLL, |kind| [&[7; 14][..], &kind].concat()),
            (DataLink::LINUX_SLL2, |kind| [&kind[..], &[7; 18]].concat()),
            (DataLink::RAW, |_| Vec::new()),
            (DataLink::LOOP, |_| vec![0; 4]),
        ];
        for (link, head) in links {
            for (kind, ip) in [(IPV4, &a), (IPV6, &b)] {
                let packet = [head(kind), ip.clone()].concat();
                let found = Datagram::find(link, &packet).unwrap();
                assert_eq!(found.content, b"something long");
                let other = found.with(b"short");
                assert_eq!(other.len(), packet.len() - 9);
                let found = Datagram::find(link, &other).unwrap();
                assert_eq!((found.content, found.udp.length), (&b"short"[..], 13));
                let right = match &found.ip {
                    IpHeaders::Ipv4(ip, _) => {
                        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                        found.udp.calc_checksum_ipv4(ip, found.content)
                    }
                    IpHeaders::Ipv6(ip, _) => found.udp.calc_checksum_ipv6(ip, found.content),
                };
                assert_eq!(Ok(found.udp.checksum), right);
                assert!(Datagram::find(link, &packet[..packet.len() - 1]).is_none(), "cut short");
            }
        }
        assert!(Datagram::find(DataLink::ETHERNET, &[7; 60]).is_none());
        assert!(Datagram::find(DataLink::USER0, &a).is_none());
    }
}

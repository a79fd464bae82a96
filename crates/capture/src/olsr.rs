//! OLSR messages in the wire format of RFC 3626.
//!
//! Source: RFC 3626, sections 3.3 (packet and message header), 3.1 (UDP port 698), 6.1 (HELLO), 9.1
//! (TC), 18.3 (validity times); olsrd 0.4.10 for the messages with delivery ratios (types 201 and
//! 202). Messages are complete, and their lengths are those of the simulator.

use super::address::ip;
use super::network;
use meshpace_core::{Duration, NodeId};
use meshpace_mesh::OlsrMetric;
use meshpace_mesh::routing::olsr::{
    Content, HELLO_INTERVAL, LinkCode, Listed, Message, NEIGHB_HOLD_TIME, TOP_HOLD_TIME,
};

/// UDP port of OLSR.
const PORT: u16 = 698;
/// Willingness of every node: WILL_DEFAULT.
const WILLINGNESS: u8 = 3;

/// Appends the IP packet in which `from` broadcasts `message`.
pub fn write(out: &mut Vec<u8>, message: &Message, from: NodeId) {
    let ratios = message.metric == OlsrMetric::Etx;
    let mut body = Vec::with_capacity(128);
    let (kind, validity) = match &message.content {
        Content::Hello(hello) => {
            body.extend([0, 0, time(HELLO_INTERVAL), WILLINGNESS]);
            for code in LinkCode::ALL {
                let group = hello.group(code);
                if !group.is_empty() {
                    let length = 4 + group.len() * if ratios { 8 } else { 4 };
                    body.extend([link_code(code), 0]);
                    body.extend((length as u16).to_be_bytes());
                    list(&mut body, group, ratios);
                }
            }
            (if ratios { 201 } else { 1 }, NEIGHB_HOLD_TIME)
        }
        Content::Tc(tc) => {
            body.extend(tc.ansn.to_be_bytes());
            body.extend([0, 0]);
            list(&mut body, tc.list(), ratios);
            (if ratios { 202 } else { 2 }, TOP_HOLD_TIME)
        }
    };
    let size = 12 + body.len() as u16;
    let mut packet = Vec::with_capacity(4 + usize::from(size));
    packet.extend((4 + size).to_be_bytes());
    packet.extend(message.packet.to_be_bytes());
    packet.extend([kind, time(validity)]);
    packet.extend(size.to_be_bytes());
    packet.extend(ip(message.originator));
    packet.extend([message.ttl, message.hop_count]);
    packet.extend(message.sequence.to_be_bytes());
    packet.extend(body);
    // The packet travels one hop; the message has its own time to live.
    network::udp_message(out, 1, PORT, from, NodeId::BROADCAST, &packet);
}

fn list(body: &mut Vec<u8>, listed: &[Listed], ratios: bool) {
    for neighbour in listed {
        body.extend(ip(neighbour.node));
        if ratios {
            body.extend([neighbour.quality, neighbour.reverse, 0, 0]);
        }
    }
}

/// Link code (section 6.1.1): link type in bits 0 and 1 (asymmetric 1, symmetric 2, lost 3),
/// neighbour type in bits 2 and 3 (not a neighbour 0, symmetric 1, MPR 2).
fn link_code(code: LinkCode) -> u8 {
    match code {
        LinkCode::Asymmetric => 1,
        LinkCode::Symmetric => 1 << 2 | 2,
        LinkCode::Relay => 2 << 2 | 2,
        LinkCode::Lost => 3,
    }
}

/// Encodes a time (section 18.3): (1 + a / 16) 2^b / 16 s, a in the upper and b in the lower four
/// bits, rounded up.
fn time(span: Duration) -> u8 {
    // The unit is 1/256 s, so that each step of a is a whole number for b >= 0.
    let units = (span.0 * 256).div_ceil(1_000_000_000);
    let (mut a, mut b) = (0, 0);
    while b < 15 && (32 << b) <= units {
        b += 1;
    }
    while a < 15 && ((16 + a) << b) < units {
        a += 1;
    }
    (a << 4 | b) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_mesh::routing::olsr::{Hello, Tc};

    fn encoded(content: Content, metric: OlsrMetric) -> Vec<u8> {
        let message = Message {
            originator: NodeId(4),
            sequence: 0x0102,
            packet: 0x0304,
            ttl: 255,
            hop_count: 2,
            metric,
            content,
        };
        let mut out = Vec::new();
        write(&mut out, &message, NodeId(1));
        assert_eq!(out.len() as u32, message.size());
        assert_eq!((out[8], &out[16..20], &out[20..24]), (1, &[255; 4][..], &[0x02, 0xba, 0x02, 0xba][..]));
        out.split_off(28)
    }

    fn listed(n: u16) -> Listed {
        Listed { node: NodeId(n), quality: 255, reverse: 128 }
    }

    #[test]
    fn a_hello_groups_its_neighbours() {
        let mut neighbours = [(LinkCode::Relay, listed(2)), (LinkCode::Lost, listed(3)), (LinkCode::Relay, listed(0))];
        let hello = Content::Hello(Hello::parts(&mut neighbours).next().unwrap());
        #[rustfmt::skip]
        let expected = [
            0, 40, 3, 4, // packet length and number
            1, 0x86, 0, 36, 10, 0, 0, 5, 255, 2, 1, 2, // HELLO, 6 s
            0, 0, 0x05, 3, // 2 s, willingness
            0x0a, 0, 0, 12, 10, 0, 0, 1, 10, 0, 0, 3,
            0x03, 0, 0, 8, 10, 0, 0, 4,
        ];
        assert_eq!(encoded(hello, OlsrMetric::Hops), expected);
    }

    #[test]
    fn a_tc_with_ratios() {
        let tc = Content::Tc(Tc::parts(0x0506, &[listed(2)]).next().unwrap());
        #[rustfmt::skip]
        let expected = [
            0, 28, 3, 4,
            202, 0xe7, 0, 24, 10, 0, 0, 5, 255, 2, 1, 2, // 15 s
            5, 6, 0, 0, 10, 0, 0, 3, 255, 128, 0, 0,
        ];
        assert_eq!(encoded(tc, OlsrMetric::Etx), expected);
    }

    #[test]
    fn times_are_those_of_the_rfc() {
        // Section 18.3 gives (a, b) for 2, 6, 15 and 30 s: (0, 5), (8, 6), (14, 7), (14, 8). 5 s = (1 + 4 / 16) 2^6 / 16.
        for (seconds, code) in [(2, 0x05), (5, 0x46), (6, 0x86), (15, 0xe7), (30, 0xe8)] {
            assert_eq!(time(Duration::from_secs(seconds)), code, "{seconds} s");
        }
    }
}

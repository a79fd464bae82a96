//! AODV messages in the wire format of RFC 3561.
//!
//! Source: RFC 3561, sections 5.1 to 5.3 (formats), 5 (UDP port 654), 6.3 and 6.6 (meaning of the
//! fields). Departures: the simulator's messages follow ns-2, whose RREQ and RREP are 4 bytes
//! longer than those of the RFC. With IP and UDP they have 48 and 44 bytes, against 52 and 48 here,
//! because ns-2 counts 8 fewer for UDP. ns-2's hop counts are those of the receiver, one more than
//! the sender writes here. ns-2's time of the request has no field in the RFC and is left out.

use super::network;
use meshpace_core::NodeId;
use meshpace_mesh::routing::aodv::Message;

/// UDP port of AODV.
const PORT: u16 = 654;
const RREQ: u8 = 1;
const RREP: u8 = 2;
const RERR: u8 = 3;
/// RREQ flag U: the destination's sequence number is unknown.
const UNKNOWN_SEQUENCE: u8 = 0x08;

/// Appends the IP packet in which `from` sends `message` to its neighbour `to`.
pub fn write(out: &mut Vec<u8>, message: &Message, from: NodeId, to: NodeId) {
    let mut body = Vec::with_capacity(52);
    let ttl = match message {
        Message::Request(request) => {
            let flags = if request.destination_sequence == 0 { UNKNOWN_SEQUENCE } else { 0 };
            body.extend([RREQ, flags, 0, request.hop_count.saturating_sub(1)]);
            body.extend(request.id.to_be_bytes());
            body.extend(super::address::ip(request.destination));
            body.extend(request.destination_sequence.to_be_bytes());
            body.extend(super::address::ip(request.origin));
            body.extend(request.origin_sequence.to_be_bytes());
            request.ttl
        }
        Message::Reply(reply) => {
            body.extend([RREP, 0, 0, reply.hop_count.saturating_sub(1)]);
            body.extend(super::address::ip(reply.destination));
            body.extend(reply.destination_sequence.to_be_bytes());
            body.extend(super::address::ip(reply.origin));
            // The simulator has seconds, the message milliseconds.
            body.extend(reply.lifetime.saturating_mul(1000).to_be_bytes());
            reply.ttl
        }
        Message::Error(lost) => {
            body.extend([RERR, 0, 0, lost.len() as u8]);
            for (destination, sequence) in lost.iter() {
                body.extend(super::address::ip(destination));
                body.extend(sequence.to_be_bytes());
            }
            1
        }
    };
    network::udp_message(out, ttl, PORT, from, to, &body);
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::Time;
    use meshpace_mesh::routing::aodv::{Reply, Request, Unreachable};

    fn encoded(message: Message, to: NodeId) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, &message, NodeId(1), to);
        assert_eq!(out[20..24], [0x02, 0x8e, 0x02, 0x8e], "port 654");
        out
    }

    #[test]
    fn a_request_at_its_second_hop() {
        let out = encoded(
            Message::Request(Request {
                origin: NodeId(0),
                origin_sequence: 4,
                id: 3,
                destination: NodeId(7),
                destination_sequence: 0,
                hop_count: 2,
                ttl: 5,
                requested_at: Time::ZERO,
            }),
            NodeId::BROADCAST,
        );
        assert_eq!((out[8], &out[16..20]), (5, &[255; 4][..]), "TTL and limited broadcast");
        #[rustfmt::skip]
        let expected = [
            1, 0x08, 0, 1, // RREQ, U, hop count
            0, 0, 0, 3, // RREQ ID
            10, 0, 0, 8, 0, 0, 0, 0, // destination
            10, 0, 0, 1, 0, 0, 0, 4, // originator
        ];
        assert_eq!(out[28..], expected);
    }

    #[test]
    fn a_reply_from_the_destination() {
        let out = encoded(
            Message::Reply(Reply {
                origin: NodeId(0),
                destination: NodeId(7),
                destination_sequence: 6,
                hop_count: 1,
                ttl: 30,
                lifetime: 10,
                requested_at: Time::ZERO,
            }),
            NodeId(0),
        );
        #[rustfmt::skip]
        let expected = [
            2, 0, 0, 0, // RREP, no flags, prefix size 0, hop count
            10, 0, 0, 8, 0, 0, 0, 6, // destination
            10, 0, 0, 1, // originator
            0, 0, 0x27, 0x10, // 10,000 ms
        ];
        assert_eq!(out[28..], expected);
    }

    #[test]
    fn an_error_lists_the_destinations() {
        let mut lost = Unreachable::new();
        assert!(lost.push(NodeId(7), 9) && lost.push(NodeId(6), 2));
        let out = encoded(Message::Error(lost), NodeId::BROADCAST);
        assert_eq!(out[8], 1, "one hop");
        assert_eq!(out[28..], [3, 0, 0, 2, 10, 0, 0, 8, 0, 0, 0, 9, 10, 0, 0, 7, 0, 0, 0, 2]);
    }
}

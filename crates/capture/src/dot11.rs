//! 802.11 frames as they are on the air.
//!
//! Source: IEEE Std 802.11-1999, 7.1.3 (frame control, duration, addresses, sequence control),
//! 7.2.1 (RTS, CTS, ACK), 7.2.2 (data; addresses of a frame within an independent BSS), 7.1.3.6
//! (FCS). LLC and SNAP headers (RFC 1042) identify the packet inside. With 802.11n: IEEE Std
//! 802.11-2016, 9.2.4.5 (QoS control: TID, ack policy), 9.3.1.8 and 9.3.1.9 (block ACK request and
//! block ACK); the header has the 26 bytes that the simulator uses.
//!
//! Departure from the simulator's lengths: its data header has 34 bytes under the profile `ns2` and
//! 28 under `ieee`, including the FCS. Here it has 36 (24 + 8 for LLC and SNAP + 4).

use super::address::{BSSID, mac};
use super::network::{self, FlowFacts};
use super::{aodv, olsr};
use meshpace_mesh::Body;
use meshpace_mesh::mac::{Category, Frame, FrameKind};
use meshpace_mesh::routing::Message;
use meshpace_sim::SimPacket;

/// First byte of the frame control field: version 0, type and subtype.
const RTS: u8 = 0xb4;
const CTS: u8 = 0xc4;
const ACK: u8 = 0xd4;
const DATA: u8 = 0x08;
/// Data frame without data.
const NULL: u8 = 0x48;
const BLOCK_ACK: u8 = 0x94;
const BLOCK_ACK_REQ: u8 = 0x84;
/// Bit of the first byte of the frame control field: the data frame has QoS control.
const QOS: u8 = 0x80;
/// QoS control: broadcasts are not acknowledged.
const NO_ACK: u16 = 0x0020;
/// Control field of a compressed block ACK and of its request, without the TID in its highest four
/// bits.
const COMPRESSED: u16 = 0x0004;
/// Second byte of the frame control field: the frame is a retransmission.
const RETRY: u8 = 0x08;
/// Largest time in the duration field, in microseconds; larger values have other meanings.
const MAX_DURATION: u64 = 32_767;
/// Length of the FCS in bytes.
const FCS: u32 = 4;

const IPV4: [u8; 2] = [0x08, 0x00];
const ARP: [u8; 2] = [0x08, 0x06];

/// TID of a category: the first of its two user priorities (IEEE Std 802.11-2016, table 10-1); best
/// effort is 0.
fn tid(category: Category) -> u16 {
    match category {
        Category::Background => 1,
        Category::BestEffort => 0,
        Category::Video => 4,
        Category::Voice => 6,
    }
}

/// Appends `frame`; its data header has QoS control if `has_qos` is set. Returns the number of
/// bytes at its end that are left out: payload and FCS.
pub fn write(out: &mut Vec<u8>, frame: &Frame<SimPacket>, has_qos: bool, flows: &[FlowFacts]) -> u32 {
    let begin = out.len();
    let kind = match (frame.kind, &frame.body) {
        (FrameKind::Rts, _) => RTS,
        (FrameKind::Cts, _) => CTS,
        (FrameKind::Ack, _) => ACK,
        (FrameKind::BlockAck, _) => BLOCK_ACK,
        (FrameKind::BlockAckReq, _) => BLOCK_ACK_REQ,
        (FrameKind::Data, Some(_)) if has_qos => DATA | QOS,
        (FrameKind::Data, Some(_)) => DATA,
        (FrameKind::Data, None) => NULL,
    };
    out.extend([kind, if frame.retry { RETRY } else { 0 }]);
    out.extend(((frame.nav.0.div_ceil(1_000)).min(MAX_DURATION) as u16).to_le_bytes());
    out.extend(mac(frame.to));
    match frame.kind {
        FrameKind::Rts => out.extend(mac(frame.from)),
        FrameKind::Cts | FrameKind::Ack => {}
        FrameKind::BlockAck | FrameKind::BlockAckReq => {
            out.extend(mac(frame.from));
            out.extend((COMPRESSED | tid(frame.category) << 12).to_le_bytes());
            out.extend((frame.sequence << 4).to_le_bytes());
            if frame.kind == FrameKind::BlockAck {
                out.extend(frame.bitmap.to_le_bytes());
            }
        }
        FrameKind::Data => {
            out.extend(mac(frame.from));
            out.extend(BSSID);
            // Fragment number 0.
            out.extend((frame.sequence << 4).to_le_bytes());
            if has_qos {
                let policy = if frame.to.is_broadcast() { NO_ACK } else { 0 };
                out.extend((tid(frame.category) | policy).to_le_bytes());
            }
        }
    }
    let left_out = frame.body.as_ref().map_or(0, |packet| body(out, packet, frame, flows));
    if left_out > 0 {
        return left_out + FCS;
    }
    let fcs = crc32fast::hash(&out[begin..]);
    out.extend(fcs.to_le_bytes());
    0
}

fn body(out: &mut Vec<u8>, body: &Body<SimPacket>, frame: &Frame<SimPacket>, flows: &[FlowFacts]) -> u32 {
    // LLC header: SNAP on both sides, unnumbered information. SNAP header: Ethernet types.
    out.extend([0xaa, 0xaa, 0x03, 0, 0, 0]);
    match body {
        Body::Data(packet) => {
            out.extend(IPV4);
            network::packet(out, packet, &flows[packet.flow.index()])
        }
        Body::Routing(Message::Aodv(message)) => {
            out.extend(IPV4);
            aodv::write(out, message, frame.from, frame.to);
            0
        }
        Body::Routing(Message::Olsr(message)) => {
            out.extend(IPV4);
            olsr::write(out, message, frame.from);
            0
        }
        Body::Routing(Message::Flooding(never)) => match *never {},
        Body::Arp { request, sender, target } => {
            out.extend(ARP);
            network::arp(out, *request, *sender, *target);
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_core::{Duration, NodeId};
    use meshpace_mesh::radio::FrameRate;

    fn frame(kind: FrameKind, body: Option<Body<SimPacket>>) -> Frame<SimPacket> {
        Frame {
            kind,
            from: NodeId(0),
            to: NodeId(1),
            bytes: 0,
            rate: FrameRate::BASIC,
            air_time: Duration::ZERO,
            nav: Duration::from_micros(0x1234),
            sequence: 0xabc,
            retry: false,
            body,
            category: Category::BestEffort,
            bitmap: 0,
        }
    }

    fn encoded(frame: &Frame<SimPacket>) -> Vec<u8> {
        let mut out = Vec::new();
        assert_eq!(write(&mut out, frame, false, &[]), 0);
        out
    }

    #[test]
    fn control_frames_have_their_standard_length() {
        let rts = encoded(&frame(FrameKind::Rts, None));
        assert_eq!(rts[..16], [0xb4, 0, 0x34, 0x12, 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        assert_eq!(rts.len(), 20);
        let cts = encoded(&frame(FrameKind::Cts, None));
        assert_eq!((cts[0], &cts[4..10], cts.len()), (0xc4, &[2, 0, 0, 0, 0, 2][..], 14));
        assert_eq!(encoded(&frame(FrameKind::Ack, None))[..2], [0xd4, 0]);
    }

    #[test]
    fn a_data_frame_names_cell_sequence_and_retry() {
        let arp = Body::Arp { request: true, sender: NodeId(0), target: NodeId(1) };
        let mut again = frame(FrameKind::Data, Some(arp));
        again.retry = true;
        let out = encoded(&again);
        assert_eq!(out[..2], [0x08, 0x08]);
        assert_eq!(out[16..24], [2, 0, 1, 0, 0, 0, 0xc0, 0xab]);
        assert_eq!(out[24..32], [0xaa, 0xaa, 3, 0, 0, 0, 8, 6]);
        assert_eq!(out.len(), 24 + 8 + 28 + 4);
    }

    #[test]
    fn data_of_802_11n_and_its_block_ack_name_their_category() {
        let arp = Body::Arp { request: true, sender: NodeId(0), target: NodeId(1) };
        let mut data = frame(FrameKind::Data, Some(arp));
        data.category = Category::Voice;
        let mut out = Vec::new();
        assert_eq!(write(&mut out, &data, true, &[]), 0);
        assert_eq!((out[0], &out[22..28]), (0x88, &[0xc0, 0xab, 6, 0, 0xaa, 0xaa][..]));
        assert_eq!(out.len(), 26 + 8 + 28 + 4);
        data.to = NodeId::BROADCAST;
        out.clear();
        write(&mut out, &data, true, &[]);
        assert_eq!(out[24..26], [0x26, 0], "nobody answers a broadcast");
        let mut answer = frame(FrameKind::BlockAck, None);
        (answer.category, answer.bitmap) = (Category::Voice, 0x8000_0000_0000_0003);
        let out = encoded(&answer);
        assert_eq!(out[16..28], [0x04, 0x60, 0xc0, 0xab, 3, 0, 0, 0, 0, 0, 0, 0x80]);
        // 9.3.1.9: 16 + 2 + 2 + 8 + 4.
        assert_eq!(out.len(), 32);
    }

    #[test]
    fn a_duration_beyond_the_field_is_cut_to_its_largest() {
        let mut long = frame(FrameKind::Rts, None);
        long.nav = Duration::from_micros(65_535);
        assert_eq!(encoded(&long)[2..4], [0xff, 0x7f]);
    }

    #[test]
    fn the_fcs_leaves_the_residue_of_the_standard() {
        // 7.1.3.6 with Annex C of IEEE 802.3: a CRC-32 over frame and FCS leaves 0xdebb20e3 before the final complement.
        let out = encoded(&frame(FrameKind::Ack, None));
        let crc = out.iter().fold(!0u32, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |c, _| if c & 1 == 1 { c >> 1 ^ 0xedb8_8320 } else { c >> 1 })
        });
        assert_eq!(crc, 0xdebb_20e3);
    }
}

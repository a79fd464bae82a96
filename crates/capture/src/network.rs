//! Network layer of a capture: IPv4 with TCP or UDP, and ARP.
//!
//! Source: RFC 791, RFC 9293, RFC 768, RFC 826; window scale as in RFC 7323, section 2. Departures
//! from the simulator's own lengths: a SYN carries its two options (8 bytes, which the simulator
//! does not count), and a UDP datagram has its true header of 8 bytes (ns-2 counts 20 for IP and
//! UDP together). Time stamps (RFC 7323) are not written: an option in every segment would make
//! every packet longer than the one that the simulator sent.

use super::address;
use etherparse::{
    ArpEthIpv4Packet, ArpOperation, IpDscp, IpEcn, IpNumber, Ipv4Header, TcpHeader, TcpOptionElement, TcpOptions,
    UdpHeader,
};
use meshpace_core::NodeId;
use meshpace_sim::{Flow, SimPacket};
use meshpace_transport::tcp::{self, Flags};
use meshpace_transport::{Config, Segment, flush, tpa, train, udp};

/// Payload that every segment is assumed to have. It is not captured, but checksums cover it.
static PAYLOAD: [u8; 65_535] = [0; 65_535];

/// Initial sequence number of the end that sends the data. Its value is arbitrary. It is fixed so
/// that captures of the same run are identical, and not 0, which readers understand as "not seen
/// yet".
const SENDER_ISN: u32 = 1_000_000;
/// Initial sequence number of the end that receives the data.
const RECEIVER_ISN: u32 = 2_000_000;

/// Facts about a flow that a capture needs in addition to its packets.
#[derive(Clone, Copy, Debug)]
pub struct FlowFacts {
    /// Node that sends the data.
    from: NodeId,
    /// Payload of a full segment: the maximum segment size in the SYNs of both ends.
    mss: u16,
    /// Number of bits by which the window field is shifted.
    window_scale: u8,
}

impl FlowFacts {
    /// Derives the facts from the configuration of `flow`.
    pub fn new(flow: &Flow) -> FlowFacts {
        let window = match &flow.transport {
            Config::Tcp(config) => config.segment.saturating_mul(config.max_window),
            Config::Train(config) => config.segment.saturating_mul(u32::from(config.max_window)),
            Config::Udp(_) | Config::Tpa(_) | Config::Flush(_) => 0,
        };
        let fits = |shift: &u8| scaled(window, *shift) <= u32::from(u16::MAX);
        FlowFacts {
            from: flow.from,
            mss: u16::try_from(flow.transport.segment()).unwrap_or(u16::MAX),
            // The largest shift allowed is 14 (RFC 7323, section 2.3).
            window_scale: (0..14).find(fits).unwrap_or(14),
        }
    }
}

/// Converts a window to units of 2^`shift` bytes, rounded up: the window in the capture must not be
/// smaller than the one that was offered.
fn scaled(window: u32, shift: u8) -> u32 {
    window.div_ceil(1 << shift)
}

/// Appends the headers of `packet`. Returns the number of payload bytes that are left out.
pub fn packet(out: &mut Vec<u8>, packet: &SimPacket, flow: &FlowFacts) -> u32 {
    let (from_port, to_port) = address::ports(packet.flow);
    let sends_data = packet.source == flow.from;
    let ports = if sends_data { (from_port, to_port) } else { (to_port, from_port) };
    let (source, destination) = (address::ip(packet.source), address::ip(packet.destination));
    match &packet.segment {
        Segment::Tcp(segment) => {
            let mut header = tcp_header(segment, ports, sends_data, flow);
            let payload = &PAYLOAD[..usize::from(segment.payload)];
            // The size of segments is limited, so that they fit into an IP packet.
            header.checksum = header.calc_checksum_ipv4_raw(source, destination, payload).unwrap_or(0);
            ip_header(out, packet, IpNumber::TCP, header.header_len_u16(), u32::from(segment.payload));
            out.extend_from_slice(&header.to_bytes());
        }
        Segment::Train(segment) => {
            let mut header = train_header(segment, ports, sends_data, flow);
            let payload = &PAYLOAD[..usize::from(segment.payload)];
            header.checksum = header.calc_checksum_ipv4_raw(source, destination, payload).unwrap_or(0);
            ip_header(out, packet, IpNumber::TCP, header.header_len_u16(), u32::from(segment.payload));
            out.extend_from_slice(&header.to_bytes());
        }
        Segment::Flush(segment) => {
            let mut header = flush_header(segment, ports, sends_data, flow);
            let payload = &PAYLOAD[..usize::from(segment.payload)];
            header.checksum = header.calc_checksum_ipv4_raw(source, destination, payload).unwrap_or(0);
            ip_header(out, packet, IpNumber::TCP, header.header_len_u16(), u32::from(segment.payload));
            out.extend_from_slice(&header.to_bytes());
        }
        Segment::Udp(udp::Datagram { payload, .. }) => {
            ip_header(out, packet, IpNumber::UDP, UdpHeader::LEN_U16, u32::from(*payload));
            udp_header(out, ports, (source, destination), &PAYLOAD[..usize::from(*payload)]);
        }
        // TPA runs over UDP, as in the implementation of its authors.
        Segment::Tpa(segment) => {
            let header = tpa::wire::encode_inside_udp(segment);
            let payload = [&header, &PAYLOAD[..usize::from(segment.payload)]].concat();
            ip_header(out, packet, IpNumber::UDP, UdpHeader::LEN_U16, payload.len() as u32);
            udp_header(out, ports, (source, destination), &payload);
            out.extend_from_slice(&header);
        }
    }
    packet.segment.payload()
}

fn tcp_header(segment: &tcp::Segment, ports: (u16, u16), sends_data: bool, flow: &FlowFacts) -> TcpHeader {
    let (own, peer) = if sends_data { (SENDER_ISN, RECEIVER_ISN) } else { (RECEIVER_ISN, SENDER_ISN) };
    let syn = segment.flags.has(Flags::SYN);
    // The window of a SYN is never scaled (RFC 7323, section 2.2).
    let window = scaled(segment.window, if syn { 0 } else { flow.window_scale });
    let window = u16::try_from(window).unwrap_or(u16::MAX);
    let mut header = TcpHeader::new(ports.0, ports.1, segment.wire_seq(own), window);
    header.acknowledgment_number = segment.wire_ack(peer);
    header.fin = segment.flags.has(Flags::FIN);
    header.syn = syn;
    header.rst = segment.flags.has(Flags::RST);
    header.ack = segment.flags.has(Flags::ACK);
    header.ece = segment.flags.has(Flags::ECE);
    if syn {
        let options = [
            TcpOptionElement::MaximumSegmentSize(flow.mss),
            TcpOptionElement::Noop,
            TcpOptionElement::WindowScale(flow.window_scale),
        ];
        // The options take eight of at most forty bytes.
        header.options = TcpOptions::try_from_elements(&options).unwrap_or_default();
    }
    header
}

/// TCP header with the option of quiet trains, which is the only option in a SYN.
fn train_header(segment: &train::Segment, ports: (u16, u16), sends_data: bool, flow: &FlowFacts) -> TcpHeader {
    let as_tcp = tcp::Segment {
        seq: segment.seq,
        ack: segment.ack,
        window: u32::from(segment.window).saturating_mul(u32::from(flow.mss)),
        payload: segment.payload,
        flags: segment.flags,
        ..tcp::Segment::default()
    };
    let mut header = tcp_header(&as_tcp, ports, sends_data, flow);
    header.psh = segment.is_tail();
    let option = train::wire::content(segment).map(|content| train::wire::encode(&content));
    let options = option.map(|(bytes, length)| TcpOptions::try_from_slice(&bytes[..length]));
    header.options = options.and_then(Result::ok).unwrap_or_default();
    header
}

/// TCP header with an option for the gaps that a NACK names. Only the sink sends acknowledgements,
/// only the source sends data, and there is no window.
fn flush_header(segment: &flush::Segment, ports: (u16, u16), sends_data: bool, flow: &FlowFacts) -> TcpHeader {
    let as_tcp = tcp::Segment {
        seq: if sends_data { segment.offset } else { 0 },
        ack: if sends_data { 0 } else { segment.offset },
        window: u32::from(u16::MAX),
        payload: segment.payload,
        flags: segment.flags,
        ..tcp::Segment::default()
    };
    let mut header = tcp_header(&as_tcp, ports, sends_data, flow);
    header.psh = segment.flags.has(Flags::PSH);
    if !segment.flags.has(Flags::SYN) {
        header.options = TcpOptions::try_from_slice(&segment.option()).unwrap_or_default();
    }
    header
}

fn ip_header(out: &mut Vec<u8>, packet: &SimPacket, protocol: IpNumber, header: u16, payload: u32) {
    let mut ip = ipv4(packet.ttl, protocol, packet.source, packet.destination, u32::from(header) + payload);
    // The identification wraps. It distinguishes packets that are in the network at the same time.
    ip.identification = packet.id as u16;
    ip.dscp = IpDscp::try_new(packet.dscp).unwrap_or_default();
    if packet.ce {
        ip.ecn = IpEcn::CongestionExperienced;
    }
    finish_ip(out, ip);
}

fn ipv4(ttl: u8, protocol: IpNumber, source: NodeId, destination: NodeId, length: u32) -> Ipv4Header {
    Ipv4Header {
        total_len: u16::try_from(length + Ipv4Header::MIN_LEN as u32).unwrap_or(u16::MAX),
        dont_fragment: true,
        time_to_live: ttl,
        protocol,
        source: address::ip(source),
        destination: address::ip(destination),
        ..Ipv4Header::default()
    }
}

fn finish_ip(out: &mut Vec<u8>, mut ip: Ipv4Header) {
    ip.header_checksum = ip.calc_header_checksum();
    out.extend_from_slice(&ip.to_bytes());
}

fn udp_header(out: &mut Vec<u8>, ports: (u16, u16), ip: ([u8; 4], [u8; 4]), payload: &[u8]) {
    let mut header = UdpHeader {
        source_port: ports.0,
        destination_port: ports.1,
        length: u16::try_from(UdpHeader::LEN + payload.len()).unwrap_or(u16::MAX),
        checksum: 0,
    };
    // The size of datagrams is limited, so that they fit into an IP packet.
    header.checksum = header.calc_checksum_ipv4_raw(ip.0, ip.1, payload).unwrap_or(0);
    out.extend_from_slice(&header.to_bytes());
}

/// Appends a whole UDP packet from `source` to `destination`; `port` is the port at both ends.
pub fn udp_message(out: &mut Vec<u8>, ttl: u8, port: u16, source: NodeId, destination: NodeId, payload: &[u8]) {
    let length = UdpHeader::LEN + payload.len();
    finish_ip(out, ipv4(ttl, IpNumber::UDP, source, destination, length as u32));
    udp_header(out, (port, port), (address::ip(source), address::ip(destination)), payload);
    out.extend_from_slice(payload);
}

/// Appends an ARP packet: a request of `sender` for `target`, or its reply to `target`.
pub fn arp(out: &mut Vec<u8>, request: bool, sender: NodeId, target: NodeId) {
    let packet = ArpEthIpv4Packet {
        operation: if request { ArpOperation::REQUEST } else { ArpOperation::REPLY },
        sender_mac: address::mac(sender),
        sender_ipv4: address::ip(sender),
        // A request does not know the address yet.
        target_mac: if request { [0; 6] } else { address::mac(target) },
        target_ipv4: address::ip(target),
    };
    out.extend_from_slice(&packet.to_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ones' complement sum of RFC 1071 over big-endian words, written from the RFC.
    fn sum(parts: &[&[u8]]) -> u16 {
        let bytes: Vec<u8> = parts.concat();
        let mut sum: u32 = bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn sim_packet(segment: Segment) -> SimPacket {
        SimPacket {
            id: 0x0001_0203,
            source: NodeId(0),
            destination: NodeId(7),
            flow: meshpace_core::FlowId(2),
            connection: 0,
            ttl: 30,
            hops: 0,
            ce: false,
            dscp: 0,
            segment,
        }
    }

    fn facts(window: u32) -> FlowFacts {
        let flow = Flow {
            from: NodeId(0),
            to: NodeId(7),
            transport: Config::Tcp(tcp::Config { segment: 1, max_window: window, ..tcp::Config::default() }),
            traffic: meshpace_sim::Traffic::Ftp,
            start: meshpace_core::Time::ZERO,
            start_jitter: meshpace_core::Duration::ZERO,
            stop: None,
            dscp: 0,
        };
        FlowFacts { mss: 1460, ..FlowFacts::new(&flow) }
    }

    fn data(seq: u64, flags: Flags, payload: u16) -> Segment {
        Segment::Tcp(tcp::Segment {
            seq,
            ack: 0,
            window: 93_440,
            ts_val: 1,
            ts_ecr: 0,
            payload,
            flags,
            ..tcp::Segment::default()
        })
    }

    #[test]
    fn a_data_segment_has_forty_bytes_and_valid_checksums() {
        let mut out = Vec::new();
        let left_out = packet(&mut out, &sim_packet(data(1460, Flags::ACK, 1460)), &facts(93_440));
        assert_eq!((out.len(), left_out), (40, 1460));
        // Total length 1500, identification 0x0203, TTL 30, TCP, 10.0.0.1 to 10.0.0.8.
        assert_eq!(out[2..6], [0x05, 0xdc, 0x02, 0x03]);
        assert_eq!(out[8..10], [30, 6]);
        assert_eq!(out[12..20], [10, 0, 0, 1, 10, 0, 0, 8]);
        assert_eq!(sum(&[&out[..20]]), 0xffff, "IP");
        let pseudo = [&out[12..20], &[0, 6], &1480u16.to_be_bytes()].concat();
        assert_eq!(sum(&[&pseudo, &out[20..], &[0; 1460]]), 0xffff, "TCP");
        // 1,000,000 + SYN + 1460.
        assert_eq!(out[24..28], 1_001_461u32.to_be_bytes());
        // 93,440 bytes in units of two.
        assert_eq!(out[34..36], 46_720u16.to_be_bytes());
    }

    #[test]
    fn a_syn_carries_mss_and_window_scale() {
        let mut out = Vec::new();
        packet(&mut out, &sim_packet(data(0, Flags::SYN, 0)), &facts(93_440));
        assert_eq!(out[24..28], 1_000_000u32.to_be_bytes());
        // Kind 2, length 4, 1460; no operation; kind 3, length 3, shift 1.
        assert_eq!(out[40..], [2, 4, 0x05, 0xb4, 1, 3, 3, 1]);
        assert_eq!(out[34..36], [0xff, 0xff], "the window of a SYN is not scaled");
    }

    #[test]
    fn the_receiver_answers_from_the_other_port_and_sequence_space() {
        let mut ack = sim_packet(Segment::Tcp(tcp::Segment {
            seq: 0,
            ack: 2920,
            window: 60_000,
            ts_val: 0,
            ts_ecr: 0,
            payload: 0,
            flags: Flags::ACK,
            ..tcp::Segment::default()
        }));
        (ack.source, ack.destination) = (NodeId(7), NodeId(0));
        let mut out = Vec::new();
        packet(&mut out, &ack, &facts(60_000));
        assert_eq!(out[20..24], [57_346u16.to_be_bytes(), 49_154u16.to_be_bytes()].concat());
        assert_eq!(out[24..28], 2_000_001u32.to_be_bytes());
        assert_eq!(out[28..32], 1_002_921u32.to_be_bytes());
        assert_eq!(out[34..36], 60_000u16.to_be_bytes());
    }

    #[test]
    fn the_window_scale_is_the_smallest_that_fits() {
        let scale = |window| facts(window).window_scale;
        assert_eq!([scale(65_535), scale(65_536), scale(131_071), scale(u32::MAX)], [0, 1, 2, 14]);
        assert_eq!(scaled(65_537, 1), 32_769, "rounded up");
    }

    #[test]
    fn a_datagram_has_its_true_header() {
        let mut out = Vec::new();
        let left_out =
            packet(&mut out, &sim_packet(Segment::Udp(udp::Datagram { number: 9, payload: 1000 })), &facts(1));
        assert_eq!((out.len(), left_out), (28, 1000));
        assert_eq!(out[2..4], 1028u16.to_be_bytes());
        assert_eq!(out[24..26], 1008u16.to_be_bytes());
        let pseudo = [&out[12..20], &[0, 17], &1008u16.to_be_bytes()].concat();
        assert_eq!(sum(&[&pseudo, &out[20..], &[0; 1000]]), 0xffff);
    }

    #[test]
    fn a_tpa_segment_travels_in_udp_and_is_as_long_as_simulated() {
        let segment = tpa::Segment { block: 7, place: 1, payload: 1000, tx: 3, window: 9, ..tpa::Segment::default() };
        let mut out = Vec::new();
        let left_out = packet(&mut out, &sim_packet(Segment::Tpa(segment)), &facts(1));
        assert_eq!((out.len(), left_out), (40, 1000));
        assert_eq!(out[2..4], 1040u16.to_be_bytes());
        assert_eq!(out[24..26], 1020u16.to_be_bytes());
        let pseudo = [&out[12..20], &[0, 17], &1020u16.to_be_bytes()].concat();
        assert_eq!(sum(&[&pseudo, &out[20..], &[0; 1000]]), 0xffff);
        let bytes = [&out[28..], &[0; 1000]].concat();
        assert_eq!(tpa::wire::decode_inside_udp(&bytes).map(|decoded| decoded.0), Ok(segment));
    }

    #[test]
    fn a_congestion_mark_is_in_the_ip_header() {
        let mut marked = sim_packet(data(0, Flags::ACK, 10));
        marked.ce = true;
        let mut out = Vec::new();
        packet(&mut out, &marked, &facts(1));
        assert_eq!(out[1], 0b11);
    }

    #[test]
    fn arp_asks_and_answers() {
        let mut out = Vec::new();
        arp(&mut out, true, NodeId(0), NodeId(1));
        #[rustfmt::skip]
        let expected = [
            0, 1, 8, 0, 6, 4, 0, 1, // Ethernet, IPv4, 6 and 4 bytes, request
            2, 0, 0, 0, 0, 1, 10, 0, 0, 1, // sender
            0, 0, 0, 0, 0, 0, 10, 0, 0, 2, // target
        ];
        assert_eq!(out, expected);
        out.clear();
        arp(&mut out, false, NodeId(1), NodeId(0));
        assert_eq!((out[7], &out[18..24]), (2, &[2, 0, 0, 0, 0, 1][..]));
    }
}

//! IPv4 packets with TCP segments, and the ICMP errors about them.
//!
//! See RFC 791 and RFC 792. Packets are sent without "don't fragment": a path with a smaller MTU
//! fragments them, so that no ICMP error about the MTU has to be trusted. Received fragments are
//! refused; hosts send TCP in whole packets.

use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv4HeaderSlice};
use meshpace_transport::checksum;
use meshpace_transport::tcp::wire::{self, Addresses, Check, Header};
use std::fmt;

/// Time to live of packets that are sent (RFC 1700; the value that Linux uses).
pub const TIME_TO_LIVE: u8 = 64;

/// A packet that has arrived.
#[derive(Debug)]
pub enum Packet<'a> {
    /// A TCP segment.
    Tcp {
        /// Source and destination address.
        addresses: Addresses,
        /// Header of the segment.
        header: Header,
        /// Payload of the segment.
        payload: &'a [u8],
        /// Remaining time to live.
        ttl: u8,
        /// True if a router marked the packet (RFC 3168).
        ce: bool,
    },
    /// An ICMP error about one of our segments.
    Unreachable(Unreachable),
}

/// ICMP error about one of our segments (RFC 792: destination unreachable, time exceeded).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable {
    /// ICMP type: 3 or 11.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// Addresses of the segment.
    pub addresses: Addresses,
    /// Source port of the segment.
    pub source: u16,
    /// Destination port of the segment.
    pub destination: u16,
    /// Sequence number of the segment.
    pub seq: u32,
}

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.kind, self.code) {
            (3, 0) => "network unreachable",
            (3, 1) => "host unreachable",
            (3, 2) => "the host knows no TCP",
            (3, 3) => "port unreachable",
            (3, 4) => "packet too long for the path",
            (3, 9 | 10 | 13) => "forbidden by a filter",
            (11, _) => "time to live ran out on the way",
            _ => "unreachable",
        })
    }
}

/// Reason why bytes are not a packet for TCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The bytes are not an IPv4 packet, or are shorter than its header says.
    Ip,
    /// The IP header's checksum is wrong.
    IpChecksum,
    /// The packet is a fragment.
    Fragment,
    /// The packet contains neither TCP nor an ICMP error about TCP.
    Other,
    /// The packet contains no valid TCP segment.
    Tcp(wire::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Ip => f.write_str("no whole IPv4 packet"),
            Error::IpChecksum => f.write_str("wrong IP checksum"),
            Error::Fragment => f.write_str("a fragment"),
            Error::Other => f.write_str("neither TCP nor an error about it"),
            Error::Tcp(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

/// Decodes a packet.
///
/// # Errors
/// The bytes are not a whole IPv4 packet with a TCP segment or an ICMP error about one, or a
/// checksum that `check` requires is wrong.
pub fn decode(bytes: &[u8], check: Check) -> Result<Packet<'_>, Error> {
    let (ip, body) = split(bytes)?;
    if ip.more_fragments() || ip.fragments_offset().value() > 0 {
        return Err(Error::Fragment);
    }
    match ip.protocol() {
        IpNumber::TCP => {
            let addresses = Addresses { source: ip.source(), destination: ip.destination() };
            let (header, payload) = wire::decode(body, addresses, check).map_err(Error::Tcp)?;
            let ce = ip.ecn() == IpEcn::CongestionExperienced;
            Ok(Packet::Tcp { addresses, header, payload, ttl: ip.ttl(), ce })
        }
        IpNumber::ICMP => unreachable(body).map(Packet::Unreachable).ok_or(Error::Other),
        _ => Err(Error::Other),
    }
}

fn split(bytes: &[u8]) -> Result<(Ipv4HeaderSlice<'_>, &[u8]), Error> {
    let ip = Ipv4HeaderSlice::from_slice(bytes).map_err(|_| Error::Ip)?;
    if checksum::sum(ip.slice(), 0) != 0xffff {
        return Err(Error::IpChecksum);
    }
    let length = usize::from(ip.total_len());
    let body = bytes.get(ip.slice().len()..length).ok_or(Error::Ip)?;
    Ok((ip, body))
}

/// Decodes an ICMP error about a TCP segment. The message quotes the segment's IP header and at
/// least eight bytes of the segment.
fn unreachable(message: &[u8]) -> Option<Unreachable> {
    let [kind @ (3 | 11), code, _, _, _, _, _, _, quoted @ ..] = message else { return None };
    if checksum::sum(message, 0) != 0xffff {
        return None;
    }
    let ip = Ipv4HeaderSlice::from_slice(quoted).ok()?;
    let tcp = quoted.get(ip.slice().len()..)?.first_chunk::<8>()?;
    let half = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
    (ip.protocol() == IpNumber::TCP).then(|| Unreachable {
        kind: *kind,
        code: *code,
        addresses: Addresses { source: ip.source(), destination: ip.destination() },
        source: half(0),
        destination: half(2),
        seq: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
    })
}

/// Encodes a whole packet into `out`: IP header, TCP header, and the two parts of the payload.
/// `number` is the IP identification, which distinguishes packets that are fragmented on the path.
pub fn encode<'a>(
    out: &'a mut Vec<u8>,
    header: &Header,
    addresses: Addresses,
    payload: (&[u8], &[u8]),
    number: u16,
    ecn_capable: bool,
) -> &'a [u8] {
    out.clear();
    out.extend_from_slice(&[0; Ipv4Header::MIN_LEN + wire::LONGEST]);
    let body = Ipv4Header::MIN_LEN + wire::LONGEST;
    out.extend_from_slice(payload.0);
    out.extend_from_slice(payload.1);
    let (tcp, length) = wire::encode(header, addresses, &out[body..]);
    // The headers end where the payload begins. The unused bytes before them are not sent.
    let start = wire::LONGEST - length;
    let ip = Ipv4Header {
        total_len: (out.len() - start) as u16,
        identification: number,
        dont_fragment: false,
        time_to_live: TIME_TO_LIVE,
        protocol: IpNumber::TCP,
        source: addresses.source,
        destination: addresses.destination,
        ecn: if ecn_capable { IpEcn::Ect0 } else { IpEcn::NotEct },
        ..Ipv4Header::default()
    };
    let ip = Ipv4Header { header_checksum: ip.calc_header_checksum(), ..ip };
    let ip_end = start + Ipv4Header::MIN_LEN;
    out[start..ip_end].copy_from_slice(&ip.to_bytes());
    out[ip_end..body].copy_from_slice(&tcp[..length]);
    &out[start..]
}

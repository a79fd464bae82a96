//! Encoding of TPA on the wire: 16 bytes, or 12 inside UDP, which has ports and a checksum of its
//! own.
//!
//! TPA, section 3.1 and appendix A. The layout in the paper's figure 1 is lost. The fields, with
//! the widths that the text gives (bitmaps 12 bits, flags 4), fill 128 bits as follows:
//!
//! ```text
//! word 0   source port 16, destination port 16
//! word 1   BlockSeqNumber 12, BitmapData 12, TxSeqNumber 8
//! word 2   AckBlockSeqNumber 12, BitmapAck 12, AckTxSeqNumber 8
//! word 3   checksum 16, flags 4 (ACK RST SYN FIN), txStat 1, WinSize 8, last 1, unused 2
//! ```
//!
//! "last" is an addition of this project: the segment is the last one of its block (see
//! [`Receiver`](super::Receiver)). The paper leaves 3 bits unused.
//!
//! Over UDP, words 1 to 3 are sent with a checksum of zero. The checksum is the Internet checksum
//! (RFC 1071) over header and data. It has no pseudo-header, since the paper names none. Unused
//! bits are sent as zero and ignored.

use super::segment::{ALL, Segment};
use crate::checksum::sum;
use crate::flags::Flags;
use core::fmt;

/// Bytes of the header with ports and checksum.
pub const FULL: usize = 16;

/// Bytes of the header inside UDP.
pub const INSIDE_UDP: usize = 12;

/// The ports of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
}

/// Reason why bytes are not a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// Fewer bytes than a header.
    Short,
    /// More payload than a datagram can carry.
    Long,
    /// The checksum is wrong.
    Checksum,
    /// Data at more than one place in the block.
    Places,
    /// A place without payload in a segment that is not a FIN, or payload without a place in a
    /// segment that is not a SYN.
    Payload,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Short => "shorter than a TPA header",
            Error::Long => "longer than a datagram",
            Error::Checksum => "wrong checksum",
            Error::Places => "data at more than one place of its block",
            Error::Payload => "payload without a place in a block, or a place without payload",
        })
    }
}

impl core::error::Error for Error {}

/// Encodes the header of `segment` with ports and checksum, for a packet in which `payload`
/// follows.
pub fn encode(segment: &Segment, ports: Ports, payload: &[u8]) -> [u8; FULL] {
    let mut header = [0; FULL];
    header[0..2].copy_from_slice(&ports.source.to_be_bytes());
    header[2..4].copy_from_slice(&ports.destination.to_be_bytes());
    header[4..].copy_from_slice(&encode_inside_udp(segment));
    let checksum = !sum(payload, sum(&header, 0));
    header[12..14].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// Encodes the header of `segment` for a UDP datagram.
pub fn encode_inside_udp(segment: &Segment) -> [u8; INSIDE_UDP] {
    let word = |number: u16, places: u16, tx: u8| {
        (u32::from(number & 0xfff) << 20 | u32::from(places & ALL) << 8 | u32::from(tx)).to_be_bytes()
    };
    let status = flag_bits(segment.flags) << 12 | u16::from(segment.congested) << 11 | u16::from(segment.window) << 3;
    let status = status | u16::from(segment.last) << 2;
    let mut header = [0; INSIDE_UDP];
    header[0..4].copy_from_slice(&word(segment.block, segment.place, segment.tx));
    header[4..8].copy_from_slice(&word(segment.ack_block, segment.ack_places, segment.ack_tx));
    header[10..12].copy_from_slice(&status.to_be_bytes());
    header
}

/// Decodes `bytes` into ports, segment and payload, after checking the checksum.
///
/// # Errors
///
/// Returns the reason why `bytes` are not a segment: too short, contradictory, or with a wrong
/// checksum.
pub fn decode(bytes: &[u8]) -> Result<(Ports, Segment, &[u8]), Error> {
    let header = bytes.first_chunk::<FULL>().ok_or(Error::Short)?;
    if sum(bytes, 0) != 0xffff {
        return Err(Error::Checksum);
    }
    let ports = Ports {
        source: u16::from_be_bytes([header[0], header[1]]),
        destination: u16::from_be_bytes([header[2], header[3]]),
    };
    let (segment, payload) = decode_inside_udp(&bytes[4..])?;
    Ok((ports, segment, payload))
}

/// Decodes the `bytes` of a UDP datagram into a segment and its payload.
///
/// # Errors
///
/// Returns the reason why `bytes` are not a segment: too short, too long, or contradictory.
pub fn decode_inside_udp(bytes: &[u8]) -> Result<(Segment, &[u8]), Error> {
    let (header, payload) = bytes.split_first_chunk::<INSIDE_UDP>().ok_or(Error::Short)?;
    let word = |at: usize| {
        let word = u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        ((word >> 20) as u16, (word >> 8) as u16 & ALL, word as u8)
    };
    let (block, place, tx) = word(0);
    let (ack_block, ack_places, ack_tx) = word(4);
    let status = u16::from_be_bytes([header[10], header[11]]);
    let segment = Segment {
        offset: 0,
        block,
        place,
        ack_block,
        ack_places,
        payload: u16::try_from(payload.len()).map_err(|_| Error::Long)?,
        tx,
        ack_tx,
        window: (status >> 3) as u8,
        congested: status >> 11 & 1 == 1,
        last: status >> 2 & 1 == 1,
        flags: flags_of(status >> 12),
    };
    if place.count_ones() > 1 {
        return Err(Error::Places);
    }
    let placed = place != 0;
    let carries = !payload.is_empty();
    if placed != carries && !(placed && segment.flags.has(Flags::FIN)) && !(carries && segment.flags.has(Flags::SYN)) {
        return Err(Error::Payload);
    }
    Ok((segment, payload))
}

/// The four flag bits of the header. ACK is next to the other three, which are at their positions
/// in RFC 9293.
fn flag_bits(flags: Flags) -> u16 {
    u16::from(flags.0 & 0b111) | u16::from(flags.has(Flags::ACK)) << 3
}

/// Flags of the lowest four `bits`; the upper bits are ignored.
fn flags_of(bits: u16) -> Flags {
    let others = Flags(bits as u8 & 0b111);
    if bits & 0b1000 == 0 { others } else { others.with(Flags::ACK) }
}

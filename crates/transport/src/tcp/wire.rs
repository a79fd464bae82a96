//! TCP on the wire: header, options, checksum, and the mapping between 32-bit sequence numbers and
//! stream offsets.
//!
//! RFC 9293, section 3.1, with the options of its section 3.2 (maximum segment size), RFC 7323
//! (window scale, time stamps) and RFC 2018 (selective acknowledgement). The flags are those of
//! [`super::segment`]. The one-way delay that an ACK may echo is carried by an experimental option
//! (RFC 6994): kind 253, identifier 0x4d50, 32 bits of microseconds.
//!
//! Departures: the clock of the time stamps ticks in microseconds (RFC 7323, section 5.4 suggests 1
//! ms to 1 s), because the estimators of the pacing need that resolution. Only quiet trains set and
//! read PSH (`train_wire`). URG is never used.

use super::handshake::Agreed;
use super::segment::{Extension, Segment};
use crate::checksum::sum;
use crate::flags::Flags;
use crate::train::wire as train;
use core::fmt;

/// Bytes of a header without options.
pub const BARE: usize = 20;
/// Number of bytes of the longest header.
pub const LONGEST: usize = 60;
/// Bytes that the option of time stamps takes in every segment, including its padding.
pub const TIMESTAMP_BYTES: u32 = 12;
/// The largest shift of a window (RFC 7323, section 2.3).
pub const LARGEST_SCALE: u8 = 14;
/// The largest segment that is sent to a peer whose SYN names no size (RFC 9293, section 3.7.1).
pub const DEFAULT_MSS: u16 = 536;
/// Identifier of the experimental option of the one-way delay.
const ONE_WAY_ID: [u8; 2] = *b"MP";
/// Protocol number of TCP in the IP header and in the pseudo-header.
pub const PROTOCOL: u8 = 6;

/// The two addresses of a packet. Its checksum covers them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addresses {
    /// Address of the sender.
    pub source: [u8; 4],
    /// Address of the receiver.
    pub destination: [u8; 4],
}

/// Reason why bytes are not a valid TCP segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// There are fewer bytes than the header claims, or fewer than any header has.
    Short,
    /// The header claims to be shorter than the shortest possible header.
    Offset,
    /// There are more bytes than an IP packet carries.
    Long,
    /// The checksum is wrong.
    Checksum,
    /// An option is longer than its room, or has an impossible length.
    Option,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::Short => "shorter than its TCP header",
            Error::Offset => "a TCP header of less than 20 bytes",
            Error::Long => "longer than an IP packet",
            Error::Checksum => "wrong TCP checksum",
            Error::Option => "malformed TCP option",
        })
    }
}

impl core::error::Error for Error {}

/// Strictness of the verification of checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Check {
    /// The checksum has to be correct.
    Full,
    /// The checksum may also be the bare sum of the pseudo-header. A packet has this value if the
    /// host's kernel hands it over before its network card has filled the checksum in.
    Offloaded,
}

/// Blocks received beyond a gap, as sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Blocks {
    list: [(u32, u32); 4],
    count: u8,
}

impl Blocks {
    /// The blocks in the order in which they were added.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.list[..usize::from(self.count)]
    }

    /// Adds a block. Returns whether there was room for it.
    pub fn push(&mut self, block: (u32, u32)) -> bool {
        let Some(slot) = self.list.get_mut(usize::from(self.count)) else { return false };
        *slot = block;
        self.count += 1;
        true
    }
}

/// The options of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Largest payload that the sender of a SYN accepts.
    pub mss: Option<u16>,
    /// Number of bits by which the windows of the sender of a SYN are shifted.
    pub window_scale: Option<u8>,
    /// True if the sender of a SYN understands selective acknowledgements.
    pub sack_permitted: bool,
    /// Time stamp, and echo of the peer's time stamp.
    pub timestamps: Option<(u32, u32)>,
    /// Blocks received beyond a gap.
    pub blocks: Blocks,
    /// The echoed one-way delay in microseconds.
    pub one_way_us: Option<u32>,
    /// The option of quiet trains.
    pub train: Option<train::Content>,
}

impl Options {
    /// Number of bytes that the options take in a header, padding included. More than 40 bytes
    /// cannot be written.
    pub fn length(&self) -> usize {
        let blocks = match self.blocks.as_slice().len() {
            0 => 0,
            count => 4 + 8 * count,
        };
        let fixed = [(self.mss.is_some(), 4), (self.window_scale.is_some(), 4), (self.sack_permitted, 4)];
        let fixed: usize = fixed.iter().map(|(is_there, length)| if *is_there { *length } else { 0 }).sum();
        let stamps = if self.timestamps.is_some() { TIMESTAMP_BYTES as usize } else { 0 };
        let train = self.train.as_ref().map_or(0, |content| train::encode(content).1);
        fixed + stamps + if self.one_way_us.is_some() { 8 } else { 0 } + train + blocks
    }

    /// Shortens the options to `room` bytes. The last blocks beyond a gap are removed first, then
    /// the echoed delay. Alternatively the segment could be shorter by the length of its options
    /// (RFC 6691, section 2), but the next ACK without data reports the removed ones again.
    pub fn within(mut self, room: usize) -> Options {
        while self.blocks.count > 0 && self.length() > room {
            self.blocks.count -= 1;
            self.blocks.list[usize::from(self.blocks.count)] = (0, 0);
        }
        if self.length() > room {
            self.one_way_us = None;
        }
        self
    }
}

/// A TCP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Port of the sender.
    pub source: u16,
    /// Port of the receiver.
    pub destination: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Flags of the header.
    pub flags: Flags,
    /// The window field as it is in the header, not scaled.
    pub window: u16,
    /// Options of the header.
    pub options: Options,
}

/// Mask of the flags that are used here.
const KNOWN_FLAGS: u8 = 0xdf;

/// Writer that appends options to a bare header.
struct Writer {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn room(&self) -> usize {
        LONGEST - self.length
    }
}

/// A buffer with an encoded header, and the length of the header in bytes.
pub type Encoded = ([u8; LONGEST], usize);

/// Encodes the header with the checksum of header and `payload`. Blocks that do not fit into the
/// forty bytes of options are left out.
pub fn encode(header: &Header, addresses: Addresses, payload: &[u8]) -> Encoded {
    let mut out = Writer { bytes: [0; LONGEST], length: BARE };
    let options = &header.options;
    if let Some(mss) = options.mss {
        let [high, low] = mss.to_be_bytes();
        out.put(&[2, 4, high, low]);
    }
    if let Some(scale) = options.window_scale {
        out.put(&[1, 3, 3, scale]);
    }
    if options.sack_permitted {
        out.put(&[1, 1, 4, 2]);
    }
    if let Some((value, echo)) = options.timestamps {
        out.put(&[1, 1, 8, 10]);
        out.put(&value.to_be_bytes());
        out.put(&echo.to_be_bytes());
    }
    if let Some(microseconds) = options.one_way_us {
        out.put(&[253, 8]);
        out.put(&ONE_WAY_ID);
        out.put(&microseconds.to_be_bytes());
    }
    if let Some(content) = &options.train {
        let (bytes, length) = train::encode(content);
        out.put(&bytes[..length]);
    }
    let blocks = options.blocks.as_slice();
    let fitting = blocks.len().min(out.room().saturating_sub(4) / 8);
    if fitting > 0 {
        out.put(&[1, 1, 5, 2 + 8 * fitting as u8]);
        for (start, end) in &blocks[..fitting] {
            out.put(&start.to_be_bytes());
            out.put(&end.to_be_bytes());
        }
    }
    let Writer { mut bytes, length } = out;
    bytes[0..2].copy_from_slice(&header.source.to_be_bytes());
    bytes[2..4].copy_from_slice(&header.destination.to_be_bytes());
    bytes[4..8].copy_from_slice(&header.seq.to_be_bytes());
    bytes[8..12].copy_from_slice(&header.ack.to_be_bytes());
    // Every option above is padded to whole words.
    bytes[12] = (length as u8 / 4) << 4;
    bytes[13] = header.flags.0 & KNOWN_FLAGS;
    bytes[14..16].copy_from_slice(&header.window.to_be_bytes());
    let start = sum(&bytes[..length], pseudo_sum(addresses, length + payload.len()));
    let checksum = !sum(payload, start);
    bytes[16..18].copy_from_slice(&checksum.to_be_bytes());
    (bytes, length)
}

/// Sum of the pseudo-header of a segment of `length` bytes (RFC 9293, section 3.1).
fn pseudo_sum(addresses: Addresses, length: usize) -> u16 {
    let [high, low] = (length as u16).to_be_bytes();
    let [a, b, c, d] = addresses.source;
    let [e, f, g, h] = addresses.destination;
    sum(&[a, b, c, d, e, f, g, h, 0, PROTOCOL, high, low], 0)
}

/// Splits `bytes`, the body of an IP packet between `addresses`, into header and payload.
///
/// # Errors
///
/// Names the fault of `bytes`: too short, inconsistent, or with a wrong checksum.
pub fn decode(bytes: &[u8], addresses: Addresses, check: Check) -> Result<(Header, &[u8]), Error> {
    let fixed = bytes.first_chunk::<BARE>().ok_or(Error::Short)?;
    if bytes.len() > usize::from(u16::MAX) {
        return Err(Error::Long);
    }
    let length = usize::from(fixed[12] >> 4) * 4;
    if length < BARE {
        return Err(Error::Offset);
    }
    let (header, payload) = bytes.split_at_checked(length).ok_or(Error::Short)?;
    let pseudo = pseudo_sum(addresses, bytes.len());
    let unfilled = check == Check::Offloaded && fixed[16..18] == pseudo.to_be_bytes();
    if !unfilled && sum(bytes, pseudo) != 0xffff {
        return Err(Error::Checksum);
    }
    let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let decoded = Header {
        source: half(0),
        destination: half(2),
        seq: word(4),
        ack: word(8),
        flags: Flags(fixed[13] & KNOWN_FLAGS),
        window: half(14),
        options: decode_options(&header[BARE..])?,
    };
    Ok((decoded, payload))
}

fn decode_options(mut bytes: &[u8]) -> Result<Options, Error> {
    let mut options = Options::default();
    while let [kind, rest @ ..] = bytes {
        match kind {
            0 => break,
            1 => {
                bytes = rest;
                continue;
            }
            _ => {}
        }
        let length = usize::from(*rest.first().ok_or(Error::Option)?);
        let body = bytes.get(2..length).ok_or(Error::Option)?;
        match (kind, body) {
            (2, &[high, low]) => options.mss = Some(u16::from_be_bytes([high, low])),
            // A larger shift is treated as the largest one (RFC 7323, section 2.3).
            (3, &[scale]) => options.window_scale = Some(scale.min(LARGEST_SCALE)),
            (4, []) => options.sack_permitted = true,
            (8, &[a, b, c, d, e, f, g, h]) => {
                options.timestamps = Some((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])));
            }
            (5, blocks) if !blocks.is_empty() && blocks.len() % 8 == 0 => {
                for block in blocks.chunks_exact(8) {
                    let edge = |at: usize| u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
                    options.blocks.push((edge(0), edge(4)));
                }
            }
            (253, &[i, j, a, b, c, d]) if [i, j] == ONE_WAY_ID => {
                options.one_way_us = Some(u32::from_be_bytes([a, b, c, d]));
            }
            (253, body) => {
                if let Some(content) = train::decode(body) {
                    options.train = Some(content);
                }
            }
            // A known option has a wrong length.
            (2..=5 | 8, _) => return Err(Error::Option),
            _ => {}
        }
        bytes = &bytes[length..];
    }
    Ok(options)
}

/// Sequence numbers and window scales of a connection, as the two SYNs determined them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbers {
    /// Our initial sequence number.
    pub own: u32,
    /// The peer's initial sequence number.
    pub peer: u32,
    /// Number of bits by which our windows are shifted.
    pub own_scale: u8,
    /// Number of bits by which the peer's windows are shifted.
    pub peer_scale: u8,
    /// True if segments carry time stamps.
    pub timestamps: bool,
}

/// A segment as the protocol uses it, and the blocks beyond a gap that its header reported.
#[derive(Clone, Copy, Debug)]
pub struct Understood {
    /// The segment without the blocks.
    pub segment: Segment,
    blocks: [(u64, u64); 4],
    count: usize,
}

impl Understood {
    /// The blocks as offsets in our stream.
    pub fn blocks(&self) -> &[(u64, u64)] {
        &self.blocks[..self.count]
    }
}

/// The smallest shift with which `window` bytes fit into the window field.
pub fn scale_for(window: u32) -> u8 {
    (0..LARGEST_SCALE).find(|shift| window >> shift <= u32::from(u16::MAX)).unwrap_or(LARGEST_SCALE)
}

/// Defines a function that maps a wrapping sequence number to a stream offset. Offset 0 has the
/// number after `isn`. Of the offsets that the number can stand for, the one closest to `near` is
/// returned; `None` if it is below 0. The macro allows tests to check all numbers of 8 bits with
/// the same source.
macro_rules! offset {
    ($name:ident, $number:ty) => {
        pub(super) fn $name(number: $number, isn: $number, near: u64) -> Option<u64> {
            let expected = isn.wrapping_add(1).wrapping_add(near as $number);
            near.checked_add_signed(i64::from(number.wrapping_sub(expected).cast_signed()))
        }
    };
}

offset!(offset, u32);

/// Marks an offset before the start of the stream. The value is beyond every window, so the segment
/// is answered but not accepted.
pub(super) const BEFORE: u64 = u64::MAX;

impl Numbers {
    /// The header of `segment`. `blocks` are the blocks beyond a gap, as offsets in the peer's
    /// stream; they are used if the segment reports blocks.
    pub fn header(&self, segment: &Segment, ports: (u16, u16), blocks: impl Iterator<Item = (u64, u64)>) -> Header {
        let syn = segment.flags.has(Flags::SYN);
        let window = segment.window >> if syn { 0 } else { self.own_scale };
        let mut header = Header {
            source: ports.0,
            destination: ports.1,
            seq: segment.wire_seq(self.own),
            ack: segment.wire_ack(self.peer),
            flags: segment.flags,
            window: u16::try_from(window).unwrap_or(u16::MAX),
            options: Options::default(),
        };
        if self.timestamps && !segment.flags.has(Flags::RST) {
            header.options.timestamps = Some((segment.ts_val, segment.ts_ecr));
        }
        if segment.extension == Extension::OneWayDelay {
            header.options.one_way_us = Some(segment.words[0] as u32);
        }
        if !syn && segment.extension == Extension::Sack {
            let number = |offset: u64| self.peer.wrapping_add(1).wrapping_add(offset as u32);
            for (start, end) in blocks {
                if !header.options.blocks.push((number(start), number(end))) {
                    break;
                }
            }
        }
        header
    }

    /// The segment that `header` with `payload` bytes represents. `expected` is the next offset of
    /// the peer's stream, and everything before `acknowledged` in our stream is acknowledged.
    /// `None` if time stamps were agreed on and the header has none (RFC 7323, section 3.2).
    pub fn segment(&self, header: &Header, payload: u16, expected: u64, acknowledged: u64) -> Option<Understood> {
        let flags = header.flags;
        let syn = flags.has(Flags::SYN);
        let (ts_val, ts_ecr) = match header.options.timestamps {
            Some(stamps) => stamps,
            None if self.timestamps && !flags.has(Flags::RST) => return None,
            None => (0, 0),
        };
        let own_offset = |number| offset(number, self.own, acknowledged);
        let ack = if flags.has(Flags::ACK) { own_offset(header.ack).unwrap_or(BEFORE) } else { 0 };
        let seq = if syn { 0 } else { offset(header.seq, self.peer, expected).unwrap_or(BEFORE) };
        let mut understood = Understood {
            segment: Segment {
                seq,
                ack,
                window: u32::from(header.window) << if syn { 0 } else { self.peer_scale },
                ts_val,
                ts_ecr,
                payload,
                flags,
                extension: Extension::None,
                words: [0; 2],
            },
            blocks: [(0, 0); 4],
            count: 0,
        };
        let sound = |&(start, end): &(u32, u32)| {
            let (start, end) = (own_offset(start)?, own_offset(end)?);
            (ack < start && start < end && ack != BEFORE).then_some((start, end))
        };
        for block in header.options.blocks.as_slice().iter().filter_map(sound) {
            understood.blocks[understood.count] = block;
            understood.count += 1;
        }
        if let Some(microseconds) = header.options.one_way_us {
            understood.segment.extension = Extension::OneWayDelay;
            understood.segment.words = [u64::from(microseconds), 0];
        }
        Some(understood)
    }
}

/// The options of our SYN, which offers every option. `window` is the largest window in bytes.
pub fn offer(mss: u16, window: u32) -> Options {
    Options { mss: Some(mss), window_scale: Some(scale_for(window)), sack_permitted: true, ..Options::default() }
}

/// The options of our SYN-ACK: those that the SYN offered too (RFC 7323, sections 2.2 and 3.2; RFC
/// 2018, section 2).
pub fn answer(mss: u16, window: u32, syn: &Options) -> Options {
    let ours = offer(mss, window);
    Options {
        window_scale: ours.window_scale.filter(|_| syn.window_scale.is_some()),
        sack_permitted: syn.sack_permitted,
        ..ours
    }
}

/// Agreement of two SYNs if the path accepts segments of `path_mss` bytes, options included. The
/// payload is at least one byte.
pub fn agreed(path_mss: u16, peer: &Options) -> Agreed {
    let timestamps = peer.timestamps.is_some();
    let mss = u32::from(path_mss.min(peer.mss.unwrap_or(DEFAULT_MSS)));
    // A full segment has to hold its options too (RFC 6691).
    let taken = if timestamps { TIMESTAMP_BYTES } else { 0 };
    Agreed { segment: mss.saturating_sub(taken).max(1), timestamps, sack: peer.sack_permitted }
}

#[cfg(test)]
mod tests {
    offset!(short, u8);

    #[test]
    fn a_number_of_eight_bits_stands_for_the_nearest_offset_that_has_it() {
        let has = |offset: i64, isn: u8, number: u8| (i64::from(isn) + 1 + offset).rem_euclid(256) == i64::from(number);
        for (isn, number) in (0..=u8::MAX).flat_map(|isn| (0..=u8::MAX).map(move |number| (isn, number))) {
            for near in 0..600 {
                match short(number, isn, near) {
                    Some(offset) => {
                        let away = offset as i64 - near as i64;
                        assert!(
                            has(offset as i64, isn, number) && (-128..128).contains(&away),
                            "{number} {isn} {near}"
                        );
                    }
                    // The one that is near lies before the stream.
                    None => assert!((-128..-(near as i64)).any(|away| has(near as i64 + away, isn, number))),
                }
            }
        }
    }
}

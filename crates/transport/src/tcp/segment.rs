//! A TCP segment as the protocol uses it: stream offsets of 64 bits, no payload, no checksum.
//!
//! RFC 9293, section 3.1, with timestamps as in RFC 7323, section 3. A segment is kept within 48
//! bytes, so contents that exclude each other share a slot of 16 bytes. A data segment says there
//! whether it understands congestion marks; an ACK carries the one-way delay that it echoes, or the
//! blocks received beyond a gap. Offsets never wrap: offset 0 is the first payload byte, the SYN
//! comes before it, and the FIN takes the offset after the last byte. The codec maps offsets to 32
//! bits.

use crate::flags::Flags;
use meshpace_core::Time;

/// Bytes of the IP and TCP headers without options (ns-2 `tcpip_base_hdr_size_`).
pub const HEADER_BYTES: u32 = 40;

/// Number of blocks beyond a gap for which a segment has room: as many as a header with time stamps
/// holds (RFC 2018, section 3).
pub const SACK_BLOCKS: usize = 3;

/// Number of bits of one end of a block, which is counted from `ack`.
const END_BITS: u32 = 21;

/// Largest distance in bytes beyond `ack` at which a segment reports blocks.
const SACK_REACH: u64 = (1 << END_BITS) - 1;

/// Content of a segment besides its header fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Extension {
    /// The segment has no extension.
    #[default]
    None,
    /// ECT: a congested node may mark the packet instead of dropping it (RFC 3168, section 5).
    EcnCapable,
    /// The first word is the one-way delay, in microseconds, of the segment that caused this ACK.
    OneWayDelay,
    /// The words hold the start and end of up to [`SACK_BLOCKS`] received blocks. Each takes 21
    /// bits and is counted in bytes beyond `ack` (in RFC 2018, section 3, the values are absolute).
    Sack,
}

/// A TCP segment without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Offset of the first payload byte in the stream, or of the FIN if there is no payload. It is
    /// 0 for a SYN.
    pub seq: u64,
    /// The next offset expected from the peer; everything before it has been received. A received
    /// FIN counts as one byte. Valid only with [`Flags::ACK`].
    pub ack: u64,
    /// Receive window in bytes, not scaled.
    pub window: u32,
    /// Clock of the sender in microseconds; it wraps.
    pub ts_val: u32,
    /// Echo of the peer's `ts_val`; valid only with [`Flags::ACK`].
    pub ts_ecr: u32,
    /// Payload bytes.
    pub payload: u16,
    /// Header bits.
    pub flags: Flags,
    /// Meaning of `words`.
    pub extension: Extension,
    /// Values of the extension; 0 if there is none.
    pub words: [u64; 2],
}

impl Segment {
    /// The one-way delay that an ACK echoes, in seconds; `None` if it echoes none.
    pub fn one_way_delay(&self) -> Option<f64> {
        (self.extension == Extension::OneWayDelay).then(|| f64::from(self.words[0] as u32) * 1e-6)
    }

    /// Reports the first [`SACK_BLOCKS`] of `blocks`, which are offsets in the stream beyond `ack`;
    /// `ack` must be set before. Data more than 2 MiB beyond `ack` is left out.
    pub fn report(&mut self, blocks: impl Iterator<Item = (u64, u64)>) {
        let ack = self.ack;
        let near = |(start, end): (u64, u64)| {
            let (start, end) = (start.saturating_sub(ack), end.saturating_sub(ack).min(SACK_REACH));
            (start < end).then_some((start, end))
        };
        let mut packed = 0;
        for (place, (start, end)) in blocks.filter_map(near).take(SACK_BLOCKS).enumerate() {
            packed |= u128::from(end << END_BITS | start) << (2 * END_BITS * place as u32);
        }
        (self.extension, self.words) = (Extension::Sack, [packed as u64, (packed >> 64) as u64]);
    }

    /// The received blocks beyond a gap that an ACK reports, as offsets in the stream. Invalid
    /// blocks are left out.
    pub fn sack_blocks(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (ack, [low, high]) = (self.ack, self.words);
        let packed = u128::from(high) << 64 | u128::from(low);
        let count = if self.extension == Extension::Sack { SACK_BLOCKS as u32 } else { 0 };
        let blocks = (0..count).map(move |place| (packed >> (2 * END_BITS * place)) as u64);
        let ends = blocks.map(|block| (block & SACK_REACH, block >> END_BITS & SACK_REACH));
        let sound = ends.filter(|&(start, end)| start > 0 && start < end);
        sound.map(move |(start, end)| (ack.saturating_add(start), ack.saturating_add(end)))
    }

    /// True if a congested node may mark the packet.
    pub fn is_ecn_capable(&self) -> bool {
        self.extension == Extension::EcnCapable
    }

    /// The sequence number in a 32-bit header if the initial sequence number is `isn`. The SYN
    /// takes `isn`, and the stream follows.
    pub const fn wire_seq(&self, isn: u32) -> u32 {
        if self.flags.has(Flags::SYN) { isn } else { isn.wrapping_add(1).wrapping_add(self.seq as u32) }
    }

    /// The acknowledgement number in a 32-bit header if the peer's initial sequence number is
    /// `isn`; 0 without [`Flags::ACK`].
    pub const fn wire_ack(&self, isn: u32) -> u32 {
        if self.flags.has(Flags::ACK) { isn.wrapping_add(1).wrapping_add(self.ack as u32) } else { 0 }
    }
}

/// The clock of the time stamps, in microseconds; it wraps.
pub(crate) fn stamp(now: Time) -> u32 {
    (now.0 / 1_000) as u32
}

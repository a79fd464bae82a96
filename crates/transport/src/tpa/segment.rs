//! A TPA segment as the protocol sees it: the header fields and the range of bytes that it covers.
//! Payload, ports and checksum are not part of it.
//!
//! TPA, section 3.1 (figure 1). A data segment names its block and its place in the block. An ACK
//! names a block and every segment of that block received so far. TPA is full duplex: one segment
//! may carry data and an ACK.
//!
//! Choices where the paper is silent: a FIN takes place 0 of a block of its own, so that it is
//! acknowledged, timed and retransmitted like data. A SYN carries the number of the first block.

use crate::flags::Flags;

/// Bytes of the IP header and of all headers before the payload: 20 + 8 (UDP) + 12 (TPA). TCP needs
/// as many (TPA, appendix A).
pub const HEADER_BYTES: u32 = 40;

/// Largest number of segments in a block: the width of the bitmaps (TPA, section 3.1).
pub const BLOCK_SEGMENTS: u8 = 12;

/// Bitmap of all places of a block.
pub const ALL: u16 = (1 << BLOCK_SEGMENTS) - 1;

/// Block numbers count modulo this number: the header has 12 bits for them.
pub const BLOCK_NUMBERS: u16 = 4096;

/// Block number that follows `block` by `distance` blocks.
#[inline]
pub const fn block_after(block: u16, distance: u16) -> u16 {
    block.wrapping_add(distance) % BLOCK_NUMBERS
}

/// Number of blocks that `to` is ahead of `from`, 0..4096.
#[inline]
pub const fn blocks_between(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) % BLOCK_NUMBERS
}

/// A segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Offset of the payload in the sender's stream. It is not on the wire. It tells a program that
    /// sends real bytes which ones to send; a receiver computes the offset itself (`Placement`).
    pub offset: u64,
    /// BlockSeqNumber, 0..4096: the block that contains the data; on a SYN, the first block to
    /// come.
    pub block: u16,
    /// BitmapData: one bit, at the place in the block; 0 if there is no data.
    pub place: u16,
    /// AckBlockSeqNumber, 0..4096: the block being acknowledged. Valid only with [`Flags::ACK`].
    pub ack_block: u16,
    /// BitmapAck: the places of that block received so far. Valid only with [`Flags::ACK`].
    pub ack_places: u16,
    /// Payload bytes.
    pub payload: u16,
    /// TxSeqNumber: number of this transmission within its block, from 1, modulo 256.
    pub tx: u8,
    /// AckTxSeqNumber: the transmission that triggered the ACK. Valid only with [`Flags::ACK`].
    pub ack_tx: u8,
    /// WinSize: number of segments that the sender of this segment can receive.
    pub window: u8,
    /// txStat: true if the sender of this segment is congested and wants every segment
    /// acknowledged.
    pub congested: bool,
    /// True if this is the last place of its block. The paper's header does not tell how many
    /// segments a block has; one of its unused bits is used for this.
    pub last: bool,
    /// Header bits.
    pub flags: Flags,
}

impl Segment {
    /// Place in the block as an index, 0..12. `None` without data, or if more than one place is
    /// set.
    #[inline]
    pub fn index(&self) -> Option<u8> {
        (self.place.is_power_of_two() && self.place <= ALL).then(|| self.place.trailing_zeros() as u8)
    }

    /// Reset that answers a segment for which there is no connection. `None` if that segment is a
    /// reset itself.
    pub fn reset_for(stray: &Segment) -> Option<Segment> {
        (!stray.flags.has(Flags::RST)).then(|| Segment {
            block: if stray.flags.has(Flags::ACK) { stray.ack_block } else { 0 },
            ack_block: stray.block,
            ack_tx: stray.tx,
            flags: Flags::RST.with(Flags::ACK),
            ..Segment::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_numbers_wrap() {
        assert_eq!(block_after(4095, 1), 0);
        assert_eq!(blocks_between(4095, 2), 3);
        assert_eq!(blocks_between(2, 4095), 4093);
    }

    #[test]
    fn an_index_needs_exactly_one_place() {
        let at = |place| Segment { place, ..Segment::default() }.index();
        assert_eq!((at(1), at(1 << 11)), (Some(0), Some(11)));
        assert_eq!((at(0), at(3), at(1 << 12)), (None, None, None));
    }
}

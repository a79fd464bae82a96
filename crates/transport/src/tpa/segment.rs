//! A TPA segment as the protocol sees it: header fields and the range it covers, no payload, no ports, no checksum.
//!
//! TPA, section 3.1 (figure 1). A data segment names its block and its place in the block; an ACK names a block and every
//! segment of it received so far. TPA is full duplex: one segment may do both.
//!
//! Choices where the paper is silent: a FIN takes place 0 of a block of its own, so that it is acknowledged, timed and
//! repeated like data; a SYN carries the number of the first block.

use crate::flags::Flags;

/// Bytes of the IP header and what stands before the payload: 20 + 8 (UDP) + 12 (TPA), as many as TCP's (TPA, appendix A).
pub const HEADER_BYTES: u32 = 40;

/// Most segments in a block: the width of the bitmaps (TPA, section 3.1).
pub const BLOCK_SEGMENTS: u8 = 12;

/// All places of a block.
pub const ALL: u16 = (1 << BLOCK_SEGMENTS) - 1;

/// Block numbers count modulo this: the header leaves 12 bits for them.
pub const BLOCK_NUMBERS: u16 = 4096;

/// The block number `distance` after `block`.
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
    /// Where the payload stands in the sender's stream. Not on the wire: it tells whoever sends real bytes which ones;
    /// a receiver computes its own (`Placement`).
    pub offset: u64,
    /// BlockSeqNumber, 0..4096: the block of the data; on a SYN the first block to come.
    pub block: u16,
    /// BitmapData: the place in the block, one bit; 0 without data.
    pub place: u16,
    /// AckBlockSeqNumber, 0..4096: the block being acknowledged. Counts only with [`Flags::ACK`].
    pub ack_block: u16,
    /// BitmapAck: the places of that block received so far. Counts only with [`Flags::ACK`].
    pub ack_places: u16,
    /// Payload bytes.
    pub payload: u16,
    /// TxSeqNumber: which transmission of this block this is, from 1, modulo 256.
    pub tx: u8,
    /// AckTxSeqNumber: the transmission that triggered the ACK. Counts only with [`Flags::ACK`].
    pub ack_tx: u8,
    /// WinSize: segments the sender of this one takes.
    pub window: u8,
    /// txStat: whether the sender of this one is congested and wants every segment acknowledged.
    pub congested: bool,
    /// True if this is the last place of its block. The paper's header does not tell how many segments a block has; one of
    /// its unused bits does.
    pub last: bool,
    /// Header bits.
    pub flags: Flags,
}

impl Segment {
    /// The place in the block as an index, 0..12; none without data or with more than one place.
    #[inline]
    pub fn index(&self) -> Option<u8> {
        (self.place.is_power_of_two() && self.place <= ALL).then(|| self.place.trailing_zeros() as u8)
    }

    /// The reset that answers a segment nobody here expects; none if that is a reset itself.
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

//! One block in transmission: which of its segments are still to be sent, outstanding, timed out,
//! or acknowledged.
//!
//! TPA, section 3.2. Round 1 sends every segment once, in order. A segment whose timer expires is
//! only marked, and no longer counts as outstanding. When a round has sent all of its segments, the
//! marked segments form the next round, the retransmission stream. An acknowledged segment is
//! removed from every set. Sets of places are bitmaps, like those of the header.
//!
//! A round may start while segments of the round before are still outstanding. The paper does not
//! say whether it may; waiting would leave the window unused.

use super::segment::ALL;

/// State of one block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// Block number, 0..4096.
    pub number: u16,
    /// Offset of the first byte in the stream.
    pub start: u64,
    /// Payload bytes in the block; 0 for the block of a FIN.
    pub bytes: u32,
    /// Segments in the block, 1 to 12; 0 if there is no block.
    pub count: u8,
    /// True if the block is a FIN.
    pub fin: bool,
    /// Places still to be sent in the current round.
    stream: u16,
    /// Places that timed out in the current round or before it. The next round sends them.
    marked: u16,
    /// Places that were sent and are neither acknowledged nor timed out.
    outstanding: u16,
    /// Places sent at least once.
    sent: u16,
    acked: u16,
}

impl Block {
    /// Creates a block of `bytes` from offset `start` in `count` segments, of which none is sent
    /// yet. A `count` of 0 stands for no block.
    pub fn new(number: u16, start: u64, bytes: u32, count: u8, fin: bool) -> Block {
        Block { number, start, bytes, count, fin, stream: ALL >> (12 - count), ..Block::default() }
    }

    /// Offset in the stream after the last byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.bytes)
    }

    /// Adds up to `waiting` bytes, as many as fit into `most` segments of `segment` bytes. Does
    /// nothing if the last segment of the block was sent already. All segments before the last one
    /// are full, so only the last segment changes, and new segments follow it.
    pub fn grow(&mut self, waiting: u64, segment: u32, most: u8) {
        if self.count == 0 || self.fin || self.sent & (1 << (self.count - 1)) != 0 {
            return;
        }
        let room = segment * u32::from(most) - self.bytes;
        self.bytes += waiting.min(u64::from(room)) as u32;
        let count = self.bytes.div_ceil(segment) as u8;
        self.stream |= (ALL >> (12 - count)) & !(ALL >> (12 - self.count));
        self.count = count;
    }

    /// Place that is sent next.
    #[inline]
    pub fn next(&self) -> Option<u8> {
        let stream = if self.stream != 0 { self.stream } else { self.marked };
        (stream != 0).then(|| stream.trailing_zeros() as u8)
    }

    /// Takes the place that is sent next and makes it outstanding. The second value tells whether
    /// the segment was sent before.
    pub fn take_next(&mut self) -> Option<(u8, bool)> {
        let place = self.next()?;
        if self.stream == 0 {
            self.stream = core::mem::take(&mut self.marked);
        }
        let bit = 1 << place;
        self.stream &= !bit;
        self.outstanding |= bit;
        let again = self.sent & bit != 0;
        self.sent |= bit;
        Some((place, again))
    }

    /// The timer of `place` expired: marks it for the next round.
    pub fn mark(&mut self, place: u8) {
        let bit = 1 << place;
        if self.outstanding & bit != 0 {
            self.outstanding &= !bit;
            self.marked |= bit;
        }
    }

    /// True if all `places` were sent at least once.
    pub fn has_sent(&self, places: u16) -> bool {
        places & !self.sent == 0
    }

    /// Marks `places` as acknowledged. Returns the places that were not acknowledged before.
    pub fn acknowledge(&mut self, places: u16) -> u16 {
        let new = places & self.sent & !self.acked;
        self.acked |= new;
        self.outstanding &= !new;
        self.stream &= !new;
        self.marked &= !new;
        new
    }

    /// True if `place` is acknowledged.
    pub fn is_acknowledged(&self, place: u8) -> bool {
        self.acked & (1 << place) != 0
    }

    /// Outstanding places, one bit each.
    #[inline]
    pub fn outstanding(&self) -> u16 {
        self.outstanding
    }

    /// True if there is no block, or if all of its segments are acknowledged.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.acked.count_ones() == u32::from(self.count)
    }

    /// Offset in the stream and number of bytes of the segment at `place`; a full segment has
    /// `segment` bytes.
    pub fn range(&self, place: u8, segment: u32) -> (u64, u16) {
        let skip = u32::from(place) * segment;
        (self.start + u64::from(skip), (self.bytes - skip.min(self.bytes)).min(segment) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_the_paper() {
        // TPA, figures 2b and 3: 1 and 3 of five time out; round 1 goes on, round 2 sends them; 3, acknowledged late, is
        // dropped from the stream.
        let mut block = Block::new(0, 0, 5 * 1460, 5, false);
        let mut order = alloc::vec::Vec::new();
        while let Some((place, again)) = block.take_next() {
            order.push((place, again));
            match (place, again) {
                (1 | 3, false) => block.mark(place),
                (1, true) => {
                    block.acknowledge(1 << 3);
                }
                _ => {}
            }
            if order.len() == 6 {
                assert_eq!(block.next(), None, "3 was acknowledged meanwhile");
            }
        }
        assert_eq!(order, [(0, false), (1, false), (2, false), (3, false), (4, false), (1, true)]);
        assert_eq!(block.acknowledge(0b10111), 0b10111);
        assert!(block.is_complete());
    }

    #[test]
    fn only_the_last_segment_is_short() {
        let block = Block::new(0, 100, 3000, 3, false);
        assert_eq!([0, 1, 2].map(|place| block.range(place, 1460)), [(100, 1460), (1560, 1460), (3020, 80)]);
    }
}

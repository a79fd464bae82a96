//! A segment of Flush: TCP's header without payload, and the gaps that a NACK names.
//!
//! Offsets have 64 bits and never wrap: offset 0 is the first payload byte, and the FIN takes the
//! place after the last one. PSH marks the end of a round, which the sink has to answer.

use crate::flags::Flags;
use alloc::vec::Vec;

/// Bytes of the IP and transport headers, the same as for TCP.
pub const HEADER_BYTES: u32 = 40;
/// Largest number of gaps in a NACK.
pub const HOLES: usize = 6;
/// Bytes of each gap.
const HOLE_BYTES: u32 = 4;
/// Bytes before the gaps: kind, length and identifier of an experimental option (RFC 6994).
const OPTION_BYTES: u32 = 4;
/// Identifier of the option: "FL".
const IDENTIFIER: [u8; 2] = *b"FL";

/// A gap in the received data, in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hole {
    /// Distance of the gap from the offset that the NACK acknowledges.
    pub from: u16,
    /// Length of the gap; 0 stands for no gap.
    pub length: u16,
}

/// A segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Offset of the first payload byte. In an answer, the offset before which everything has
    /// arrived, including a FIN.
    pub offset: u64,
    /// In an answer, the gaps beyond that offset; the first gap begins there.
    pub holes: [Hole; HOLES],
    /// Payload bytes.
    pub payload: u16,
    /// Number of the round, or of the round that this segment answers; wrapping.
    pub round: u16,
    /// Header bits.
    pub flags: Flags,
}

impl Segment {
    /// Size of the IP packet in bytes.
    #[inline]
    pub fn size(&self) -> u32 {
        let holes = self.named().count() as u32;
        let option = if holes > 0 { OPTION_BYTES + HOLE_BYTES * holes } else { 0 };
        HEADER_BYTES + option + u32::from(self.payload)
    }

    /// Gaps that the segment names.
    pub fn named(&self) -> impl Iterator<Item = &Hole> {
        self.holes.iter().filter(|hole| hole.length > 0)
    }

    /// TCP option that names the gaps, as written to captures; empty without a gap.
    pub fn option(&self) -> Vec<u8> {
        let holes = self.named().flat_map(|hole| [hole.from.to_be_bytes(), hole.length.to_be_bytes()]).flatten();
        let mut bytes: Vec<u8> = [253, 0].into_iter().chain(IDENTIFIER).chain(holes).collect();
        if bytes.len() == OPTION_BYTES as usize {
            return Vec::new();
        }
        bytes[1] = bytes.len() as u8;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_cost_an_option_and_four_bytes_each() {
        let mut nack = Segment { flags: Flags::ACK, ..Segment::default() };
        assert_eq!(nack.size(), 40);
        assert!(nack.option().is_empty());
        nack.holes[0] = Hole { from: 0, length: 1 };
        nack.holes[1] = Hole { from: 7, length: 300 };
        assert_eq!(nack.size(), 52);
        assert_eq!(nack.option(), [253, 12, b'F', b'L', 0, 0, 0, 1, 0, 7, 1, 44]);
        // No larger than a segment of TCP or of trains, which the largest segment here may be.
        assert!(size_of::<Segment>() <= 40);
    }
}

//! A segment: payload with a number, or a report of arrived segments.

use crate::flags::Flags;

/// Largest number of ranges in a report.
pub const RANGES: usize = 16;

/// Report of the segments that have arrived at the end that sends the report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Highest number that has arrived.
    pub newest: u64,
    /// Time since the segment with that number arrived, in microseconds.
    pub wait_us: u32,
    /// Next offset of the stream that is expected; a FIN counts as one byte.
    pub expected: u64,
    /// Offset of the stream up to which there is room.
    pub limit: u64,
    /// Ranges of numbers, from the newest down: how many numbers are missing above the range (0 for
    /// the first range), and how many have arrived.
    pub ranges: [(u16, u16); RANGES],
    /// Number of valid ranges.
    pub count: u8,
}

impl Report {
    /// Ranges as numbers: first and last of each range, from the newest range down.
    pub fn numbers(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ranges = self.ranges.iter().take(usize::from(self.count));
        ranges.scan(self.newest.checked_add(1), |above, (missing, arrived)| {
            let last = above.as_ref()?.checked_sub(u64::from(*missing))?.checked_sub(1)?;
            let first = last.checked_sub(u64::from(arrived.checked_sub(1)?))?;
            *above = Some(first);
            Some((first, last))
        })
    }
}

/// A segment. With [`Flags::ACK`] its report is valid and it has no payload. With [`Flags::SYN`] it
/// asks for a report and contains nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// ACK, SYN, FIN or RST.
    pub flags: Flags,
    /// Number of a segment with payload or FIN. These segments are counted from 0, retransmissions
    /// included.
    pub number: u64,
    /// Offset of the first payload byte, or of the FIN if there is no payload.
    pub seq: u64,
    /// Payload bytes.
    pub payload: u16,
    /// Report of arrived segments.
    pub report: Report,
}

impl Segment {
    /// True if the segment carries a part of the stream, or its end.
    pub fn carries(&self) -> bool {
        self.payload > 0 || self.flags.has(Flags::FIN)
    }
}

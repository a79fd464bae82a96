//! A segment: payload with a number, or a report of what has arrived.

use crate::flags::Flags;

/// Ranges of numbers that a report has room for.
pub const RANGES: usize = 16;

/// Report of the segments that have arrived at the end that sends this.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The highest number that has arrived.
    pub newest: u64,
    /// Time since it arrived, microseconds.
    pub wait_us: u32,
    /// The next offset of the stream that is expected; a FIN counts as one byte.
    pub expected: u64,
    /// Offset of the stream up to which there is room.
    pub limit: u64,
    /// Ranges of numbers, from the newest down: how many are missing above the range (0 for the first), and how many have arrived.
    pub ranges: [(u16, u16); RANGES],
    /// Number of those ranges that count.
    pub count: u8,
}

impl Report {
    /// The ranges as numbers, first and last of each, from the newest down.
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

/// A segment. With [`Flags::ACK`] its report counts and it has no payload; with [`Flags::SYN`] it asks for a report and has nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// ACK, SYN, FIN or RST.
    pub flags: Flags,
    /// Of a segment with payload or FIN: counts such segments from 0, those that are sent again included.
    pub number: u64,
    /// Offset of the first payload byte, or of the FIN if there is no payload.
    pub seq: u64,
    /// Payload bytes.
    pub payload: u16,
    /// The report of what has arrived.
    pub report: Report,
}

impl Segment {
    /// True if it carries a part of the stream, or the end of it.
    pub fn carries(&self) -> bool {
        self.payload > 0 || self.flags.has(Flags::FIN)
    }
}

//! The received parts of the peer's stream: everything up to an offset, and ranges beyond a gap.

use crate::ranges::{Insertion, Range, Received};

/// Number of ranges that are ordered by the time at which a segment arrived in them. It is the
/// number of blocks for which an ACK without time stamps has room (RFC 2018, section 3).
const REMEMBERED: usize = 4;

/// The received ranges of the stream, and the position of the FIN.
#[derive(Clone, Debug)]
pub struct Reassembly {
    received: Received,
    /// For each of the ranges beyond a gap in which segments arrived last, an offset in that range.
    /// The latest range comes first; 0 stands for no range.
    recent: [u64; REMEMBERED],
    /// The offset of the peer's FIN; `None` as long as it is not known.
    fin_at: Option<u64>,
}

impl Reassembly {
    /// Creates an empty state for a window with room for `segments` full segments. At most
    /// `segments` ranges beyond a gap are kept, but no fewer than [`LEAST_RANGES`]. That is enough
    /// for full segments, because a peer that fills the window with them leaves a gap before at
    /// most every second one. Data that would need one more range is dropped as if it were lost.
    pub fn new(segments: u64) -> Reassembly {
        Reassembly { received: Received::new(most_ranges(segments)), recent: [0; REMEMBERED], fin_at: None }
    }

    /// Adapts the number of ranges to a window with room for `segments` full segments.
    pub fn set_segments(&mut self, segments: u64) {
        self.received.set_most(most_ranges(segments));
    }

    /// The offset up to which everything has been delivered.
    #[inline]
    pub fn next(&self) -> u64 {
        self.received.next()
    }

    /// True if any data has arrived.
    pub fn has_arrived(&self) -> bool {
        self.received.highest() > 0
    }

    /// True if no range lies beyond a gap.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.received.is_complete()
    }

    /// Number of ranges beyond a gap.
    pub fn ranges(&self) -> usize {
        self.received.count()
    }

    /// The offset of the peer's FIN; `None` as long as it is not known.
    pub fn fin_at(&self) -> Option<u64> {
        self.fin_at
    }

    /// True if the whole stream and its FIN have arrived.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.fin_at == Some(self.next())
    }

    /// The next expected offset. A received FIN counts as one byte.
    pub fn expected(&self) -> u64 {
        self.next() + u64::from(self.is_closed())
    }

    /// The offset after the highest byte that has arrived.
    pub fn highest(&self) -> u64 {
        self.received.highest()
    }

    /// True if all of `start..end` has arrived.
    pub fn has(&self, start: u64, end: u64) -> bool {
        self.received.has(start, end)
    }

    /// Records that the FIN is at `offset`.
    pub fn set_fin(&mut self, offset: u64) {
        self.fin_at = Some(offset);
    }

    /// The ranges beyond a gap, in the order in which an ACK reports them: first the range of the
    /// segment that arrived last, then the ranges that were first before it, the latest first (RFC
    /// 2018, section 4). The other ranges follow, the highest first.
    pub fn blocks(&self) -> impl Iterator<Item = Range> + '_ {
        let recent = self.recent.iter().filter_map(|&offset| self.received.range_of(offset));
        let is_recent = |known: &Range| self.recent.iter().any(|offset| known.holds(*offset));
        let others = self.received.beyond().rev().filter(move |known| !is_recent(known));
        recent.chain(others)
    }

    /// Moves the range of a segment that arrived at `start` to the front, if it lies beyond a gap.
    fn note(&mut self, start: u64) {
        let Some(range) = self.received.range_of(start) else { return };
        let (before, next) = (self.recent, self.next());
        let others = before.into_iter().filter(|&offset| offset > next && !range.holds(offset));
        let mut order = core::iter::once(start).chain(others);
        self.recent = core::array::from_fn(|_| order.next().unwrap_or(0));
    }

    /// Adds the data of a segment that starts at `start`. `range` is the part of it that has not
    /// been delivered yet; it may be empty.
    pub fn on_range(&mut self, start: u64, range: Range) -> Insertion {
        let insertion = self.received.insert(range.start, range.end);
        if !self.is_complete() {
            self.note(start);
        }
        insertion
    }
}

/// Smallest number of ranges beyond a gap that are kept, whatever the window.
const LEAST_RANGES: usize = 64;

/// Largest number of ranges beyond a gap that are kept if the window has room for `segments` full
/// segments.
fn most_ranges(segments: u64) -> usize {
    usize::try_from(segments).unwrap_or(usize::MAX).max(LEAST_RANGES)
}

//! The parts of the peer's stream that have arrived: all of it up to an offset, and ranges beyond a gap.

use crate::ranges::{Insertion, Range, Received};

/// Number of ranges that are told apart by the time at which a segment arrived in them: as many as an ACK has room for without time
/// stamps (RFC 2018, section 3).
const REMEMBERED: usize = 4;

/// The ranges that have arrived.
#[derive(Clone, Debug)]
pub struct Reassembly {
    received: Received,
    /// An offset in each of the ranges beyond a gap that a segment arrived in last, the latest first; 0 stands for none.
    recent: [u64; REMEMBERED],
    /// The offset of the peer's FIN, once known.
    fin_at: Option<u64>,
}

impl Reassembly {
    /// Nothing has arrived. The window has room for `segments` full segments: a peer that fills them has a gap before every second one
    /// at most, so that as many ranges are kept; of shorter segments [`LEAST_RANGES`]. What would be another range beyond a gap is
    /// dropped as if it were lost.
    pub fn new(segments: u64) -> Reassembly {
        Reassembly { received: Received::new(most_ranges(segments)), recent: [0; REMEMBERED], fin_at: None }
    }

    /// The window has room for `segments` full segments from now on.
    pub fn set_segments(&mut self, segments: u64) {
        self.received.set_most(most_ranges(segments));
    }

    /// Everything before this offset has been delivered.
    #[inline]
    pub fn next(&self) -> u64 {
        self.received.next()
    }

    /// True if anything has arrived.
    pub fn has_arrived(&self) -> bool {
        self.received.highest() > 0
    }

    /// True if nothing lies beyond a gap.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.received.is_complete()
    }

    /// Number of ranges beyond a gap.
    pub fn ranges(&self) -> usize {
        self.received.count()
    }

    /// The offset of the peer's FIN, once known.
    pub fn fin_at(&self) -> Option<u64> {
        self.fin_at
    }

    /// True if all of the stream and its FIN have arrived.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.fin_at == Some(self.next())
    }

    /// The next offset expected; a received FIN counts as one byte.
    pub fn expected(&self) -> u64 {
        self.next() + u64::from(self.is_closed())
    }

    /// The offset after everything that has arrived.
    pub fn highest(&self) -> u64 {
        self.received.highest()
    }

    /// True if all of `start..end` has arrived.
    pub fn has(&self, start: u64, end: u64) -> bool {
        self.received.has(start, end)
    }

    /// The FIN stands at `offset`.
    pub fn set_fin(&mut self, offset: u64) {
        self.fin_at = Some(offset);
    }

    /// The ranges beyond a gap: the one of the segment that arrived last, then those that were first before it, the latest first
    /// (RFC 2018, section 4), then the others, the last one first.
    pub fn blocks(&self) -> impl Iterator<Item = Range> + '_ {
        let recent = self.recent.iter().filter_map(|&offset| self.received.range_of(offset));
        let is_recent = |known: &Range| self.recent.iter().any(|offset| known.holds(*offset));
        let others = self.received.beyond().rev().filter(move |known| !is_recent(known));
        recent.chain(others)
    }

    /// A segment that starts at `start` has arrived: its range, if it lies beyond a gap, comes first.
    fn note(&mut self, start: u64) {
        let Some(range) = self.received.range_of(start) else { return };
        let (before, next) = (self.recent, self.next());
        let others = before.into_iter().filter(|&offset| offset > next && !range.holds(offset));
        let mut order = core::iter::once(start).chain(others);
        self.recent = core::array::from_fn(|_| order.next().unwrap_or(0));
    }

    /// A segment that starts at `start` brought `range`, of which what is delivered has been cut off; it may be empty.
    pub fn on_range(&mut self, start: u64, range: Range) -> Insertion {
        let insertion = self.received.insert(range.start, range.end);
        if !self.is_complete() {
            self.note(start);
        }
        insertion
    }
}

/// Number of ranges beyond a gap that are kept whatever the window.
const LEAST_RANGES: usize = 64;

/// Number of ranges beyond a gap that are kept where the window has room for `segments` full segments.
fn most_ranges(segments: u64) -> usize {
    usize::try_from(segments).unwrap_or(usize::MAX).max(LEAST_RANGES)
}

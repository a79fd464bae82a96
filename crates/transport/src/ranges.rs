//! The received parts of a byte stream: everything before an offset, and ranges beyond a gap.

use crate::work::step;
use alloc::collections::BTreeMap;

/// A range of the stream, `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Offset of the first byte of the range.
    pub start: u64,
    /// Offset after the last byte of the range.
    pub end: u64,
}

impl Range {
    /// True if `offset` lies in the range.
    pub fn holds(&self, offset: u64) -> bool {
        self.start <= offset && offset < self.end
    }
}

/// The received part of a stream.
///
/// A search takes time logarithmic in the number of ranges, whatever arrived before, and each range
/// is removed only as often as it was added. The number of ranges beyond a gap is limited, because
/// a peer that sends every second byte could otherwise make this end keep millions of them.
#[derive(Clone, Debug)]
pub struct Received {
    /// Everything before this offset has arrived.
    next: u64,
    /// Ranges beyond a gap: the end of each range by its start. They are disjoint and do not touch.
    beyond: BTreeMap<u64, u64>,
    /// Largest number of ranges in `beyond`.
    most: usize,
}

impl Default for Received {
    fn default() -> Received {
        Received::new(usize::MAX)
    }
}

/// Result of adding a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insertion {
    /// Some bytes of the range had not arrived before.
    New,
    /// All bytes of the range had arrived before, or the range is empty.
    Known,
    /// Nothing of the range is kept, because it would exceed the largest number of ranges beyond a
    /// gap.
    Refused,
}

impl Received {
    /// Creates an empty stream. At most `most` ranges beyond a gap are kept.
    pub fn new(most: usize) -> Received {
        Received { next: 0, beyond: BTreeMap::new(), most }
    }

    /// Everything before this offset has arrived.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The offset after the highest byte that has arrived.
    pub fn highest(&self) -> u64 {
        self.beyond.last_key_value().map_or(self.next, |(_, end)| *end)
    }

    /// True if no range lies beyond a gap.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.beyond.is_empty()
    }

    /// Number of ranges beyond a gap.
    pub fn count(&self) -> usize {
        self.beyond.len()
    }

    /// Ranges beyond a gap, in order.
    pub fn beyond(&self) -> impl DoubleEndedIterator<Item = Range> + '_ {
        self.beyond.iter().map(|(start, end)| Range { start: *start, end: *end })
    }

    /// Sets the largest number of ranges beyond a gap to `most`.
    pub fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// True if all of `start..end` has arrived.
    pub fn has(&self, start: u64, end: u64) -> bool {
        end <= self.next || self.range_of(start).is_some_and(|known| end <= known.end)
    }

    /// The range beyond a gap that contains `offset`; `None` if there is none.
    pub fn range_of(&self, offset: u64) -> Option<Range> {
        step();
        let (start, end) = self.beyond.range(..=offset).next_back()?;
        (offset < *end).then_some(Range { start: *start, end: *end })
    }

    /// Adds `start..end`, which may be empty.
    #[inline]
    pub fn insert(&mut self, start: u64, end: u64) -> Insertion {
        step();
        let start = start.max(self.next);
        if start >= end {
            return Insertion::Known;
        }
        if start > self.next {
            return self.insert_beyond(start, end);
        }
        self.next = end;
        // Ranges that the new one reaches become part of the complete data.
        while let Some((first, last)) = self.beyond.first_key_value()
            && *first <= self.next
        {
            step();
            self.next = self.next.max(*last);
            self.beyond.pop_first();
        }
        Insertion::New
    }

    /// Adds a range that begins beyond a gap.
    fn insert_beyond(&mut self, start: u64, end: u64) -> Insertion {
        let before = self.beyond.range(..=start).next_back().map(|(first, last)| (*first, *last));
        let joined = before.filter(|(_, last)| *last >= start);
        if joined.is_some_and(|(_, last)| last >= end) {
            return Insertion::Known;
        }
        let is_joined_above = || self.beyond.range(start..=end).next().is_some();
        if joined.is_none() && self.beyond.len() >= self.most && !is_joined_above() {
            return Insertion::Refused;
        }
        let (start, mut end) = (joined.map_or(start, |(first, _)| first), end);
        while let Some((first, last)) = self.beyond.range(start..=end).next_back().map(|(first, last)| (*first, *last))
        {
            step();
            end = end.max(last);
            self.beyond.remove(&first);
        }
        self.beyond.insert(start, end);
        Insertion::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_knows_what_a_list_of_bytes_knows() {
        // Every byte of a short stream, in ranges drawn by a small generator.
        for seed in 1..200_u64 {
            let mut state = seed;
            let mut draw = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            let mut bytes = [false; 64];
            let mut received = Received::default();
            for _ in 0..40 {
                let start = draw(60);
                let end = start + 1 + draw(4);
                let fresh = bytes[start as usize..end as usize].iter().any(|known| !known);
                bytes[start as usize..end as usize].fill(true);
                let expected = if fresh { Insertion::New } else { Insertion::Known };
                assert_eq!(received.insert(start, end), expected, "{start}..{end}");
                let next = bytes.iter().position(|known| !known).unwrap_or(64) as u64;
                assert_eq!(received.next(), next);
                assert_eq!(received.highest(), bytes.iter().rposition(|&known| known).map_or(0, |at| at as u64 + 1));
                let (from, to) = (draw(60), 60 + draw(4));
                assert_eq!(received.has(from, to), bytes[from as usize..to as usize].iter().all(|&known| known));
            }
        }
    }
}

//! The parts of a byte stream that have arrived: everything before an offset, and ranges beyond a gap.

use alloc::vec::Vec;

/// A range of the stream, `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Its first offset.
    pub start: u64,
    /// The offset after its last.
    pub end: u64,
}

impl Range {
    /// True if `offset` lies in it.
    pub fn holds(&self, offset: u64) -> bool {
        self.start <= offset && offset < self.end
    }
}

/// The received part of a stream.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Everything before this offset has arrived.
    next: u64,
    /// Ranges beyond a gap: sorted, disjoint, not touching.
    beyond: Vec<Range>,
}

impl Received {
    /// Nothing yet; room for `capacity` ranges beyond a gap without allocating.
    pub fn new(capacity: usize) -> Received {
        Received { next: 0, beyond: Vec::with_capacity(capacity) }
    }

    /// Everything before this offset has arrived.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The offset after everything that has arrived.
    pub fn highest(&self) -> u64 {
        self.beyond.last().map_or(self.next, |last| last.end)
    }

    /// Ranges beyond a gap, in order.
    pub fn beyond(&self) -> &[Range] {
        &self.beyond
    }

    /// True if all of `start..end` has arrived.
    pub fn has(&self, start: u64, end: u64) -> bool {
        end <= self.next || self.beyond.iter().any(|known| known.start <= start && end <= known.end)
    }

    /// Adds `start..end`, which may be empty; whether it brought anything new.
    #[inline]
    pub fn insert(&mut self, start: u64, end: u64) -> bool {
        let start = start.max(self.next);
        if start >= end {
            return false;
        }
        if start == self.next && self.beyond.is_empty() {
            self.next = end;
            return true;
        }
        // The ranges from `first` to `last` touch the new one and become one with it.
        let first = self.beyond.partition_point(|known| known.end < start);
        let last = self.beyond.partition_point(|known| known.start <= end);
        if first < last && self.beyond[first].start <= start && self.beyond[first].end >= end {
            return false;
        }
        if first == last {
            self.beyond.insert(first, Range { start, end });
        } else {
            let joined = Range { start: start.min(self.beyond[first].start), end: end.max(self.beyond[last - 1].end) };
            self.beyond[first] = joined;
            self.beyond.drain(first + 1..last);
        }
        if self.beyond[0].start <= self.next {
            self.next = self.beyond.remove(0).end;
        }
        true
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
                assert_eq!(received.insert(start, end), fresh, "{start}..{end}");
                let next = bytes.iter().position(|known| !known).unwrap_or(64) as u64;
                assert_eq!(received.next(), next);
                assert_eq!(received.highest(), bytes.iter().rposition(|&known| known).map_or(0, |at| at as u64 + 1));
                let (from, to) = (draw(60), 60 + draw(4));
                assert_eq!(received.has(from, to), bytes[from as usize..to as usize].iter().all(|&known| known));
            }
        }
    }
}

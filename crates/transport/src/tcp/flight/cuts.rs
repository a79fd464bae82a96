//! The segments cut from the stream and not yet acknowledged.

use alloc::collections::VecDeque;
use meshpace_core::Time;

/// A segment that has been cut, and sent or not.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cut {
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Time at which it was last sent.
    pub sent_at: Time,
    /// Payload bytes.
    pub payload: u16,
    /// True if a FIN follows its payload.
    pub fin: bool,
    /// Number of times that it was sent, counted up to 255.
    pub times: u8,
    /// True if a selective acknowledgement has reported it.
    pub reported: bool,
}

impl Cut {
    /// The offset after it; a FIN counts as one byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.payload) + u64::from(self.fin)
    }
}

/// Cut segments by number, from the first unacknowledged one.
#[derive(Clone, Debug)]
pub struct Cuts {
    /// Number of the first segment kept: how many have been acknowledged.
    base: u64,
    cuts: VecDeque<Cut>,
}

impl Cuts {
    /// Nothing cut yet; room for `capacity` segments without allocating.
    pub fn new(capacity: usize) -> Cuts {
        Cuts { base: 0, cuts: VecDeque::with_capacity(capacity) }
    }

    /// Number of segments that have been acknowledged.
    #[inline]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Number of segments that have been cut.
    #[inline]
    pub fn cut(&self) -> u64 {
        self.base + self.cuts.len() as u64
    }

    /// Segment `number`, if it is cut and unacknowledged.
    pub fn get(&self, number: u64) -> Option<&Cut> {
        self.cuts.get(number.checked_sub(self.base)? as usize)
    }

    /// Segment `number`, if it is cut and unacknowledged.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut Cut> {
        self.cuts.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// Adds a segment at the end.
    pub fn push(&mut self, cut: Cut) {
        self.cuts.push_back(cut);
    }

    /// A selective acknowledgement reports the bytes from `start` to `end`.
    pub fn report(&mut self, start: u64, end: u64) {
        let first = self.cuts.partition_point(|cut| cut.offset < start);
        for cut in self.cuts.iter_mut().skip(first) {
            // A FIN is reported with the last byte before it.
            if cut.times == 0 || cut.offset + u64::from(cut.payload) > end {
                break;
            }
            cut.reported |= cut.payload > 0;
        }
    }

    /// Forgets all reports.
    pub fn forget_reports(&mut self) {
        for cut in &mut self.cuts {
            cut.reported = false;
        }
    }

    /// True if segment `number` has been reported.
    pub fn is_reported(&self, number: u64) -> bool {
        self.get(number).is_some_and(|cut| cut.reported)
    }

    /// Number of segments above `number` that have been reported.
    pub fn reported_above(&self, number: u64) -> u32 {
        let skip = (number + 1).saturating_sub(self.base) as usize;
        self.cuts.iter().skip(skip).filter(|cut| cut.reported).count() as u32
    }

    /// Removes and returns the first segment if `ack` covers it whole.
    pub fn pop_acknowledged(&mut self, ack: u64) -> Option<Cut> {
        if self.cuts.front()?.end() > ack {
            return None;
        }
        self.base += 1;
        self.cuts.pop_front()
    }
}

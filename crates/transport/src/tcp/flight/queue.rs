//! The retransmission queue (RFC 9293, section 3.10.8): the segments that have been made and are
//! not acknowledged yet.

use crate::work::step;
use alloc::collections::VecDeque;
use meshpace_core::Time;

/// A segment of the queue. Segments that have not been sent for the first time are in the queue
/// too.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueuedSegment {
    /// Offset of the segment's first byte in the stream.
    pub offset: u64,
    /// Time at which the segment was last sent.
    pub sent_at: Time,
    /// Payload bytes.
    pub payload: u16,
    /// True if a FIN follows the payload.
    pub fin: bool,
    /// Number of transmissions; 255 stands for 255 or more.
    pub transmissions: u8,
    /// True if a SACK block covered the segment.
    pub sacked: bool,
}

impl QueuedSegment {
    /// The offset after the segment. A FIN counts as one byte.
    #[inline]
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.payload) + u64::from(self.fin)
    }
}

/// Segments by number, starting with the first unacknowledged one.
#[derive(Clone, Debug)]
pub struct RetransmissionQueue {
    /// Number of the first segment in the queue. It equals the number of segments that have been
    /// acknowledged.
    base: u64,
    segments: VecDeque<QueuedSegment>,
}

impl RetransmissionQueue {
    /// Creates an empty queue. There is room for `capacity` segments without another allocation.
    pub fn new(capacity: usize) -> RetransmissionQueue {
        RetransmissionQueue { base: 0, segments: VecDeque::with_capacity(capacity) }
    }

    /// Number of segments that have been acknowledged.
    #[inline]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Number of the segment that will be made next. It equals the number of segments that have
    /// been made.
    #[inline]
    pub fn end(&self) -> u64 {
        self.base + self.segments.len() as u64
    }

    /// Segment `number`; `None` if it is not in the queue.
    pub fn get(&self, number: u64) -> Option<&QueuedSegment> {
        self.segments.get(number.checked_sub(self.base)? as usize)
    }

    /// Segment `number`, for changes; `None` if it is not in the queue.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut QueuedSegment> {
        self.segments.get_mut(number.checked_sub(self.base)? as usize)
    }

    /// Adds a segment at the end.
    pub fn push(&mut self, segment: QueuedSegment) {
        self.segments.push_back(segment);
    }

    /// Marks the segments that a SACK block from `start` to `end` covers.
    pub fn sack(&mut self, start: u64, end: u64) {
        let first = self.segments.partition_point(|segment| segment.offset < start);
        for segment in self.segments.iter_mut().skip(first) {
            step();
            // A FIN is assumed to have arrived with the last byte before it.
            if segment.transmissions == 0 || segment.offset + u64::from(segment.payload) > end {
                break;
            }
            segment.sacked |= segment.payload > 0;
        }
    }

    /// Removes all SACK marks, as after a timeout.
    pub fn forget_sacks(&mut self) {
        for segment in &mut self.segments {
            step();
            segment.sacked = false;
        }
    }

    /// True if a SACK block has covered segment `number`.
    pub fn is_sacked(&self, number: u64) -> bool {
        self.get(number).is_some_and(|segment| segment.sacked)
    }

    /// Number of segments above `number` that SACK blocks have covered.
    pub fn sacked_above(&self, number: u64) -> u32 {
        let skip = (number + 1).saturating_sub(self.base) as usize;
        self.segments.iter().skip(skip).inspect(|_| step()).filter(|segment| segment.sacked).count() as u32
    }

    /// Removes and returns the first segment if `ack` covers all of it.
    pub fn pop_acknowledged(&mut self, ack: u64) -> Option<QueuedSegment> {
        if self.segments.front()?.end() > ack {
            return None;
        }
        self.base += 1;
        self.segments.pop_front()
    }
}

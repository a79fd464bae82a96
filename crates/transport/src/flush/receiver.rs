//! The sink: keeps what comes, and answers the end of a round with what is missing.

use super::segment::{HOLES, Hole, Segment};
use crate::flags::Flags;
use crate::ranges::{Insertion, Received};
use crate::stats::Stats;

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    segment: u64,
    received: Received,
    /// Offset of the FIN, once known.
    fin_at: Option<u64>,
    /// The question to be answered.
    asked: Option<u16>,
}

impl Receiver {
    /// Nothing received yet.
    pub fn new(segment: u32) -> Receiver {
        Receiver { segment: u64::from(segment), received: Received::default(), fin_at: None, asked: None }
    }

    /// Payload bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.received.next()
    }

    /// True if all of the stream and its FIN have arrived.
    pub fn is_closed(&self) -> bool {
        self.fin_at == Some(self.received.next())
    }

    /// A segment of the open connection arrived.
    pub fn on_segment(&mut self, segment: &Segment, stats: &mut Stats) {
        let end = segment.offset + u64::from(segment.payload);
        if segment.payload > 0 {
            if self.received.insert(segment.offset, end) == Insertion::New {
                stats.distinct_segments_received += 1;
            } else {
                stats.duplicate_segments_received += 1;
            }
        }
        if segment.flags.has(Flags::FIN) {
            self.fin_at.get_or_insert(end);
        }
        if segment.flags.has(Flags::PSH) {
            self.asked = Some(segment.round);
        }
    }

    /// The answer that is due.
    pub fn answer(&mut self) -> Option<Segment> {
        let round = self.asked.take()?;
        let next = self.received.next();
        let mut holes = [Hole::default(); HOLES];
        let mut from = next;
        for (hole, range) in holes.iter_mut().zip(self.received.beyond()) {
            // All of an object's segments but its last are full.
            let count = |bytes: u64| u16::try_from(bytes.div_ceil(self.segment)).unwrap_or(u16::MAX);
            *hole = Hole { from: count(from - next), length: count(range.start - from) };
            from = range.end;
        }
        let offset = next + u64::from(self.is_closed());
        Some(Segment { offset, holes, round, flags: Flags::ACK, ..Segment::default() })
    }
}

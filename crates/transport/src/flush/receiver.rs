//! The sink: keeps arriving data, and answers the end of a round with the gaps in them.

use super::segment::{HOLES, Hole, Segment};
use crate::flags::Flags;
use crate::ranges::{Insertion, Received};
use crate::stats::Stats;

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    segment: u64,
    received: Received,
    /// Offset of the FIN, once it is known.
    fin_at: Option<u64>,
    /// Number of the round whose end has to be answered.
    asked: Option<u16>,
}

impl Receiver {
    /// Creates a sink that has received nothing.
    pub fn new(segment: u32) -> Receiver {
        Receiver { segment: u64::from(segment), received: Received::default(), fin_at: None, asked: None }
    }

    /// Payload bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.received.next()
    }

    /// True if the whole stream and its FIN have arrived.
    pub fn is_closed(&self) -> bool {
        self.fin_at == Some(self.received.next())
    }

    /// Processes a segment of the open connection.
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

    /// Returns the answer if one is due.
    pub fn answer(&mut self) -> Option<Segment> {
        let round = self.asked.take()?;
        let next = self.received.next();
        let mut holes = [Hole::default(); HOLES];
        let mut from = next;
        for (hole, range) in holes.iter_mut().zip(self.received.beyond()) {
            // All segments of an object except the last one are full.
            let count = |bytes: u64| u16::try_from(bytes.div_ceil(self.segment)).unwrap_or(u16::MAX);
            *hole = Hole { from: count(from - next), length: count(range.start - from) };
            from = range.end;
        }
        let offset = next + u64::from(self.is_closed());
        Some(Segment { offset, holes, round, flags: Flags::ACK, ..Segment::default() })
    }
}

//! The receiving half of a connection: puts segments in their place, remembers which segments of
//! the current block it has, and acknowledges them.
//!
//! TPA, sections 3.1, 3.2 and 3.6. The peer starts a block only when it knows that the block before
//! it has arrived completely. One bitmap is therefore the whole state, and a segment of the next
//! block is accepted only if the current block is known to be complete.
//!
//! For this, the last segment of each block carries a bit that says so, which is an addition of
//! this project. With the paper's header alone, a block whose end is missing looks like a shorter
//! block; a forged segment of the next block would then make the receiver take the missing end for
//! received.
//!
//! The place of a segment gives its offset, since all segments but the last one of a block are
//! full. Both ends must be configured with the same segment size. A segment of an older block is
//! answered at once with a full bitmap of that block.

use super::Config;
use super::ack::Acknowledger;
use super::segment::{ALL, BLOCK_NUMBERS, BLOCK_SEGMENTS, Segment, blocks_between};
use crate::flags::Flags;
use crate::stats::Stats;
use meshpace_core::{Duration, Time};

/// Where the payload of an accepted segment belongs in the peer's stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u16,
}

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Payload of a full segment in bytes.
    segment: u32,
    /// Number of the current block, or of the last one if that is complete.
    block: u16,
    /// Offset of the block in the stream.
    start: u64,
    /// Places of the block that were received.
    places: u16,
    /// Last place of the block and its payload bytes, once that segment has arrived.
    last: Option<(u8, u16)>,
    /// The peer has closed: the block is its FIN.
    fin: bool,
    /// Receive window: number of segments that the application can take.
    window: u8,
    acks: Acknowledger,
    /// True if the end of a block is acknowledged at once.
    ack_block_end: bool,
    /// Transmission that triggers the next ACK; 0 if none did.
    trigger: u8,
    /// Segment of an older block that has to be answered: its block number and its transmission
    /// number.
    stale: Option<(u16, u8)>,
}

impl Receiver {
    /// Creates a receiver that has received nothing.
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            segment: config.segment,
            block: 0,
            start: 0,
            places: 0,
            last: None,
            fin: false,
            window: config.receive_window,
            acks: Acknowledger::new(config.ack.segments(config.congestion.window), config.ack_delay),
            ack_block_end: config.ack_block_end,
            trigger: 0,
            stale: None,
        }
    }

    /// Sets the number of the peer's first block.
    pub fn start(&mut self, block: u16) {
        self.block = block;
    }

    /// Processes a segment with a place in a block. Returns where its payload belongs if it is new.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, stats: &mut Stats) -> Option<Placement> {
        let place = segment.index()?;
        let fin = segment.flags.has(Flags::FIN);
        if fin != (segment.payload == 0) || u32::from(segment.payload) > self.segment || (fin && place != 0) {
            return None;
        }
        match blocks_between(self.block, segment.block) {
            0 => {}
            1 if self.is_complete() && !self.fin => {
                self.start = self.delivered();
                self.block = segment.block;
                self.places = 0;
                self.last = None;
                self.trigger = 0;
                self.acks.clear();
            }
            ahead if ahead >= BLOCK_NUMBERS / 2 => {
                // The peer or the network repeats a segment of a block that is complete.
                stats.duplicate_segments_received += 1;
                self.stale = Some((segment.block, segment.tx));
                return None;
            }
            _ => return None,
        }
        if fin {
            return self.on_fin(segment);
        }
        if self.fin || !self.fits(place, segment) {
            return None;
        }
        if self.window == 0 {
            self.trigger = segment.tx;
            self.acks.at_once();
            return None;
        }
        let bit = 1 << place;
        let new = self.places & bit == 0;
        self.places |= bit;
        if segment.last {
            self.last = Some((place, segment.payload));
        }
        if new {
            stats.distinct_segments_received += 1;
        } else {
            stats.duplicate_segments_received += 1;
        }
        self.trigger = segment.tx;
        self.acks.on_segment(now, segment.congested);
        if self.ack_block_end && self.is_complete() {
            self.acks.at_once();
        }
        let offset = self.start + u64::from(place) * u64::from(self.segment);
        new.then_some(Placement { offset, bytes: segment.payload })
    }

    fn on_fin(&mut self, segment: &Segment) -> Option<Placement> {
        if self.fin || self.places == 0 {
            self.fin = true;
            self.places = 1;
            self.trigger = segment.tx;
            self.acks.at_once();
        }
        None
    }

    /// True if a segment at `place` agrees with what was received before: only the last segment of
    /// a block may be short, and none follows it.
    fn fits(&self, place: u8, segment: &Segment) -> bool {
        let full = u32::from(segment.payload) == self.segment;
        match self.last {
            Some((last, bytes)) if place == last => segment.last && segment.payload == bytes,
            Some((last, _)) => place < last && !segment.last && full,
            None if segment.last => self.places >> place == 0,
            None => full,
        }
    }

    /// True if the whole block has arrived.
    fn is_complete(&self) -> bool {
        self.last.is_some_and(|(last, _)| self.places == ALL >> (BLOCK_SEGMENTS - 1 - last))
    }

    /// Payload bytes received without a gap.
    pub fn delivered(&self) -> u64 {
        if self.fin {
            return self.start;
        }
        let whole = self.places.trailing_ones();
        let missing = match self.last {
            Some((last, bytes)) if whole > u32::from(last) => self.segment - u32::from(bytes),
            _ => 0,
        };
        self.start + u64::from(whole * self.segment - missing)
    }

    /// Number of bytes received without a gap in a block that is not complete.
    pub fn begun(&self) -> u64 {
        if self.is_complete() { 0 } else { self.delivered() - self.start }
    }

    /// Sets the receive window to `segments`. A window that opens is announced at once.
    pub fn set_window(&mut self, segments: u8) {
        if self.window == 0 && segments > 0 {
            self.acks.at_once();
        }
        self.window = segments;
    }

    /// Receive window (WinSize), in segments.
    pub fn window(&self) -> u8 {
        self.window
    }

    /// True if the peer has closed and everything that it sent has arrived.
    pub fn has_fin(&self) -> bool {
        self.fin
    }

    /// True if a segment with block number `block` could come next. Used to judge resets.
    pub fn expects(&self, block: u16) -> bool {
        blocks_between(self.block, block) <= 1
    }

    /// Allows the ACK of the end of a block to wait for `delay`, so that a data segment can carry
    /// it.
    pub fn hold_acks(&mut self, delay: Duration) {
        self.ack_block_end = false;
        self.acks.set_delay(delay);
    }

    /// Returns the ACK state.
    pub fn acks(&mut self) -> &mut Acknowledger {
        &mut self.acks
    }

    /// Time at which the ACK timer expires.
    pub fn next_wakeup(&self) -> Time {
        self.acks.next_wakeup()
    }

    /// True if an ACK must be sent now, with or without data.
    pub fn owes_ack(&self) -> bool {
        self.acks.is_due() || self.stale.is_some()
    }

    /// Writes the ACK of the current block into a segment that is about to be sent.
    pub fn acknowledge(&mut self, segment: &mut Segment) {
        segment.flags = segment.flags.with(Flags::ACK);
        (segment.ack_block, segment.ack_places, segment.ack_tx) = (self.block, self.places, self.trigger);
        self.acks.clear();
    }

    /// Writes the ACK that is due into a segment without data.
    pub fn answer(&mut self, segment: &mut Segment) {
        match self.stale.take() {
            Some((block, tx)) => {
                segment.flags = segment.flags.with(Flags::ACK);
                (segment.ack_block, segment.ack_places, segment.ack_tx) = (block, ALL, tx);
            }
            None => self.acknowledge(segment),
        }
    }
}

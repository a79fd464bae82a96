//! The receiving half of a connection: puts segments in their place, remembers which ones of the block it has, and says so.
//!
//! TPA, sections 3.1, 3.2 and 3.6. The peer starts a block only when it knows all of the one before to have arrived. Hence
//! one bitmap is the whole state, and a segment of the next block is believed only if this block is known to be complete: each
//! block's last segment says that it is the last (a bit of ours; from the paper's header alone a block whose end is missing
//! looks like a shorter one, and whoever forges the next block would have the rest taken for received). Where a
//! segment belongs follows from its place, since all but a block's last are full; both ends must be configured with the
//! same segment size. A segment of an older block is answered at once with a full bitmap of that block.

use super::Config;
use super::ack::Acknowledger;
use super::segment::{ALL, BLOCK_NUMBERS, BLOCK_SEGMENTS, Segment, blocks_between};
use crate::flags::Flags;
use crate::stats::Stats;
use meshpace_core::{Duration, Time};

/// Where the payload of an accepted segment belongs in the peer's stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Placement {
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u16,
}

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Payload of a full segment.
    segment: u32,
    /// The block under way or last completed.
    block: u16,
    /// Where it begins in the stream.
    start: u64,
    /// Its places received.
    places: u16,
    /// Its last place and the bytes there, once the segment there has arrived.
    last: Option<(u8, u16)>,
    /// The peer has closed: the block is its FIN.
    fin: bool,
    /// Segments the application takes.
    window: u8,
    acks: Acknowledger,
    /// The end of a block is acknowledged at once.
    ack_block_end: bool,
    /// The transmission that triggers the next ACK; 0 if none did.
    trigger: u8,
    /// A transmission of an older block to be answered: that block and the transmission.
    stale: Option<(u16, u8)>,
}

impl Receiver {
    /// Nothing received yet.
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

    /// The peer's first block will have number `block`.
    pub fn start(&mut self, block: u16) {
        self.block = block;
    }

    /// Takes a segment with a place in a block; returns where its payload belongs if it is new.
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
                // The peer, or the network, repeats what is long complete.
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

    /// True if a segment at `place` agrees with what is known: only the last one is short, and nothing stands after it.
    fn fits(&self, place: u8, segment: &Segment) -> bool {
        let full = u32::from(segment.payload) == self.segment;
        match self.last {
            Some((last, bytes)) if place == last => segment.last && segment.payload == bytes,
            Some((last, _)) => place < last && !segment.last && full,
            None if segment.last => self.places >> place == 0,
            None => full,
        }
    }

    /// True if all of the block is here.
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

    /// Bytes without a gap of a block that is not complete.
    pub fn begun(&self) -> u64 {
        if self.is_complete() { 0 } else { self.delivered() - self.start }
    }

    /// The application takes `segments` more. Opening a closed window is told at once.
    pub fn set_window(&mut self, segments: u8) {
        if self.window == 0 && segments > 0 {
            self.acks.at_once();
        }
        self.window = segments;
    }

    /// WinSize.
    pub fn window(&self) -> u8 {
        self.window
    }

    /// True if the peer has closed and all it sent is here.
    pub fn has_fin(&self) -> bool {
        self.fin
    }

    /// True if a segment with block number `block` could come next: for judging a reset.
    pub fn expects(&self, block: u16) -> bool {
        blocks_between(self.block, block) <= 1
    }

    /// The end of a block may be acknowledged `delay` later, so that the ACK can ride on data.
    pub fn hold_acks(&mut self, delay: Duration) {
        self.ack_block_end = false;
        self.acks.set_delay(delay);
    }

    /// The acknowledger.
    pub fn acks(&mut self) -> &mut Acknowledger {
        &mut self.acks
    }

    /// Time at which the ACK timer expires.
    pub fn next_wakeup(&self) -> Time {
        self.acks.next_wakeup()
    }

    /// True if an ACK must leave now, with or without data.
    pub fn owes_ack(&self) -> bool {
        self.acks.is_due() || self.stale.is_some()
    }

    /// Puts the ACK of the block under way into a segment that leaves.
    pub fn acknowledge(&mut self, segment: &mut Segment) {
        segment.flags = segment.flags.with(Flags::ACK);
        (segment.ack_block, segment.ack_places, segment.ack_tx) = (self.block, self.places, self.trigger);
        self.acks.clear();
    }

    /// Puts an ACK that is owed into a segment without data.
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

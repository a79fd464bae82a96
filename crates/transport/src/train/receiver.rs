//! The receiving half: keeps data that arrive out of order, and acknowledges trains.
//!
//! An ACK is sent for a TAIL, for a FIN, for data beyond the window, and when nothing has arrived
//! for [`Config::ack_timer`] while something is unacknowledged. Nothing else in arriving data
//! triggers one: a gap is reported by the ACK of the train's end, and there are no duplicate ACKs.
//! This is outside RFC 1122, section 4.2.3.2 (an ACK for every second segment, within 0.5 s), and
//! meant for peers that have agreed on it.
//!
//! Forward delays are differences of two clocks that need not agree. The report contains only
//! delays less that of the newest segment. The offset of the clocks therefore cancels, and so does
//! their drift, except for the drift during one train.

use super::segment::{DELAY_UNIT_US, Feedback, Segment, WAIT_UNIT_US, stamp};
use super::{Config, Profile};
use crate::flags::Flags;
use crate::ranges::{Insertion, Range};
use crate::receiving::{Offer, Reassembly};
use crate::stats::Stats;
use meshpace_core::{Duration, Time};

/// Number of bits in the report of data beyond a gap.
const BITS: u64 = u32::BITS as u64;

/// The segments that arrived since the last ACK.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    segments: u32,
    marked: u32,
    /// Forward delay of the first segment by the two ends' clocks, in microseconds, wrapping.
    reference: u32,
    /// Sum and least of the delays less the reference, in microseconds.
    sum: i64,
    least: i32,
    /// Delay of the newest segment less the reference, in microseconds.
    newest: i32,
}

impl Batch {
    fn add(&mut self, delay: u32, marked: bool) {
        if self.segments == 0 {
            *self = Batch { reference: delay, least: i32::MAX, ..Batch::default() };
        }
        let relative = delay.wrapping_sub(self.reference) as i32;
        self.segments = self.segments.saturating_add(1);
        self.marked += u32::from(marked);
        self.sum = self.sum.saturating_add(i64::from(relative));
        self.least = self.least.min(relative);
        self.newest = relative;
    }

    /// Computes the report on these segments.
    fn feedback(&self) -> Feedback {
        if self.segments == 0 {
            return Feedback::default();
        }
        let unit = i64::from(DELAY_UNIT_US);
        let rounded = |us: i64| (us.div_euclid(unit)).clamp(i64::from(i16::MIN), i64::from(i16::MAX)) as i16;
        let newest = i64::from(self.newest);
        let mean = self.sum / i64::from(self.segments);
        Feedback {
            segments: self.segments.min(255) as u8,
            marked: (u64::from(self.marked) * u64::from(self.segments.min(255)) / u64::from(self.segments)) as u8,
            mean: rounded(mean - newest),
            least: rounded(i64::from(self.least) - newest),
        }
    }
}

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    segment: u64,
    ack_timer: Duration,
    arrived: Reassembly,
    offer: Offer,
    batch: Batch,
    /// Time at which the newest segment arrived, and its time stamp.
    arrived_at: Time,
    ts_recent: u32,
    ack_due: bool,
    /// Time at which an ACK is sent without a TAIL.
    deadline: Time,
}

impl Receiver {
    /// Creates a receiver that has received nothing.
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            segment: u64::from(config.segment),
            ack_timer: config.ack_timer,
            arrived: Reassembly::new(u64::from(config.max_window)),
            offer: Offer::new(
                config.segment,
                config.segment.saturating_mul(u32::from(config.max_window)),
                config.profile == Profile::Agent,
            ),
            batch: Batch::default(),
            arrived_at: Time::ZERO,
            ts_recent: 0,
            ack_due: false,
            deadline: Time::NEVER,
        }
    }

    /// Next offset expected; a received FIN counts as one byte.
    pub fn expected(&self) -> u64 {
        self.arrived.expected()
    }

    /// True if the peer's whole stream and its FIN have arrived.
    pub fn is_closed(&self) -> bool {
        self.arrived.is_closed()
    }

    /// Number of ranges that have arrived beyond a gap.
    pub fn ranges(&self) -> usize {
        self.arrived.ranges()
    }

    /// Payload bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.arrived.next()
    }

    /// Whole receive window in segments, as a SYN offers it.
    pub fn window(&self) -> u16 {
        self.in_segments(self.offer.window())
    }

    fn in_segments(&self, bytes: u32) -> u16 {
        u16::try_from(u64::from(bytes) / self.segment).unwrap_or(u16::MAX)
    }

    /// The application has taken `bytes` more. An ACK tells the peer only if the peer may be
    /// waiting for the window to open.
    pub fn take(&mut self, bytes: u64) {
        self.ack_due |= self.offer.take(bytes, &self.arrived) && !self.is_closed();
    }

    /// Makes an ACK due now.
    pub fn acknowledge(&mut self) {
        self.ack_due = true;
    }

    /// True if an ACK has to be sent now.
    pub fn owes_ack(&self) -> bool {
        self.ack_due
    }

    /// Time at which an ACK is sent without a TAIL.
    pub fn next_wakeup(&self) -> Time {
        self.deadline
    }

    /// Makes an ACK due if the deadline has passed.
    pub fn on_timer(&mut self, now: Time) {
        if self.deadline <= now {
            self.ack_due = true;
        }
    }

    /// The peer's SYN arrived; its time stamp will be echoed.
    pub fn on_syn(&mut self, segment: &Segment) {
        self.ts_recent = segment.ts_val;
    }

    /// True if a segment of an honest peer can begin at `seq`. The range begins a window before the
    /// next expected offset, since a late segment may still report what it has received. It ends
    /// where a segment begins that follows a probe of the closed window.
    pub fn is_acceptable(&self, seq: u64) -> bool {
        let latest = self.offer.edge(&self.arrived).saturating_add(self.segment + 1);
        let reach = u64::from(self.offer.window()) + 2 * self.segment;
        seq <= latest && seq.saturating_add(reach) >= self.expected()
    }

    /// Processes a segment of the established connection. Returns whether its payload is part of
    /// the stream.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, marked: bool, stats: &mut Stats) -> bool {
        let fin = segment.flags.has(Flags::FIN);
        if segment.payload == 0 && !fin {
            // A probe of the window, or a late segment of the handshake.
            self.ack_due |= segment.is_tail();
            return false;
        }
        self.batch.add(stamp(now).wrapping_sub(segment.ts_val), marked);
        self.arrived_at = now;
        self.ts_recent = segment.ts_val;
        let (start, end) = (segment.seq, segment.seq.saturating_add(u64::from(segment.payload)));
        let edge = self.arrived.fin_at().unwrap_or_else(|| self.offer.edge(&self.arrived));
        let next = self.arrived.next();
        // Beyond a gap a segment has to fit as a whole: the report has one bit for a segment.
        let fits = end <= edge || (start <= next && start < edge);
        let range = Range { start: start.max(next), end: end.min(edge) };
        let is_new = segment.payload > 0 && fits && self.arrived.on_range(start, range) == Insertion::New;
        if is_new {
            stats.distinct_segments_received += 1;
        } else if segment.payload > 0 {
            stats.duplicate_segments_received += 1;
        }
        // A FIN below data that have arrived contradicts them. A FIN beyond the window is ignored;
        // the peer sends it again.
        if fin && self.arrived.fin_at().is_none() && end <= edge && end >= self.arrived.highest() {
            self.arrived.set_fin(end);
        }
        self.ack_due |= segment.is_tail() || fin || end > edge;
        self.deadline = now.saturating_add(self.ack_timer);
        is_new
    }

    /// Sets the fields of a segment that describe the peer's stream.
    pub fn ride(&mut self, segment: &mut Segment) {
        segment.ack = self.expected();
        segment.ts_ecr = self.ts_recent;
        let offered = self.offer.offer(&self.arrived);
        segment.window = self.in_segments(offered);
        segment.flags = segment.flags.with(Flags::ACK);
    }

    /// Builds the ACK that is due.
    pub fn answer(&mut self, now: Time) -> Segment {
        let waited = if self.batch.segments > 0 { now.since(self.arrived_at).0 } else { 0 };
        let mut ack = Segment {
            ts_val: stamp(now),
            beyond: self.beyond(),
            feedback: self.batch.feedback(),
            wait: (waited / 1_000).div_ceil(u64::from(WAIT_UNIT_US)).min(255) as u8,
            ..Segment::default()
        };
        self.ride(&mut ack);
        self.batch = Batch::default();
        self.ack_due = false;
        self.deadline = Time::NEVER;
        ack
    }

    /// Bitmap of the received data: one bit for each range of a full segment's bytes, from the next
    /// expected offset on.
    fn beyond(&self) -> u32 {
        let (next, highest) = (self.arrived.next(), self.arrived.highest());
        if self.arrived.is_complete() {
            return 0;
        }
        let mut bits = 0;
        for place in 0..BITS {
            let start = next + place * self.segment;
            if start >= highest {
                break;
            }
            bits |= u32::from(self.arrived.has(start, highest.min(start + self.segment))) << place;
        }
        bits
    }
}

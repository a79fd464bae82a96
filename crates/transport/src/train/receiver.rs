//! The receiving half: keeps what comes out of order and acknowledges trains.
//!
//! The rule: an ACK leaves for a TAIL, for a FIN, for what lies beyond the window, and when nothing has arrived for
//! [`Config::ack_timer`] while something is unacknowledged. Nothing else brings one about: a gap is reported by the ACK of the
//! train's end, and there are no duplicate ACKs. That is outside RFC 1122, section 4.2.3.2 (an ACK for every second
//! segment, within 0.5 s): it is for peers that have agreed on it.
//!
//! Forward delays are differences of two clocks that need not agree. Only delays less the newest one's are reported, so that
//! neither an offset nor a drift of the clocks is in the report beyond what they drift during a train.

use super::Config;
use super::segment::{DELAY_UNIT_US, Feedback, Segment, WAIT_UNIT_US, stamp};
use crate::flags::Flags;
use crate::ranges::Received;
use crate::stats::Stats;
use meshpace_core::{Duration, Time};

/// Bits of the report of what lies beyond a gap.
const BITS: u64 = u32::BITS as u64;

/// The segments that arrived since the last ACK.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    segments: u32,
    marked: u32,
    /// The forward delay of the first of them by the two clocks, microseconds, wrapping.
    reference: u32,
    /// Sum and least of the delays less the reference, microseconds.
    sum: i64,
    least: i32,
    /// The newest delay less the reference.
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

    /// What is reported.
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

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    segment: u64,
    /// Receive window in segments.
    window: u16,
    ack_timer: Duration,
    received: Received,
    /// The offset of the peer's FIN, once known.
    fin_at: Option<u64>,
    batch: Batch,
    /// When the newest segment arrived, and its time stamp.
    arrived_at: Time,
    ts_recent: u32,
    ack_due: bool,
    /// When an ACK leaves without a TAIL.
    deadline: Time,
}

impl Receiver {
    /// Nothing received yet.
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            segment: u64::from(config.segment),
            window: config.max_window,
            ack_timer: config.ack_timer,
            received: Received::new(usize::from(config.max_window.min(256)) + 1),
            fin_at: None,
            batch: Batch::default(),
            arrived_at: Time::ZERO,
            ts_recent: 0,
            ack_due: false,
            deadline: Time::NEVER,
        }
    }

    /// The next offset expected; a received FIN counts as one byte.
    pub fn expected(&self) -> u64 {
        self.received.next() + u64::from(self.is_closed())
    }

    /// Whether all of the peer's stream and its FIN have arrived.
    pub fn is_closed(&self) -> bool {
        self.fin_at == Some(self.received.next())
    }

    /// Payload bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.received.next()
    }

    /// Receive window in segments.
    pub fn window(&self) -> u16 {
        self.window
    }

    /// An ACK is to leave at once.
    pub fn acknowledge(&mut self) {
        self.ack_due = true;
    }

    /// Whether one is.
    pub fn owes_ack(&self) -> bool {
        self.ack_due
    }

    /// When an ACK leaves without a TAIL.
    pub fn next_wakeup(&self) -> Time {
        self.deadline
    }

    /// The deadline may have passed.
    pub fn on_timer(&mut self, now: Time) {
        if self.deadline <= now {
            self.ack_due = true;
        }
    }

    /// The peer's SYN arrived: its stamp is echoed.
    pub fn on_syn(&mut self, segment: &Segment) {
        self.ts_recent = segment.ts_val;
    }

    /// A segment of the established connection arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, marked: bool, stats: &mut Stats) {
        let fin = segment.flags.has(Flags::FIN);
        if segment.payload == 0 && !fin {
            // A probe of the window, or what is left of a handshake.
            self.ack_due |= segment.is_tail();
            return;
        }
        self.batch.add(stamp(now).wrapping_sub(segment.ts_val), marked);
        self.arrived_at = now;
        self.ts_recent = segment.ts_val;
        let (start, end) = (segment.seq, segment.seq.saturating_add(u64::from(segment.payload)));
        let edge = self.fin_at.unwrap_or_else(|| self.received.next() + self.segment * u64::from(self.window));
        if segment.payload > 0 {
            // Beyond a gap only what fits whole: the report has one bit for a segment.
            let fits = end <= edge || (start <= self.received.next() && start < edge);
            if fits && self.received.insert(start, end.min(edge)) {
                stats.distinct_segments_received += 1;
            } else {
                stats.duplicate_segments_received += 1;
            }
        }
        // A FIN below what has arrived contradicts it, one beyond the window waits for another day.
        if fin && self.fin_at.is_none() && end <= edge && end >= self.received.highest() {
            self.fin_at = Some(end);
        }
        self.ack_due |= segment.is_tail() || fin || end > edge;
        self.deadline = now.saturating_add(self.ack_timer);
    }

    /// What is said of the peer's stream in every segment.
    pub fn ride(&self, segment: &mut Segment) {
        segment.ack = self.expected();
        segment.ts_ecr = self.ts_recent;
        segment.window = self.window;
        segment.flags = segment.flags.with(Flags::ACK);
    }

    /// The ACK that is due.
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

    /// One bit for each full segment's worth of bytes from the next expected one on.
    fn beyond(&self) -> u32 {
        let (next, highest) = (self.received.next(), self.received.highest());
        if self.received.beyond().is_empty() {
            return 0;
        }
        let mut bits = 0;
        for place in 0..BITS {
            let start = next + place * self.segment;
            if start >= highest {
                break;
            }
            bits |= u32::from(self.received.has(start, highest.min(start + self.segment))) << place;
        }
        bits
    }
}

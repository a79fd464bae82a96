//! The receiving half: it stores out-of-order data, sends ACKs and offers a window.
//!
//! RFC 5681, section 4.2: a duplicate or a gap is acknowledged at once.
//!
//! With delayed ACKs the echoed time stamp is that of the oldest waiting segment (RFC 7323, section
//! 4.3; ns-2), so the retransmission timer takes the wait into account. The echoed one-way delay is
//! that of the newest segment, which causes the ACK, because AP05 samples the RTT in the same way.

use super::ack::Policy;
use super::ecn::Echoing;
use super::segment::{Extension, stamp};
use super::timers::{Shared, Timer};
use super::{Config, Flags, Segment};
use crate::ranges::{Insertion, Range};
use crate::receiving::{Offer, Reassembly};
use meshpace_core::{Duration, Time};

/// Report of an ACK besides the cumulative acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Report {
    /// No further report.
    Nothing,
    /// Blocks of data beyond a gap (RFC 2018).
    Blocks,
    /// The one-way delay, in microseconds, of the segment that causes the ACK (AP05, section 5,
    /// figure 15).
    OneWayDelay(u32),
}

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Rule that decides when ACKs leave.
    policy: Policy,
    /// Congestion marks that have to be echoed.
    echoing: Echoing,
    arrived: Reassembly,
    offer: Offer,
    report: Report,
    /// Everything before this offset has been acknowledged.
    acknowledged: u64,
    /// The peer's time stamp that the next ACK echoes (RFC 7323, section 4.3).
    ts_recent: u32,
    /// True if an ACK has to leave now.
    ack_due: bool,
}

impl Receiver {
    /// Creates a receiver that has received nothing. `at_once` says whether the application reads
    /// everything at once; otherwise [`Receiver::take`] reports what it reads.
    pub fn new(config: &Config, at_once: bool) -> Receiver {
        let window = config.segment.saturating_mul(config.max_window);
        Receiver {
            policy: Policy::new(&config.ack, config.window.limit(config.max_window)),
            echoing: Echoing::new(config.ecn),
            arrived: Reassembly::new(u64::from(config.max_window)),
            offer: Offer::new(config.segment, window, at_once),
            report: match config.sack {
                _ if config.pacing.needs_one_way_delay() => Report::OneWayDelay(0),
                true => Report::Blocks,
                false => Report::Nothing,
            },
            acknowledged: 0,
            ts_recent: 0,
            ack_due: false,
        }
    }

    /// The whole window in bytes, which a SYN offers.
    pub fn window(&self) -> u32 {
        self.offer.window()
    }

    /// Takes the agreement on selective acknowledgements from the handshake.
    pub fn agree(&mut self, sack: bool) {
        if !matches!(self.report, Report::OneWayDelay(_)) {
            self.report = if sack { Report::Blocks } else { Report::Nothing };
        }
    }

    /// The SYN of the peer arrived.
    pub fn on_syn(&mut self, syn: &Segment) {
        self.ts_recent = syn.ts_val;
        self.echoing.on_syn(syn);
    }

    /// The SYN-ACK arrived with the time stamp `ts_val`.
    pub fn on_syn_ack(&mut self, ts_val: u32) {
        self.ts_recent = ts_val;
    }

    /// Requests an immediate ACK.
    pub fn acknowledge(&mut self) {
        self.ack_due = true;
    }

    /// The application has read `bytes` more. An ACK that reports the new window leaves only if the
    /// peer may be waiting for it.
    pub fn take(&mut self, bytes: u64) {
        self.ack_due |= self.offer.take(bytes, &self.arrived) && !self.is_closed();
    }

    /// The next expected offset. A received FIN counts as one byte.
    pub fn expected(&self) -> u64 {
        self.arrived.expected()
    }

    /// True if all of the peer's stream and its FIN have arrived.
    pub fn is_closed(&self) -> bool {
        self.arrived.is_closed()
    }

    /// Payload bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.arrived.next()
    }

    /// True if a segment with these offsets overlaps the window (RFC 9293, section 3.4). A window
    /// probe does not.
    pub fn is_acceptable(&self, start: u64, end: u64) -> bool {
        let next = self.expected();
        let edge = self.offer.edge(&self.arrived).max(next);
        if start == end { start >= next && (start < edge || start == next) } else { start < edge && end > next }
    }

    /// The blocks beyond a gap, in the order in which an ACK reports as many of them as fit. There
    /// are none if selective acknowledgements were not agreed on.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let shown = if self.report == Report::Blocks { usize::MAX } else { 0 };
        self.arrived.blocks().take(shown).map(|known| (known.start, known.end))
    }

    /// A segment without payload and FIN arrived. Stores its time stamp and measures its one-way
    /// delay. Segments with data are treated in the same way first.
    pub fn on_bare(&mut self, now: Time, segment: &Segment) {
        if segment.seq > self.arrived.next() {
            return;
        }
        // The comparison wraps: a stamp is newer if it is less than half of the number range ahead.
        let newer = segment.ts_val.wrapping_sub(self.ts_recent) < 1 << 31;
        if newer && segment.seq <= self.acknowledged {
            self.ts_recent = segment.ts_val;
        }
        if let Report::OneWayDelay(one_way) = &mut self.report {
            *one_way = stamp(now).wrapping_sub(segment.ts_val);
        }
    }

    /// A segment with payload or FIN arrived; `marked` says whether it carries a congestion mark.
    /// Returns whether its payload is part of the peer's stream.
    pub fn on_data(&mut self, shared: &mut Shared, segment: &Segment, marked: bool) -> bool {
        let start = segment.seq;
        let end = start.saturating_add(u64::from(segment.payload));
        let fin = segment.flags.has(Flags::FIN);
        self.on_bare(shared.now, segment);
        let edge = self.arrived.fin_at().unwrap_or_else(|| self.offer.edge(&self.arrived));
        let was_complete = self.arrived.is_complete();
        let before = self.arrived.next();
        let ack_was_due = self.ack_due;
        let echo_due = segment.payload > 0 && self.echoing.on_data(segment, marked);
        self.ack_due = true;
        if start > edge {
            return false;
        }
        if segment.payload > 0 {
            match self.arrived.on_range(start, Range { start: start.max(before), end: end.min(edge) }) {
                Insertion::New => shared.stats.distinct_segments_received += 1,
                Insertion::Known => shared.stats.duplicate_segments_received += 1,
                Insertion::Refused => return false,
            }
        }
        let next = self.arrived.next();
        self.policy.on_arrival(shared.now, next > before, round_trip(shared.now, segment));
        if was_complete && next > before && !fin {
            let number = next.div_ceil(u64::from(self.offer.segment()));
            self.ack_due = self.policy.on_in_order(shared.now, number) || ack_was_due || echo_due;
            shared.timers.set(Timer::DelayedAck, self.policy.deadline());
        } else {
            self.policy.on_disorder();
        }
        // A FIN below received data contradicts that data and is ignored. A FIN beyond the window
        // is ignored too; the peer will repeat it.
        if fin && self.arrived.fin_at().is_none() && end <= edge && end >= self.arrived.highest() {
            self.arrived.set_fin(end);
        }
        // No further segment will arrive, so a delayed ACK has nothing to wait for.
        self.ack_due |= self.arrived.is_closed();
        true
    }

    /// Handles the timer of delayed ACKs if it is due.
    pub fn on_timer(&mut self, shared: &mut Shared) {
        if shared.timers.is_due(Timer::DelayedAck, shared.now) {
            self.ack_due = true;
            self.policy.on_deadline(shared.now);
            shared.timers.stop(Timer::DelayedAck);
        }
    }

    /// The SYN-ACK of this end.
    pub fn syn_ack(&mut self, now: Time) -> Segment {
        let flags = Flags::SYN.with(Flags::ACK).with(self.echoing.syn_ack_flags());
        let mut segment = Segment { ts_val: stamp(now), flags, ..Segment::default() };
        self.tell(&mut segment);
        segment
    }

    /// A bare ACK, if one is due.
    pub fn next_ack(&mut self, shared: &mut Shared) -> Option<Segment> {
        if !self.ack_due {
            return None;
        }
        shared.stats.acks_sent += 1;
        let flags = Flags::ACK.with(self.echoing.ack_flags());
        let mut segment = Segment { ts_val: stamp(shared.now), flags, ..Segment::default() };
        self.tell(&mut segment);
        self.on_ack_sent(shared);
        Some(segment)
    }

    /// Adds the acknowledgement to a segment of the sending half.
    pub fn piggyback(&mut self, shared: &mut Shared, segment: &mut Segment) {
        segment.flags = segment.flags.with(self.echoing.ack_flags());
        let (extension, words) = (segment.extension, segment.words);
        self.tell(segment);
        // There is nothing to report before any data has arrived.
        if extension != Extension::None || !self.arrived.has_arrived() {
            (segment.extension, segment.words) = (extension, words);
        }
        self.on_ack_sent(shared);
    }

    fn on_ack_sent(&mut self, shared: &mut Shared) {
        self.ack_due = false;
        self.policy.on_ack_sent(shared.now);
        shared.timers.stop(Timer::DelayedAck);
        self.acknowledged = self.arrived.next();
    }

    /// Fills in the fields that an ACK carries.
    fn tell(&mut self, segment: &mut Segment) {
        segment.ack = self.expected();
        segment.window = self.offer.offer(&self.arrived);
        segment.ts_ecr = self.ts_recent;
        match self.report {
            Report::Nothing => {}
            Report::OneWayDelay(microseconds) => {
                (segment.extension, segment.words) = (Extension::OneWayDelay, [u64::from(microseconds), 0]);
            }
            Report::Blocks if self.arrived.is_complete() => {}
            Report::Blocks => segment.report(self.blocks()),
        }
    }
}

/// The longest round trip for which an echoed time stamp is accepted.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(60);

/// Time since the ACK left whose time stamp a segment echoes; `None` if it echoes no valid time
/// stamp.
fn round_trip(now: Time, segment: &Segment) -> Option<Duration> {
    let age = Duration::from_micros(u64::from(stamp(now).wrapping_sub(segment.ts_ecr)));
    (segment.ts_ecr != 0 && age < LONGEST_ROUND_TRIP).then_some(age)
}

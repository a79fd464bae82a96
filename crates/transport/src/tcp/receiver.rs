//! The receiving end: listens, keeps what comes out of order, acknowledges, closes after the peer.
//!
//! RFC 9293 for the connection; RFC 5681, section 4.2: a duplicate or a gap is acknowledged at once. The application
//! takes in-order data immediately, so that the whole window is always open. When the peer has closed, this end, having
//! nothing to say, closes with its ACK.
//!
//! Under delayed ACKs the time stamp that is echoed is that of the oldest segment that waits (RFC 7323, section 4.3; ns-2),
//! so that the retransmission timer learns of the wait. The one-way delay that is echoed is that of the newest, which brings
//! the ACK about, as AP05 samples the RTT.

use super::ack::Policy;
use super::connection::Agreed;
use super::ecn::Echoing;
use super::segment::Extension;
use super::sender::stamp;
use super::{Config, Flags, Segment};
use crate::Arrival;
use crate::output::{Machine, Output};
use crate::stats::Stats;
use alloc::vec::Vec;
use meshpace_core::{Duration, Time};

/// How often the closing FIN is sent at most.
const FIN_ATTEMPTS: u32 = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Listen,
    SynReceived,
    Established,
    /// Established as the receiving half of a connection, whose sending half closes.
    Joined,
    /// The peer's FIN is received and ours is out.
    LastAck,
    /// Closed by both, or reset.
    Closed,
}

/// A received range of the stream, `start..end`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    start: u64,
    end: u64,
}

/// The receiving end of a TCP connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    state: State,
    stats: Stats,
    /// When ACKs leave.
    policy: Policy,
    /// Marks that are to be echoed.
    echoing: Echoing,
    /// Payload bytes of a full segment.
    segment: u32,
    /// Window in bytes.
    window: u32,
    /// What the application has taken, if it does not take everything at once.
    taken: Option<u64>,
    /// The offset up to which the peer has been told to send, if the application does not take everything at once.
    told: u64,
    /// The window that was told last.
    offered: u32,
    /// Everything before this offset has been delivered.
    next: u64,
    /// Everything before this offset has been acknowledged.
    acknowledged: u64,
    /// What lies beyond a gap: sorted, disjoint, not touching.
    beyond: Vec<Range>,
    /// The offset of the peer's FIN, once known.
    fin_at: Option<u64>,
    /// The peer's time stamp to echo (RFC 7323, section 4.3).
    ts_recent: u32,
    /// The one-way delay of the segment whose stamp is echoed, in microseconds, if the sender asks for it.
    one_way: Option<u32>,
    /// Whether ACKs report what lies beyond a gap.
    sack: bool,
    /// The start of the segment that arrived last.
    latest: u64,
    syn_ack_due: bool,
    ack_due: bool,
    fin_due: bool,
    fin_times: u32,
    fin_timeout: Duration,
    /// When the closing FIN is sent again.
    fin_again_at: Time,
    wakeup: Time,
}

impl Receiver {
    /// A listening receiver.
    pub fn new(config: &Config) -> Receiver {
        Receiver {
            state: State::Listen,
            stats: Stats::default(),
            policy: Policy::new(&config.ack, config.window.limit(config.max_window)),
            echoing: Echoing::new(config.ecn),
            segment: config.segment,
            window: config.segment.saturating_mul(config.max_window),
            taken: None,
            told: 0,
            offered: 0,
            next: 0,
            acknowledged: 0,
            beyond: Vec::with_capacity(config.max_window.min(256) as usize + 1),
            fin_at: None,
            ts_recent: 0,
            one_way: config.pacing.needs_one_way_delay().then_some(0),
            sack: config.sack,
            latest: 0,
            syn_ack_due: false,
            ack_due: false,
            fin_due: false,
            fin_times: 0,
            fin_timeout: config.rto.initial,
            fin_again_at: Time::NEVER,
            wakeup: Time::NEVER,
        }
    }

    /// The receiving half of a [`super::Connection`]: the application says what it takes.
    pub(super) fn half(config: &Config) -> Receiver {
        let mut half = Receiver::new(config);
        half.taken = Some(0);
        half.told = u64::from(half.window);
        half.offered = half.window;
        half
    }

    /// What the handshake has agreed on.
    pub(super) fn agree(&mut self, agreed: &Agreed) {
        self.sack = agreed.sack && self.one_way.is_none();
    }

    /// The handshake is over; the peer's latest time stamp is `ts_val`. Resets, SYNs and acknowledgements of this end's
    /// stream are no longer this half's concern.
    pub(super) fn join(&mut self, ts_val: u32) {
        self.state = State::Joined;
        self.syn_ack_due = false;
        self.ts_recent = ts_val;
    }

    /// Whether the SYN has arrived and the handshake is not over.
    pub(super) fn is_opening(&self) -> bool {
        self.state == State::SynReceived
    }

    /// The SYN-ACK is to be sent again.
    pub(super) fn repeat_syn_ack(&mut self) {
        self.syn_ack_due = true;
    }

    /// A segment of the peer's stream arrived, in a joined half.
    pub(super) fn on_stream(&mut self, now: Time, segment: &Segment, marked: bool) {
        self.on_data(now, segment, marked);
        self.refresh();
    }

    /// Something has to be acknowledged at once.
    pub(super) fn acknowledge(&mut self) {
        self.ack_due = true;
    }

    /// The application has taken `bytes` more.
    pub(super) fn take(&mut self, bytes: u64) {
        let Some(taken) = self.taken.as_mut() else { return };
        *taken = taken.saturating_add(bytes).min(self.next);
        // The peer is told of itself only if it may be waiting for it (RFC 9293, section 3.8.6.2.2).
        let (offered, edge) = (self.told.saturating_sub(self.next), self.edge());
        let grown = edge.saturating_sub(self.told);
        let stalled = offered < u64::from(self.segment) && grown >= self.silly_below();
        let may_tell = self.state == State::Joined && !self.is_closed() && self.beyond.is_empty();
        if may_tell && (stalled || grown > u64::from(self.window / 2)) {
            self.ack_due = true;
        }
    }

    /// The offset up to which there is room.
    fn edge(&self) -> u64 {
        self.taken.unwrap_or(self.next).saturating_add(u64::from(self.window))
    }

    /// An opening of the window by less is not told (RFC 9293, section 3.8.6.2.2).
    fn silly_below(&self) -> u64 {
        u64::from((self.window / 2).min(self.segment))
    }

    /// The window to be told, in bytes.
    fn offer(&mut self) -> u32 {
        if self.taken.is_none() {
            return self.window;
        }
        let edge = self.edge();
        if !self.beyond.is_empty() {
            // While there is a gap the window stays what it was: duplicate ACKs must look like ones (RFC 5681, section 2),
            // and those that fill a part of it make room for as much at the other end.
            self.told = self.told.max(edge.min(self.next.saturating_add(u64::from(self.offered))));
        } else if edge.saturating_sub(self.told) >= self.silly_below() {
            self.told = edge;
        }
        self.offered = u32::try_from(self.told.saturating_sub(self.next)).unwrap_or(u32::MAX);
        self.offered
    }

    /// The next offset expected; a received FIN counts as one byte.
    pub(super) fn expected(&self) -> u64 {
        self.next + u64::from(self.is_closed())
    }

    /// Whether all of the peer's stream and its FIN have arrived.
    pub(super) fn is_closed(&self) -> bool {
        self.fin_at == Some(self.next)
    }

    /// Whether a segment of these offsets touches the window (RFC 9293, section 3.4); a probe does not.
    pub(super) fn is_acceptable(&self, start: u64, end: u64) -> bool {
        let (next, edge) = (self.expected(), self.edge().max(self.expected()));
        if start == end { start >= next && (start < edge || start == next) } else { start < edge && end > next }
    }

    /// The acknowledgement that rides on a segment of the sending half.
    pub(super) fn ride(&mut self, segment: &mut Segment) {
        let (extension, words) = self.extension();
        segment.ack = self.expected();
        segment.window = self.offer();
        segment.ts_ecr = self.ts_recent;
        segment.flags = segment.flags.with(self.echoing.ack_flags());
        // Before anything has arrived there is nothing to report.
        let has_arrived = self.next > 0 || !self.beyond.is_empty();
        if segment.extension == Extension::None && has_arrived {
            (segment.extension, segment.words) = (extension, words);
        }
        self.ack_due = false;
        self.policy.on_ack_sent();
        self.acknowledged = self.next;
        self.refresh();
    }

    /// The blocks beyond a gap, the newest first, as an ACK with room for more than one reports them (RFC 2018, section 4);
    /// none unless agreed on.
    pub fn blocks(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let is_latest = |known: &&Range| known.start <= self.latest && self.latest < known.end;
        let latest = self.beyond.iter().find(is_latest);
        let others = self.beyond.iter().rev().filter(move |known| !is_latest(known));
        let shown = if self.sack { usize::MAX } else { 0 };
        latest.into_iter().chain(others).take(shown).map(|known| (known.start, known.end))
    }

    /// A segment of the peer arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        self.handle(now, segment, arrival);
        self.refresh();
    }

    fn handle(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        let flags = segment.flags;
        if self.state == State::Closed {
            // The peer has not seen our last word.
            self.ack_due = self.fin_at.is_some() && flags.has(Flags::FIN);
            return;
        }
        if flags.has(Flags::RST) {
            // Only one at the exact next offset is believed (RFC 5961, section 3.2).
            if self.state != State::Listen && segment.seq == self.next {
                self.state = State::Closed;
            }
            return;
        }
        if flags.has(Flags::SYN) {
            if flags.has(Flags::ACK) {
                return;
            }
            match self.state {
                State::Listen | State::SynReceived => {
                    self.state = State::SynReceived;
                    self.ts_recent = segment.ts_val;
                    self.echoing.on_syn(segment);
                    self.syn_ack_due = true;
                }
                // Our SYN-ACK was lost or this SYN is late: say where we are (RFC 5961, section 4.2).
                _ => self.ack_due = true,
            }
            return;
        }
        if !flags.has(Flags::ACK) || self.state == State::Listen {
            return;
        }
        if segment.ack > u64::from(self.fin_times > 0) {
            // It acknowledges what was never sent (RFC 9293, section 3.10.7.4).
            self.ack_due = self.state != State::SynReceived;
            return;
        }
        if self.state == State::SynReceived {
            self.state = State::Established;
        }
        if self.state == State::LastAck && segment.ack == 1 {
            self.state = State::Closed;
            self.fin_due = false;
            return;
        }
        self.on_data(now, segment, arrival.ce);
    }

    fn on_data(&mut self, now: Time, segment: &Segment, marked: bool) {
        let start = segment.seq;
        let end = start.saturating_add(u64::from(segment.payload));
        let fin = segment.flags.has(Flags::FIN);
        let edge = self.fin_at.unwrap_or_else(|| self.edge());
        if start <= self.next {
            // Wrapping comparison: a stamp is newer if it is less than half a turn ahead.
            let newer = segment.ts_val.wrapping_sub(self.ts_recent) < 1 << 31;
            if newer && start <= self.acknowledged {
                self.ts_recent = segment.ts_val;
            }
            if let Some(one_way) = &mut self.one_way {
                *one_way = stamp(now).wrapping_sub(segment.ts_val);
            }
        }
        if segment.payload == 0 && !fin {
            // A bare ACK, or a probe from before the window.
            let here = if self.state == State::Joined { self.expected() } else { self.next };
            self.ack_due |= start != here;
            return;
        }
        let complete = self.beyond.is_empty();
        let before = self.next;
        let ack_was_due = self.ack_due;
        let echo_due = segment.payload > 0 && self.echoing.on_data(segment, marked);
        self.ack_due = true;
        if start > edge {
            return;
        }
        if segment.payload > 0 {
            self.latest = start;
            let range = Range { start: start.max(self.next), end: end.min(edge) };
            if range.start < range.end && self.insert(range) {
                self.stats.distinct_segments_received += 1;
            } else {
                self.stats.duplicate_segments_received += 1;
            }
        }
        if complete && self.next > before && !fin {
            let number = self.next.div_ceil(u64::from(self.segment));
            self.ack_due = self.policy.on_in_order(now, number) || ack_was_due || echo_due;
        }
        // A FIN below what has arrived contradicts it, one beyond the window waits for another day.
        if fin && self.fin_at.is_none() && end <= edge && end >= self.highest() {
            self.fin_at = Some(end);
        }
        if self.fin_at == Some(self.next) && self.state == State::Established {
            self.state = State::LastAck;
            self.fin_due = true;
        }
    }

    /// The offset after everything that has arrived.
    fn highest(&self) -> u64 {
        self.beyond.last().map_or(self.next, |last| last.end)
    }

    /// Adds a range at or after `next`; whether it brought anything new.
    fn insert(&mut self, range: Range) -> bool {
        if range.start == self.next && self.beyond.is_empty() {
            self.next = range.end;
            return true;
        }
        // The ranges from `first` to `last` touch the new one and become one with it.
        let first = self.beyond.partition_point(|known| known.end < range.start);
        let last = self.beyond.partition_point(|known| known.start <= range.end);
        if first < last && self.beyond[first].start <= range.start && self.beyond[first].end >= range.end {
            return false;
        }
        if first == last {
            self.beyond.insert(first, range);
        } else {
            let end = range.end.max(self.beyond[last - 1].end);
            let start = range.start.min(self.beyond[first].start);
            self.beyond[first] = Range { start, end };
            self.beyond.drain(first + 1..last);
        }
        if self.beyond[0].start <= self.next {
            self.next = self.beyond[0].end;
            self.beyond.remove(0);
        }
        true
    }

    /// A timer is due.
    pub(super) fn on_timer(&mut self, now: Time) {
        if self.policy.deadline() <= now {
            self.ack_due = true;
            self.policy.on_ack_sent();
        }
        if self.fin_again_at <= now {
            self.fin_again_at = Time::NEVER;
            if self.fin_times < FIN_ATTEMPTS {
                self.fin_due = true;
            } else {
                self.state = State::Closed;
            }
        }
        self.refresh();
    }

    /// The next segment that may leave.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let segment = self.next_segment(now);
        if segment.is_some() {
            self.policy.on_ack_sent();
            self.acknowledged = self.next;
            self.refresh();
        }
        segment
    }

    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.syn_ack_due {
            self.syn_ack_due = false;
            return Some(self.bare(now, Flags::SYN.with(Flags::ACK).with(self.echoing.syn_ack_flags())));
        }
        if self.fin_due {
            self.fin_due = false;
            self.ack_due = false;
            let backoff = 1 << self.fin_times;
            self.fin_times += 1;
            self.fin_again_at = now.saturating_add(self.fin_timeout * backoff);
            let echo = self.echoing.ack_flags();
            return Some(self.bare(now, Flags::FIN.with(Flags::ACK).with(echo)));
        }
        if self.ack_due {
            self.ack_due = false;
            self.stats.acks_sent += 1;
            let echo = self.echoing.ack_flags();
            return Some(self.bare(now, Flags::ACK.with(echo)));
        }
        None
    }

    fn bare(&mut self, now: Time, flags: Flags) -> Segment {
        // Our FIN stands at offset 0 of our empty stream; after it comes 1.
        let after_fin = self.fin_times > 0 && !flags.has(Flags::FIN);
        let (extension, words) = self.extension();
        Segment {
            seq: u64::from(after_fin),
            ack: self.expected(),
            window: self.offer(),
            ts_val: stamp(now),
            ts_ecr: self.ts_recent,
            payload: 0,
            flags,
            extension,
            words,
        }
    }

    /// What an ACK says besides its header.
    fn extension(&self) -> (Extension, [u32; 2]) {
        if let Some(microseconds) = self.one_way {
            return (Extension::OneWayDelay, [microseconds, 0]);
        }
        // The block that the latest segment belongs to (RFC 2018, section 4), or else the newest one.
        let latest = self.beyond.iter().find(|known| known.start <= self.latest && self.latest < known.end);
        match latest.or(self.beyond.last()) {
            Some(block) if self.sack => {
                let relative = |offset: u64| u32::try_from(offset - self.next).unwrap_or(u32::MAX);
                (Extension::Sack, [relative(block.start), relative(block.end)])
            }
            _ => (Extension::None, [0; 2]),
        }
    }

    fn refresh(&mut self) {
        self.wakeup =
            if self.state == State::Closed { Time::NEVER } else { self.fin_again_at.min(self.policy.deadline()) };
    }

    /// When [`Receiver::on_timer`] is due.
    pub(super) fn next_wakeup(&self) -> Time {
        self.wakeup
    }

    /// Payload bytes delivered in order.
    pub fn delivered(&self) -> u64 {
        self.next
    }

    /// Whether the connection has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::Closed
    }

    /// What was counted.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}

impl Machine for Receiver {
    type Segment = Segment;

    fn poll(&mut self, now: Time) -> Output<Segment> {
        if self.wakeup <= now {
            self.on_timer(now);
        }
        let segment = self.poll_transmit(now);
        Output::new(segment, self.wakeup)
    }
}

//! The sending end: opens the connection, sends what the window and the pacing allow, repairs losses, closes.
//!
//! RFC 9293 for the connection, RFC 5681/6582 for recovery, RFC 6298 for the timer, with the departures named in
//! `recovery`, `rtt` and `window`. After a timeout the send pointer goes back to the first unacknowledged segment and
//! everything after it is sent again as the window opens (go-back-N, as in ns-2), except what ACKs meanwhile cover.
//! The ACK of the SYN-ACK rides with the first data segment if there is data; a bare ACK leaves only if there is none.
//! An idle connection starts again with one segment (RFC 5681, section 4.1; one segment as in ns-2). No Nagle: what is
//! written leaves as the window allows.

use super::Config;
use super::connection::Agreed;
use super::ecn;
use super::recovery::{Action, Recovery};
use super::rtt::{self, Rtt};
use super::sack::Sack;
use super::segment::{Extension, Segment};
use super::sent::{self, Cut};
use super::window::Window;
use crate::flags::Flags;
use crate::output::{Machine, Output};
use crate::pacing::{self, Pacer, Sampling};
use crate::stats::Stats;
use crate::{Arrival, PathInfo};
use meshpace_core::{Duration, Rate, Time};

/// More than any application writes.
const ENDLESS: u64 = u64::MAX / 2;

/// Where the connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Closed,
    SynSent,
    Established,
    /// Everything is acknowledged, the FIN included.
    Finished,
    /// The peer reset the connection.
    Reset,
}

/// The sending end of a TCP connection.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    state: State,
    stats: Stats,
    window: Window,
    recovery: Recovery,
    /// Takes the place of `recovery` with selective acknowledgements.
    sack: Sack,
    rtt: Rtt,
    pacer: Pacer,
    path: PathInfo,

    /// Bytes the application has handed over.
    written: u64,
    /// Whether the application will write no more.
    closing: bool,
    /// Bytes cut into segments.
    cut_bytes: u64,
    /// Whether the FIN is cut.
    fin_cut: bool,
    sent: sent::Window,
    /// Number of the next segment the window releases.
    next: u64,
    /// How many segments have been sent at least once, the skipped ones among them included.
    highest: u64,
    /// Everything before this offset is acknowledged.
    una: u64,
    /// How many bytes beyond `una` the peer takes.
    peer_window: u64,

    /// The SYN is to be sent.
    syn_due: bool,
    /// When the SYN was sent, if it was sent once.
    syn_sent_at: Option<Time>,
    syn_times: u32,
    /// The first missing segment is to be sent again at once.
    repair_due: bool,
    /// A bare ACK is to be sent: its sequence number is `una` or beyond.
    ack_due: bool,
    /// A window probe is to be sent.
    probe_due: bool,

    /// Whether both ends agreed on ECN.
    ecn: bool,
    /// The window has been reduced: the next new segment says so.
    cwr_due: bool,
    /// Echoes of marks count again once this offset is acknowledged.
    marks_count_from: u64,

    /// The segment timed for the RTO: its number and when it was sent.
    timed: Option<(u64, Time)>,
    /// When the retransmission timer expires.
    rto_at: Time,
    /// When something was last sent or acknowledged, for the idle restart.
    active_at: Time,
    /// What the peer has sent of its own stream: 0, or 1 after its FIN.
    peer_next: u64,
    /// The peer's latest time stamp, echoed.
    ts_recent: u32,
    /// Whether segments carry time stamps.
    timestamps: bool,
    /// Whether a receiver of the same connection looks after the peer's stream.
    joined: bool,
    wakeup: Time,
}

impl Sender {
    /// A closed sender.
    pub fn new(config: &Config) -> Sender {
        let window = config.window.build(config.max_window);
        let window = match config.byte_counting {
            Some(limit) => window.counting_bytes(limit),
            None => window,
        };
        let capacity = window.limit().min(256) as usize + 2;
        Sender {
            state: State::Closed,
            stats: Stats::default(),
            window,
            recovery: Recovery::new(config.limited_transmit),
            sack: Sack::default(),
            rtt: Rtt::new(&config.rto),
            pacer: Pacer::new(&config.pacing, config.segment),
            path: PathInfo { hops: 1, rate: Rate::from_mbps(2), received_power_dbm: None },
            written: 0,
            closing: false,
            cut_bytes: 0,
            fin_cut: false,
            sent: sent::Window::new(capacity),
            next: 0,
            highest: 0,
            una: 0,
            peer_window: 0,
            syn_due: false,
            syn_sent_at: None,
            syn_times: 0,
            repair_due: false,
            ack_due: false,
            probe_due: false,
            ecn: false,
            cwr_due: false,
            marks_count_from: 0,
            timed: None,
            rto_at: Time::NEVER,
            active_at: Time::ZERO,
            peer_next: 0,
            ts_recent: 0,
            timestamps: true,
            joined: false,
            wakeup: Time::NEVER,
            config: config.clone(),
        }
    }

    /// The sending half of a [`super::Connection`], which looks after the peer's stream, its resets and its SYNs. If it
    /// `opens` the connection, [`Sender::open`] sends the SYN; if not, [`Sender::establish`] ends the waiting.
    pub(super) fn half(config: &Config, opens: bool) -> Sender {
        let state = if opens { State::Closed } else { State::SynSent };
        Sender { joined: true, state, ..Sender::new(config) }
    }

    /// What the handshake has agreed on; to be told before the connection is established.
    pub(super) fn agree(&mut self, now: Time, agreed: &Agreed) {
        self.config.sack &= agreed.sack;
        self.timestamps = agreed.timestamps;
        if agreed.segment < self.config.segment {
            self.config.segment = agreed.segment;
            self.pacer = Pacer::new(&self.config.pacing, agreed.segment);
            self.pacer.on_open(now, &mut self.stats);
        }
    }

    /// The peer has acknowledged the SYN-ACK, which had been sent `times` times, the first time at `sent_at`; it takes
    /// `peer_window` bytes.
    pub(super) fn establish(&mut self, now: Time, peer_window: u32, sent_at: Time, times: u32) {
        self.syn_times = times;
        self.syn_sent_at = (times == 1).then_some(sent_at);
        self.begin(now, peer_window);
        self.release(now);
        self.refresh(now);
    }

    /// A block beyond a gap that an ACK reports besides the one in the segment.
    pub(super) fn on_block(&mut self, start: u64, end: u64) {
        if self.config.sack {
            self.sent.report(start, end);
        }
    }

    /// The application connects.
    pub fn open(&mut self, now: Time) {
        if self.state == State::Closed {
            self.state = State::SynSent;
            self.syn_due = true;
            self.active_at = now;
            self.refresh(now);
        }
    }

    /// The application hands over `bytes`.
    pub fn write(&mut self, now: Time, bytes: u64) {
        if self.closing || bytes == 0 {
            return;
        }
        let idle = !self.outstanding() && self.cut_bytes == self.written && self.state == State::Established;
        if idle && now.since(self.active_at) > self.rtt.rto() {
            self.window.restart(1);
        }
        self.written = self.written.saturating_add(bytes).min(ENDLESS);
        self.recovery.lift_allowance();
        self.release(now);
        self.refresh(now);
    }

    /// The application always has more.
    pub fn write_endless(&mut self, now: Time) {
        self.write(now, ENDLESS);
    }

    /// The application will write no more.
    pub fn close(&mut self, now: Time) {
        if self.state == State::Closed {
            self.state = State::Finished;
        }
        self.closing = true;
        // Of data without end nothing more is sent than what is already cut.
        if self.written == ENDLESS {
            self.written = self.cut_bytes;
        }
        self.recovery.lift_allowance();
        self.release(now);
        self.refresh(now);
    }

    /// A segment of the peer arrived.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        self.pacer.on_frame(arrival.received_power_dbm);
        match self.state {
            State::Closed | State::Reset => return,
            State::SynSent => self.on_handshake(now, segment, arrival),
            State::Established | State::Finished => self.on_established(now, segment, arrival),
        }
        self.release(now);
        self.refresh(now);
    }

    fn on_handshake(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        let flags = segment.flags;
        if !flags.has(Flags::ACK) || segment.ack != 0 {
            return;
        }
        if flags.has(Flags::RST) {
            self.state = State::Reset;
            return;
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        self.ecn = self.config.ecn.agreed_by(segment);
        self.ack_due = true;
        self.ts_recent = segment.ts_val;
        self.pacer.on_ack();
        if self.sampling() == Sampling::EveryEcho {
            self.sample_echo(now, segment, arrival);
        }
        self.begin(now, segment.window);
    }

    /// The handshake ends.
    fn begin(&mut self, now: Time, peer_window: u32) {
        self.state = State::Established;
        self.syn_due = false;
        self.peer_window = u64::from(peer_window);
        self.active_at = now;
        self.rto_at = Time::NEVER;
        // A SYN that was lost is a sign of congestion: start with one segment (RFC 5681, section 3.1).
        let initial = if self.syn_times > 1 { 1 } else { self.config.initial_window };
        self.window.restart(initial);
        if let Some(sent_at) = self.syn_sent_at {
            self.rtt.end_backoff();
            match self.rtt_sampling() {
                rtt::Sampling::OneTimed => self.rtt.on_sample(self.rtt.ticks_between(sent_at, now)),
                rtt::Sampling::Timestamps => self.rtt.on_sample(self.rtt.ticks_in(now.since(sent_at))),
            }
        }
    }

    fn on_established(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        let flags = segment.flags;
        if flags.has(Flags::SYN) {
            // Our ACK of the SYN-ACK was lost, or this one was late.
            self.ack_due = true;
            return;
        }
        if flags.has(Flags::RST) {
            // Only what fits the peer's sequence is believed (RFC 5961, section 3.2).
            if segment.seq == self.peer_next {
                self.state = State::Reset;
                self.rto_at = Time::NEVER;
            }
            return;
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        let sent_end = self.sent_end();
        if segment.ack > sent_end {
            return;
        }
        if !self.joined && flags.has(Flags::FIN) && segment.payload == 0 && segment.seq <= 1 {
            self.peer_next = 1;
            self.ack_due = true;
        }
        self.ts_recent = segment.ts_val;
        self.pacer.on_ack();
        let marked = self.ecn && flags.has(Flags::ECE);
        self.pacer.on_feedback(marked, self.window.in_slow_start(), self.path.rate);
        if self.sampling() == Sampling::EveryEcho {
            self.sample_echo(now, segment, arrival);
        }
        if marked {
            self.on_mark(segment.ack);
        }
        if let (true, Some((start, end))) = (self.config.sack, segment.sack_block()) {
            self.sent.report(start, end);
        }
        if segment.ack > self.una {
            self.peer_window = u64::from(segment.window);
            self.on_new_ack(now, segment, arrival);
        } else if segment.ack == self.una {
            let same_window = self.peer_window == u64::from(segment.window);
            self.peer_window = u64::from(segment.window);
            if self.outstanding() && same_window && segment.payload == 0 && !flags.has(Flags::FIN) {
                self.on_duplicate_ack(now);
            }
        }
    }

    /// An ACK up to `ack` echoes a mark: as a loss, once per window of data (RFC 3168, section 6.1.2).
    fn on_mark(&mut self, ack: u64) {
        let reacts = matches!(self.config.ecn, ecn::Config::On { reaction: true, .. });
        let recovering = self.recovery.in_recovery() || self.sack.in_recovery();
        if reacts && ack >= self.marks_count_from && !recovering {
            self.window.on_fast_retransmit(self.recovery.inflation());
            self.after_reduction();
        } else if !reacts {
            self.cwr_due = true;
        }
    }

    /// The window was reduced.
    fn after_reduction(&mut self) {
        self.cwr_due = self.ecn;
        self.marks_count_from = self.sent_end().saturating_add(1);
    }

    fn on_new_ack(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        self.stats.acked_bytes += segment.ack.min(self.cut_bytes) - self.una.min(self.cut_bytes);
        self.una = segment.ack;
        self.active_at = now;
        let before = self.sent.base();
        let mut covers_retransmission = false;
        let mut newest = None;
        while let Some(cut) = self.sent.pop_acknowledged(segment.ack) {
            covers_retransmission |= cut.times > 1;
            if cut.times > 0 {
                newest = Some(cut);
            }
        }
        let acked = self.sent.base();
        let newly = acked - before;
        if newly == 0 {
            // Part of a segment: no progress the window could count, but the peer is alive.
            self.restart_rto(now);
            return;
        }
        self.next = self.next.max(acked);
        self.highest = self.highest.max(acked);
        if let Some(cut) = newest {
            let sampled = match self.sampling() {
                Sampling::NewDataKarn => !covers_retransmission,
                Sampling::NewData => cut.times == 1,
                Sampling::EveryEcho => false,
            };
            if sampled {
                let rtt = now.since(cut.sent_at).as_secs_f64();
                self.sample(rtt, segment, arrival);
            }
        }

        self.window.on_clock(now, self.rtt.smoothed().as_secs_f64());
        match self.recover_or_grow(newly, acked) {
            Action::Partial { restart_timer } => {
                if let Some((number, _)) = self.timed
                    && acked > number
                {
                    // The back-off ends, yet recovery distorts the RTT: no sample.
                    self.timed = None;
                    self.rtt.end_backoff();
                }
                if restart_timer {
                    self.restart_rto(now);
                }
                if self.pacer.queues() {
                    self.pacer.enqueue(now, acked, &mut self.stats);
                } else {
                    self.repair_due = true;
                }
            }
            _ => {
                self.repair_due = false;
                self.time_acknowledged(now, segment, acked);
                if self.outstanding() {
                    self.restart_rto(now);
                } else {
                    self.rto_at = Time::NEVER;
                }
            }
        }
        if self.fin_cut && self.sent.base() == self.sent.cut() {
            self.state = State::Finished;
            self.rto_at = Time::NEVER;
        }
    }

    /// What an ACK of `newly` segments, `acked` in all, does to recovery and window.
    fn recover_or_grow(&mut self, newly: u64, acked: u64) -> Action {
        if !self.config.sack {
            return self.recovery.on_new_ack(newly, acked, &mut self.window);
        }
        if self.sack.on_new_ack(acked) {
            self.window.on_ack(newly);
        }
        Action::Advance
    }

    fn time_acknowledged(&mut self, now: Time, segment: &Segment, acked: u64) {
        if self.rtt_sampling() == rtt::Sampling::Timestamps {
            self.rtt.on_sample(self.rtt.ticks_in(echo_age(now, segment)));
        }
        if let Some((number, sent_at)) = self.timed
            && acked > number
        {
            self.timed = None;
            self.rtt.end_backoff();
            if self.rtt_sampling() == rtt::Sampling::OneTimed {
                self.rtt.on_sample(self.rtt.ticks_between(sent_at, now));
            }
        }
    }

    /// Which ACKs give the pacing a sample. Without time stamps, what asks for their echo has the next best.
    fn sampling(&self) -> Sampling {
        match self.pacer.sampling() {
            Sampling::EveryEcho if !self.timestamps => Sampling::NewData,
            sampling => sampling,
        }
    }

    /// Which segments the retransmission timer times; without time stamps, one at a time.
    fn rtt_sampling(&self) -> rtt::Sampling {
        if self.timestamps { self.rtt.sampling() } else { rtt::Sampling::OneTimed }
    }

    fn on_duplicate_ack(&mut self, now: Time) {
        self.stats.duplicate_acks += 1;
        let acked = self.sent.base();
        let starts = if !self.config.sack {
            self.recovery.on_duplicate_ack(acked, self.highest, &mut self.window) == Action::FastRetransmit
        } else if self.sack.on_duplicate_ack(&self.sent, self.highest) {
            self.window.on_fast_retransmit(0);
            true
        } else {
            false
        };
        if starts {
            self.stats.fast_retransmits += 1;
            self.restart_rto(now);
            self.timed = None;
            self.repair_due = true;
            self.after_reduction();
            self.pacer.on_fast_retransmit();
        }
    }

    /// A timer is due.
    pub(super) fn on_timer(&mut self, now: Time) {
        self.pacer.on_timer(now, &mut self.stats);
        if self.rto_at <= now {
            self.on_rto(now);
        }
        self.release(now);
        self.refresh(now);
    }

    fn on_rto(&mut self, now: Time) {
        self.rto_at = Time::NEVER;
        match self.state {
            State::SynSent => {
                self.stats.timeouts += 1;
                self.window.on_timeout(0);
                self.rtt.on_timeout();
                self.pacer.on_timeout();
                self.syn_sent_at = None;
                self.syn_due = true;
            }
            State::Established if self.outstanding() => {
                self.stats.timeouts += 1;
                // The agent that leaves the duplicate count is the one that switches pacing off.
                let forget = !self.pacer.stops_on_loss();
                self.recovery.on_timeout(self.highest, forget, &mut self.window);
                self.sack.on_timeout(self.highest);
                self.sent.forget_reports();
                self.rtt.on_timeout();
                self.after_reduction();
                self.timed = None;
                self.repair_due = false;
                self.next = self.sent.base();
                self.pacer.on_timeout();
                // The first segment leaves at once; a closed peer window does not stop it.
                self.repair_due = true;
                self.restart_rto(now);
            }
            State::Established if self.next > self.sent.base() => {
                // Released by the window and not sent: the released agent has dropped it from its FIFO or has stopped its
                // timer. ns-2's retransmission timer, which runs without outstanding data too, is what frees it: it
                // starts over with one segment and counts no loss.
                self.window.restart(1);
                self.next = self.sent.base();
                self.pacer.on_timeout();
                self.recovery.lift_allowance();
            }
            State::Established if self.blocked_by_peer() => {
                self.rtt.on_timeout();
                self.probe_due = true;
                self.restart_rto(now);
            }
            _ => {}
        }
    }

    /// The path is known or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        self.path = path;
        self.window.on_hops(path.hops);
    }

    /// The next segment that may leave.
    pub(super) fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let segment = self.next_segment(now);
        if segment.is_some() {
            self.active_at = now;
        }
        self.refresh(now);
        segment
    }

    fn next_segment(&mut self, now: Time) -> Option<Segment> {
        if self.syn_due {
            self.syn_due = false;
            self.syn_times += 1;
            self.syn_sent_at = (self.syn_times == 1).then_some(now);
            self.pacer.on_open(now, &mut self.stats);
            self.restart_rto(now);
            return Some(self.bare(now, 0, Flags::SYN.with(self.config.ecn.syn_flags())));
        }
        if self.state == State::Established {
            if self.repair_due && (!self.pacer.paces_retransmissions() || now >= self.pacer.earliest()) {
                self.repair_due = false;
                let first = self.sent.base();
                if self.next == first {
                    // Go-back-N starts with it.
                    self.next += 1;
                    self.recovery.spend_allowance();
                }
                if let Some(segment) = self.send(now, first) {
                    return Some(segment);
                }
            }
            if self.pacer.queues() {
                while let Some(number) = self.pacer.dequeue() {
                    if let Some(segment) = self.send(now, number) {
                        return Some(segment);
                    }
                }
            } else if now >= self.pacer.earliest()
                && let Some(number) = self.take_next(now)
                && let Some(segment) = self.send(now, number)
            {
                return Some(segment);
            }
            if self.probe_due {
                self.probe_due = false;
                // A sequence number before the window makes the receiver answer with its window (RFC 9293, 3.8.6.1).
                return Some(self.bare(now, self.una.wrapping_sub(1), Flags::ACK));
            }
        }
        // While data waits for its turn, the ACK of the handshake waits with it.
        if self.ack_due && (self.highest > 0 || !self.has_data() || self.blocked_by_peer()) {
            self.ack_due = false;
            return Some(self.bare(now, self.sent_end(), Flags::ACK));
        }
        None
    }

    /// In a queueing pacer's world, moves what the window allows into its FIFO.
    fn release(&mut self, now: Time) {
        if self.state == State::Established && self.pacer.queues() {
            while let Some(number) = self.take_next(now) {
                self.pacer.enqueue(now, number, &mut self.stats);
            }
        }
    }

    /// The next segment the window allows, cut from the stream if it is new.
    fn take_next(&mut self, now: Time) -> Option<u64> {
        if self.sack.in_recovery() {
            return self.take_by_report(now);
        }
        if self.next >= self.window_end() {
            return None;
        }
        // Pacing spaces what leaves, so bursts need no other limit.
        let spaced = self.pacer.is_on() && !self.pacer.queues();
        if self.recovery.allowance() == 0 && !spaced {
            return None;
        }
        if self.next == self.sent.cut() && !self.cut_next(now) {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.recovery.spend_allowance();
        Some(number)
    }

    /// The same in recovery by reports: the pipe decides, and what is lost goes first.
    fn take_by_report(&mut self, now: Time) -> Option<u64> {
        let plan = self.sack.plan(&self.sent, self.next, self.window.usable(0))?;
        if plan.lost.is_none() && self.next < self.limit_end() && (self.next < self.sent.cut() || self.cut_next(now)) {
            self.next += 1;
            return Some(self.next - 1);
        }
        let again = plan.lost.or(plan.missing)?;
        self.sack.on_again(again);
        Some(again)
    }

    /// The number of the first segment that the congestion window does not allow.
    fn window_end(&self) -> u64 {
        let limited = if self.config.limited_transmit { self.sack.limited_transmit() } else { 0 };
        self.sent.base() + self.window.usable(self.recovery.inflation() + limited)
    }

    /// The number of the first segment beyond the largest window.
    fn limit_end(&self) -> u64 {
        self.sent.base() + u64::from(self.window.limit())
    }

    /// Whether a new segment would carry anything.
    fn has_data(&self) -> bool {
        self.cut_bytes < self.written || (self.closing && !self.fin_cut)
    }

    fn cut_next(&mut self, now: Time) -> bool {
        if !self.has_data() {
            return false;
        }
        let left = self.written - self.cut_bytes;
        let mut payload = left.min(u64::from(self.config.segment));
        let room = self.una.saturating_add(self.peer_window).saturating_sub(self.cut_bytes);
        if payload > room {
            // A silly small segment only if nothing else will open the window (RFC 9293, section 3.8.6.2.1).
            if self.outstanding() || self.cut_bytes > self.una || room == 0 {
                return false;
            }
            payload = room;
        }
        let fin = self.closing && payload == left;
        self.sent.push(Cut {
            offset: self.cut_bytes,
            sent_at: now,
            payload: payload as u16,
            fin,
            times: 0,
            reported: false,
        });
        self.cut_bytes += payload;
        self.fin_cut |= fin;
        true
    }

    /// Sends segment `number`, unless it has been acknowledged meanwhile.
    fn send(&mut self, now: Time, number: u64) -> Option<Segment> {
        let idle = !self.outstanding();
        let again = number < self.highest;
        let cut = self.sent.get_mut(number)?;
        cut.sent_at = now;
        cut.times = cut.times.saturating_add(1);
        let cut = *cut;
        if cut.payload > 0 {
            self.stats.segments_sent += 1;
            self.stats.retransmissions += u64::from(again);
        }
        if !again {
            self.highest = number + 1;
            if self.timed.is_none() {
                self.timed = Some((number, now));
            }
        }
        if idle || self.rto_at == Time::NEVER {
            self.restart_rto(now);
        }
        self.pacer.on_sent(now, &mut self.stats);
        self.ack_due = false;
        let mut flags = if cut.fin { Flags::ACK.with(Flags::FIN) } else { Flags::ACK };
        let mut extension = Extension::None;
        if self.ecn && !again && cut.payload > 0 {
            extension = Extension::EcnCapable;
            if self.cwr_due {
                self.cwr_due = false;
                flags = flags.with(Flags::CWR);
            }
        }
        Some(Segment { payload: cut.payload, extension, ..self.bare(now, cut.offset, flags) })
    }

    /// A segment without payload.
    fn bare(&self, now: Time, seq: u64, flags: Flags) -> Segment {
        Segment {
            seq,
            ack: self.peer_next,
            // This end takes no data.
            window: self.config.segment.saturating_mul(self.config.max_window),
            ts_val: stamp(now),
            ts_ecr: if flags.has(Flags::ACK) { self.ts_recent } else { 0 },
            payload: 0,
            flags,
            extension: Extension::None,
            words: [0; 2],
        }
    }

    /// The offset after everything sent so far.
    pub(super) fn sent_end(&self) -> u64 {
        match self.highest.checked_sub(1).and_then(|last| self.sent.get(last)) {
            Some(cut) => cut.end(),
            None => self.una,
        }
    }

    /// Whether something sent is unacknowledged.
    fn outstanding(&self) -> bool {
        self.highest > self.sent.base()
    }

    /// Whether an answer of the peer is awaited: to a SYN, to data, to a FIN or to a probe.
    pub(super) fn awaits_answer(&self) -> bool {
        match self.state {
            State::SynSent => self.syn_times > 0,
            State::Established => self.outstanding() || self.blocked_by_peer(),
            State::Closed | State::Finished | State::Reset => false,
        }
    }

    /// Whether the connection is established, at this end.
    pub(super) fn is_established(&self) -> bool {
        matches!(self.state, State::Established | State::Finished)
    }

    /// Whether everything is acknowledged, the FIN included.
    pub(super) fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// Whether the FIN has been sent.
    pub(super) fn fin_sent(&self) -> bool {
        self.fin_cut && self.highest == self.sent.cut()
    }

    /// Payload bytes acknowledged, all from the start on.
    pub fn acknowledged(&self) -> u64 {
        self.una.min(self.cut_bytes)
    }

    /// Whether only the peer's window keeps data back.
    fn blocked_by_peer(&self) -> bool {
        !self.outstanding()
            && self.cut_bytes < self.written
            && self.next == self.sent.cut()
            && self.una.saturating_add(self.peer_window) <= self.cut_bytes
    }

    fn restart_rto(&mut self, now: Time) {
        self.rto_at = now.saturating_add(self.rtt.rto());
    }

    fn sample_echo(&mut self, now: Time, segment: &Segment, arrival: Arrival) {
        self.sample(echo_age(now, segment).as_secs_f64(), segment, arrival);
    }

    fn sample(&mut self, rtt: f64, segment: &Segment, arrival: Arrival) {
        let hops = if self.pacer.hops_from_ack() && arrival.hops > 0 { arrival.hops } else { self.path.hops };
        let sample = pacing::Sample {
            rtt,
            one_way: segment.one_way_delay(),
            hops,
            rate: self.path.rate,
            path_power_dbm: self.path.received_power_dbm,
        };
        self.pacer.on_measured(&sample, &mut self.stats);
    }

    fn refresh(&mut self, now: Time) {
        // Without outstanding data the timer serves as persist timer, and frees what a FIFO holds or has dropped.
        if self.state == State::Established
            && self.rto_at == Time::NEVER
            && (self.next > self.sent.base() || self.blocked_by_peer())
        {
            self.restart_rto(now);
        }
        self.wakeup = self.rto_at.min(self.pacer.next_tick());
        if self.state == State::Established && self.pacer.earliest() > now && self.wants_to_send() {
            self.wakeup = self.wakeup.min(self.pacer.earliest());
        }
        if matches!(self.state, State::Finished | State::Reset | State::Closed) {
            self.wakeup = Time::NEVER;
        }
    }

    fn wants_to_send(&self) -> bool {
        let more = self.next < self.sent.cut() || self.has_data();
        if self.sack.in_recovery() {
            let plan = self.sack.plan(&self.sent, self.next, self.window.usable(0));
            let again = plan.is_some_and(|plan| plan.lost.is_some() || plan.missing.is_some());
            return self.repair_due || again || (plan.is_some() && more && self.next < self.limit_end());
        }
        self.repair_due || (self.next < self.window_end() && more)
    }

    /// When [`Sender::on_timer`] is due.
    pub(super) fn next_wakeup(&self) -> Time {
        self.wakeup
    }

    /// Whether the connection has ended.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Finished | State::Reset)
    }

    /// What was counted.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// The congestion window.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The retransmission timer's estimator.
    pub fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The pacing.
    pub fn pacer(&self) -> &Pacer {
        &self.pacer
    }
}

impl Machine for Sender {
    type Segment = Segment;

    fn poll(&mut self, now: Time) -> Output<Segment> {
        if self.wakeup <= now {
            self.on_timer(now);
        }
        let segment = self.poll_transmit(now);
        Output::new(segment, self.wakeup)
    }
}

/// The clock of the time stamps: microseconds, wrapping.
pub(crate) fn stamp(now: Time) -> u32 {
    (now.0 / 1_000) as u32
}

/// How long ago the stamp that `segment` echoes was made, if less than 2^32 us ago.
fn echo_age(now: Time, segment: &Segment) -> Duration {
    Duration::from_micros(u64::from(stamp(now).wrapping_sub(segment.ts_ecr)))
}

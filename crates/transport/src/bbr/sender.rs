//! The sending half: cuts the stream, paces segments, retransmits lost data, and probes a silent
//! peer.
//!
//! Where the application sends little at a time, as with small messages, a segment repeats earlier
//! data that are not known to have arrived, up to half of a segment in total. Lost data then arrive
//! with the next message, and not after a round trip. (Petlund, Evensen, Griwodz and Halvorsen,
//! "TCP enhancements for interactive thin-stream applications", NOSSDAV 2008: redundant data
//! bundling.) If nothing was lost for [`CAREFUL`] segments, a segment repeats only the message
//! before it, and earlier ones only if everything fits into a quarter of a segment. With messages
//! of 200 bytes, more repeated data, up to half of a segment, would take 0.2 ms of air time at 11
//! Mbit/s on every hop.
//!
//! Where several small messages come at about the same time, a message waits for others, for an
//! eighth of the round trip and at most [`HOLD`]. Messages that programs write at about the same
//! time then share a segment, which over 802.11 costs little more air time than one of them alone.
//! If none of the last [`CAREFUL`] messages had company, as with keystrokes, no message waits.
//!
//! The timer for lost data is the probe timeout of RFC 9002, section 6.2. A peer without room is
//! asked for a report with the same timer.

use super::control::Control;
use super::flight::Flight;
use super::piece::Piece;
use super::receiver::{DELAY, LONGEST, PATIENCE};
use super::segment::{Report, Segment};
use super::{Config, SMALL};
use crate::flags::Flags;
use crate::stats::Stats;
use meshpace_core::{Duration, Time};

/// RFC 9002, section 6.2.2: kInitialRtt.
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// Longest probe timeout, with or without backoff.
const MOST: Duration = Duration::from_secs(10);
/// Number of segments that a probe timeout marks as lost (section 6.2.4: up to two are sent).
const PROBES: usize = 2;
/// Number of probe timeouts in a row after which everything in flight counts as lost (section 7.6:
/// kPersistentCongestionThreshold).
const PERSISTENT: u32 = 3;
/// Part of a segment, as a divisor, up to which more than one message is repeated while nothing is
/// lost.
const LITTLE: u32 = 4;
/// Number of segments, after a loss and at the start, that repeat as much as fits. Also the number
/// of segments, after messages that shared a segment, for which messages wait for others.
const CAREFUL: u32 = 64;
/// Number of segments that may be in flight while there are only small messages: as many as before
/// anything is known about a path (RFC 6928).
const THIN: u64 = 10;
/// Longest time that a small message waits for others, and the largest part of the RTT, as a
/// divisor.
const HOLD: Duration = Duration::from_millis(1);
const HELD: u64 = 8;
/// A host that runs late may make up for this much time: this part of the RTT, as a divisor, within
/// these bounds.
const LATE: u64 = 4;
const LEAST_LATE: Duration = Duration::from_millis(1);
const MOST_LATE: Duration = Duration::from_millis(20);

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    segment: u32,
    flight: Flight,
    control: Control,
    /// Bytes written by the application, and bytes that are cut into segments.
    written: u64,
    cut: u64,
    closing: bool,
    fin_cut: bool,
    /// Offset before which everything has arrived, and offset up to which the peer has room.
    expected: u64,
    limit: u64,
    /// Smoothed RTT and its variation; `None` before the first sample.
    rtt: Option<(Duration, Duration)>,
    /// Earliest departure of the next segment.
    earliest: Time,
    /// Number of probe timeouts in a row, time of the next one, and the time beyond which small
    /// messages do not delay it.
    silent: u32,
    probe_at: Time,
    probe_latest: Time,
    /// Number of segments that may be sent although the window is full.
    probes: usize,
    /// True if the peer has to be asked for a report.
    question: bool,
    /// Whether the last new piece was small, at most one [`SMALL`]th of a segment, and its offset.
    was_small: bool,
    began: u64,
    /// Time at which the small message that waits for others is sent, and its number of bytes.
    held_until: Time,
    held: u16,
    /// Number of further segments for which small messages wait, and the time at which the last
    /// small message was sent.
    company: u32,
    small_at: Time,
    /// Number of further segments that repeat as much as fits.
    careful: u32,
}

impl Sender {
    pub fn new(config: &Config) -> Sender {
        Sender {
            segment: config.segment,
            flight: Flight::new(),
            control: Control::new(config.segment).for_messages(),
            written: 0,
            cut: 0,
            closing: false,
            fin_cut: false,
            expected: 0,
            limit: config.first_credit,
            rtt: None,
            earliest: Time::ZERO,
            silent: 0,
            probe_at: Time::NEVER,
            probe_latest: Time::NEVER,
            probes: 0,
            question: false,
            was_small: false,
            began: 0,
            held_until: Time::NEVER,
            held: 0,
            company: 0,
            small_at: Time::ZERO,
            careful: CAREFUL,
        }
    }

    pub fn write(&mut self, bytes: u64) {
        if !self.closing {
            self.written += bytes;
        }
    }

    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Returns the model of the path.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Number of payload bytes from the start of the stream that are never sent again.
    pub fn acknowledged(&self) -> u64 {
        self.expected.min(self.cut)
    }

    /// Number of segments that are remembered.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.flight.kept()
    }

    /// Bytes sent; retransmitted bytes count once.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Bytes that are written and were never sent.
    pub fn unsent(&self) -> u64 {
        self.written - self.cut
    }

    /// True if the peer's window is closed.
    pub fn is_shut(&self) -> bool {
        self.limit <= self.expected
    }

    /// True if the FIN was sent.
    pub fn has_sent_fin(&self) -> bool {
        self.fin_cut
    }

    /// True if the FIN was sent and has arrived.
    pub fn is_finished(&self) -> bool {
        self.fin_cut && self.expected > self.cut
    }

    /// Asks the peer for a report.
    pub fn ask(&mut self) {
        self.question = true;
    }

    fn smoothed(&self) -> Duration {
        self.rtt.map_or(INITIAL_RTT, |(smoothed, _)| smoothed)
    }

    /// Probe timeout (RFC 9002, section 6.2.1).
    fn patience(&self) -> Duration {
        let (smoothed, variation) = self.rtt.unwrap_or((INITIAL_RTT, Duration(INITIAL_RTT.0 / 2)));
        let wait = if self.was_small { PATIENCE } else { DELAY };
        let once = smoothed + Duration(4 * variation.0).max(Duration::from_millis(1)) + wait;
        Duration(once.0.saturating_mul(1 << self.silent.min(16))).min(MOST)
    }

    /// Processes a report of the peer. Reports that cannot be true are ignored. Returns false if
    /// the report names a skipped number, which only a peer does that claims data which it has not
    /// received.
    pub fn on_report(&mut self, now: Time, report: &Report, stats: &mut Stats) -> bool {
        if !self.flight.is_possible(report) || report.expected > self.cut + u64::from(self.fin_cut) {
            return true;
        }
        if self.flight.is_deceiving(report) {
            return false;
        }
        let least = self.control.min_rtt().unwrap_or_default();
        let has_more = report.expected > self.expected || report.limit > self.limit;
        let news = self.flight.on_report(now, report, (self.smoothed(), least));
        if report.expected > self.expected {
            stats.acked_bytes += report.expected.min(self.cut) - self.acknowledged();
            self.expected = report.expected;
        }
        self.limit = self.limit.max(report.limit);
        if let Some(rtt) = news.rtt {
            self.on_rtt(rtt);
            stats.rtt_samples += 1;
            stats.rtt_sum_s += rtt.as_secs_f64();
        }
        self.on_loss(news.lost, stats);
        self.control.on_report(now, &news, self.flight.bytes(), self.flight.delivered());
        // RFC 9002, section 6.2.1: a report without news about data in flight is no reason to wait
        // for longer. Otherwise a peer that is asked for reports without end would keep lost data
        // from being sent again.
        if has_more || news.has_arrived || self.flight.is_empty() {
            self.silent = 0;
            self.probe_at = Time::NEVER;
        }
        true
    }

    fn on_loss(&mut self, lost: u32, stats: &mut Stats) {
        if lost > 0 {
            stats.fast_retransmits += 1;
            self.careful = CAREFUL;
        }
    }

    /// Updates the smoothed RTT and its variation (RFC 9002, section 5.3).
    fn on_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(match self.rtt {
            None => (rtt, Duration(rtt.0 / 2)),
            Some((smoothed, variation)) => {
                (Duration((7 * smoothed.0 + rtt.0) / 8), Duration((3 * variation.0 + smoothed.0.abs_diff(rtt.0)) / 4))
            }
        });
    }

    /// Skips the number of the next segment, to detect a peer that reports it.
    pub fn skip_number(&mut self) {
        self.flight.skip_number();
    }

    /// The peer is reached over another path from now on: the model of the path and the RTT
    /// estimate start anew (RFC 9000, section 9.4).
    pub fn restart_control(&mut self) {
        self.control = Control::new(self.segment).for_messages();
        self.rtt = None;
        self.flight.restart_samples();
    }

    /// The peer has another address from now on. A backed-off probe timeout expires at once, since
    /// the data for which it waits went to the old address.
    pub fn on_peer_moved(&mut self, now: Time) {
        if self.silent > 0 {
            self.silent = 0;
            self.probe_at = now;
        }
    }

    fn has_new(&self) -> bool {
        self.cut < self.written || (self.closing && !self.fin_cut)
    }

    /// Next new piece for which the peer has room. A piece that only the peer's limit makes shorter
    /// waits while anything is in flight, because a report may raise the limit (RFC 9293, section
    /// 3.8.6.2.1). A peer that raises its limit byte by byte thus gets no segments of one byte.
    fn next_new(&self) -> Option<Piece> {
        if !self.has_new() {
            return None;
        }
        let room = self.limit.saturating_sub(self.cut);
        let wanted = (self.written - self.cut).min(u64::from(self.segment));
        if room < wanted && !self.flight.is_empty() {
            return None;
        }
        let payload = wanted.min(room);
        let fin = self.closing && self.cut + payload == self.written;
        (payload > 0 || fin).then_some(Piece { offset: self.cut, payload: payload as u16, fin })
    }

    /// Processes the timers that are due at `now`. To be called before a segment is requested.
    pub fn on_time(&mut self, now: Time, stats: &mut Stats) {
        if self.flight.lost_at() <= now {
            let lost = self.flight.find_lost(now, self.smoothed());
            self.on_loss(lost, stats);
        }
        let waits = !self.flight.is_empty() || (self.has_new() && self.next_new().is_none());
        if !waits {
            self.probe_at = Time::NEVER;
        } else if self.probe_at == Time::NEVER {
            self.set_probe(now);
        } else if self.probe_at <= now {
            self.on_silence(stats);
            self.set_probe(now);
        }
    }

    fn set_probe(&mut self, now: Time) {
        self.probe_at = now.saturating_add(self.patience());
        self.probe_latest = self.probe_at.saturating_add(Duration(LONGEST.0 - PATIENCE.0));
    }

    fn on_silence(&mut self, stats: &mut Stats) {
        self.silent += 1;
        if self.flight.is_empty() {
            self.question = true;
            return;
        }
        stats.timeouts += 1;
        self.careful = CAREFUL;
        if self.silent >= PERSISTENT {
            self.flight.suspect(usize::MAX);
            self.control.on_silence();
        } else {
            self.flight.suspect(PROBES);
        }
        self.probes = PROBES;
    }

    /// Time at which a segment can be sent or a timer is due.
    pub fn next_wakeup(&self) -> Time {
        let timer = self.flight.lost_at().min(self.probe_at);
        let new = self.next_new();
        if !self.may_send() || (!self.flight.has_lost() && new.is_none()) {
            return timer;
        }
        let is_held = !self.flight.has_lost() && self.held_until != Time::NEVER;
        timer.min(if is_held { self.earliest.max(self.held_until) } else { self.earliest })
    }

    fn may_send(&self) -> bool {
        let window = self.control.window().max(if self.is_thin() { THIN * u64::from(self.segment) } else { 0 });
        let has_place = self.flight.has_place(window / u64::from(self.segment));
        self.probes > 0 || (has_place && self.flight.bytes() + u64::from(self.segment) <= window)
    }

    /// True if there are only small messages. The rate of the path, of which they say nothing, then
    /// does not limit them.
    fn is_thin(&self) -> bool {
        self.was_small && self.silent == 0 && self.unsent() <= u64::from(self.segment / SMALL)
    }

    /// Returns the next segment that may be sent now.
    pub fn next_segment(&mut self, now: Time, stats: &mut Stats) -> Option<Segment> {
        if core::mem::take(&mut self.question) {
            return Some(Segment { flags: Flags::SYN, ..Segment::default() });
        }
        if now < self.earliest || !self.may_send() {
            return None;
        }
        let again = self.flight.take_lost(self.expected);
        let new = if again.is_none() { self.next_new() } else { None };
        if new.is_some_and(|piece| self.is_held(now, piece)) {
            return None;
        }
        let Some(piece) = again.or_else(|| new.map(|piece| self.bundle(piece))) else {
            if !self.has_new() {
                self.flight.limit();
            }
            return None;
        };
        if again.is_none() {
            self.cut = piece.offset + u64::from(piece.payload);
            self.fin_cut |= piece.fin;
        }
        self.careful = self.careful.saturating_sub(1);
        if let Some(new) = new {
            self.note_company(now, new);
            (self.was_small, self.began) = (u32::from(new.payload) <= self.segment / SMALL, new.offset);
        }
        self.probes = self.probes.saturating_sub(1);
        stats.segments_sent += u64::from(piece.payload > 0);
        stats.retransmissions += u64::from(again.is_some() && piece.payload > 0);
        self.pace(now, piece, stats);
        if self.flight.is_empty() {
            self.set_probe(now);
        } else if self.was_small && self.silent == 0 {
            // The peer delays its report, too.
            let latest = self.probe_latest.max(self.probe_at);
            self.probe_at = self.probe_at.max(now.saturating_add(self.patience()).min(latest));
        }
        let number = self.flight.send(now, piece);
        let flags = if piece.fin { Flags::FIN } else { Flags::NONE };
        Some(Segment { flags, number, seq: piece.offset, payload: piece.payload, report: Report::default() })
    }

    /// Time for which a small message waits for others.
    fn hold(&self) -> Duration {
        Duration(self.control.min_rtt().unwrap_or_default().0 / HELD).min(HOLD)
    }

    /// True if a new piece waits for others.
    fn is_held(&mut self, now: Time, piece: Piece) -> bool {
        if self.company == 0 || piece.fin || u32::from(piece.payload) > self.segment / SMALL {
            return false;
        }
        if self.held_until == Time::NEVER {
            (self.held_until, self.held) = (now.saturating_add(self.hold()), piece.payload);
        }
        now < self.held_until
    }

    /// Records whether a new piece contains several messages, or has just missed another one.
    fn note_company(&mut self, now: Time, piece: Piece) {
        let has_joined = self.held_until != Time::NEVER && piece.payload > self.held;
        let has_missed = self.held_until == Time::NEVER && now.since(self.small_at) < self.hold();
        self.company = if has_joined || has_missed { CAREFUL } else { self.company.saturating_sub(1) };
        self.held_until = Time::NEVER;
        if u32::from(piece.payload) <= self.segment / SMALL {
            self.small_at = now;
        }
    }

    /// Adds repeated earlier data to a new piece, if both the new piece and the one before are
    /// small.
    fn bundle(&self, piece: Piece) -> Piece {
        let most = u64::from(self.segment / SMALL);
        if !self.was_small || u64::from(piece.payload) > most {
            return piece;
        }
        let end = piece.offset + u64::from(piece.payload);
        let wanted = match self.careful {
            0 => self.began.min(end.saturating_sub(u64::from(self.segment / LITTLE))),
            _ => 0,
        };
        let offset = end.saturating_sub(most).max(wanted).max(self.expected).min(piece.offset);
        Piece { offset, payload: (end - offset) as u16, ..piece }
    }

    fn pace(&mut self, now: Time, piece: Piece, stats: &mut Stats) {
        let interval = match self.is_thin() {
            true => Duration::ZERO,
            // The interval is at most the probe timeout: on a path that really has this rate, a
            // round trip takes as long. A lower rate comes from a few bytes that took long, or from
            // an outage.
            false => {
                let interval = Duration::from_secs_f64(f64::from(piece.payload) / self.control.pacing_rate());
                interval.min(self.patience())
            }
        };
        let rtt = self.control.min_rtt().unwrap_or_default();
        let late = Duration(rtt.0 / LATE).max(LEAST_LATE).min(MOST_LATE);
        let since = Time(now.0.saturating_sub(late.0));
        self.earliest = self.earliest.max(since).saturating_add(interval);
        stats.interval_samples += 1;
        stats.interval_sum_s += interval.as_secs_f64();
    }
}

//! The sending half: cuts the stream, paces segments, repairs what is lost, and probes where nothing is heard.
//!
//! Where little is sent at a time, as small messages are, a segment repeats what has left before and is not known to have arrived, as far as it
//! fits half a segment: what is lost arrives with the next message, and not after a round trip. (Petlund, Evensen, Griwodz and Halvorsen, "TCP
//! enhancements for interactive thin-stream applications", NOSSDAV 2008: redundant data bundling.) Where nothing was lost for [`CAREFUL`] segments
//! it repeats the message before it alone, and others as far as all of it fits a quarter of a segment: of messages of 200 bytes, what else fits half of
//! one takes 0.2 ms of the air at 11 Mbit/s on every hop.
//!
//! Where small messages come several at a time, one waits for the others, an eighth of the round trip and [`HOLD`] at most: what programs have to say at one
//! moment shares a segment, which over 802.11 costs little more air time than one of them. Where none of the last [`CAREFUL`] had company, as
//! keystrokes have none, nothing waits.
//!
//! The timer for what is lost is the probe timeout of RFC 9002, section 6.2. A peer without room is asked for a report, as often.

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
/// The longest probe timeout, doubled or not.
const MOST: Duration = Duration::from_secs(10);
/// Segments that a probe timeout takes for lost (section 6.2.4: up to two are sent).
const PROBES: usize = 2;
/// Probe timeouts in a row after which everything is taken for lost (section 7.6: kPersistentCongestionThreshold).
const PERSISTENT: u32 = 3;
/// The part of a segment, as a divisor, up to which more than one message is repeated where nothing is lost.
const LITTLE: u32 = 4;
/// Segments after a loss, and at the start, that repeat as much as fits; and after company, that wait for it.
const CAREFUL: u32 = 64;
/// Segments that may be under way of small messages alone: as many as before anything is known of a path (RFC 6928).
const THIN: u64 = 10;
/// The longest that a small message waits for others, and the part of the RTT that it is at most.
const HOLD: Duration = Duration::from_millis(1);
const HELD: u64 = 8;
/// A host that is late makes up for so much of the time, as a part of the RTT and within these bounds.
const LATE: u64 = 4;
const LEAST_LATE: Duration = Duration::from_millis(1);
const MOST_LATE: Duration = Duration::from_millis(20);

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    segment: u32,
    flight: Flight,
    control: Control,
    /// Bytes handed over, and cut.
    written: u64,
    cut: u64,
    closing: bool,
    fin_cut: bool,
    /// Everything before this offset has arrived, and that up to which there is room.
    expected: u64,
    limit: u64,
    /// Smoothed RTT and its variation, once there is a sample.
    rtt: Option<(Duration, Duration)>,
    /// Time at which the next segment may leave.
    earliest: Time,
    /// Probe timeouts in a row, when the next one is, and beyond which time no small message puts it off.
    silent: u32,
    probe_at: Time,
    probe_latest: Time,
    /// Segments that may leave although the window is full.
    probes: usize,
    /// The peer is to be asked for a report.
    question: bool,
    /// The last new piece was no more than [`SMALL`] of a segment, and where it began.
    was_small: bool,
    began: u64,
    /// Time at which the small message that waits for others leaves, and how much it was.
    held_until: Time,
    held: u16,
    /// Segments for which small messages still wait, and when the last of those left.
    company: u32,
    small_at: Time,
    /// Segments that still repeat as much as fits.
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

    /// The model of the path.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Payload bytes that are never sent again, all from the start on.
    pub fn acknowledged(&self) -> u64 {
        self.expected.min(self.cut)
    }

    /// Segments that are remembered.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.flight.kept()
    }

    /// Bytes sent, those that were sent again counted once.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Bytes handed over and never sent.
    pub fn unsent(&self) -> u64 {
        self.written - self.cut
    }

    /// True if the peer takes nothing for now.
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

    /// Has the peer asked for a report.
    pub fn ask(&mut self) {
        self.question = true;
    }

    fn smoothed(&self) -> Duration {
        self.rtt.map_or(INITIAL_RTT, |(smoothed, _)| smoothed)
    }

    /// RFC 9002, section 6.2.1.
    fn patience(&self) -> Duration {
        let (smoothed, variation) = self.rtt.unwrap_or((INITIAL_RTT, Duration(INITIAL_RTT.0 / 2)));
        let wait = if self.was_small { PATIENCE } else { DELAY };
        let once = smoothed + Duration(4 * variation.0).max(Duration::from_millis(1)) + wait;
        Duration(once.0.saturating_mul(1 << self.silent.min(16))).min(MOST)
    }

    /// Takes a report of the peer. Reports that cannot be true are ignored; false if it names a skipped number, which only a
    /// peer does that claims what it has not received.
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
        // RFC 9002, section 6.2.1: a report that says nothing new of what is under way is no reason to wait for longer. Whoever has the peer asked
        // for reports without end would keep what is lost from being sent again.
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

    /// RFC 9002, section 5.3.
    fn on_rtt(&mut self, rtt: Duration) {
        self.rtt = Some(match self.rtt {
            None => (rtt, Duration(rtt.0 / 2)),
            Some((smoothed, variation)) => {
                (Duration((7 * smoothed.0 + rtt.0) / 8), Duration((3 * variation.0 + smoothed.0.abs_diff(rtt.0)) / 4))
            }
        });
    }

    /// Leaves out the number of the next segment, so that a peer which reports it is found out.
    pub fn skip_number(&mut self) {
        self.flight.skip_number();
    }

    /// The peer is reached over another path from now on: the model of the path and the estimate of the round trip begin anew
    /// (RFC 9000, section 9.4).
    pub fn restart_control(&mut self) {
        self.control = Control::new(self.segment).for_messages();
        self.rtt = None;
        self.flight.restart_samples();
    }

    /// The peer is reached at another address from now on: a probe timeout that has been doubled is due at once, since what it waits for went to
    /// where the peer no longer is.
    pub fn on_peer_moved(&mut self, now: Time) {
        if self.silent > 0 {
            self.silent = 0;
            self.probe_at = now;
        }
    }

    fn has_new(&self) -> bool {
        self.cut < self.written || (self.closing && !self.fin_cut)
    }

    /// The new piece that the peer has room for. One that only the peer's limit makes shorter waits while anything is under way, whose report may
    /// raise the limit (RFC 9293, section 3.8.6.2.1): a peer that raises it byte by byte gets no segments of a byte.
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

    /// Runs the timers that are due at `now`, before a segment is asked for.
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

    /// When there is something to do: a segment, or a timer.
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

    /// Whether there are but small messages: what the path carries, which they say nothing of, does not hold them back.
    fn is_thin(&self) -> bool {
        self.was_small && self.silent == 0 && self.unsent() <= u64::from(self.segment / SMALL)
    }

    /// The next segment, if one may leave now.
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
            // The peer puts off its report, too.
            let latest = self.probe_latest.max(self.probe_at);
            self.probe_at = self.probe_at.max(now.saturating_add(self.patience()).min(latest));
        }
        let number = self.flight.send(now, piece);
        let flags = if piece.fin { Flags::FIN } else { Flags::NONE };
        Some(Segment { flags, number, seq: piece.offset, payload: piece.payload, report: Report::default() })
    }

    /// How long a small message waits for others.
    fn hold(&self) -> Duration {
        Duration(self.control.min_rtt().unwrap_or_default().0 / HELD).min(HOLD)
    }

    /// Whether a new piece waits for others.
    fn is_held(&mut self, now: Time, piece: Piece) -> bool {
        if self.company == 0 || piece.fin || u32::from(piece.payload) > self.segment / SMALL {
            return false;
        }
        if self.held_until == Time::NEVER {
            (self.held_until, self.held) = (now.saturating_add(self.hold()), piece.payload);
        }
        now < self.held_until
    }

    /// A new piece leaves: whether it is of several messages, or one that has just missed another.
    fn note_company(&mut self, now: Time, piece: Piece) {
        let has_joined = self.held_until != Time::NEVER && piece.payload > self.held;
        let has_missed = self.held_until == Time::NEVER && now.since(self.small_at) < self.hold();
        self.company = if has_joined || has_missed { CAREFUL } else { self.company.saturating_sub(1) };
        self.held_until = Time::NEVER;
        if u32::from(piece.payload) <= self.segment / SMALL {
            self.small_at = now;
        }
    }

    /// A new piece with what is repeated before it, if both it and the one before are small.
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
            // No longer than the probe timeout: on a path whose rate that is, a round trip takes as long. A lower rate is that of a few bytes that took
            // long, or of an outage.
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

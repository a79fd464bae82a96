//! The sending half: cuts the stream into segments, sends trains, waits for their ACKs, and
//! retransmits missing segments.
//!
//! A train has W segments, an interval apart: first the missing ones, then new ones. Its last
//! segment carries TAIL, and so does the last segment that can be sent at all. Then nothing is sent
//! until the ACK of the TAIL arrives. Segments that this ACK does not report are lost, since
//! nothing is in flight any more. If no ACK arrives, the first missing segment alone is sent again,
//! with TAIL, after a time that doubles. No other segment is retransmitted on suspicion (no
//! go-back-N).
//!
//! A closed window of the peer is probed with the next segment, as the timer allows (RFC 9293,
//! section 3.8.6.1). A probe that the peer refuses does not count as a loss. It is sent again when
//! the peer opens its window or when the timer expires, which goes on doubling.

use super::Config;
use super::access::Access;
use super::control::Control;
use super::echoes::{Echo, Echoes};
use super::estimator::{Estimator, REUSE_HOPS, Sample};
use super::segment::{DELAY_UNIT_US, Segment, WAIT_UNIT_US, stamp};
use super::stream::Stream;
use super::timeout::Timeout;
use crate::PathInfo;
use crate::flags::Flags;
use crate::stats::Stats;
use alloc::boxed::Box;
use meshpace_core::{Duration, Rate, Time};

/// Time after a small message of the same sender in which the next one is expected.
const EXPECTED: Duration = Duration::from_secs(1);

/// Phase of the train.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The train goes on; this many of its segments may still be sent.
    Sending(u32),
    /// The TAIL with this stamp was sent at `since`; nothing is sent until its ACK. `since` is
    /// `None` if the peer has moved to another path since then.
    Quiet { stamp: u32, since: Option<Time> },
}

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    segment: u32,
    estimator: Estimator,
    control: Control,
    timeout: Timeout,
    path: PathInfo,
    access: Option<Access>,
    stream: Stream,
    /// All bytes before this offset are acknowledged.
    una: u64,
    /// Offset up to which the peer accepts data.
    edge: u64,
    /// Largest receive window that the peer has ever offered beyond what it acknowledged (RFC 5961,
    /// section 5.2: MAX.SND.WND).
    largest_window: u64,
    phase: Phase,
    /// Earliest departure of the next segment.
    earliest: Time,
    /// Segments of the current train sent so far.
    sent: u32,
    /// Time at which the ACK of the TAIL is given up, or a closed window is probed.
    timeout_at: Time,
    /// Forward delay of the first TAIL: the difference of the two ends' clocks, in microseconds,
    /// wrapping.
    first_delay: Option<u32>,
    /// True if the first missing segment has to be sent alone, or one beyond the peer's window.
    probe: bool,
    /// Time until which the interval leaves room for small messages.
    room_until: Time,
    /// Time stamps of sent segments, if the echoes of acknowledgements are verified.
    echoes: Option<Box<Echoes>>,
}

impl Sender {
    /// Creates a sender without any data.
    pub fn new(config: &Config) -> Sender {
        let path = PathInfo { hops: 1, rate: Rate::from_mbps(2), received_power_dbm: None };
        let mut control = Control::new(&config.control);
        control.on_path(&path, config.segment);
        Sender {
            segment: config.segment,
            estimator: Estimator::new(&config.estimator, config.segment),
            control,
            timeout: Timeout::new(&config.timeout),
            path,
            access: None,
            stream: Stream::new(config),
            una: 0,
            edge: 0,
            largest_window: 0,
            phase: Phase::Sending(0),
            earliest: Time::ZERO,
            sent: 0,
            timeout_at: Time::NEVER,
            first_delay: None,
            probe: false,
            room_until: Time::ZERO,
            echoes: None,
        }
    }

    /// From now on, verifies acknowledgements by the time stamps that they echo.
    pub fn judge_echoes(&mut self) {
        self.echoes.get_or_insert_default();
    }

    /// The peer is reached over another path from now on: estimates, control and timer start anew.
    pub fn restart_control(&mut self, config: &Config) {
        self.agree(config);
        self.timeout = Timeout::new(&config.timeout);
        self.first_delay = None;
        if let Phase::Quiet { since, .. } = &mut self.phase {
            *since = None;
        }
    }

    /// True if the round trip of the path was measured.
    pub fn knows_round_trip(&self) -> bool {
        self.timeout.has_sample()
    }

    /// Takes `bytes` that the application writes.
    pub fn write(&mut self, bytes: u64) {
        self.stream.write(bytes);
    }

    /// Takes data without end: the application always has more to send.
    pub fn write_endless(&mut self) {
        self.stream.write_endless();
    }

    /// The application will write no more. If it wrote data without end, only segments that are
    /// already cut are still sent.
    pub fn close(&mut self) {
        self.stream.close();
    }

    /// Sets the payload of a full segment to that of `config`. To be called before the handshake is
    /// complete.
    pub fn agree(&mut self, config: &Config) {
        self.segment = config.segment;
        self.estimator = Estimator::new(&config.estimator, config.segment);
        self.control = Control::new(&config.control);
        self.control.on_path(&self.path, config.segment);
        self.tell_access();
    }

    /// The handshake is complete; the peer can receive `window` segments.
    pub fn establish(&mut self, window: u16) {
        self.set_window(window);
    }

    /// Sets the peer's window to `window` full segments beyond what it acknowledges. The peer
    /// counts in full segments, and TCP's header has larger units than bytes. The edge may
    /// therefore seem to step back by less than two full segments, although the peer has not
    /// reduced it (RFC 9293, section 3.8.6).
    fn set_window(&mut self, window: u16) {
        let full = u64::from(self.segment);
        let window = u64::from(window) * full;
        self.largest_window = self.largest_window.max(window);
        let edge = self.una.saturating_add(window);
        let is_rounded = edge < self.edge && self.edge - edge < 2 * full;
        if !is_rounded {
            self.edge = edge;
        }
    }

    /// Lowest acknowledgement that the peer may still have in flight (RFC 5961, section 5.2).
    pub fn oldest_ack(&self) -> u64 {
        self.una.saturating_sub(self.largest_window)
    }

    /// The path is known now, or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        if path.rate == Rate(0) {
            return;
        }
        let path = self.estimator.assumed(&path);
        if path.hops != self.path.hops || path.rate != self.path.rate {
            self.estimator.forget();
            self.control.on_path(&path, self.segment);
        }
        self.path = path;
        self.tell_access();
    }

    /// Sets cost and capacity of one access to the channel, where the links aggregate packets.
    pub fn on_access(&mut self, access: Access) {
        self.access = Some(access);
        self.tell_access();
    }

    fn tell_access(&mut self) {
        if let Some(access) = &self.access {
            self.control.on_access(access, &self.path, self.segment);
        }
    }

    /// True if the application has written anything.
    pub fn has_written(&self) -> bool {
        self.stream.has_written()
    }

    /// True if everything is acknowledged, including the FIN.
    pub fn is_finished(&self) -> bool {
        self.stream.fin_cut && self.stream.cuts.is_empty()
    }

    /// True if the FIN was sent.
    pub fn has_sent_fin(&self) -> bool {
        self.stream.fin_cut && self.stream.cuts.back().is_none_or(|last| last.sent)
    }

    /// True if nothing but the FIN is unacknowledged.
    pub fn has_only_fin(&self) -> bool {
        self.stream.fin_cut && self.una >= self.stream.cut_bytes
    }

    /// Offset after everything sent so far.
    pub fn sent_end(&self) -> u64 {
        self.stream.sent_end().unwrap_or(self.una)
    }

    /// Number of bytes from the start of the stream that are never sent again. An ACK of a part of
    /// a segment does not count: the whole segment is kept.
    pub fn acknowledged(&self) -> u64 {
        let una = self.una.min(self.stream.cut_bytes);
        self.stream.cuts.front().map_or(una, |first| first.offset.min(una))
    }

    /// Current interval in seconds.
    pub fn interval(&self) -> f64 {
        self.control.interval()
    }

    /// Returns the retransmission timer.
    pub fn timeout(&self) -> &Timeout {
        &self.timeout
    }

    /// Processes an acknowledgement, with or without feedback. Returns false if it echoes a time
    /// stamp that no segment had.
    pub fn on_ack(&mut self, now: Time, segment: &Segment, stats: &mut Stats) -> bool {
        if segment.ack > self.sent_end() {
            return true;
        }
        let is_new = segment.ack > self.una;
        match self.echoes.as_mut().map(|echoes| echoes.judge(segment.ts_ecr, is_new)) {
            None | Some(Echo::Plausible) => {}
            Some(Echo::Stale) => return true,
            Some(Echo::Invented) => return false,
        }
        self.acknowledge(now, segment, stats);
        true
    }

    fn acknowledge(&mut self, now: Time, segment: &Segment, stats: &mut Stats) {
        let before = self.una;
        if segment.ack >= self.una {
            stats.acked_bytes += segment.ack.min(self.stream.cut_bytes) - self.una.min(self.stream.cut_bytes);
            self.una = segment.ack;
            self.set_window(segment.window);
            while self.stream.cuts.front().is_some_and(|cut| cut.sent && cut.end() <= segment.ack) {
                self.stream.cuts.pop_front();
            }
            self.stream.report(segment, u64::from(self.segment));
        }
        let Phase::Quiet { stamp, since } = self.phase else { return };
        let answers = segment.ts_ecr == stamp;
        let told = segment.feedback.segments > 0;
        if told && (answers || segment.wait > 0) && self.is_refused() {
            // The peer has no room: this is neither a loss nor a sample, and the timer goes on
            // doubling (RFC 9293, section 3.8.6.1).
            self.stream.lose();
            self.timeout_at = Time::NEVER;
            self.phase = Phase::Sending(0);
        } else if !self.stream.has_sent() || (answers && told) {
            if let Some(since) = since.filter(|_| answers && told) {
                self.sample(now, since, segment, stats);
            }
            self.end_train(now, true, stats);
        } else if told && self.has_waited_for_next(segment) {
            // The receiver has waited for a TAIL that did not arrive.
            self.end_train(now, false, stats);
        } else if self.una > before {
            self.timeout_at = now.saturating_add(self.timeout.rto());
        }
    }

    /// True if the receiver, before its timer sent this ACK, has waited for longer than the
    /// interval of segments. The next segment is then lost. Otherwise it may still be in flight,
    /// and gets an ACK of its own.
    fn has_waited_for_next(&self, segment: &Segment) -> bool {
        let waited = Duration::from_micros(u64::from(segment.wait) * u64::from(WAIT_UNIT_US));
        segment.wait > 0 && self.control.interval() < waited.as_secs_f64()
    }

    /// True if the peer refused the first missing segment because its window is closed.
    fn is_refused(&self) -> bool {
        self.stream.cuts.front().is_some_and(|first| first.sent && !first.fits(self.edge))
    }

    fn sample(&mut self, now: Time, since: Time, segment: &Segment, stats: &mut Stats) {
        let unit = f64::from(DELAY_UNIT_US) * 1e-6;
        let feedback = segment.feedback;
        let waited = Duration::from_micros(u64::from(segment.wait) * u64::from(WAIT_UNIT_US));
        let rtt = now.since(since).saturating_sub(waited).as_secs_f64();
        self.timeout.on_sample(rtt);
        let sample = Sample {
            now: now.as_secs_f64(),
            rtt,
            mean: f64::from(feedback.mean) * unit,
            least: f64::from(feedback.least) * unit,
            marked: f64::from(feedback.marked) / f64::from(feedback.segments),
            forward: self.forward(segment, waited),
        };
        stats.rtt_samples += 1;
        stats.rtt_sum_s += rtt;
        let dt = self.estimator.on_sample(&sample, self.control.interval());
        if let Some(tau) = self.estimator.reuse(&self.path) {
            let hops = self.path.hops;
            self.control.on_sample(dt, tau, self.estimator.queueing(hops), self.estimator.marked(), hops);
        }
    }

    /// Forward delay of the TAIL that `segment` answers, less that of the first TAIL, by the clocks
    /// of both ends, in seconds.
    fn forward(&mut self, segment: &Segment, waited: Duration) -> f64 {
        let delay = segment.ts_val.wrapping_sub(segment.ts_ecr).wrapping_sub((waited.0 / 1_000) as u32);
        let first = *self.first_delay.get_or_insert(delay);
        f64::from(delay.wrapping_sub(first) as i32) * 1e-6
    }

    /// Ends a train. Nothing is in flight any more, so all segments that were sent and not reported
    /// are lost. After a `whole` train the next one may be longer.
    fn end_train(&mut self, now: Time, whole: bool, stats: &mut Stats) {
        let missing = self.stream.missing();
        let lost = self.stream.lose();
        let sent = core::mem::take(&mut self.sent);
        self.control.on_train(lost, sent, missing);
        let silence = Duration::from_secs_f64(self.control.listen(now.as_secs_f64(), sent));
        if lost {
            stats.fast_retransmits += 1;
            self.control.on_loss(now.as_secs_f64());
        }
        self.timeout_at = Time::NEVER;
        self.probe = false;
        self.phase = Phase::Sending(self.control.next_train(whole && !lost));
        if silence > Duration::ZERO {
            self.earliest = self.earliest.max(now.saturating_add(silence));
        }
    }

    /// A small message of the same sender is sent beside the stream, over the same path. For a
    /// second, the interval leaves room for more of them.
    pub fn make_room(&mut self, now: Time) {
        self.room_until = now.saturating_add(EXPECTED);
    }

    /// Processes the timer if it has expired.
    pub fn on_timer(&mut self, now: Time, stats: &mut Stats) {
        if self.timeout_at > now {
            return;
        }
        self.timeout_at = Time::NEVER;
        self.timeout.on_expiry();
        self.probe = true;
        if let Phase::Quiet { .. } = self.phase {
            stats.timeouts += 1;
            self.control.on_timeout();
            self.control.on_loss(now.as_secs_f64());
        }
    }

    /// Returns the next segment that may be sent now.
    pub fn poll(&mut self, now: Time, stats: &mut Stats) -> Option<Segment> {
        if self.probe {
            self.probe = false;
            let place = match self.stream.first_unreported() {
                Some(place) => place,
                None => self.cut_next(true)?,
            };
            return Some(self.send(now, place, true, stats));
        }
        let Phase::Sending(left) = self.phase else { return None };
        if now < self.earliest {
            return None;
        }
        // The previous train ended with fewer segments than it was allowed. The next one begins
        // without growing.
        let left = if left == 0 { self.control.next_train(false) } else { left };
        let place = self.choose()?;
        self.phase = Phase::Sending(left - 1);
        let segment = self.send(now, place, left == 1, stats);
        Some(segment)
    }

    /// Chooses the segment to send: lost ones first.
    fn choose(&mut self) -> Option<usize> {
        self.stream.lost_within(self.edge).or_else(|| self.cut_next(false))
    }

    /// Cuts a segment within the peer's window, or `beyond` it if that is set. Returns its index.
    fn cut_next(&mut self, beyond: bool) -> Option<usize> {
        let cuts = self.can_cut() || beyond && self.stream.has_data();
        cuts.then(|| self.stream.cut(self.segment))
    }

    /// True if the peer's window has room for a whole new segment.
    fn can_cut(&self) -> bool {
        self.stream.has_data() && self.stream.next_end(self.segment) <= self.edge
    }

    /// True if any segment can be sent within the peer's window.
    fn can_send(&self) -> bool {
        self.can_cut() || self.stream.lost_within(self.edge).is_some()
    }

    /// Sends the segment at index `place`. It ends its train if `ends` is set or nothing else can
    /// be sent.
    fn send(&mut self, now: Time, place: usize, ends: bool, stats: &mut Stats) -> Segment {
        let cut = &mut self.stream.cuts[place];
        let again = cut.sent;
        cut.sent = true;
        cut.lost = false;
        let cut = *cut;
        self.sent += 1;
        self.control.leave_room(self.path.hops > REUSE_HOPS && now < self.room_until);
        if cut.payload > 0 {
            stats.segments_sent += 1;
            stats.retransmissions += u64::from(again);
        }
        let interval = self.control.interval();
        stats.interval_samples += 1;
        stats.interval_sum_s += interval;
        self.earliest = now.saturating_add(Duration::from_secs_f64(self.control.next_gap()));
        let tail = ends || !self.can_send();
        let mut flags = if cut.fin { Flags::FIN } else { Flags::NONE };
        if self.control.heeds_marks() {
            flags = flags.with(Flags::ECT);
        }
        if tail {
            flags = flags.with(Flags::PSH);
            self.phase = Phase::Quiet { stamp: stamp(now), since: Some(now) };
            self.timeout_at = now.saturating_add(self.timeout.rto());
        }
        if let Some(echoes) = &mut self.echoes {
            echoes.record(stamp(now));
        }
        Segment { seq: cut.offset, ts_val: stamp(now), payload: cut.payload, flags, ..Segment::default() }
    }

    /// True if an answer of the peer is expected: to data, to a FIN or to a probe.
    pub fn awaits_answer(&self) -> bool {
        self.is_blocked() || self.stream.has_sent()
    }

    /// True if the peer's window is closed.
    pub fn is_shut(&self) -> bool {
        self.edge <= self.una
    }

    /// True if only the peer's window holds data back while nothing is outstanding.
    fn is_blocked(&self) -> bool {
        self.stream.cuts.is_empty() && self.stream.has_data() && !self.can_cut()
    }

    /// Sets the timer that probes a closed window (RFC 9293, section 3.8.6.1), and that ends a
    /// train whose remaining segments the peer does not accept.
    pub fn settle(&mut self, now: Time) {
        let Phase::Sending(_) = self.phase else { return };
        if self.can_send() {
            self.timeout_at = Time::NEVER;
        } else if self.timeout_at == Time::NEVER && !self.probe && self.is_unfinished() {
            self.timeout_at = now.saturating_add(self.timeout.rto());
        }
    }

    /// True if anything remains to be sent or acknowledged.
    fn is_unfinished(&self) -> bool {
        !self.stream.cuts.is_empty() || self.stream.has_data()
    }

    /// Time at which [`Sender::on_timer`] or a poll is due.
    pub fn next_wakeup(&self) -> Time {
        let waits = matches!(self.phase, Phase::Sending(_)) && self.can_send();
        self.timeout_at.min(if waits { self.earliest } else { Time::NEVER })
    }
}

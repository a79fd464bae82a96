//! The sending half: cuts the stream, sends trains, is silent, repairs holes.
//!
//! A train has W segments, those that are missing first, then new ones, each an interval after the one before. Its last one
//! carries TAIL, and so does whatever is the last that can be sent. Then nothing leaves until its ACK is back. What that ACK
//! does not report is lost, since nothing is under way any more. If no ACK comes, the first missing segment alone is sent
//! again, with TAIL, after a time that doubles: nothing else is repeated on suspicion (no go-back-N).
//!
//! A window that the peer has closed is probed with the next segment, as the timer allows (RFC 9293, section 3.8.6.1).

use super::Config;
use super::access::Access;
use super::control::Control;
use super::estimator::{Estimator, Sample};
use super::segment::{DELAY_UNIT_US, Segment, WAIT_UNIT_US, stamp};
use super::timeout::Timeout;
use crate::PathInfo;
use crate::flags::Flags;
use crate::stats::Stats;
use alloc::collections::VecDeque;
use meshpace_core::{Duration, Rate, Time};

/// More than any application writes.
const ENDLESS: u64 = u64::MAX / 2;

/// A segment cut from the stream and not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// Offset of its first byte.
    offset: u64,
    payload: u16,
    /// Whether a FIN follows its payload.
    fin: bool,
    /// Whether it was sent.
    sent: bool,
    /// Whether it was sent and is known to be missing.
    lost: bool,
    /// Whether the peer has reported it beyond a gap.
    reported: bool,
}

impl Cut {
    fn end(&self) -> u64 {
        self.offset + u64::from(self.payload) + u64::from(self.fin)
    }
}

/// Where the train is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// So many segments of it may still be sent.
    Sending(u32),
    /// The TAIL with this stamp left then: silence until its ACK.
    Quiet { stamp: u32, since: Time },
}

/// What the application has handed over, and what of it is cut into segments.
#[derive(Clone, Debug)]
struct Stream {
    /// Bytes handed over.
    written: u64,
    /// Nothing more will come.
    closing: bool,
    /// Segments cut and not acknowledged.
    cuts: VecDeque<Cut>,
    /// Bytes cut.
    cut_bytes: u64,
    /// The FIN is cut.
    fin_cut: bool,
}

/// The sending half.
#[derive(Clone, Debug)]
pub struct Sender {
    segment: u32,
    estimator: Estimator,
    control: Control,
    timeout: Timeout,
    path: PathInfo,
    access: Option<Access>,
    stream: Stream,
    /// Everything before this offset is acknowledged.
    una: u64,
    /// How many bytes beyond it the peer takes.
    peer_window: u64,
    phase: Phase,
    /// When the next segment may leave.
    earliest: Time,
    /// When the TAIL is given up, or a closed window is probed.
    timeout_at: Time,
    /// The forward delay of the first TAIL by the two clocks, microseconds, wrapping.
    first_delay: Option<u32>,
    /// The first missing segment alone is to be sent, or one beyond the peer's window.
    probe: bool,
}

impl Sender {
    /// Nothing written yet.
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
            stream: Stream {
                written: 0,
                closing: false,
                cuts: VecDeque::with_capacity(usize::from(config.max_window.min(256)) + 1),
                cut_bytes: 0,
                fin_cut: false,
            },
            una: 0,
            peer_window: 0,
            phase: Phase::Sending(0),
            earliest: Time::ZERO,
            timeout_at: Time::NEVER,
            first_delay: None,
            probe: false,
        }
    }

    /// The application hands over `bytes`.
    pub fn write(&mut self, bytes: u64) {
        if !self.stream.closing {
            self.stream.written = self.stream.written.saturating_add(bytes).min(ENDLESS);
        }
    }

    /// The application always has more.
    pub fn write_endless(&mut self) {
        self.write(ENDLESS);
    }

    /// The application will write no more. Of data without end nothing more is sent than what is already cut.
    pub fn close(&mut self) {
        self.stream.closing = true;
        if self.stream.written == ENDLESS {
            self.stream.written = self.stream.cut_bytes;
        }
    }

    /// Full segments have `segment` bytes; to be told before the handshake is over.
    pub fn agree(&mut self, config: &Config) {
        self.segment = config.segment;
        self.estimator = Estimator::new(&config.estimator, config.segment);
        self.control = Control::new(&config.control);
        self.control.on_path(&self.path, config.segment);
        self.tell_access();
    }

    /// The handshake is over; the peer takes `window` segments.
    pub fn establish(&mut self, window: u16) {
        self.peer_window = u64::from(window) * u64::from(self.segment);
    }

    /// The path is known or has changed.
    pub fn on_path(&mut self, path: PathInfo) {
        let path = self.estimator.assumed(&path);
        if path.hops != self.path.hops || path.rate != self.path.rate {
            self.estimator.forget();
            self.control.on_path(&path, self.segment);
        }
        self.path = path;
        self.tell_access();
    }

    /// What an access to the channel of the links costs and carries, where they aggregate.
    pub fn on_access(&mut self, access: Access) {
        self.access = Some(access);
        self.tell_access();
    }

    fn tell_access(&mut self) {
        if let Some(access) = &self.access {
            self.control.on_access(access, &self.path, self.segment);
        }
    }

    /// Whether anything was written.
    pub fn has_written(&self) -> bool {
        self.stream.written > 0
    }

    /// Whether everything is acknowledged, the FIN included.
    pub fn is_finished(&self) -> bool {
        self.stream.fin_cut && self.stream.cuts.is_empty()
    }

    /// Whether the FIN was sent.
    pub fn has_sent_fin(&self) -> bool {
        self.stream.fin_cut && self.stream.cuts.back().is_none_or(|last| last.sent)
    }

    /// Whether nothing but the FIN is unacknowledged.
    pub fn has_only_fin(&self) -> bool {
        self.stream.fin_cut && self.una >= self.stream.cut_bytes
    }

    /// The offset after everything sent so far.
    pub fn sent_end(&self) -> u64 {
        let last = self.stream.cuts.iter().rev().find(|cut| cut.sent);
        last.map_or(self.una, Cut::end)
    }

    /// Payload bytes that are never sent again, all from the start on: an ACK of a part of a segment leaves the whole one.
    pub fn acknowledged(&self) -> u64 {
        let una = self.una.min(self.stream.cut_bytes);
        self.stream.cuts.front().map_or(una, |first| first.offset.min(una))
    }

    /// The interval, seconds.
    pub fn interval(&self) -> f64 {
        self.control.interval()
    }

    /// The retransmission timer.
    pub fn timeout(&self) -> &Timeout {
        &self.timeout
    }

    /// An acknowledgement arrived, with feedback or not.
    pub fn on_ack(&mut self, now: Time, segment: &Segment, stats: &mut Stats) {
        if segment.ack > self.sent_end() {
            return;
        }
        let before = self.una;
        if segment.ack >= self.una {
            self.peer_window = u64::from(segment.window) * u64::from(self.segment);
            stats.acked_bytes += segment.ack.min(self.stream.cut_bytes) - self.una.min(self.stream.cut_bytes);
            self.una = segment.ack;
            while self.stream.cuts.front().is_some_and(|cut| cut.sent && cut.end() <= segment.ack) {
                self.stream.cuts.pop_front();
            }
            self.report(segment);
            // The byte that the peer waits for is missing, whatever was reported of the segment it is in.
            if let Some(first) = self.stream.cuts.front_mut() {
                first.reported = false;
            }
        }
        let Phase::Quiet { stamp, since } = self.phase else { return };
        let answers = segment.ts_ecr == stamp;
        let told = segment.feedback.segments > 0;
        if !self.stream.cuts.iter().any(|cut| cut.sent) || (answers && told) {
            if answers && told {
                self.sample(now, since, segment, stats);
            }
            self.end_train(now, true, stats);
        } else if told && segment.wait > 0 {
            // The receiver has waited for a TAIL that did not come.
            self.end_train(now, false, stats);
        } else if self.una > before {
            self.timeout_at = now.saturating_add(self.timeout.rto());
        }
    }

    /// Notes what the peer has beyond a gap.
    fn report(&mut self, segment: &Segment) {
        let full = u64::from(self.segment);
        for cut in self.stream.cuts.iter_mut().filter(|cut| cut.sent && cut.payload > 0) {
            let first = cut.offset.saturating_sub(segment.ack) / full;
            let last = (cut.offset + u64::from(cut.payload) - 1).saturating_sub(segment.ack) / full;
            if last < u64::from(u32::BITS) && (first..=last).all(|place| segment.beyond >> place & 1 == 1) {
                cut.reported = true;
                cut.lost = false;
            }
        }
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

    /// The forward delay of the TAIL that `segment` answers, less that of the first one, by the two clocks.
    fn forward(&mut self, segment: &Segment, waited: Duration) -> f64 {
        let delay = segment.ts_val.wrapping_sub(segment.ts_ecr).wrapping_sub((waited.0 / 1_000) as u32);
        let first = *self.first_delay.get_or_insert(delay);
        f64::from(delay.wrapping_sub(first) as i32) * 1e-6
    }

    /// Nothing is under way any more: what was sent and is not reported is lost. After a `whole` train the next may be longer.
    fn end_train(&mut self, now: Time, whole: bool, stats: &mut Stats) {
        let mut lost = false;
        for cut in self.stream.cuts.iter_mut().filter(|cut| cut.sent && !cut.reported) {
            cut.lost = true;
            lost = true;
        }
        self.control.on_train(lost);
        if lost {
            stats.fast_retransmits += 1;
            self.control.on_loss(now.as_secs_f64());
        }
        self.timeout_at = Time::NEVER;
        self.probe = false;
        self.phase = Phase::Sending(self.control.next_train(whole && !lost));
    }

    /// The timer may be due.
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

    /// The next segment that may leave.
    pub fn poll(&mut self, now: Time, stats: &mut Stats) -> Option<Segment> {
        if self.probe {
            self.probe = false;
            let place = match self.stream.cuts.iter().position(|cut| cut.sent && !cut.reported) {
                Some(place) => place,
                None => self.cut_next(true)?,
            };
            return Some(self.send(now, place, true, stats));
        }
        let Phase::Sending(left) = self.phase else { return None };
        if now < self.earliest {
            return None;
        }
        // The train before has ended with less than it may have: it goes on.
        let left = if left == 0 { self.control.next_train(false) } else { left };
        let place = self.choose()?;
        self.phase = Phase::Sending(left - 1);
        let segment = self.send(now, place, left == 1, stats);
        Some(segment)
    }

    /// What is lost goes first.
    fn choose(&mut self) -> Option<usize> {
        let lost = self.stream.cuts.iter().position(|cut| cut.lost);
        lost.or_else(|| self.cut_next(false))
    }

    /// Cuts a segment, within the peer's window or `beyond` it; its place.
    fn cut_next(&mut self, beyond: bool) -> Option<usize> {
        if !(self.can_cut() || beyond && self.has_data()) {
            return None;
        }
        let left = self.stream.written - self.stream.cut_bytes;
        let payload = left.min(u64::from(self.segment));
        let fin = self.stream.closing && payload == left;
        let (offset, payload) = (self.stream.cut_bytes, payload as u16);
        self.stream.cuts.push_back(Cut { offset, payload, fin, sent: false, lost: false, reported: false });
        self.stream.cut_bytes += u64::from(payload);
        self.stream.fin_cut |= fin;
        Some(self.stream.cuts.len() - 1)
    }

    /// Whether a new segment would carry anything.
    fn has_data(&self) -> bool {
        self.stream.cut_bytes < self.stream.written || (self.stream.closing && !self.stream.fin_cut)
    }

    /// Whether the peer takes a new one, whole.
    fn can_cut(&self) -> bool {
        let payload = (self.stream.written - self.stream.cut_bytes).min(u64::from(self.segment));
        self.has_data() && self.stream.cut_bytes + payload <= self.una.saturating_add(self.peer_window)
    }

    /// Sends the segment at `place`, as the end of its train if it has to be or nothing else can be sent.
    fn send(&mut self, now: Time, place: usize, ends: bool, stats: &mut Stats) -> Segment {
        let cut = &mut self.stream.cuts[place];
        let again = cut.sent;
        cut.sent = true;
        cut.lost = false;
        let cut = *cut;
        if cut.payload > 0 {
            stats.segments_sent += 1;
            stats.retransmissions += u64::from(again);
        }
        let interval = self.control.interval();
        stats.interval_samples += 1;
        stats.interval_sum_s += interval;
        self.earliest = now.saturating_add(Duration::from_secs_f64(self.control.next_gap()));
        let tail = ends || !(self.stream.cuts.iter().any(|cut| cut.lost) || self.can_cut());
        let mut flags = if cut.fin { Flags::FIN } else { Flags::NONE };
        if self.control.heeds_marks() {
            flags = flags.with(Flags::ECT);
        }
        if tail {
            flags = flags.with(Flags::PSH);
            self.phase = Phase::Quiet { stamp: stamp(now), since: now };
            self.timeout_at = now.saturating_add(self.timeout.rto());
        }
        Segment { seq: cut.offset, ts_val: stamp(now), payload: cut.payload, flags, ..Segment::default() }
    }

    /// Whether an answer of the peer is awaited: to data, to a FIN or to a probe.
    pub fn awaits_answer(&self) -> bool {
        self.is_blocked() || self.stream.cuts.iter().any(|cut| cut.sent)
    }

    /// Whether only the peer's window keeps data back while nothing is outstanding.
    fn is_blocked(&self) -> bool {
        self.stream.cuts.is_empty() && self.has_data() && !self.can_cut()
    }

    /// Sees to it that a closed window is probed.
    pub fn settle(&mut self, now: Time) {
        if self.is_blocked() && self.timeout_at == Time::NEVER && !self.probe {
            self.timeout_at = now.saturating_add(self.timeout.rto());
        }
    }

    /// When [`Sender::on_timer`] or a poll is due.
    pub fn next_wakeup(&self) -> Time {
        let waits =
            matches!(self.phase, Phase::Sending(_)) && (self.can_cut() || self.stream.cuts.iter().any(|cut| cut.lost));
        self.timeout_at.min(if waits { self.earliest } else { Time::NEVER })
    }
}

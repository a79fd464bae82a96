//! The source: cuts objects, paces their segments, and sends again what NACKs name.

use super::Config;
use super::segment::Segment;
use crate::PathInfo;
use crate::flags::Flags;
use crate::path::ENDLESS;
use crate::ranges::Range;
use crate::stats::Stats;
use crate::train::estimator::exchange;
use crate::train::timeout::Timeout;
use alloc::vec::Vec;
use meshpace_core::{Duration, Time};

/// Bytes of the IP and TCP headers, which an exchange also carries.
const HEADERS: f64 = super::segment::HEADER_BYTES as f64;

/// The object in transmission.
#[derive(Clone, Copy, Debug)]
struct Object {
    start: u64,
    end: u64,
    /// True if the FIN follows the object.
    fin: bool,
}

/// A round whose last segment was sent.
#[derive(Clone, Copy, Debug)]
struct Asked {
    at: Time,
    /// True if the end of the round was sent again: the answer then gives no sample (RFC 6298,
    /// section 3).
    again: bool,
}

/// The sending half of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    config: Config,
    interval: Duration,
    timeout: Timeout,
    /// Bytes written by the application, and bytes sent at least once.
    written: u64,
    sent: u64,
    closing: bool,
    /// True if the FIN is part of an object.
    fin_cut: bool,
    object: Option<Object>,
    /// Ranges of the object that have to be sent in this round, in reverse order.
    pending: Vec<Range>,
    round: u16,
    asked: Option<Asked>,
    /// Offset in the current object before which everything has arrived.
    arrived: u64,
    earliest: Time,
    timeout_at: Time,
    /// True if the end of the object has to be sent again, to get an answer.
    probe: bool,
}

impl Sender {
    /// Creates a source without any data.
    pub fn new(config: &Config) -> Sender {
        let mut sender = Sender {
            config: config.clone(),
            interval: Duration::ZERO,
            timeout: Timeout::new(&config.timeout),
            written: 0,
            sent: 0,
            closing: false,
            fin_cut: false,
            object: None,
            pending: Vec::new(),
            round: 0,
            asked: None,
            arrived: 0,
            earliest: Time::ZERO,
            timeout_at: Time::NEVER,
            probe: false,
        };
        sender.on_path(&PathInfo::UNKNOWN);
        sender
    }

    /// The path is known now, or has changed.
    pub fn on_path(&mut self, path: &PathInfo) {
        if path.rate.0 == 0 {
            return;
        }
        let hops = f64::from(path.hops.max(1));
        let margin = if hops < self.config.reuse_hops { 1.0 } else { self.config.margin };
        let exchanges = margin * hops.min(self.config.reuse_hops);
        let by_path = Duration::from_secs_f64(exchanges * exchange(path, f64::from(self.config.segment) + HEADERS));
        self.interval = self.config.interval.unwrap_or(by_path);
    }

    /// Current interval between two segments.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Takes `bytes` that the application writes.
    pub fn write(&mut self, bytes: u64) {
        if !self.closing {
            self.written = self.written.saturating_add(bytes).min(ENDLESS);
        }
    }

    /// The application will write no more. If it wrote data without end, only the current object is
    /// still sent.
    pub fn close(&mut self) {
        self.closing = true;
        if self.written == ENDLESS {
            self.written = self.object.map_or(self.sent, |object| object.end);
        }
    }

    /// True if everything has arrived, including the FIN.
    pub fn is_finished(&self) -> bool {
        self.fin_cut && self.object.is_none()
    }

    /// Processes the answer to the end of a round.
    pub fn on_answer(&mut self, now: Time, answer: &Segment, stats: &mut Stats) {
        let (Some(object), Some(asked)) = (self.object, self.asked) else { return };
        let last = object.end + u64::from(object.fin);
        if answer.round != self.round || !(self.arrived..=last).contains(&answer.offset) {
            return;
        }
        if !asked.again {
            let rtt = now.since(asked.at).as_secs_f64();
            self.timeout.on_sample(rtt);
            stats.rtt_samples += 1;
            stats.rtt_sum_s += rtt;
        }
        stats.acked_bytes += answer.offset.min(object.end) - self.arrived.min(object.end);
        self.arrived = answer.offset.min(object.end);
        self.asked = None;
        self.round = self.round.wrapping_add(1);
        self.timeout_at = Time::NEVER;
        self.pending.clear();
        if answer.offset == last {
            self.object = None;
            return;
        }
        let segment = u64::from(self.config.segment);
        let named = answer.holes.iter().filter(|hole| hole.length > 0).map(|hole| {
            let start = self.arrived + u64::from(hole.from) * segment;
            Range { start: start.min(object.end), end: (start + u64::from(hole.length) * segment).min(object.end) }
        });
        self.pending.extend(named.filter(|range| range.start < range.end));
        self.pending.reverse();
        if self.pending.is_empty() {
            // The sink does not know yet that there are more data: the end of the object tells it.
            self.probe = true;
        } else {
            stats.fast_retransmits += 1;
        }
    }

    /// Processes the timer if it has expired.
    pub fn on_timer(&mut self, now: Time, stats: &mut Stats) {
        if self.timeout_at <= now {
            self.timeout_at = Time::NEVER;
            self.timeout.on_expiry();
            stats.timeouts += 1;
            self.probe = true;
        }
    }

    /// Makes the data written so far the next object.
    fn begin_object(&mut self) -> Option<Object> {
        let fits = u64::from(self.config.segment) * u64::from(self.config.object);
        let end = self.written.min(self.sent.saturating_add(fits));
        let fin = self.closing && !self.fin_cut && end == self.written;
        if end == self.sent && !fin {
            return None;
        }
        let object = Object { start: self.sent, end, fin };
        self.fin_cut |= fin;
        self.object = Some(object);
        self.arrived = self.sent;
        self.pending.clear();
        if end > self.sent {
            self.pending.push(Range { start: self.sent, end });
        } else {
            self.probe = true;
        }
        Some(object)
    }

    /// Returns the next segment that may be sent now.
    pub fn poll(&mut self, now: Time, stats: &mut Stats) -> Option<Segment> {
        if now < self.earliest {
            return None;
        }
        let object = match self.object {
            Some(object) => object,
            None => self.begin_object()?,
        };
        let segment = u64::from(self.config.segment);
        let (offset, is_probe) = if core::mem::take(&mut self.probe) {
            let before = (object.end - object.start).saturating_sub(1) / segment * segment;
            (object.start + before, true)
        } else {
            (self.pending.last()?.start, false)
        };
        let end = object.end.min(offset + segment);
        if !is_probe && let Some(range) = self.pending.last_mut() {
            range.start = end;
            if range.start >= range.end {
                self.pending.pop();
            }
        }
        let payload = (end - offset) as u16;
        if payload > 0 {
            stats.segments_sent += 1;
            stats.retransmissions += u64::from(offset < self.sent);
        }
        self.sent = self.sent.max(end);
        stats.interval_samples += 1;
        stats.interval_sum_s += self.interval.as_secs_f64();
        self.earliest = now.saturating_add(self.interval);
        let mut flags = if object.fin && end == object.end { Flags::FIN } else { Flags::NONE };
        if is_probe || self.pending.is_empty() {
            flags = flags.with(Flags::PSH);
            let again = self.asked.is_some();
            self.asked = Some(Asked { at: now, again });
            self.timeout_at = now.saturating_add(self.timeout.rto());
        }
        Some(Segment { offset, payload, round: self.round, flags, ..Segment::default() })
    }

    /// Time at which [`Sender::on_timer`] or a poll is due.
    pub fn next_wakeup(&self) -> Time {
        let has_more = self.object.is_none() && (self.sent < self.written || self.closing && !self.fin_cut);
        let waits = self.probe || has_more || !self.pending.is_empty();
        self.timeout_at.min(if waits { self.earliest } else { Time::NEVER })
    }
}

//! The receiving half: puts the stream together, and reports the numbers that have arrived.
//!
//! RFC 9000, section 13.2: a report for every second segment, at once for one that is out of order or brings the end, and no later than
//! [`DELAY`] for any other. The report of small messages waits: over 802.11 it takes nearly as much air time as the message, and one that follows an
//! answer closely meets it on the way. It leaves [`PATIENCE`] after the last of them, and no later than [`LONGEST`] after the first, or with as many bytes as of
//! others. What is lost is repeated by the next message, and what both lose leaves a gap, which is reported at once.

use super::SMALL;
use super::segment::{RANGES, Report, Segment};
use crate::flags::Flags;
use crate::ranges::{Insertion, Range};
use crate::receiving::{Reassembly, grown_window};
use crate::stats::Stats;
use alloc::collections::VecDeque;
use meshpace_core::{Duration, Time};

/// Time for which a report waits for a second segment.
pub const DELAY: Duration = Duration::from_millis(10);
/// The same for small messages, which have half of a full segment at most, from the last one on: of twenty a second several share a report.
pub const PATIENCE: Duration = Duration::from_millis(60);
/// The same for small messages, from the first one on.
pub const LONGEST: Duration = Duration::from_millis(300);
/// Full segments that share a report.
const EVERY: u32 = 2;
/// Numbers below the newest that are still reported: a sender forgets what is older than half of that (`flight`), and numbers that it
/// has skipped are to take no room in every report.
const REPORTED: u64 = 1024;

/// The receiving half.
#[derive(Clone, Debug)]
pub struct Receiver {
    stream: Reassembly,
    /// Ranges of numbers that have arrived, first and last, from the newest down.
    numbers: VecDeque<(u64, u64)>,
    newest_at: Time,
    /// Payload of a full segment.
    segment: u32,
    /// Segments since the last report that are not small.
    unreported: u32,
    /// Bytes without a gap at the last report.
    reported: u64,
    /// A report is to leave at once.
    due: bool,
    /// Time at which it leaves, and that beyond which no further small message puts it off.
    at: Time,
    latest: Time,
    /// Bytes beyond what the application has taken that the peer may send, now and at most.
    window: u64,
    most: u64,
    taken: u64,
    /// The limit that the peer was told last, and whether it has had a report.
    told: u64,
    has_reported: bool,
}

impl Receiver {
    /// Nothing received yet. The peer may send `first` bytes before the application has taken any, and at most `most` beyond that.
    pub fn new(segment: u32, most: u64, first: u64) -> Receiver {
        let window = first.min(most);
        Receiver {
            segment,
            stream: Reassembly::new(window / u64::from(segment)),
            numbers: VecDeque::with_capacity(RANGES + 1),
            newest_at: Time::ZERO,
            unreported: 0,
            reported: 0,
            due: false,
            at: Time::NEVER,
            latest: Time::NEVER,
            window,
            most,
            taken: 0,
            told: window,
            has_reported: false,
        }
    }

    /// Bytes received without a gap.
    pub fn delivered(&self) -> u64 {
        self.stream.next()
    }

    /// Number of ranges that have arrived beyond a gap.
    pub fn ranges(&self) -> usize {
        self.stream.ranges()
    }

    /// True if the peer's stream and the end of it have arrived.
    pub fn is_closed(&self) -> bool {
        self.stream.is_closed()
    }

    /// The application has taken `bytes` more. The window grows with that if it `may`, and a peer that may wait for it is told. The first report
    /// leaves at once: the peer learns the round trip.
    pub fn take(&mut self, bytes: u64, may: impl FnOnce() -> bool) {
        self.taken += bytes;
        let window = grown_window(self.window, self.taken, self.most, may);
        if window > self.window {
            self.window = window;
            self.stream.set_segments(window / u64::from(self.segment));
        }
        self.due |= !self.has_reported || self.taken + self.window >= self.told + self.window / 4;
    }

    /// Bytes beyond what the application has taken that the peer may send.
    pub fn window(&self) -> u64 {
        self.window
    }

    #[cfg(test)]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The peer wants to hear something.
    pub fn ask(&mut self) {
        self.due = true;
    }

    /// A segment with payload or FIN. Whether its payload is to be kept: there is room for it, and it does not contradict the end.
    pub fn on_data(&mut self, now: Time, segment: &Segment, stats: &mut Stats) -> bool {
        let end = segment.seq.saturating_add(u64::from(segment.payload));
        let has_fin = segment.flags.has(Flags::FIN);
        let ends_elsewhere = self.stream.fin_at().is_some_and(|at| end > at || (has_fin && end != at));
        let is_before = has_fin && end < self.stream.highest();
        if end > self.taken.saturating_add(self.window) || ends_elsewhere || is_before {
            return false;
        }
        let insertion = match segment.seq.max(self.stream.next()) {
            start if start < end => self.stream.on_range(segment.seq, Range { start, end }),
            _ => Insertion::Known,
        };
        if insertion == Insertion::Refused {
            // Its number is not reported either, so that the peer sends it again.
            return false;
        }
        let in_order = self.note(now, segment.number);
        if has_fin {
            self.stream.set_fin(end);
        }
        stats.distinct_segments_received += u64::from(insertion == Insertion::New);
        stats.duplicate_segments_received += u64::from(insertion == Insertion::Known && !has_fin);
        let is_small = u32::from(segment.payload) <= self.segment / SMALL;
        self.unreported += u32::from(!is_small);
        let is_much = self.stream.next() - self.reported >= u64::from(EVERY * self.segment);
        self.due |= !in_order || has_fin || self.unreported >= EVERY || is_much;
        if !self.due {
            self.put_off(now, is_small);
        }
        segment.payload > 0
    }

    /// Says when the report of what has just arrived leaves.
    fn put_off(&mut self, now: Time, is_small: bool) {
        if !is_small {
            self.at = self.at.min(now.saturating_add(DELAY));
        } else if self.unreported == 0 {
            self.latest = self.latest.min(now.saturating_add(LONGEST));
            self.at = self.latest.min(now.saturating_add(PATIENCE));
        }
    }

    /// Notes a number; whether it is the one after the newest.
    fn note(&mut self, now: Time, number: u64) -> bool {
        let place = self.numbers.iter().position(|(first, _)| *first <= number).unwrap_or(self.numbers.len());
        if place == 0 && self.numbers.front().is_none_or(|(_, last)| *last < number) {
            self.newest_at = now;
            let expected = self.numbers.front().map_or(0, |(_, last)| last + 1);
            match self.numbers.front_mut() {
                Some((_, last)) if expected == number => *last = number,
                _ => self.numbers.push_front((number, number)),
            }
            self.numbers.truncate(RANGES);
            while self.numbers.back().is_some_and(|(_, last)| last.saturating_add(REPORTED) < number) {
                self.numbers.pop_back();
            }
            return expected == number;
        }
        let is_known = self.numbers.get(place).is_some_and(|(_, last)| *last >= number);
        if is_known {
            return false;
        }
        // It lies below the range before `place` and above that at it, and may join either or both.
        let joins_above = place > 0 && self.numbers[place - 1].0 == number + 1;
        let joins_below = self.numbers.get(place).is_some_and(|(_, last)| last + 1 == number);
        match (joins_above, joins_below) {
            (true, true) => {
                self.numbers[place - 1].0 = self.numbers[place].0;
                self.numbers.remove(place);
            }
            (true, false) => self.numbers[place - 1].0 = number,
            (false, true) => self.numbers[place].1 = number,
            (false, false) if place < RANGES => {
                self.numbers.insert(place, (number, number));
                self.numbers.truncate(RANGES);
            }
            (false, false) => {}
        }
        false
    }

    /// Time of the next report.
    pub fn next_wakeup(&self) -> Time {
        if self.due { Time::ZERO } else { self.at }
    }

    /// The report, if one is due.
    pub fn report(&mut self, now: Time) -> Option<Segment> {
        if !self.due && now < self.at {
            return None;
        }
        (self.due, self.at, self.latest) = (false, Time::NEVER, Time::NEVER);
        (self.unreported, self.reported, self.has_reported) = (0, self.stream.next(), true);
        self.told = self.taken + self.window;
        let mut report = Report {
            newest: self.numbers.front().map_or(0, |(_, last)| *last),
            wait_us: u32::try_from(now.since(self.newest_at).0 / 1000).unwrap_or(u32::MAX),
            expected: self.stream.expected(),
            limit: self.told,
            ..Report::default()
        };
        let mut above = report.newest + 1;
        for ((first, last), place) in self.numbers.iter().zip(&mut report.ranges) {
            let Ok(missing) = u16::try_from(above - last - 1) else { break };
            let arrived = u16::try_from(last - first + 1).unwrap_or(u16::MAX);
            *place = (missing, arrived);
            report.count += 1;
            if u64::from(arrived) != last - first + 1 {
                break;
            }
            above = *first;
        }
        Some(Segment { flags: Flags::ACK, report, ..Segment::default() })
    }
}

//! The receiving half: reassembles the stream, and reports the numbers of arrived segments.
//!
//! RFC 9000, section 13.2: a report is sent for every second segment. It is sent at once for a
//! segment that is out of order or contains the end of the stream, and after at most [`DELAY`] for
//! any other segment.
//!
//! Reports of small messages wait for longer. Over 802.11 a report takes nearly as much air time as
//! the message, and one that is sent shortly after an answer interferes with it on the path. The
//! report is sent [`PATIENCE`] after the last small message, but at most [`LONGEST`] after the
//! first one, or when they have as many bytes as other segments that share a report. The next
//! message repeats the data of a lost one. If both are lost there is a gap, which is reported at
//! once.

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
/// Time for which a report waits after the last small message, which has at most half of a full
/// segment. Of twenty messages a second, several share a report.
pub const PATIENCE: Duration = Duration::from_millis(60);
/// Time for which a report waits after the first small message.
pub const LONGEST: Duration = Duration::from_millis(300);
/// Number of full segments that share a report.
const EVERY: u32 = 2;
/// Distance below the newest number up to which numbers are reported. A sender forgets numbers
/// older than half of this (`flight`), and the gaps of skipped numbers should not take room in
/// every report.
const REPORTED: u64 = 1024;

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    stream: Reassembly,
    /// Ranges of arrived numbers, first and last of each, from the newest range down.
    numbers: VecDeque<(u64, u64)>,
    newest_at: Time,
    /// Payload of a full segment in bytes.
    segment: u32,
    /// Number of segments since the last report that are not small.
    unreported: u32,
    /// Bytes received without a gap at the time of the last report.
    reported: u64,
    /// True if a report has to be sent at once.
    due: bool,
    /// Time of the next report, and the time beyond which further small messages do not delay it.
    at: Time,
    latest: Time,
    /// Receive window beyond what the application has taken, in bytes, and its largest value.
    window: u64,
    most: u64,
    taken: u64,
    /// Limit that the last report announced, and whether any report was sent.
    told: u64,
    has_reported: bool,
}

impl Receiver {
    /// Creates a receiver that has received nothing. The peer may send `first` bytes before the
    /// application has taken any, and at most `most` bytes beyond what it has taken later.
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

    /// True if the peer's whole stream and its end have arrived.
    pub fn is_closed(&self) -> bool {
        self.stream.is_closed()
    }

    /// The application has taken `bytes` more. The window may grow because of that if `may` allows
    /// it. A peer that may wait for a larger window gets a report. The first report is sent at
    /// once, so that the peer learns the round trip.
    pub fn take(&mut self, bytes: u64, may: impl FnOnce() -> bool) {
        self.taken += bytes;
        let window = grown_window(self.window, self.taken, self.most, may);
        if window > self.window {
            self.window = window;
            self.stream.set_segments(window / u64::from(self.segment));
        }
        self.due |= !self.has_reported || self.taken + self.window >= self.told + self.window / 4;
    }

    /// Receive window: bytes beyond what the application has taken that the peer may send.
    pub fn window(&self) -> u64 {
        self.window
    }

    #[cfg(test)]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Makes a report due, because the peer has asked for one.
    pub fn ask(&mut self) {
        self.due = true;
    }

    /// Processes a segment with payload or FIN. Returns whether its payload has to be kept: some of
    /// it is new, there is room for it, and it does not contradict the end of the stream.
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
            // The number of the segment is not reported either, so that the peer sends it again.
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
        insertion == Insertion::New
    }

    /// Sets the time of the report for a segment that has just arrived.
    fn put_off(&mut self, now: Time, is_small: bool) {
        if !is_small {
            self.at = self.at.min(now.saturating_add(DELAY));
        } else if self.unreported == 0 {
            self.latest = self.latest.min(now.saturating_add(LONGEST));
            self.at = self.latest.min(now.saturating_add(PATIENCE));
        }
    }

    /// Records a number. Returns whether it is the one after the newest.
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
        // The number is between the range before `place` and the one at `place`, and may join
        // either or both.
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

    /// Returns the report if one is due.
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

//! Segments under way: which they are, what a report says of them, and which are lost.
//!
//! Losses: RFC 9002, section 6.1. A segment is lost if one with a number higher by the packet threshold has arrived, or one that left 9/8
//! of the RTT later. Delivery rate: draft-cheng-iccrg-delivery-rate-estimation-02, section 3.

use super::lost::Lost;
use super::piece::Piece;
use super::segment::Report;
use crate::work::step;
use alloc::collections::VecDeque;
use meshpace_core::{Duration, Time};

/// RFC 9002, section 6.1.1: kPacketThreshold; and how high reordering may raise it.
const THRESHOLD: u64 = 3;
const MOST_THRESHOLD: u64 = 256;
/// RFC 9002, section 6.1.2: kTimeThreshold less one, as a divisor, and kGranularity.
const TIME_THRESHOLD: u64 = 8;
const GRANULARITY: Duration = Duration::from_millis(1);
/// Skipped numbers that are remembered.
const SKIPPED: usize = 8;

/// Segments under way at most, besides as many as the window holds full ones: a peer that takes a byte at a time, or an application that
/// writes so, could otherwise have as many kept as the window has bytes.
const MOST_OUT: u64 = 4096;
/// Lost segments that are remembered at most, since they may only be late, besides those under way.
const MOST_LOST: usize = 4096;

/// State of a segment that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Out,
    Arrived,
    Lost,
    /// No segment has this number, so that no report can rightly name it.
    Skipped,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    piece: Piece,
    at: Time,
    fate: Fate,
    /// Bytes delivered by then, when the last of those were, and when the first of those under way had left.
    delivered: u64,
    delivered_at: Time,
    first_at: Time,
    limited: bool,
}

/// News that one report has brought.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct News {
    /// Bytes that it reports for the first time.
    pub bytes: u64,
    /// Anything is reported for the first time.
    pub has_arrived: bool,
    /// Segments found lost.
    pub lost: u32,
    /// RTT of the newest segment, the peer's wait excluded, if that was not reported before.
    pub rtt: Option<Duration>,
    /// Delivery rate, bytes per second.
    pub rate: Option<f64>,
    /// That rate is what the application had to send, not what the path carries.
    pub limited: bool,
    /// Bytes that had been delivered when the newest of the segments left.
    pub delivered_before: u64,
}

/// Segments that are under way.
#[derive(Clone, Debug)]
pub struct Flight {
    sent: VecDeque<Sent>,
    /// The number of the first in `sent`.
    base: u64,
    highest: Option<u64>,
    threshold: u64,
    /// Bytes under way, and segments.
    bytes: u64,
    out: usize,
    /// Pieces that are lost and were not sent again, in the order of their loss.
    lost: Lost,
    /// Time at which the next one is lost if nothing comes.
    lost_at: Time,
    delivered: u64,
    delivered_at: Time,
    first_at: Time,
    /// Rates are the application's until so much is delivered.
    limited_until: u64,
    /// The last numbers that were skipped, the newest last.
    skipped: VecDeque<u64>,
    /// Segments with lower numbers left for another address of the peer: they are no sample of this path.
    path_from: u64,
}

impl Flight {
    pub fn new() -> Flight {
        Flight {
            sent: VecDeque::new(),
            base: 0,
            highest: None,
            threshold: THRESHOLD,
            bytes: 0,
            out: 0,
            lost: Lost::default(),
            lost_at: Time::NEVER,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_at: Time::ZERO,
            limited_until: 0,
            skipped: VecDeque::new(),
            path_from: 0,
        }
    }

    /// The number of the next segment.
    fn next_number(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    /// Leaves out the next number. A peer that reports it is deceiving.
    pub fn skip_number(&mut self) {
        self.skipped.push_back(self.next_number());
        if self.skipped.len() > SKIPPED {
            self.skipped.pop_front();
        }
        let piece = Piece { offset: 0, payload: 0, fin: false };
        self.sent.push_back(Sent {
            piece,
            at: Time::ZERO,
            fate: Fate::Skipped,
            delivered: 0,
            delivered_at: Time::ZERO,
            first_at: Time::ZERO,
            limited: true,
        });
    }

    /// The path is another one from now on: what has left so far tells nothing of its round trip and rate (RFC 9000, section 9.4).
    pub fn restart_samples(&mut self) {
        self.path_from = self.next_number();
    }

    /// Bytes under way.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Segments that are remembered, and pieces that wait to be sent again.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.sent.len() + self.lost.len()
    }

    /// True if another segment may be under way where the window holds `full` segments that are full.
    pub fn has_place(&self, full: u64) -> bool {
        (self.out as u64) < full.saturating_add(MOST_OUT)
    }

    /// True if no segment is under way, not even a FIN.
    pub fn is_empty(&self) -> bool {
        self.out == 0
    }

    /// Bytes delivered in all.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Time at which something is lost if nothing comes.
    pub fn lost_at(&self) -> Time {
        self.lost_at
    }

    /// True if a lost piece is to be sent again.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The application has nothing to send although the window is open.
    pub fn limit(&mut self) {
        self.limited_until = (self.delivered + self.bytes).max(1);
    }

    /// What is to be sent again next, and not known to have arrived: of what repeated others only the rest.
    pub fn take_lost(&mut self, expected: u64) -> Option<Piece> {
        while let Some(piece) = self.lost.pop() {
            if piece.end() > expected {
                let known = expected.saturating_sub(piece.offset).min(u64::from(piece.payload));
                return Some(Piece { offset: piece.offset + known, payload: piece.payload - known as u16, ..piece });
            }
        }
        None
    }

    /// A piece leaves; its number.
    pub fn send(&mut self, now: Time, piece: Piece) -> u64 {
        if self.out == 0 {
            (self.first_at, self.delivered_at) = (now, now);
        }
        let number = self.next_number();
        self.sent.push_back(Sent {
            piece,
            at: now,
            fate: Fate::Out,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_at: self.first_at,
            limited: self.limited_until > 0 && self.limited_until >= self.delivered,
        });
        self.bytes += u64::from(piece.payload);
        self.out += 1;
        self.forget();
        number
    }

    /// True if a report can be about segments that were sent.
    pub fn is_possible(&self, report: &Report) -> bool {
        report.count == 0 || report.newest < self.next_number()
    }

    /// True if a report names a number that was skipped: the peer claims the arrival of what it has not received.
    pub fn is_deceiving(&self, report: &Report) -> bool {
        let skipped = |(first, last)| self.skipped.iter().any(|number| (first..=last).contains(number));
        report.numbers().any(skipped)
    }

    /// A report that is possible; `rtt` as it is smoothed, and the least.
    pub fn on_report(&mut self, now: Time, report: &Report, (rtt, least): (Duration, Duration)) -> News {
        let mut news = News::default();
        let mut newest: Option<Sent> = None;
        for (first, last) in report.numbers() {
            if last < self.base {
                break;
            }
            for number in first.max(self.base)..=last {
                step();
                let Some(sent) = self.sent.get_mut((number - self.base) as usize) else { break };
                let before = sent.fate;
                if matches!(before, Fate::Arrived | Fate::Skipped) {
                    continue;
                }
                sent.fate = Fate::Arrived;
                let sent = *sent;
                if before == Fate::Lost {
                    // It was only late.
                    self.threshold = (2 * self.threshold).min(MOST_THRESHOLD);
                    self.lost.remove(sent.piece);
                } else {
                    self.bytes -= u64::from(sent.piece.payload);
                    self.out -= 1;
                }
                self.delivered += u64::from(sent.piece.payload);
                news.bytes += u64::from(sent.piece.payload);
                if number < self.path_from {
                    news.has_arrived = true;
                    continue;
                }
                if number == report.newest {
                    let wait = Duration(u64::from(report.wait_us) * 1000);
                    news.rtt = Some(Duration(now.since(sent.at).0.saturating_sub(wait.0)));
                }
                if newest.is_none_or(|other| (sent.delivered, sent.at) > (other.delivered, other.at)) {
                    newest = Some(sent);
                }
            }
        }
        if report.count > 0 {
            self.highest = Some(self.highest.map_or(report.newest, |highest| highest.max(report.newest)));
        }
        news.has_arrived |= newest.is_some();
        if let Some(sent) = newest {
            self.delivered_at = now;
            let span = sent.at.since(sent.first_at).max(now.since(sent.delivered_at));
            self.first_at = sent.at;
            (news.limited, news.delivered_before) = (sent.limited, sent.delivered);
            let bytes = (self.delivered - sent.delivered) as f64;
            // What came faster than a round trip was held up on the way back.
            news.rate = (span.0 > 0 && span >= least).then(|| bytes / span.as_secs_f64());
        }
        news.lost = self.find_lost(now, news.rtt.unwrap_or(rtt).max(rtt));
        news
    }

    /// Finds what is lost; how many.
    pub fn find_lost(&mut self, now: Time, rtt: Duration) -> u32 {
        let mut found = 0;
        self.lost_at = Time::NEVER;
        // It grows with the packet threshold, and never beyond another RTT.
        let more = (rtt.0 / TIME_THRESHOLD).saturating_mul(self.threshold / THRESHOLD).min(rtt.0);
        let patience = Duration(rtt.0 + more).max(GRANULARITY);
        let Some(highest) = self.highest else { return 0 };
        let below = highest.saturating_sub(self.base).min(self.sent.len() as u64) as usize;
        for place in 0..below {
            step();
            let sent = self.sent[place];
            if sent.fate != Fate::Out {
                continue;
            }
            let until = sent.at.saturating_add(patience);
            if highest - (self.base + place as u64) >= self.threshold || until <= now {
                self.lose(place);
                found += 1;
            } else {
                self.lost_at = self.lost_at.min(until);
            }
        }
        self.forget();
        found
    }

    fn lose(&mut self, place: usize) {
        let sent = &mut self.sent[place];
        sent.fate = Fate::Lost;
        self.bytes -= u64::from(sent.piece.payload);
        self.out -= 1;
        self.lost.push(sent.piece);
    }

    /// Takes the oldest `count` that are under way for lost: nothing was heard for too long.
    pub fn suspect(&mut self, count: usize) {
        let mut left = count;
        for place in 0..self.sent.len() {
            step();
            if left == 0 {
                break;
            }
            if self.sent[place].fate == Fate::Out {
                self.lose(place);
                left -= 1;
            }
        }
    }

    /// Forgets the oldest whose fate is known. Those that are lost are kept for a while: they may only be late.
    fn forget(&mut self) {
        let highest = self.highest.unwrap_or(0);
        while let Some(first) = self.sent.front()
            && (matches!(first.fate, Fate::Arrived | Fate::Skipped)
                || (first.fate == Fate::Lost && self.base + 2 * MOST_THRESHOLD < highest)
                || (first.fate == Fate::Lost && self.out == 0 && self.lost.is_empty())
                || (first.fate == Fate::Lost && self.sent.len() > self.out + MOST_LOST))
        {
            step();
            self.sent.pop_front();
            self.base += 1;
        }
    }
}

//! Segments in flight: what was sent, what reports say about it, and what is lost.
//!
//! Losses are detected as in RFC 9002, section 6.1. A segment is lost if a segment has arrived
//! whose number is higher by the packet threshold, or one that was sent later by the time threshold
//! of 9/8 of the RTT. The delivery rate is that of draft-cheng-iccrg-delivery-rate-estimation-02,
//! section 3.

use super::lost::Lost;
use super::piece::Piece;
use super::segment::Report;
use crate::work::step;
use alloc::collections::VecDeque;
use meshpace_core::{Duration, Time};

/// Packet threshold (RFC 9002, section 6.1.1: kPacketThreshold), and its largest value after
/// reordering.
const THRESHOLD: u64 = 3;
const MOST_THRESHOLD: u64 = 256;
/// RFC 9002, section 6.1.2: kTimeThreshold less one, as a divisor, and kGranularity.
const TIME_THRESHOLD: u64 = 8;
const GRANULARITY: Duration = Duration::from_millis(1);
/// Number of skipped numbers that are remembered.
const SKIPPED: usize = 8;

/// Largest number of segments in flight beyond the number of full segments that the window holds.
/// Without this limit, a peer that accepts one byte at a time, or an application that writes so,
/// could make the sender remember as many segments as the window has bytes.
const MOST_OUT: u64 = 4096;
/// Largest number of lost segments that are remembered, beyond those in flight, since they may only
/// be late.
const MOST_LOST: usize = 4096;

/// State of a segment that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Out,
    Arrived,
    Lost,
    /// No segment has this number, so that no truthful report can name it.
    Skipped,
}

/// A segment that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    piece: Piece,
    at: Time,
    fate: Fate,
    /// When the segment was sent: bytes delivered so far, the time of the last delivery, and the
    /// time at which the first segment in flight was sent.
    delivered: u64,
    delivered_at: Time,
    first_at: Time,
    limited: bool,
}

/// Result of one report.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct News {
    /// Bytes that the report names for the first time.
    pub bytes: u64,
    /// True if the report names any segment for the first time.
    pub has_arrived: bool,
    /// Number of segments found lost.
    pub lost: u32,
    /// RTT of the newest segment without the peer's wait; `None` if that segment was reported
    /// before.
    pub rtt: Option<Duration>,
    /// Delivery rate in bytes per second.
    pub rate: Option<f64>,
    /// True if the rate was limited by what the application had to send, and not by the path.
    pub limited: bool,
    /// Bytes that had been delivered when the newest of the reported segments was sent.
    pub delivered_before: u64,
}

/// Segments of one sender that are in flight.
#[derive(Clone, Debug)]
pub struct Flight {
    sent: VecDeque<Sent>,
    /// Number of the first segment in `sent`.
    base: u64,
    highest: Option<u64>,
    threshold: u64,
    /// Bytes and segments in flight.
    bytes: u64,
    out: usize,
    /// Pieces that are lost and not sent again yet, in the order of their loss.
    lost: Lost,
    /// Time at which the next segment counts as lost if no report names it.
    lost_at: Time,
    delivered: u64,
    delivered_at: Time,
    first_at: Time,
    /// Rates are limited by the application until this many bytes are delivered.
    limited_until: u64,
    /// Last skipped numbers, the newest last.
    skipped: VecDeque<u64>,
    /// Segments with lower numbers were sent to another address of the peer: they give no samples
    /// of this path.
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

    /// Number of the next segment.
    fn next_number(&self) -> u64 {
        self.base + self.sent.len() as u64
    }

    /// Skips the next number. A peer that reports it claims data that it has not received.
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

    /// The path has changed: segments sent so far say nothing about its round trip and rate (RFC
    /// 9000, section 9.4).
    pub fn restart_samples(&mut self) {
        self.path_from = self.next_number();
    }

    /// Bytes in flight.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of remembered segments and of pieces that wait for their retransmission.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.sent.len() + self.lost.len()
    }

    /// True if another segment may be in flight, with a window of `full` full segments.
    pub fn has_place(&self, full: u64) -> bool {
        (self.out as u64) < full.saturating_add(MOST_OUT)
    }

    /// True if no segment is in flight, not even a FIN.
    pub fn is_empty(&self) -> bool {
        self.out == 0
    }

    /// Total number of delivered bytes.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Time at which a segment counts as lost if no report names it.
    pub fn lost_at(&self) -> Time {
        self.lost_at
    }

    /// True if a lost piece has to be sent again.
    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// The application has nothing to send although the window is open.
    pub fn limit(&mut self) {
        self.limited_until = (self.delivered + self.bytes).max(1);
    }

    /// Takes the next piece to retransmit that is not known to have arrived. Of a piece that
    /// repeated earlier data, only the missing rest is returned.
    pub fn take_lost(&mut self, expected: u64) -> Option<Piece> {
        while let Some(piece) = self.lost.pop() {
            if piece.end() > expected {
                let known = expected.saturating_sub(piece.offset).min(u64::from(piece.payload));
                return Some(Piece { offset: piece.offset + known, payload: piece.payload - known as u16, ..piece });
            }
        }
        None
    }

    /// Records that a piece is sent. Returns its number.
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

    /// True if the report can refer to segments that were sent.
    pub fn is_possible(&self, report: &Report) -> bool {
        report.count == 0 || report.newest < self.next_number()
    }

    /// True if a report names a skipped number: the peer claims data that it has not received.
    pub fn is_deceiving(&self, report: &Report) -> bool {
        let skipped = |(first, last)| self.skipped.iter().any(|number| (first..=last).contains(number));
        report.numbers().any(skipped)
    }

    /// Processes a report that [`Flight::is_possible`] has accepted. `rtt` is the smoothed RTT and
    /// `least` the least one.
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
                    // The segment was only late.
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
            // A delivery within less than a round trip means that reports were delayed on the
            // return path.
            news.rate = (span.0 > 0 && span >= least).then(|| bytes / span.as_secs_f64());
        }
        news.lost = self.find_lost(now, news.rtt.unwrap_or(rtt).max(rtt));
        news
    }

    /// Marks segments as lost. Returns their number.
    pub fn find_lost(&mut self, now: Time, rtt: Duration) -> u32 {
        let mut found = 0;
        self.lost_at = Time::NEVER;
        // The time threshold grows with the packet threshold, up to another RTT.
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

    /// Marks the oldest `count` segments in flight as lost, because nothing was heard for too long.
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

    /// Forgets the oldest segments whose state is final. Lost segments are kept for a while: they
    /// may only be late.
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

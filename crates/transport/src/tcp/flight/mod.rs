//! The stream of a sender. The application writes it, it is cut into segments, and each segment is
//! released (the congestion window and the peer's window permit the transmission), sent and
//! acknowledged.
//!
//! After a timeout the next segment to release is the first unacknowledged one. Everything after it
//! is sent again as the window opens (go-back-N, as in ns-2), except the segments that ACKs or SACK
//! blocks cover meanwhile.

mod queue;

pub use queue::{QueuedSegment, RetransmissionQueue};

use crate::path::ENDLESS;
use crate::work::step;
use meshpace_core::Time;

/// Whether the application may still write, and whether the FIN has been queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The application may write more.
    Open,
    /// The application writes no more, but no segment has the FIN yet.
    Closed,
    /// The last segment has the FIN.
    FinQueued,
}

/// The stream of a sender; the data in flight is a part of it. Segments are numbered from 0.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Payload bytes of a full segment.
    segment: u32,
    /// Bytes the application has handed over.
    written: u64,
    end: End,
    /// Number of bytes that have been put into segments.
    segmented_bytes: u64,
    /// The segments that are not acknowledged yet.
    queue: RetransmissionQueue,
    /// Number of the next segment that the window releases.
    next: u64,
    /// One more than the highest number of a segment that was sent. A lower number that
    /// [`Flight::skip`] passed over counts as sent.
    highest: u64,
    /// Everything before this offset is acknowledged.
    una: u64,
    /// The peer's receive window: bytes beyond `una` that may be sent.
    peer_window: u64,
    /// The largest window that the peer advertised (RFC 5961, section 5.2: MAX.SND.WND).
    largest_peer_window: u64,
}

/// Result of an ACK of new data.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Payload bytes that were acknowledged.
    pub bytes: u64,
    /// Number of segments that were acknowledged.
    pub segments: u64,
    /// The acknowledged segment with the lowest number, of those that were sent. A peer that forges
    /// ACKs can acknowledge a segment that was never sent.
    pub oldest: Option<QueuedSegment>,
    /// The acknowledged segment with the highest number, of those that were sent.
    pub newest: Option<QueuedSegment>,
    /// True if one of the acknowledged segments was sent more than once.
    pub covers_retransmission: bool,
}

impl Flight {
    /// Creates an empty stream with segments of `segment` bytes. There is room for `capacity`
    /// segments without another allocation.
    pub fn new(segment: u32, capacity: usize) -> Flight {
        Flight {
            segment,
            written: 0,
            end: End::Open,
            segmented_bytes: 0,
            queue: RetransmissionQueue::new(capacity),
            next: 0,
            highest: 0,
            una: 0,
            peer_window: 0,
            largest_peer_window: 0,
        }
    }

    /// Sets the payload of full segments to `segment` bytes for all segments that are made from now
    /// on.
    pub fn set_segment(&mut self, segment: u32) {
        self.segment = segment;
    }

    /// The application hands over `bytes`.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes).min(ENDLESS);
    }

    /// The application will write no more. The part of an endless stream that is not in a segment
    /// yet is dropped.
    pub fn close(&mut self) {
        if self.end == End::Open {
            self.end = End::Closed;
        }
        if self.written == ENDLESS {
            self.written = self.segmented_bytes;
        }
    }

    /// True if the application may write more.
    pub fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// True if anything was ever written.
    pub fn has_written(&self) -> bool {
        self.written > 0
    }

    /// True if a segment was ever made.
    #[inline]
    pub fn has_segments(&self) -> bool {
        self.segmented_bytes > 0 || self.end == End::FinQueued
    }

    /// True if everything that was written is in segments.
    pub fn is_all_segmented(&self) -> bool {
        self.segmented_bytes == self.written
    }

    /// True if everything is acknowledged, the FIN included.
    pub fn is_finished(&self) -> bool {
        self.end == End::FinQueued && self.queue.base() == self.queue.end()
    }

    /// True if the FIN has been sent.
    pub fn fin_sent(&self) -> bool {
        self.end == End::FinQueued && self.highest == self.queue.end()
    }

    /// Number of transmissions of the segment with the FIN. It is 0 if there is no such segment
    /// yet, or if segments before it are unacknowledged.
    pub fn fin_transmissions(&self) -> u8 {
        let last = self.queue.get(self.queue.base()).filter(|segment| segment.fin);
        last.map_or(0, |segment| segment.transmissions)
    }

    /// The segments that are not acknowledged yet.
    pub fn queue(&self) -> &RetransmissionQueue {
        &self.queue
    }

    /// The unacknowledged segments, for marking those that SACK blocks cover.
    pub fn queue_mut(&mut self) -> &mut RetransmissionQueue {
        &mut self.queue
    }

    /// Number of the first unacknowledged segment.
    #[inline]
    pub fn first(&self) -> u64 {
        self.queue.base()
    }

    /// Number of the next segment that the window releases.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// One more than the highest number of a segment that was sent.
    #[inline]
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Payload bytes from the start of the stream that will not be sent again. They end where the
    /// first segment begins that is not acknowledged as a whole.
    pub fn acknowledged(&self) -> u64 {
        let una = self.una.min(self.segmented_bytes);
        self.queue.get(self.queue.base()).map_or(una, |first| first.offset.min(una))
    }

    /// Everything before this offset is acknowledged. A FIN counts as one byte.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The offset after the highest segment that was sent, with a FIN counted as one byte (the
    /// largest value of SND.NXT).
    pub fn sent_end(&self) -> u64 {
        match self.highest.checked_sub(1).and_then(|last| self.queue.get(last)) {
            Some(segment) => segment.end(),
            None => self.una,
        }
    }

    /// True if a segment that was sent is unacknowledged.
    #[inline]
    pub fn outstanding(&self) -> bool {
        self.highest > self.queue.base()
    }

    /// True if the window has released a segment that is unacknowledged, whether it was sent or
    /// not.
    pub fn has_released(&self) -> bool {
        self.next > self.queue.base()
    }

    /// True if there is data or a FIN that is not in a segment yet.
    #[inline]
    pub fn has_data(&self) -> bool {
        self.segmented_bytes < self.written || self.end == End::Closed
    }

    /// True if there is a segment to release, whether it has been made already or not.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.next < self.queue.end() || self.has_data()
    }

    /// True if nothing is in flight, there is data, and the peer's window has no room for it. The
    /// persist timer runs in this state.
    pub fn blocked_by_peer(&self) -> bool {
        !self.outstanding()
            && self.segmented_bytes < self.written
            && self.next == self.queue.end()
            && self.una.saturating_add(self.peer_window) <= self.segmented_bytes
    }

    /// Sets the peer's window to `window` bytes. Returns true if the window was the same before.
    pub fn set_peer_window(&mut self, window: u32) -> bool {
        let window = u64::from(window);
        self.largest_peer_window = self.largest_peer_window.max(window);
        core::mem::replace(&mut self.peer_window, window) == window
    }

    /// The lowest acceptable ACK: SND.UNA - MAX.SND.WND (RFC 5961, section 5.2).
    pub fn lowest_acceptable_ack(&self) -> u64 {
        self.una.saturating_sub(self.largest_peer_window)
    }

    /// Releases the next segment and returns its number; `None` if there is none. A new segment is
    /// made first.
    pub fn release(&mut self, now: Time) -> Option<u64> {
        if self.next == self.queue.end() && !self.make_segment(now) {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.skip_sacked();
        Some(number)
    }

    /// Moves past segments that SACK blocks cover, so that they are not released again (RFC 2018,
    /// section 5.1).
    pub fn skip_sacked(&mut self) {
        while self.next < self.highest && self.queue.is_sacked(self.next) {
            step();
            self.next += 1;
        }
    }

    /// Moves past the next segment, because loss recovery sends it whatever the window allows. It
    /// is not released later.
    pub fn skip(&mut self) {
        self.next += 1;
    }

    /// Goes back after a timeout: the next segment to release is the first unacknowledged one.
    pub fn go_back(&mut self) {
        self.next = self.queue.base();
    }

    fn make_segment(&mut self, now: Time) -> bool {
        if !self.has_data() {
            return false;
        }
        let left = self.written - self.segmented_bytes;
        let mut payload = left.min(u64::from(self.segment));
        let room = self.una.saturating_add(self.peer_window).saturating_sub(self.segmented_bytes);
        if payload > room {
            // Silly window avoidance: a short segment leaves only if nothing is in flight whose ACK
            // could open the window (RFC 9293, section 3.8.6.2.1).
            if self.outstanding() || self.segmented_bytes > self.una || room == 0 {
                return false;
            }
            payload = room;
        }
        let fin = self.end == End::Closed && payload == left;
        self.queue.push(QueuedSegment {
            offset: self.segmented_bytes,
            sent_at: now,
            payload: payload as u16,
            fin,
            transmissions: 0,
            sacked: false,
        });
        self.segmented_bytes += payload;
        if fin {
            self.end = End::FinQueued;
        }
        true
    }

    /// Segment `number` is sent. Returns the segment and whether this is a retransmission; `None`
    /// if it has been acknowledged meanwhile.
    pub fn on_sent(&mut self, now: Time, number: u64) -> Option<(QueuedSegment, bool)> {
        let is_retransmission = number < self.highest;
        let segment = self.queue.get_mut(number)?;
        segment.sent_at = now;
        segment.transmissions = segment.transmissions.saturating_add(1);
        let segment = *segment;
        if !is_retransmission {
            self.highest = number + 1;
        }
        Some((segment, is_retransmission))
    }

    /// Removes the segments that an ACK of everything before `ack` acknowledges.
    pub fn on_ack(&mut self, ack: u64) -> Acknowledged {
        let bytes = ack.min(self.segmented_bytes) - self.una.min(self.segmented_bytes);
        self.una = ack;
        let before = self.queue.base();
        let (mut oldest, mut newest, mut covers_retransmission) = (None, None, false);
        while let Some(segment) = self.queue.pop_acknowledged(ack) {
            covers_retransmission |= segment.transmissions > 1;
            if segment.transmissions > 0 {
                oldest = oldest.or(Some(segment));
                newest = Some(segment);
            }
        }
        let first_unacked = self.queue.base();
        self.next = self.next.max(first_unacked);
        self.highest = self.highest.max(first_unacked);
        self.skip_sacked();
        Acknowledged { bytes, segments: first_unacked - before, oldest, newest, covers_retransmission }
    }
}

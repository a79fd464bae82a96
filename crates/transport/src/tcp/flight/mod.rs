//! The stream of a sender: written by the application, made into segments, released (the congestion window and the peer's permit the
//! transmission), sent, acknowledged.
//!
//! After a timeout the next segment to release is the first unacknowledged one, and everything after it is sent again as the
//! window opens (go-back-N, as in ns-2), except what ACKs or SACK blocks cover meanwhile.

mod queue;

pub use queue::{QueuedSegment, RetransmissionQueue};

use crate::path::ENDLESS;
use crate::work::step;
use meshpace_core::Time;

/// State of the end of the stream: open, or closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The application may write more.
    Open,
    /// The application writes no more; no segment has the FIN yet.
    Closed,
    /// The last segment has the FIN.
    FinQueued,
}

/// The stream of a sender, of which what is in flight is a part. Segments are numbered from 0.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Payload bytes of a full segment.
    segment: u32,
    /// Bytes the application has handed over.
    written: u64,
    end: End,
    /// Bytes that segments have been made of.
    segmented_bytes: u64,
    /// The segments that are not acknowledged.
    queue: RetransmissionQueue,
    /// Number of the next segment the window releases.
    next: u64,
    /// One beyond the highest number of a segment that was sent. Those below it that [`Flight::skip`] left to others count as sent.
    highest: u64,
    /// Everything before this offset is acknowledged.
    una: u64,
    /// The peer's receive window: bytes beyond `una` that may be sent.
    peer_window: u64,
    /// The largest window that the peer advertised (RFC 5961, section 5.2: MAX.SND.WND).
    largest_peer_window: u64,
}

/// Result of an ACK.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Payload bytes.
    pub bytes: u64,
    /// Segments.
    pub segments: u64,
    /// The lowest-numbered of them that was sent here. One that was never sent can be acknowledged by a peer that makes up its ACKs.
    pub oldest: Option<QueuedSegment>,
    /// The highest-numbered of them that was sent here.
    pub newest: Option<QueuedSegment>,
    /// True if one of them was sent more than once.
    pub covers_retransmission: bool,
}

impl Flight {
    /// Nothing written yet; segments of `segment` bytes, room for `capacity` of them without allocating.
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

    /// Full segments have `segment` bytes from now on.
    pub fn set_segment(&mut self, segment: u32) {
        self.segment = segment;
    }

    /// The application hands over `bytes`.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes).min(ENDLESS);
    }

    /// The application will write no more. Of an endless stream what is not in a segment yet is dropped.
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

    /// True if everything written is in segments.
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

    /// Transmissions of the segment with the FIN; 0 if there is none yet, or segments before it are not acknowledged.
    pub fn fin_transmissions(&self) -> u8 {
        let last = self.queue.get(self.queue.base()).filter(|segment| segment.fin);
        last.map_or(0, |segment| segment.transmissions)
    }

    /// The segments that are not acknowledged.
    pub fn queue(&self) -> &RetransmissionQueue {
        &self.queue
    }

    /// The same, to mark what SACK blocks cover.
    pub fn queue_mut(&mut self) -> &mut RetransmissionQueue {
        &mut self.queue
    }

    /// Number of the first unacknowledged segment.
    #[inline]
    pub fn first(&self) -> u64 {
        self.queue.base()
    }

    /// Number of the next segment the window releases.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// One beyond the highest number of a segment that was sent.
    #[inline]
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Payload bytes, from the start of the stream, that will not be sent again: those before the first segment that is not acknowledged as a whole.
    pub fn acknowledged(&self) -> u64 {
        let una = self.una.min(self.segmented_bytes);
        self.queue.get(self.queue.base()).map_or(una, |first| first.offset.min(una))
    }

    /// Everything before this offset is acknowledged; a FIN counts as one byte.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The offset after the highest segment that was sent, a FIN counted as one byte (SND.NXT at its largest).
    pub fn sent_end(&self) -> u64 {
        match self.highest.checked_sub(1).and_then(|last| self.queue.get(last)) {
            Some(segment) => segment.end(),
            None => self.una,
        }
    }

    /// True if something sent is unacknowledged.
    #[inline]
    pub fn outstanding(&self) -> bool {
        self.highest > self.queue.base()
    }

    /// True if the window has released something that is unacknowledged, sent or not.
    pub fn has_released(&self) -> bool {
        self.next > self.queue.base()
    }

    /// True if there is data, or a FIN, that is in no segment yet.
    #[inline]
    pub fn has_data(&self) -> bool {
        self.segmented_bytes < self.written || self.end == End::Closed
    }

    /// True if there is a segment to release, be it made already or not.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.next < self.queue.end() || self.has_data()
    }

    /// True if nothing is in flight, there is data, and the peer's window has no room for it: the persist timer runs then.
    pub fn blocked_by_peer(&self) -> bool {
        !self.outstanding()
            && self.segmented_bytes < self.written
            && self.next == self.queue.end()
            && self.una.saturating_add(self.peer_window) <= self.segmented_bytes
    }

    /// The peer advertises `window` bytes. True if it is the window of before.
    pub fn set_peer_window(&mut self, window: u32) -> bool {
        let window = u64::from(window);
        self.largest_peer_window = self.largest_peer_window.max(window);
        core::mem::replace(&mut self.peer_window, window) == window
    }

    /// The lowest acceptable ACK, SND.UNA - MAX.SND.WND (RFC 5961, section 5.2).
    pub fn lowest_acceptable_ack(&self) -> u64 {
        self.una.saturating_sub(self.largest_peer_window)
    }

    /// Releases the next segment, and makes it if it is new. Its number.
    pub fn release(&mut self, now: Time) -> Option<u64> {
        if self.next == self.queue.end() && !self.make_segment(now) {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.skip_sacked();
        Some(number)
    }

    /// Segments that SACK blocks cover are not released again (RFC 2018, section 5.1).
    pub fn skip_sacked(&mut self) {
        while self.next < self.highest && self.queue.is_sacked(self.next) {
            step();
            self.next += 1;
        }
    }

    /// The next segment is sent whatever the window says (loss recovery, a probe of the window), and so is not released later.
    pub fn skip(&mut self) {
        self.next += 1;
    }

    /// After a timeout: the next segment to release is the first unacknowledged one.
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
            // Avoids silly windows: a short segment leaves only if nothing is in flight whose ACK could open the window (RFC 9293,
            // section 3.8.6.2.1).
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

    /// Segment `number` is sent. Returns it, and whether this is a retransmission; `None` if it has been acknowledged meanwhile.
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

    /// Everything before `ack` is acknowledged.
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

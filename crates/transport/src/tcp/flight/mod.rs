//! Where each byte of the stream stands: handed over, cut into a segment, released by the window, sent, acknowledged.
//!
//! After a timeout the next segment to release is the first unacknowledged one, and everything after it is sent again as the
//! window opens (go-back-N, as in ns-2), except what ACKs meanwhile cover.

mod cuts;

pub use cuts::{Cut, Cuts};

use crate::path::ENDLESS;
use meshpace_core::Time;

/// State of the end of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The application may write more.
    Open,
    /// It will not.
    Closed,
    /// The FIN is cut.
    Cut,
}

/// The stream of a sender. Segments are counted from 0.
#[derive(Clone, Debug)]
pub struct Flight {
    /// Payload bytes of a full segment.
    segment: u32,
    /// Bytes the application has handed over.
    written: u64,
    end: End,
    /// Bytes cut into segments.
    cut_bytes: u64,
    /// The segments that are cut and unacknowledged.
    cuts: Cuts,
    /// Number of the next segment the window releases.
    next: u64,
    /// Number of segments that have been sent at least once, the skipped ones among them included.
    highest: u64,
    /// Everything before this offset is acknowledged.
    una: u64,
    /// Bytes beyond `una` that the peer takes.
    peer_window: u64,
    /// The most it has ever taken (RFC 5961, section 5.2: MAX.SND.WND).
    largest_peer_window: u64,
}

/// Result of an ACK.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged {
    /// Payload bytes.
    pub bytes: u64,
    /// Segments.
    pub segments: u64,
    /// The oldest of them that was sent.
    pub oldest: Option<Cut>,
    /// The newest of them that was sent.
    pub newest: Option<Cut>,
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
            cut_bytes: 0,
            cuts: Cuts::new(capacity),
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

    /// The application will write no more. Of data without end nothing more is sent than what is already cut.
    pub fn close(&mut self) {
        if self.end == End::Open {
            self.end = End::Closed;
        }
        if self.written == ENDLESS {
            self.written = self.cut_bytes;
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

    /// True if anything was ever cut.
    #[inline]
    pub fn has_cut(&self) -> bool {
        self.cut_bytes > 0 || self.end == End::Cut
    }

    /// True if everything written is cut.
    pub fn is_all_cut(&self) -> bool {
        self.cut_bytes == self.written
    }

    /// True if everything is acknowledged, the FIN included.
    pub fn is_finished(&self) -> bool {
        self.end == End::Cut && self.cuts.base() == self.cuts.cut()
    }

    /// True if the FIN has been sent.
    pub fn fin_sent(&self) -> bool {
        self.end == End::Cut && self.highest == self.cuts.cut()
    }

    /// Number of times that the FIN was sent, if nothing else is unacknowledged.
    pub fn fin_times(&self) -> u8 {
        let last = self.cuts.get(self.cuts.base()).filter(|cut| cut.fin);
        last.map_or(0, |cut| cut.times)
    }

    /// The segments that are cut and unacknowledged.
    pub fn cuts(&self) -> &Cuts {
        &self.cuts
    }

    /// The same, for reports.
    pub fn cuts_mut(&mut self) -> &mut Cuts {
        &mut self.cuts
    }

    /// Number of the first unacknowledged segment.
    #[inline]
    pub fn first(&self) -> u64 {
        self.cuts.base()
    }

    /// Number of the next segment the window releases.
    #[inline]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Number of segments that have been sent at least once.
    #[inline]
    pub fn highest(&self) -> u64 {
        self.highest
    }

    /// Payload bytes that are never sent again, all from the start on: an ACK of a part of a segment leaves the whole one.
    pub fn acknowledged(&self) -> u64 {
        let una = self.una.min(self.cut_bytes);
        self.cuts.get(self.cuts.base()).map_or(una, |first| first.offset.min(una))
    }

    /// Everything before this offset is acknowledged; a FIN counts as one byte.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The offset after everything sent so far.
    pub fn sent_end(&self) -> u64 {
        match self.highest.checked_sub(1).and_then(|last| self.cuts.get(last)) {
            Some(cut) => cut.end(),
            None => self.una,
        }
    }

    /// True if something sent is unacknowledged.
    #[inline]
    pub fn outstanding(&self) -> bool {
        self.highest > self.cuts.base()
    }

    /// True if the window has released something that is unacknowledged, sent or not.
    pub fn has_released(&self) -> bool {
        self.next > self.cuts.base()
    }

    /// True if a new segment would carry anything.
    #[inline]
    pub fn has_data(&self) -> bool {
        self.cut_bytes < self.written || self.end == End::Closed
    }

    /// True if there is a segment to release, cut already or not.
    #[inline]
    pub fn has_more(&self) -> bool {
        self.next < self.cuts.cut() || self.has_data()
    }

    /// True if only the peer's window keeps data back.
    pub fn blocked_by_peer(&self) -> bool {
        !self.outstanding()
            && self.cut_bytes < self.written
            && self.next == self.cuts.cut()
            && self.una.saturating_add(self.peer_window) <= self.cut_bytes
    }

    /// The peer takes `window` bytes beyond what it acknowledges. Whether that is what it took before.
    pub fn set_peer_window(&mut self, window: u32) -> bool {
        let window = u64::from(window);
        self.largest_peer_window = self.largest_peer_window.max(window);
        core::mem::replace(&mut self.peer_window, window) == window
    }

    /// The oldest acknowledgement that a peer may still have under way (RFC 5961, section 5.2).
    pub fn oldest_ack(&self) -> u64 {
        self.una.saturating_sub(self.largest_peer_window)
    }

    /// Releases the next segment, cut from the stream if it is new.
    pub fn release(&mut self, now: Time) -> Option<u64> {
        if self.next == self.cuts.cut() && !self.cut_one(now) {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.skip_reported();
        Some(number)
    }

    /// A repeated release leaves out segments that are reported to have arrived (RFC 2018, section 5.1).
    pub fn skip_reported(&mut self) {
        while self.next < self.highest && self.cuts.is_reported(self.next) {
            self.next += 1;
        }
    }

    /// Counts the next segment as released, although something else than the window does so.
    pub fn skip(&mut self) {
        self.next += 1;
    }

    /// Releases everything anew, from the first unacknowledged segment on.
    pub fn go_back(&mut self) {
        self.next = self.cuts.base();
    }

    fn cut_one(&mut self, now: Time) -> bool {
        if !self.has_data() {
            return false;
        }
        let left = self.written - self.cut_bytes;
        let mut payload = left.min(u64::from(self.segment));
        let room = self.una.saturating_add(self.peer_window).saturating_sub(self.cut_bytes);
        if payload > room {
            // A silly small segment only if nothing else will open the window (RFC 9293, section 3.8.6.2.1).
            if self.outstanding() || self.cut_bytes > self.una || room == 0 {
                return false;
            }
            payload = room;
        }
        let fin = self.end == End::Closed && payload == left;
        self.cuts.push(Cut {
            offset: self.cut_bytes,
            sent_at: now,
            payload: payload as u16,
            fin,
            times: 0,
            reported: false,
        });
        self.cut_bytes += payload;
        if fin {
            self.end = End::Cut;
        }
        true
    }

    /// Segment `number` is sent, unless it has been acknowledged meanwhile. Whether it was sent before.
    pub fn on_sent(&mut self, now: Time, number: u64) -> Option<(Cut, bool)> {
        let again = number < self.highest;
        let cut = self.cuts.get_mut(number)?;
        cut.sent_at = now;
        cut.times = cut.times.saturating_add(1);
        let cut = *cut;
        if !again {
            self.highest = number + 1;
        }
        Some((cut, again))
    }

    /// Everything before `ack` is acknowledged.
    pub fn on_ack(&mut self, ack: u64) -> Acknowledged {
        let bytes = ack.min(self.cut_bytes) - self.una.min(self.cut_bytes);
        self.una = ack;
        let before = self.cuts.base();
        let (mut oldest, mut newest, mut covers_retransmission) = (None, None, false);
        while let Some(cut) = self.cuts.pop_acknowledged(ack) {
            covers_retransmission |= cut.times > 1;
            if cut.times > 0 {
                oldest = oldest.or(Some(cut));
                newest = Some(cut);
            }
        }
        let acked = self.cuts.base();
        self.next = self.next.max(acked);
        self.highest = self.highest.max(acked);
        self.skip_reported();
        Acknowledged { bytes, segments: acked - before, oldest, newest, covers_retransmission }
    }
}

//! Data that the application has written, and the segments that are cut from them and not
//! acknowledged yet.

use super::Config;
use super::segment::Segment;
use crate::work::step;
use alloc::collections::VecDeque;

/// Number of bytes that stands for data without end; no application writes as many.
const ENDLESS: u64 = u64::MAX / 2;

/// A segment that is cut from the stream and not acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// Offset of the first byte.
    pub offset: u64,
    /// Payload bytes.
    pub payload: u16,
    /// True if a FIN follows the payload.
    pub fin: bool,
    /// True if the segment was sent.
    pub sent: bool,
    /// True if the segment was sent and is known to be missing.
    pub lost: bool,
    /// True if the peer has reported the segment beyond a gap.
    pub reported: bool,
}

impl Cut {
    /// Offset after the segment; a FIN counts as one byte.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.payload) + u64::from(self.fin)
    }

    /// True if the whole payload is before `edge`, the end of the peer's window.
    pub fn fits(&self, edge: u64) -> bool {
        self.offset + u64::from(self.payload) <= edge
    }
}

/// The outgoing stream of one sender.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Bytes that the application has written.
    written: u64,
    /// The application will write no more.
    closing: bool,
    /// Segments that are cut and not acknowledged.
    pub cuts: VecDeque<Cut>,
    /// Number of bytes that are cut.
    pub cut_bytes: u64,
    /// True if the FIN is cut.
    pub fin_cut: bool,
}

/// Largest number of missing segments in a row that count: a route that fails takes the rest of a
/// train.
const ROW: u32 = 2;

impl Stream {
    /// Creates a stream without any data.
    pub fn new(config: &Config) -> Stream {
        Stream {
            written: 0,
            closing: false,
            cuts: VecDeque::with_capacity(usize::from(config.max_window.min(256)) + 1),
            cut_bytes: 0,
            fin_cut: false,
        }
    }

    /// Takes `bytes` that the application writes.
    pub fn write(&mut self, bytes: u64) {
        if !self.closing {
            self.written = self.written.saturating_add(bytes).min(ENDLESS);
        }
    }

    /// Takes data without end: the application always has more to send.
    pub fn write_endless(&mut self) {
        self.write(ENDLESS);
    }

    /// The application will write no more. If it wrote data without end, only segments that are
    /// already cut are still sent.
    pub fn close(&mut self) {
        self.closing = true;
        if self.written == ENDLESS {
            self.written = self.cut_bytes;
        }
    }

    /// True if the application has written anything.
    pub fn has_written(&self) -> bool {
        self.written > 0
    }

    /// True if a new segment would carry data or the FIN.
    pub fn has_data(&self) -> bool {
        self.cut_bytes < self.written || (self.closing && !self.fin_cut)
    }

    /// Offset at which the payload of a new segment of at most `segment` bytes would end.
    pub fn next_end(&self, segment: u32) -> u64 {
        self.cut_bytes + (self.written - self.cut_bytes).min(u64::from(segment))
    }

    /// Cuts a new segment. Returns its index.
    pub fn cut(&mut self, segment: u32) -> usize {
        let (offset, end) = (self.cut_bytes, self.next_end(segment));
        let fin = self.closing && end == self.written;
        let payload = (end - offset) as u16;
        self.cuts.push_back(Cut { offset, payload, fin, sent: false, lost: false, reported: false });
        self.cut_bytes = end;
        self.fin_cut |= fin;
        self.cuts.len() - 1
    }

    /// Offset after everything sent; `None` if all of it is acknowledged.
    pub fn sent_end(&self) -> Option<u64> {
        self.cuts.iter().rev().inspect(|_| step()).find(|cut| cut.sent).map(Cut::end)
    }

    /// True if a segment was sent and is not acknowledged.
    pub fn has_sent(&self) -> bool {
        self.cuts.iter().inspect(|_| step()).any(|cut| cut.sent)
    }

    /// Index of the first segment that was sent and that the peer has not reported.
    pub fn first_unreported(&self) -> Option<usize> {
        self.cuts.iter().inspect(|_| step()).position(|cut| cut.sent && !cut.reported)
    }

    /// Records the peer's report of data beyond a gap, with one bit for each `full` bytes.
    pub fn report(&mut self, segment: &Segment, full: u64) {
        for cut in self.cuts.iter_mut().inspect(|_| step()).filter(|cut| cut.sent && cut.payload > 0) {
            let first = cut.offset.saturating_sub(segment.ack) / full;
            let last = (cut.offset + u64::from(cut.payload) - 1).saturating_sub(segment.ack) / full;
            if last < u64::from(u32::BITS) && (first..=last).all(|place| segment.beyond >> place & 1 == 1) {
                cut.reported = true;
                cut.lost = false;
            }
        }
        // The byte that the peer waits for is missing, even if other bytes of its segment were
        // reported.
        if let Some(first) = self.cuts.front_mut() {
            first.reported = false;
        }
    }

    /// Number of missing segments of the train that is over, of those in a row two at most.
    pub fn missing(&self) -> u32 {
        let (mut missing, mut row) = (0, 0);
        for cut in &self.cuts {
            step();
            row = if cut.sent && !cut.reported && !cut.lost { row + 1 } else { 0 };
            missing += u32::from((1..=ROW).contains(&row));
        }
        missing
    }

    /// Marks the segments that were sent and not reported as lost. Returns whether there are any.
    pub fn lose(&mut self) -> bool {
        let mut lost = false;
        for cut in self.cuts.iter_mut().inspect(|_| step()).filter(|cut| cut.sent && !cut.reported) {
            cut.lost = true;
            lost = true;
        }
        lost
    }

    /// Index of the first lost segment whose payload is before `edge`, the end of the peer's
    /// window.
    pub fn lost_within(&self, edge: u64) -> Option<usize> {
        self.cuts.iter().inspect(|_| step()).position(|cut| cut.lost && cut.fits(edge))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of missing segments in a train of ten, of which those at `arrived` were reported, and
    /// those at `before` were already missing in an earlier train.
    fn missing(arrived: &[usize], before: &[usize]) -> u32 {
        let mut stream = Stream::new(&Config::default());
        stream.write(10 * 1460);
        for place in 0..10 {
            assert_eq!(stream.cut(1460), place);
            let cut = &mut stream.cuts[place];
            cut.sent = true;
            cut.reported = arrived.contains(&place);
            cut.lost = before.contains(&place);
        }
        stream.missing()
    }

    #[test]
    fn of_segments_in_a_row_two_are_missing_at_most() {
        assert_eq!(missing(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[]), 0);
        // 1, 4 and 5, and 7 to 9, of which two count.
        assert_eq!(missing(&[0, 2, 3, 6], &[]), 1 + 2 + 2);
        assert_eq!(missing(&[], &[]), 2);
    }

    #[test]
    fn what_an_earlier_train_lost_is_not_counted_again() {
        assert_eq!(missing(&[2, 3, 4, 5, 6, 7, 8, 9], &[0, 1]), 0);
        assert_eq!(missing(&[2, 3, 4, 5, 6, 7, 9], &[0]), 1 + 1);
    }
}

//! The receive window, which limits how far the peer may send.
//!
//! RFC 9293, section 3.8.6.2.2: an opening of the window is not announced if it is smaller than a
//! segment and smaller than half of the window. The edge of the window is never withdrawn. While
//! there is a gap the window does not change, so the sender recognises duplicate ACKs (RFC 5681,
//! section 2).

use super::reassembly::Reassembly;

/// How the application reads delivered data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// The application reads everything at once, so the whole window is always open (ns-2).
    AtOnce,
    /// The application has read everything before this offset.
    Taken(u64),
}

/// The window that is offered to the peer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Payload bytes of a full segment.
    segment: u32,
    /// The whole window in bytes.
    window: u32,
    reading: Reading,
    /// The offset up to which the peer knows that it may send.
    told: u64,
    /// The window that was announced last, in bytes.
    offered: u32,
}

impl Offer {
    /// Creates a window of `window` bytes for segments of `segment` bytes. `at_once` says whether
    /// the application reads delivered data at once; otherwise [`Offer::take`] reports what it
    /// reads.
    pub fn new(segment: u32, window: u32, at_once: bool) -> Offer {
        let reading = if at_once { Reading::AtOnce } else { Reading::Taken(0) };
        Offer { segment, window, reading, told: u64::from(window), offered: window }
    }

    /// Payload bytes of a full segment.
    pub fn segment(&self) -> u32 {
        self.segment
    }

    /// The whole window in bytes.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// The offset up to which there is room for data.
    #[inline]
    pub fn edge(&self, arrived: &Reassembly) -> u64 {
        let from = match self.reading {
            Reading::AtOnce => arrived.next(),
            Reading::Taken(taken) => taken,
        };
        from.saturating_add(u64::from(self.window))
    }

    /// Smallest opening of the window that is announced, in bytes: a segment or half of the window,
    /// whichever is less.
    fn silly_below(&self) -> u64 {
        u64::from((self.window / 2).min(self.segment))
    }

    /// The application has read `bytes` more. Returns whether an ACK has to announce the new
    /// window, because the peer may be waiting for it.
    pub fn take(&mut self, bytes: u64, arrived: &Reassembly) -> bool {
        let Reading::Taken(taken) = &mut self.reading else { return false };
        *taken = taken.saturating_add(bytes).min(arrived.next());
        let (offered, edge) = (self.told.saturating_sub(arrived.next()), self.edge(arrived));
        let grown = edge.saturating_sub(self.told);
        let stalled = offered < u64::from(self.segment) && grown >= self.silly_below();
        arrived.is_complete() && (stalled || grown > u64::from(self.window / 2))
    }

    /// The window to be announced, in bytes.
    #[inline]
    pub fn offer(&mut self, arrived: &Reassembly) -> u32 {
        if self.reading == Reading::AtOnce {
            return self.window;
        }
        let edge = self.edge(arrived);
        if !arrived.is_complete() {
            // The announced size stays the same while there is a gap, so the edge moves with the
            // data that fills a part of the gap.
            self.told = self.told.max(edge.min(arrived.next().saturating_add(u64::from(self.offered))));
        } else if edge.saturating_sub(self.told) >= self.silly_below() {
            self.told = edge;
        }
        self.offered = u32::try_from(self.told.saturating_sub(arrived.next())).unwrap_or(u32::MAX);
        self.offered
    }
}

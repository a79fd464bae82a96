//! The receive window: how far the peer may send.
//!
//! RFC 9293, section 3.8.6.2.2: an opening of the window by less than a segment, or half of it, is not announced; its edge is never
//! withdrawn. While there is a gap the window does not change, so that the sender recognises duplicate ACKs (RFC 5681, section 2).

use super::reassembly::Reassembly;

/// Reading of delivered data by an application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// It takes everything at once: the whole window is always open (ns-2).
    AtOnce,
    /// It has taken everything before this offset.
    Taken(u64),
}

/// The window that is offered.
#[derive(Clone, Debug)]
pub struct Offer {
    /// Payload bytes of a full segment.
    segment: u32,
    /// The whole window in bytes.
    window: u32,
    reading: Reading,
    /// The offset up to which the peer has been told to send.
    told: u64,
    /// The window that was told last.
    offered: u32,
}

impl Offer {
    /// A window of `window` bytes for segments of `segment` bytes; the application takes what is delivered `at_once`, or
    /// says what it takes.
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

    /// The offset up to which there is room.
    #[inline]
    pub fn edge(&self, arrived: &Reassembly) -> u64 {
        let from = match self.reading {
            Reading::AtOnce => arrived.next(),
            Reading::Taken(taken) => taken,
        };
        from.saturating_add(u64::from(self.window))
    }

    /// An opening of the window by less is not told.
    fn silly_below(&self) -> u64 {
        u64::from((self.window / 2).min(self.segment))
    }

    /// The application has taken `bytes` more. Whether the peer, which may be waiting for it, is to be told.
    pub fn take(&mut self, bytes: u64, arrived: &Reassembly) -> bool {
        let Reading::Taken(taken) = &mut self.reading else { return false };
        *taken = taken.saturating_add(bytes).min(arrived.next());
        let (offered, edge) = (self.told.saturating_sub(arrived.next()), self.edge(arrived));
        let grown = edge.saturating_sub(self.told);
        let stalled = offered < u64::from(self.segment) && grown >= self.silly_below();
        arrived.is_complete() && (stalled || grown > u64::from(self.window / 2))
    }

    /// The window to be told, in bytes.
    #[inline]
    pub fn offer(&mut self, arrived: &Reassembly) -> u32 {
        if self.reading == Reading::AtOnce {
            return self.window;
        }
        let edge = self.edge(arrived);
        if !arrived.is_complete() {
            // ACKs that fill a part of the gap make room for as much at the other end.
            self.told = self.told.max(edge.min(arrived.next().saturating_add(u64::from(self.offered))));
        } else if edge.saturating_sub(self.told) >= self.silly_below() {
            self.told = edge;
        }
        self.offered = u32::try_from(self.told.saturating_sub(arrived.next())).unwrap_or(u32::MAX);
        self.offered
    }
}

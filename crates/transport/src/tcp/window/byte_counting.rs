//! Byte counting: the window grows by the amount of data that ACKs cover, not by the number of
//! ACKs.
//!
//! RFC 3465, sections 2.1 to 2.3. Here the counts are in segments, for ACKs of whole segments:
//!
//! ```text
//! slow start             cwnd += min(segments acknowledged, L)      L = 2; 1 after a timeout
//! congestion avoidance   cwnd += 1 for each cwnd segments acknowledged
//! ```
//!
//! A receiver that delays its ACKs (RFC 1122) halves their number, so a window that grows per ACK
//! grows half as fast. The papers simulate a receiver that acknowledges every segment. For such a
//! receiver, counting makes nearly no difference.
//!
//! Departures and choices: a rule that grows by less than a segment (FeW) adds its own step where
//! this rule would add one segment. CUBIC counts by itself above its threshold. After a reduction
//! counting starts over. The ACK that ends a recovery counts nothing, because the segments it
//! covers were sent before the loss.

use crate::about::Named;

/// L of RFC 3465, section 2.2, in segments.
pub const LIMIT: u32 = 2;

/// Byte counting with the limit that the RFC gives.
pub const ABC: Named<u32> = Named {
    name: "abc",
    description: "window that grows by the data that ACKs cover, not by the number of ACKs",
    source: "RFC 3465, L = 2",
    config: || LIMIT,
};

/// State of the counting.
#[derive(Clone, PartialEq, Debug)]
pub struct ByteCounting {
    /// L in segments.
    limit: u32,
    /// Segments acknowledged in congestion avoidance since the window last grew.
    counted: f64,
    /// True if the current slow start follows a timeout.
    after_timeout: bool,
}

impl ByteCounting {
    /// Creates a counter with nothing counted. In slow start an ACK counts for at most `limit`
    /// segments; `limit` is 1 or more.
    pub fn new(limit: u32) -> ByteCounting {
        ByteCounting { limit, counted: 0.0, after_timeout: false }
    }

    /// Number of segments by which an ACK of `segments` segments opens the window in slow start
    /// (sections 2.2 and 2.3).
    pub fn in_slow_start(&self, segments: u64) -> f64 {
        // After a timeout one ACK may cover many segments that had arrived before the timeout.
        let limit = if self.after_timeout { 1 } else { self.limit };
        segments.min(u64::from(limit)) as f64
    }

    /// Number of steps, 0 or 1, by which a window of `cwnd` segments grows in congestion avoidance
    /// (section 2.1).
    pub fn in_avoidance(&mut self, cwnd: f64, segments: u64) -> f64 {
        self.after_timeout = false;
        self.counted += segments as f64;
        if self.counted < cwnd {
            return 0.0;
        }
        self.counted -= cwnd;
        1.0
    }

    /// The window was reduced. `timeout` says whether a timeout was the cause.
    pub fn on_reduction(&mut self, timeout: bool) {
        self.counted = 0.0;
        self.after_timeout = timeout;
    }
}

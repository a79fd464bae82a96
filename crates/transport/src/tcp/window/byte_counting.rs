//! Byte counting: the window grows by what ACKs cover, not by how many there are.
//!
//! RFC 3465, sections 2.1 to 2.3; here in segments, for ACKs of whole segments:
//!
//! ```text
//! slow start             cwnd += min(segments acknowledged, L)      L = 2; 1 after a timeout
//! congestion avoidance   cwnd += 1 for each cwnd segments acknowledged
//! ```
//!
//! A receiver that delays its ACKs (RFC 1122) halves their number, and a window that grows per ACK grows half as fast. What
//! the papers simulate, a receiver that acknowledges every segment, is nearly the same with and without counting.
//!
//! Departures and choices: a rule that grows by less than a segment (FeW) adds its step where one would be added here; CUBIC
//! counts by itself above its threshold; after a reduction counting starts over; the ACK that ends a recovery counts
//! nothing, since what it covers was sent before the loss.

use crate::about::Named;

/// L of RFC 3465, section 2.2, in segments.
pub const LIMIT: u32 = 2;

/// Byte counting with the RFC's limit.
pub const ABC: Named<u32> = Named {
    name: "abc",
    description: "a window that grows by what ACKs cover, not by their number",
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
    /// The slow start under way follows a timeout.
    after_timeout: bool,
}

impl ByteCounting {
    /// Nothing counted; an ACK counts for at most `limit` segments in slow start, 1 or more.
    pub fn new(limit: u32) -> ByteCounting {
        ByteCounting { limit, counted: 0.0, after_timeout: false }
    }

    /// By how many segments an ACK of `segments` opens the window in slow start (sections 2.2 and 2.3).
    pub fn in_slow_start(&self, segments: u64) -> f64 {
        // After a timeout an ACK may cover what had arrived before it, all at once.
        let limit = if self.after_timeout { 1 } else { self.limit };
        segments.min(u64::from(limit)) as f64
    }

    /// Number of steps, 0 or 1, by which a window of `cwnd` segments grows in congestion avoidance (section 2.1).
    pub fn in_avoidance(&mut self, cwnd: f64, segments: u64) -> f64 {
        self.after_timeout = false;
        self.counted += segments as f64;
        if self.counted < cwnd {
            return 0.0;
        }
        self.counted -= cwnd;
        1.0
    }

    /// The window was reduced, by a timeout or not.
    pub fn on_reduction(&mut self, timeout: bool) {
        self.counted = 0.0;
        self.after_timeout = timeout;
    }
}

//! State that every window rule keeps, and the changes of it that RFC 5681 prescribes.
//!
//! RFC 5681, section 3.1, in segments: cwnd grows by one per ACK below ssthresh and by 1/cwnd per
//! ACK above it. As in ns-2.35, half of the window means half of min(cwnd + inflation, limit), not
//! half of the data in flight. Also as there, cwnd may grow beyond the limit, which caps only the
//! usable window.

/// Congestion window, slow-start threshold and limit of a connection.
#[derive(Clone, PartialEq, Debug)]
pub struct Base {
    /// Congestion window in segments.
    cwnd: f64,
    /// Slow-start threshold in whole segments; 2 or more once it has been lowered.
    ssthresh: u32,
    /// Upper limit of the window in segments.
    limit: u32,
}

impl Base {
    /// Creates a window of one segment, for the SYN. At most `limit` segments of it are used. Slow
    /// start ends at `ssthresh` segments, or earlier with a loss.
    pub fn new(limit: u32, ssthresh: u32) -> Base {
        Base { cwnd: 1.0, ssthresh, limit }
    }

    /// Congestion window in segments, before the limit is applied.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold in segments.
    pub fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Upper limit in segments.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Changes the limit.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// Sets cwnd, for a rule that computes cwnd itself.
    pub fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
    }

    /// True if the window is below its slow-start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < f64::from(self.ssthresh)
    }

    /// Number of segments that may be outstanding. `inflation` is the number of further segments
    /// allowed because duplicate ACKs report that segments have left the network.
    #[inline]
    pub fn usable(&self, inflation: u32) -> u64 {
        u64::from((self.cwnd as u32).saturating_add(inflation).min(self.limit))
    }

    /// The handshake ended, or the connection was idle. Starts again with `segments` segments.
    pub fn restart(&mut self, segments: u32) {
        self.cwnd = f64::from(segments);
    }

    /// Grows the window after an ACK of new data outside recovery.
    pub fn on_ack(&mut self) {
        self.cwnd += if self.in_slow_start() { 1.0 } else { 1.0 / self.cwnd };
    }

    /// Halves the window after a loss that duplicate ACKs report.
    pub fn on_fast_retransmit(&mut self, inflation: u32) {
        let half = self.half(inflation);
        self.ssthresh = (half as u32).max(2);
        // A longer route may have lowered the limit to one segment. That must not close the window.
        self.cwnd = half.max(1.0);
    }

    /// Starts over with one segment after the retransmission timer expired.
    pub fn on_timeout(&mut self, inflation: u32) {
        self.cwnd = self.cwnd.max(1.0);
        self.ssthresh = (self.half(inflation) as u32).max(2);
        self.cwnd = 1.0;
    }

    /// Takes back `segments` segments after a partial ACK (RFC 6582, section 3.2, step 3 B).
    pub fn deflate(&mut self, segments: u32) {
        self.cwnd = (self.cwnd - f64::from(segments)).max(1.0);
    }

    /// Sets cwnd and ssthresh to `segments`, but at least to 2, for a rule that has its own
    /// response to loss.
    pub fn reduce_to(&mut self, segments: f64) {
        self.cwnd = segments.max(2.0);
        self.ssthresh = self.cwnd as u32;
    }

    /// The window that a loss reduces, in segments: min(cwnd + inflation, limit).
    pub fn window(&self, inflation: u32) -> f64 {
        (self.cwnd + f64::from(inflation)).min(f64::from(self.limit))
    }

    fn half(&self, inflation: u32) -> f64 {
        self.window(inflation) / 2.0
    }
}

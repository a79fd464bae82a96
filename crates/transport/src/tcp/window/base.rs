//! State that every window rule keeps, and RFC 5681's way to change it.
//!
//! RFC 5681, section 3.1, in segments: one more per ACK below ssthresh, 1/cwnd per ACK above. As in ns-2.35, half of the
//! window means half of min(cwnd + inflation, limit), not of the data in flight, and cwnd may grow beyond the limit,
//! which only caps what is used.

/// cwnd, ssthresh and the limit.
#[derive(Clone, PartialEq, Debug)]
pub struct Base {
    /// Congestion window in segments.
    cwnd: f64,
    /// Slow-start threshold in whole segments, 2 or more once lowered.
    ssthresh: u32,
    /// Upper limit of the window in segments.
    limit: u32,
}

impl Base {
    /// A window of one segment, for the SYN, that never exceeds `limit`; slow start ends at `ssthresh`, if not with a loss.
    pub fn new(limit: u32, ssthresh: u32) -> Base {
        Base { cwnd: 1.0, ssthresh, limit }
    }

    /// Congestion window in segments, before the limit.
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

    /// Sets cwnd, for a rule that computes it itself.
    pub fn set_cwnd(&mut self, cwnd: f64) {
        self.cwnd = cwnd;
    }

    /// True if the window is below its slow-start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < f64::from(self.ssthresh)
    }

    /// Segments that may be outstanding, with `inflation` more for what duplicate ACKs say has left the network.
    #[inline]
    pub fn usable(&self, inflation: u32) -> u64 {
        u64::from((self.cwnd as u32).saturating_add(inflation).min(self.limit))
    }

    /// The handshake ends, or the connection was idle: start with `segments`.
    pub fn restart(&mut self, segments: u32) {
        self.cwnd = f64::from(segments);
    }

    /// An ACK of new data outside recovery.
    pub fn on_ack(&mut self) {
        self.cwnd += if self.in_slow_start() { 1.0 } else { 1.0 / self.cwnd };
    }

    /// Loss seen by duplicate ACKs: halve.
    pub fn on_fast_retransmit(&mut self, inflation: u32) {
        let half = self.half(inflation);
        self.ssthresh = (half as u32).max(2);
        // A limit of one segment, which a longer route may have brought about, must not close the window.
        self.cwnd = half.max(1.0);
    }

    /// Loss seen by the timer: start over with one segment.
    pub fn on_timeout(&mut self, inflation: u32) {
        self.cwnd = self.cwnd.max(1.0);
        self.ssthresh = (self.half(inflation) as u32).max(2);
        self.cwnd = 1.0;
    }

    /// A partial ACK takes `segments` back (RFC 6582, section 3.2, step 3 B).
    pub fn deflate(&mut self, segments: u32) {
        self.cwnd = (self.cwnd - f64::from(segments)).max(1.0);
    }

    /// Sets cwnd and ssthresh to `segments`, two at least, for a rule with a loss response of its own.
    pub fn reduce_to(&mut self, segments: f64) {
        self.cwnd = segments.max(2.0);
        self.ssthresh = self.cwnd as u32;
    }

    /// The window that a loss reduces: min(cwnd + inflation, limit).
    pub fn window(&self, inflation: u32) -> f64 {
        (self.cwnd + f64::from(inflation)).min(f64::from(self.limit))
    }

    fn half(&self, inflation: u32) -> f64 {
        self.window(inflation) / 2.0
    }
}

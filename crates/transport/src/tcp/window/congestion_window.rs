//! The congestion window of a connection: what the sender and its recovery tell it and ask it.

use super::{Ack, Base, ByteCounting, Rule, State};
use meshpace_core::Time;

/// The congestion window of a connection, which a rule changes.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    base: Base,
    /// Receive window of the peer, segments.
    max_window: u32,
    rule: State,
    /// Growth by what ACKs cover; none: by one step per ACK.
    counting: Option<ByteCounting>,
    /// For rules that follow the clock: the time of the latest ACK and the smoothed RTT in seconds then.
    now: Time,
    rtt: f64,
    /// The round trip of the newest segment that it acknowledges, seconds, 0 if that is not known, and the segments that are still out.
    sample: f64,
    outstanding: u64,
}

impl Window {
    /// A window that `rule` changes, of a receiver that takes `max_window` segments.
    pub(super) fn new(base: Base, rule: State, max_window: u32) -> Window {
        Window { base, max_window, rule, counting: None, now: Time::ZERO, rtt: 0.0, sample: 0.0, outstanding: 0 }
    }

    /// The same window growing by what ACKs cover, in slow start by at most `limit` segments per ACK (RFC 3465).
    pub fn counting_bytes(self, limit: u32) -> Window {
        Window { counting: Some(ByteCounting::new(limit)), ..self }
    }

    /// Congestion window in segments, before the limit.
    pub fn cwnd(&self) -> f64 {
        self.base.cwnd()
    }

    /// Slow-start threshold in segments.
    pub fn ssthresh(&self) -> u32 {
        self.base.ssthresh()
    }

    /// Upper limit in segments.
    pub fn limit(&self) -> u32 {
        self.base.limit()
    }

    /// True if the window is below its slow-start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.base.in_slow_start()
    }

    /// Segments that may be outstanding, with `inflation` more for what duplicate ACKs say has left the network.
    #[inline]
    pub fn usable(&self, inflation: u32) -> u64 {
        self.base.usable(inflation)
    }

    /// The path has `hops` hops.
    pub fn on_hops(&mut self, hops: u8) {
        self.rule.on_hops(&mut self.base, hops, self.max_window);
    }

    /// The time of an ACK and the smoothed RTT in seconds; to be told before the ACK.
    pub fn on_clock(&mut self, now: Time, rtt: f64) {
        self.now = now;
        self.rtt = rtt;
    }

    /// The round trip in seconds of the newest segment that an ACK acknowledges, if none was sent twice, and the segments that it leaves
    /// unacknowledged; to be told before the ACK.
    pub fn on_sample(&mut self, rtt: Option<f64>, outstanding: u64) {
        self.sample = rtt.unwrap_or(0.0);
        self.outstanding = outstanding;
    }

    /// Seconds between two segments that the rule asks for; 0: as the window allows.
    pub fn interval(&self) -> f64 {
        self.rule.interval(&self.base)
    }

    /// The handshake ends, or the connection was idle: start with `segments`.
    pub fn restart(&mut self, segments: u32) {
        self.rule.restart(&mut self.base, segments);
    }

    /// An ACK of `segments` of new data outside recovery.
    pub fn on_ack(&mut self, segments: u64) {
        let ack = Ack { segments, now: self.now, rtt: self.rtt, sample: self.sample, outstanding: self.outstanding };
        let Some(counting) = &mut self.counting else { return self.rule.on_ack(&mut self.base, &ack) };
        let step = if self.base.in_slow_start() {
            counting.in_slow_start(segments)
        } else {
            counting.in_avoidance(self.base.cwnd(), segments)
        };
        self.rule.on_counted_ack(&mut self.base, step, &ack);
    }

    /// The ACK of `segments` that ends a recovery.
    pub fn on_recovered(&mut self, segments: u64) {
        if self.counting.is_none() {
            self.on_ack(segments);
        }
    }

    fn count_anew(&mut self, timeout: bool) {
        if let Some(counting) = &mut self.counting {
            counting.on_reduction(timeout);
        }
    }

    /// Loss seen by duplicate ACKs, or a congestion mark: reduce.
    pub fn on_fast_retransmit(&mut self, inflation: u32) {
        self.count_anew(false);
        self.rule.on_fast_retransmit(&mut self.base, inflation);
    }

    /// Loss seen by the timer: start over with one segment.
    pub fn on_timeout(&mut self, inflation: u32) {
        self.count_anew(true);
        self.rule.on_timeout(&mut self.base, inflation);
    }

    /// A partial ACK takes `segments` back (RFC 6582, section 3.2, step 3 B).
    pub fn deflate(&mut self, segments: u32) {
        self.rule.deflate(&mut self.base, segments);
    }
}

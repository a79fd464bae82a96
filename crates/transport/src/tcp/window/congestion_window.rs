//! The congestion window of a connection, as the sender and its recovery use it.

use super::{Ack, Base, ByteCounting, Rule, State};
use meshpace_core::Time;

/// The congestion window of a connection. A rule changes it.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    base: Base,
    /// Receive window of the peer in segments.
    max_window: u32,
    rule: State,
    /// Byte counting (RFC 3465): growth by the amount that ACKs cover. `None` if the window grows
    /// by one step per ACK.
    counting: Option<ByteCounting>,
    /// Time of the latest ACK, for rules that depend on the time.
    now: Time,
    /// Smoothed RTT in seconds at the latest ACK.
    rtt: f64,
    /// Round trip in seconds of the newest segment that the latest ACK acknowledges; 0 if it is not
    /// known.
    sample: f64,
    /// Number of segments that are outstanding after the latest ACK.
    outstanding: u64,
}

impl Window {
    /// Creates a window that `rule` changes, for a receiver that accepts `max_window` segments.
    pub(super) fn new(base: Base, rule: State, max_window: u32) -> Window {
        Window { base, max_window, rule, counting: None, now: Time::ZERO, rtt: 0.0, sample: 0.0, outstanding: 0 }
    }

    /// Makes the window grow by the amount that ACKs cover, in slow start by at most `limit`
    /// segments per ACK (RFC 3465).
    pub fn counting_bytes(self, limit: u32) -> Window {
        Window { counting: Some(ByteCounting::new(limit)), ..self }
    }

    /// Congestion window in segments, before the limit is applied.
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

    /// Number of segments that may be outstanding. `inflation` is the number of further segments
    /// allowed because duplicate ACKs report that segments have left the network.
    #[inline]
    pub fn usable(&self, inflation: u32) -> u64 {
        self.base.usable(inflation)
    }

    /// Sets the number of hops of the path.
    pub fn on_hops(&mut self, hops: u8) {
        self.rule.on_hops(&mut self.base, hops, self.max_window);
    }

    /// Sets the time of an ACK and the smoothed RTT in seconds. To be called before the ACK is
    /// handled.
    pub fn on_clock(&mut self, now: Time, rtt: f64) {
        self.now = now;
        self.rtt = rtt;
    }

    /// Sets the values that an ACK measures. To be called before the ACK is handled. `rtt` is the
    /// round trip in seconds of the newest segment that the ACK acknowledges; it is `None` if one
    /// of these segments was sent twice. `outstanding` is the number of segments that are then
    /// unacknowledged.
    pub fn on_sample(&mut self, rtt: Option<f64>, outstanding: u64) {
        self.sample = rtt.unwrap_or(0.0);
        self.outstanding = outstanding;
    }

    /// Interval in seconds between two segments that the rule asks for. If it is 0, segments leave
    /// as the window allows.
    pub fn interval(&self) -> f64 {
        self.rule.interval(&self.base)
    }

    /// The handshake ended, or the connection was idle. Starts again with `segments` segments.
    pub fn restart(&mut self, segments: u32) {
        self.rule.restart(&mut self.base, segments);
    }

    /// An ACK of `segments` segments of new data arrived outside recovery.
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

    /// The ACK that ends a recovery arrived; it acknowledges `segments` segments.
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

    /// Reduces the window after a loss that duplicate ACKs report, or after a congestion mark.
    pub fn on_fast_retransmit(&mut self, inflation: u32) {
        self.count_anew(false);
        self.rule.on_fast_retransmit(&mut self.base, inflation);
    }

    /// Starts over with one segment after the retransmission timer expired.
    pub fn on_timeout(&mut self, inflation: u32) {
        self.count_anew(true);
        self.rule.on_timeout(&mut self.base, inflation);
    }

    /// Takes back `segments` segments after a partial ACK (RFC 6582, section 3.2, step 3 B).
    pub fn deflate(&mut self, segments: u32) {
        self.rule.deflate(&mut self.base, segments);
    }
}

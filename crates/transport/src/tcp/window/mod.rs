//! When may I send more: the growth of the congestion window and its limits.

mod byte_counting;
mod cubic;
mod few;
mod hop_limit;
mod newreno;

pub use byte_counting::{ByteCounting, LIMIT};
pub use cubic::{Cubic, CubicConfig};
pub use few::increase as few_increase;
pub use hop_limit::HopRule;
pub use newreno::NewReno;

use meshpace_core::Time;
use meshpace_core::parameter::{ParameterError, require};

/// Which rule the congestion window follows.
#[derive(Clone, PartialEq, Debug)]
pub enum Config {
    /// NewReno (RFC 6582, RFC 5681).
    NewReno,
    /// NewReno whose window never exceeds `segments` (TPA, section 5: TCP-2 and TCP-3; AP05, section 5).
    Clamp {
        /// The limit in segments, 1 or more.
        segments: u32,
    },
    /// NewReno whose window never exceeds what the number of hops allows (Chen, Xue, Nahrstedt, ICC 2003).
    HopLimit(HopRule),
    /// NewReno that grows by a fraction in congestion avoidance (TCP-FeW; DCC, section 5).
    Few {
        /// Segments by which the window grows per round trip, above 0 and at most 1. Default 0.01 (DCC, section 5).
        increment: f64,
    },
    /// A window that never changes, whatever is lost (DCC, section 5).
    Constant {
        /// Its size in segments, 1 or more.
        segments: u32,
    },
    /// CUBIC (RFC 9438).
    Cubic(CubicConfig),
}

impl Config {
    /// Whether every parameter is in its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        match self {
            Config::NewReno | Config::HopLimit(_) => Ok(()),
            Config::Clamp { segments } | Config::Constant { segments } => {
                require(*segments >= 1, "window.segments", segments, "1 or more segments")
            }
            Config::Few { increment } => {
                require(*increment > 0.0 && *increment <= 1.0, "window.increment", increment, "above 0, at most 1")
            }
            Config::Cubic(config) => config.check(),
        }
    }

    /// The window of a connection whose receiver takes `max_window` segments; slow start ends at `ssthresh` segments, if not
    /// with a loss.
    ///
    /// A clamp lowers the limit, as ns-2 users do with `window_`, so that limited transmit and recovery keep to it too.
    pub fn build(&self, max_window: u32, ssthresh: u32) -> Window {
        let rule = match self {
            Config::NewReno | Config::Clamp { .. } => Rule::NewReno,
            Config::HopLimit(rule) => Rule::HopLimit(*rule),
            Config::Few { increment } => Rule::Few { increment: *increment },
            Config::Constant { .. } => Rule::Constant,
            Config::Cubic(config) => Rule::Cubic(Cubic::new(config)),
        };
        let limit = self.limit(max_window);
        let base = if rule == Rule::Constant {
            let mut base = NewReno::new(limit, limit);
            base.restart(limit);
            base
        } else {
            NewReno::new(limit, ssthresh)
        };
        Window { base, max_window, rule, counting: None, now: Time::ZERO, rtt: 0.0 }
    }

    /// The most segments such a window can hold if its receiver takes `max_window` segments.
    pub fn limit(&self, max_window: u32) -> u32 {
        match self {
            Config::Clamp { segments } | Config::Constant { segments } => max_window.min(*segments),
            _ => max_window,
        }
    }
}

/// A rule with its state.
#[derive(Clone, PartialEq, Debug)]
enum Rule {
    NewReno,
    HopLimit(HopRule),
    Few { increment: f64 },
    Constant,
    Cubic(Cubic),
}

/// The congestion window of a connection: NewReno's, and what the rule changes about it.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    base: NewReno,
    /// What the receiver takes, segments.
    max_window: u32,
    rule: Rule,
    /// Growth by what ACKs cover; none: by one step per ACK.
    counting: Option<ByteCounting>,
    /// For rules that follow the clock: the time of the latest ACK and the smoothed RTT in seconds then.
    now: Time,
    rtt: f64,
}

impl Window {
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

    /// Whether the window is below its slow-start threshold.
    pub fn in_slow_start(&self) -> bool {
        self.base.cwnd() < f64::from(self.base.ssthresh())
    }

    /// Segments that may be outstanding, with `inflation` more for what duplicate ACKs say has left the network.
    #[inline]
    pub fn usable(&self, inflation: u32) -> u64 {
        self.base.usable(inflation)
    }

    /// The path has `hops` hops.
    pub fn on_hops(&mut self, hops: u8) {
        if let Rule::HopLimit(rule) = self.rule {
            self.base.set_limit(rule.segments(hops).min(self.max_window));
        }
    }

    /// The time of an ACK and the smoothed RTT in seconds; to be told before the ACK.
    pub fn on_clock(&mut self, now: Time, rtt: f64) {
        self.now = now;
        self.rtt = rtt;
    }

    /// The handshake ends, or the connection was idle: start with `segments`.
    pub fn restart(&mut self, segments: u32) {
        match &mut self.rule {
            Rule::Constant => {}
            Rule::Cubic(cubic) => {
                cubic.end_epoch();
                self.base.restart(segments);
            }
            _ => self.base.restart(segments),
        }
    }

    /// An ACK of `segments` of new data outside recovery.
    pub fn on_ack(&mut self, segments: u64) {
        let Some(counting) = &mut self.counting else { return self.grow_per_ack(segments) };
        let cwnd = self.base.cwnd();
        let slow = cwnd < f64::from(self.base.ssthresh());
        let step = if slow { counting.in_slow_start(segments) } else { counting.in_avoidance(cwnd, segments) };
        match &self.rule {
            Rule::Few { increment } if !slow => self.base.set_cwnd(cwnd + increment * step),
            Rule::Cubic(_) if !slow => self.grow_per_ack(segments),
            Rule::Cubic(_) => self.base.set_cwnd((cwnd + step).min(f64::from(self.base.limit()))),
            Rule::Constant => {}
            _ => self.base.set_cwnd(cwnd + step),
        }
    }

    /// The ACK of `segments` that ends a recovery.
    pub fn on_recovered(&mut self, segments: u64) {
        if self.counting.is_none() {
            self.on_ack(segments);
        }
    }

    fn grow_per_ack(&mut self, segments: u64) {
        match &mut self.rule {
            Rule::NewReno | Rule::HopLimit(_) => self.base.on_ack(),
            Rule::Few { increment } => {
                let (cwnd, ssthresh) = (self.base.cwnd(), self.base.ssthresh());
                self.base.set_cwnd(few::increase(cwnd, ssthresh, *increment));
            }
            Rule::Constant => {}
            Rule::Cubic(cubic) => {
                let (cwnd, ssthresh) = (self.base.cwnd(), self.base.ssthresh());
                let grown = cubic.on_ack(cwnd, ssthresh, segments, self.now, self.rtt);
                self.base.set_cwnd(grown.min(f64::from(self.base.limit())));
            }
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
        match &mut self.rule {
            Rule::Constant => {}
            Rule::Cubic(cubic) => {
                let reduced = cubic.on_loss(self.base.window(inflation));
                self.base.reduce_to(reduced);
            }
            _ => self.base.on_fast_retransmit(inflation),
        }
    }

    /// Loss seen by the timer: start over with one segment.
    pub fn on_timeout(&mut self, inflation: u32) {
        self.count_anew(true);
        match &mut self.rule {
            Rule::Constant => {}
            Rule::Cubic(cubic) => {
                let reduced = cubic.on_loss(self.base.window(inflation));
                cubic.on_timeout();
                self.base.reduce_to(reduced);
                self.base.restart(1);
            }
            _ => self.base.on_timeout(inflation),
        }
    }

    /// A partial ACK takes `segments` back (RFC 6582, section 3.2, step 3 B).
    pub fn deflate(&mut self, segments: u32) {
        if self.rule != Rule::Constant {
            self.base.deflate(segments);
        }
    }
}

//! CUBIC: the window grows as a cubic function of the time since the last loss.
//!
//! RFC 9438, sections 4.1 to 4.8, in segments; t is the time in seconds since congestion avoidance
//! began:
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max        K = cbrt((W_max - cwnd_epoch) / C)
//! target     = W_cubic(t + RTT), at least cwnd, at most 1.5 cwnd;   per ACK: cwnd += (target - cwnd) / cwnd
//! W_est     += alpha (segments acknowledged) / cwnd;                Reno-friendly: cwnd = W_est if W_cubic(t) is below
//! loss: ssthresh = cwnd = beta cwnd;  W_max = cwnd before, or (1 + beta)/2 of it if it had not come back to W_max
//! ```
//!
//! Departures: a loss reduces min(cwnd + inflation, limit), as for NewReno here, not the data in
//! flight. cwnd does not grow beyond the receiver's window (section 5.8 forbids growth that is not
//! used). There is no HyStart++ (RFC 9406), which RFC 9438 recommends but does not require, so slow
//! start is that of RFC 5681.

use super::{Ack, Base, Rule};
use meshpace_core::{Time, parameters};

parameters! {
    /// Parameters of CUBIC.
    #[derive(Clone, PartialEq, Debug)]
    pub struct CubicConfig {
        /// C, how fast the window recovers, in segments per second cubed
        c: f64 = 0.4 => number(0.0, 1e9).above(0.0), Expert, "RFC 9438, 5";
        /// beta, share of the window that remains after a loss
        beta: f64 = 0.7 => number(0.0, 1.0).above(0.0).below(1.0), Expert, "RFC 9438, 4.6";
        /// whether a flow yields faster while its peaks decrease (fast convergence)
        fast_convergence: bool = true => FLAG, Expert, "RFC 9438, 4.7";
    }
}

/// A period of congestion avoidance.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Epoch {
    start: Time,
    /// K in seconds.
    k: f64,
    /// W_est in segments.
    estimate: f64,
}

/// State of CUBIC.
#[derive(Clone, PartialEq, Debug)]
pub struct Cubic {
    config: CubicConfig,
    /// W_max in segments; 0 if the curve has to start at the current window.
    w_max: f64,
    /// The window before the last reduction, in segments.
    prior: f64,
    epoch: Option<Epoch>,
}

impl Cubic {
    /// Creates the state of a connection that has had no loss.
    pub fn new(config: &CubicConfig) -> Cubic {
        Cubic { config: config.clone(), w_max: 0.0, prior: 0.0, epoch: None }
    }

    /// K in seconds for a window of `cwnd` segments: the time at which the curve reaches W_max.
    pub fn time_to_maximum(c: f64, w_max: f64, cwnd: f64) -> f64 {
        libm::cbrt((w_max - cwnd) / c)
    }

    /// W_cubic(t) in segments.
    pub fn curve(c: f64, w_max: f64, k: f64, t: f64) -> f64 {
        let d = t - k;
        c * d * d * d + w_max
    }

    /// The window after an ACK of `segments` segments at `now` with a smoothed RTT of `rtt`
    /// seconds.
    pub fn next_cwnd(&mut self, cwnd: f64, ssthresh: u32, segments: u64, now: Time, rtt: f64) -> f64 {
        if cwnd < f64::from(ssthresh) {
            return cwnd + 1.0;
        }
        let CubicConfig { c, beta, .. } = self.config;
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => {
                // After a timeout, or if there has been no loss, the curve starts flat at the
                // current window (section 4.8).
                self.w_max = self.w_max.max(cwnd);
                Epoch { start: now, k: Cubic::time_to_maximum(c, self.w_max, cwnd), estimate: cwnd }
            }
        };
        let friendly = if epoch.estimate < self.prior { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        epoch.estimate += friendly * segments as f64 / cwnd;
        self.epoch = Some(epoch);
        let t = now.since(epoch.start).as_secs_f64();
        if Cubic::curve(c, self.w_max, epoch.k, t) < epoch.estimate {
            return epoch.estimate.max(cwnd);
        }
        let target = Cubic::curve(c, self.w_max, epoch.k, t + rtt).clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) / cwnd
    }

    /// A loss occurred with a window of `window` segments. Returns the window after the loss,
    /// before its lower limit.
    pub fn on_loss(&mut self, window: f64) -> f64 {
        let beta = self.config.beta;
        let retreats = self.config.fast_convergence && window < self.w_max;
        self.w_max = if retreats { window * (1.0 + beta) / 2.0 } else { window };
        self.prior = window;
        self.epoch = None;
        window * beta
    }

    /// Lets the curve start where slow start ends, after a loss that the retransmission timer
    /// detected.
    pub fn start_flat(&mut self) {
        self.w_max = 0.0;
    }

    /// Ends the epoch after an idle period, so that the idle time does not count.
    pub fn end_epoch(&mut self) {
        self.epoch = None;
    }
}

impl Rule for Cubic {
    fn restart(&mut self, base: &mut Base, segments: u32) {
        self.end_epoch();
        base.restart(segments);
    }

    fn on_ack(&mut self, base: &mut Base, ack: &Ack) {
        let grown = self.next_cwnd(base.cwnd(), base.ssthresh(), ack.segments, ack.now, ack.rtt);
        base.set_cwnd(grown.min(f64::from(base.limit())));
    }

    /// Above its threshold CUBIC counts acknowledged segments by itself.
    fn on_counted_ack(&mut self, base: &mut Base, step: f64, ack: &Ack) {
        if base.in_slow_start() {
            base.set_cwnd((base.cwnd() + step).min(f64::from(base.limit())));
        } else {
            self.on_ack(base, ack);
        }
    }

    fn on_fast_retransmit(&mut self, base: &mut Base, inflation: u32) {
        base.reduce_to(self.on_loss(base.window(inflation)));
    }

    fn on_timeout(&mut self, base: &mut Base, inflation: u32) {
        base.reduce_to(self.on_loss(base.window(inflation)));
        self.start_flat();
        base.restart(1);
    }
}

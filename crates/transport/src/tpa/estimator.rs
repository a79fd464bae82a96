//! Estimates the retransmission timeout from RTT samples, and adapts faster after a route change.
//!
//! TPA, section 3.4:
//!
//! ```text
//! ERTT(n) = g RTT(n) + (1 - g) ERTT(n-1)
//! DEV(n)  = h |RTT(n) - ERTT(n)| + (1 - h) DEV(n-1)
//! RTO(n)  = ERTT(n) + 4 DEV(n)
//! ```
//!
//! DEV uses the new ERTT, as printed; TCP (RFC 6298) uses the old one. A route change is detected
//! by th_RC samples in a row above ERTT + DEV, or as many below ERTT - DEV. The comparison is made
//! before the update. Then the gains g1 and h1 apply to n_RC updates, beginning with that of the
//! sample that led to the detection.
//!
//! Where the paper is silent: the first sample sets ERTT = RTT and DEV = RTT/2. The paper states no
//! lower bound of the RTO, and the trace of appendix B contradicts one of 200 ms. The upper bound
//! keeps a doubled timeout from lasting longer than the outage.
//!
//! Departure: the term 4 DEV is at least a margin, as in TCP (RFC 6298, section 2.3). Here the
//! margin is the time for which the receiver may delay an ACK. As printed, DEV vanishes on a steady
//! path and RTO becomes RTT. Over chains of one and two lossless hops, 0.4 to 0.9 per cent of the
//! segments were then retransmitted needlessly, where the paper's testbed measured none (table 3).
//! Segments whose ACK waits until the next, paced segment arrives would time out every time.

use meshpace_core::parameter::{ParameterError, require};
use meshpace_core::{Duration, parameters};

parameters! {
    /// Parameters of the estimator.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// gain of the mean
        g: f64 = 0.125 => number(0.0, 1.0), Expert, "TPA, section 3.4 and table 1";
        /// gain of the deviation
        h: f64 = 0.25 => number(0.0, 1.0), Expert, "TPA, section 3.4 and table 1";
        /// gain of the mean after a change of route
        g1: f64 = 0.25 => number(0.0, 1.0), Expert, "TPA, section 3.4 and table 1";
        /// gain of the deviation after a change of route
        h1: f64 = 0.5 => number(0.0, 1.0), Expert, "TPA, section 3.4 and table 1";
        /// whether the deviation is measured from the mean before the sample, as in TCP, instead of
        /// the mean after it, as printed
        deviation_from_old: bool = false => FLAG, Expert, "TPA, section 3.4";
        /// least value of the term of four deviations that is added to the mean; 0 s: the equation
        /// as printed
        margin: Duration = Duration::from_millis(100) => TIME.from(0.0), Expert;
        /// RTO before the first sample; at most the upper bound (max)
        initial: Duration = Duration::from_secs(3) => TIME.above(0.0), Basic, "RFC 6298, 2.1; ns-2, rtxcur_init_";
        /// lower bound of the RTO
        // None is stated: less than any data frame and its ACK take, it only keeps a path without delay from a timer without end.
        min: Duration = Duration::from_millis(1) => TIME.above(0.0), Basic;
        /// upper bound of the RTO
        max: Duration = Duration::from_secs(60) => TIME.above(0.0), Expert;
    }
    others {
        /// th_RC: samples outside on the same side that make a route change, 1 or more. Default 3 (TPA, table 1).
        route_change_samples: u32 = 3;
        /// n_RC: updates with g1 and h1. Default 3 (TPA, table 1).
        route_change_updates: u32 = 3;
        /// A constant RTO in place of the estimate, for worked examples. Default none.
        fixed: Option<Duration> = None;
    }
    also |config| config.check_dependent();
}

impl Config {
    fn check_dependent(&self) -> Result<(), ParameterError> {
        let samples = self.route_change_samples;
        require(samples >= 1, "route_change_samples", samples, "1 or more samples")?;
        require(self.initial <= self.max, "max", self.max, "at least initial")?;
        require(self.margin <= self.max, "margin", self.margin, "at most max")?;
        require(self.min <= self.max, "min", self.min, "at most max")?;
        let fixed = self.fixed.unwrap_or(self.max);
        require(fixed > Duration::ZERO && fixed <= self.max, "fixed", fixed, "more than 0 s, at most max")
    }
}

/// Where a sample lies relative to ERTT - DEV and ERTT + DEV.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Early,
    Inside,
    Late,
}

/// State of the estimator.
#[derive(Clone, Debug)]
pub struct Estimator {
    config: Config,
    /// ERTT and DEV in seconds; `None` before the first sample.
    estimate: Option<(f64, f64)>,
    /// Number of samples in a row on the same side as the last one.
    outside: u32,
    side: Side,
    /// Number of updates that still use g1 and h1.
    fast: u32,
    rto: Duration,
}

impl Estimator {
    /// Creates an estimator without samples.
    pub fn new(config: &Config) -> Estimator {
        Estimator {
            rto: config.fixed.unwrap_or(config.initial),
            estimate: None,
            outside: 0,
            side: Side::Inside,
            fast: 0,
            config: config.clone(),
        }
    }

    /// Takes an RTT sample in seconds.
    pub fn on_sample(&mut self, rtt: f64) {
        let config = &self.config;
        let (ertt, dev) = match self.estimate {
            None => (rtt, rtt / 2.0),
            Some((ertt, dev)) => {
                let side = match rtt {
                    rtt if rtt > ertt + dev => Side::Late,
                    rtt if rtt < ertt - dev => Side::Early,
                    _ => Side::Inside,
                };
                self.outside = match side {
                    Side::Inside => 0,
                    side if side == self.side => self.outside + 1,
                    _ => 1,
                };
                self.side = side;
                if self.outside >= config.route_change_samples {
                    self.outside = 0;
                    self.fast = config.route_change_updates;
                }
                let (g, h) = if self.fast > 0 { (config.g1, config.h1) } else { (config.g, config.h) };
                self.fast = self.fast.saturating_sub(1);
                let new = g * rtt + (1.0 - g) * ertt;
                let centre = if config.deviation_from_old { ertt } else { new };
                (new, h * libm::fabs(rtt - centre) + (1.0 - h) * dev)
            }
        };
        self.estimate = Some((ertt, dev));
        let rto = Duration::from_secs_f64(ertt + (4.0 * dev).max(config.margin.as_secs_f64()));
        self.rto = config.fixed.unwrap_or(rto.max(config.min).min(config.max));
    }

    /// A route is available again after a failure: the next n_RC updates use g1 and h1.
    pub fn on_route_change(&mut self) {
        self.fast = self.config.route_change_updates;
        self.outside = 0;
    }

    /// Current RTO.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// RTO times `factor`, but at most the upper bound.
    pub fn backed_off(&self, factor: u64) -> Duration {
        Duration(self.rto.0.saturating_mul(factor)).min(self.config.max)
    }

    /// Upper bound of the RTO.
    pub fn max(&self) -> Duration {
        self.config.max
    }

    /// ERTT in seconds; `None` before the first sample.
    pub fn ertt(&self) -> Option<f64> {
        self.estimate.map(|(ertt, _)| ertt)
    }

    /// DEV in seconds; `None` before the first sample.
    pub fn dev(&self) -> Option<f64> {
        self.estimate.map(|(_, dev)| dev)
    }

    /// ERTT + 4 DEV in seconds, before bounds and rounding; `None` before the first sample.
    pub fn rto_s(&self) -> Option<f64> {
        self.estimate.map(|(ertt, dev)| ertt + 4.0 * dev)
    }
}

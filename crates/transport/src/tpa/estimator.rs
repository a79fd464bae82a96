//! From RTT samples to the retransmission timeout, quicker after a route change.
//!
//! TPA, section 3.4:
//!
//! ```text
//! ERTT(n) = g RTT(n) + (1 - g) ERTT(n-1)
//! DEV(n)  = h |RTT(n) - ERTT(n)| + (1 - h) DEV(n-1)
//! RTO(n)  = ERTT(n) + 4 DEV(n)
//! ```
//!
//! DEV uses the new ERTT, as printed; TCP (RFC 6298) uses the old one. A route change is recognised by th_RC samples in a
//! row above ERTT + DEV, or as many below ERTT - DEV, compared before the update; then g1 and h1 serve for n_RC updates, the
//! recognising sample's first. Start, where the paper is silent: ERTT = RTT, DEV = RTT/2. No lower bound of the RTO is
//! stated, and the trace of appendix B contradicts one of 200 ms; the upper one keeps a doubled timeout from outliving the
//! outage.
//!
//! Departure: 4 DEV counts as at least a margin, as TCP has it (RFC 6298, section 2.3), here the time the receiver may hold
//! an ACK. As printed, a steady path makes DEV vanish and RTO = RTT: over chains of one and two lossless hops 0.4 to 0.9 per
//! cent of the segments were then repeated needlessly, where the paper's testbed measured none (table 3). Segments that
//! wait for their ACK while the next ones are paced would time out every time.

use meshpace_core::Duration;
use meshpace_core::parameter::{ParameterError, require};

/// Parameters of the estimator.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// Weight of the new sample in ERTT, 0..=1. Default 0.125 (TPA, table 1).
    pub g: f64,
    /// Weight of the new deviation in DEV, 0..=1. Default 0.25 (TPA, table 1).
    pub h: f64,
    /// g after a route change, 0..=1. Default 0.25 (TPA, table 1).
    pub g1: f64,
    /// h after a route change, 0..=1. Default 0.5 (TPA, table 1).
    pub h1: f64,
    /// th_RC: samples outside on the same side that make a route change, 1 or more. Default 3 (TPA, table 1).
    pub route_change_samples: u32,
    /// n_RC: updates with g1 and h1. Default 3 (TPA, table 1).
    pub route_change_updates: u32,
    /// Whether DEV is computed with the old ERTT, as in TCP, not with the new one as printed. Default false.
    pub deviation_from_old: bool,
    /// The least that is added to ERTT in place of 4 DEV. Default 100 ms, how long the receiver may hold an ACK; 0 s is the
    /// equation as printed.
    pub margin: Duration,
    /// RTO before the first sample, above zero. Default 3 s.
    pub initial: Duration,
    /// Lower bound of the RTO, above zero. None is stated; the default of 1 ms, less than any data frame and its ACK take,
    /// only keeps a path without delay from a timer without end.
    pub min: Duration,
    /// Upper bound of the RTO, doubling included; at least `initial`. Default 60 s.
    pub max: Duration,
    /// A constant RTO in place of the estimate, for worked examples. Default none.
    pub fixed: Option<Duration>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            g: 0.125,
            h: 0.25,
            g1: 0.25,
            h1: 0.5,
            route_change_samples: 3,
            route_change_updates: 3,
            deviation_from_old: false,
            margin: Duration::from_millis(100),
            initial: Duration::from_secs(3),
            min: Duration::from_millis(1),
            max: Duration::from_secs(60),
            fixed: None,
        }
    }
}

impl Config {
    /// Whether every parameter is in its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        let weight = |value: f64, name| require((0.0..=1.0).contains(&value), name, value, "0 to 1");
        weight(self.g, "rto.g")?;
        weight(self.h, "rto.h")?;
        weight(self.g1, "rto.g1")?;
        weight(self.h1, "rto.h1")?;
        require(
            self.route_change_samples >= 1,
            "rto.route_change_samples",
            self.route_change_samples,
            "1 or more samples",
        )?;
        require(self.initial > Duration::ZERO, "rto.initial", self.initial, "more than 0 s")?;
        require(self.max >= self.initial, "rto.max", self.max, "at least rto.initial")?;
        require(self.margin <= self.max, "rto.margin", self.margin, "at most rto.max")?;
        require(
            self.min > Duration::ZERO && self.min <= self.max,
            "rto.min",
            self.min,
            "more than 0 s, at most rto.max",
        )?;
        if let Some(fixed) = self.fixed {
            require(fixed > Duration::ZERO && fixed <= self.max, "rto.fixed", fixed, "more than 0 s, at most rto.max")?;
        }
        Ok(())
    }
}

/// Where a sample lies relative to ERTT - DEV and ERTT + DEV.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Early,
    Inside,
    Late,
}

/// The estimator's state.
#[derive(Clone, Debug)]
pub struct Estimator {
    config: Config,
    /// ERTT and DEV in seconds; none before the first sample.
    estimate: Option<(f64, f64)>,
    /// Samples in a row on the side of the last one.
    outside: u32,
    side: Side,
    /// Updates with g1 and h1 still to come.
    fast: u32,
    rto: Duration,
}

impl Estimator {
    /// An estimator without samples.
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

    /// RTO.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// RTO times `factor`, at most the upper bound.
    pub fn backed_off(&self, factor: u64) -> Duration {
        Duration(self.rto.0.saturating_mul(factor)).min(self.config.max)
    }

    /// The upper bound of the RTO.
    pub fn max(&self) -> Duration {
        self.config.max
    }

    /// ERTT in seconds; none before the first sample.
    pub fn ertt(&self) -> Option<f64> {
        self.estimate.map(|(ertt, _)| ertt)
    }

    /// DEV in seconds; none before the first sample.
    pub fn dev(&self) -> Option<f64> {
        self.estimate.map(|(_, dev)| dev)
    }

    /// ERTT + 4 DEV in seconds before bounds and rounding; none before the first sample.
    pub fn rto_s(&self) -> Option<f64> {
        self.estimate.map(|(ertt, dev)| ertt + 4.0 * dev)
    }
}

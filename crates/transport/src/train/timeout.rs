//! Time after which the ACK of a train is given up: RFC 6298, section 2, over the round trips of
//! TAILs.
//!
//! Departures: every TAIL is timed, since its time stamp is echoed (RFC 7323, section 4.1), without
//! the time that the ACK waited. The smallest RTO is 0.4 s, as long as a receiver waits. The
//! largest is 2 s, since one segment every 2 s does no harm and a route may come back at any time.

use meshpace_core::parameter::require;
use meshpace_core::{Duration, parameters};

parameters! {
    /// Parameters.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// RTO before the first sample; at most the upper bound (max)
        initial: Duration = Duration::from_secs(1) => TIME.above(0.0), Expert, "RFC 6298, 2.1";
        /// lower bound of the RTO
        min: Duration = Duration::from_millis(400) => TIME.above(0.0), Expert;
        /// upper bound of the RTO
        max: Duration = Duration::from_secs(2) => TIME.above(0.0), Expert;
    }
    also |config| require(config.min <= config.max, "max", config.max, "at least min")
        .and(require(config.initial <= config.max, "initial", config.initial, "at most max"));
}

/// State of the timer.
#[derive(Clone, Debug)]
pub struct Timeout {
    config: Config,
    /// Smoothed round trip and its mean deviation, in seconds.
    smoothed: Option<(f64, f64)>,
    backoff: u32,
}

impl Timeout {
    /// Creates a timer without samples.
    pub fn new(config: &Config) -> Timeout {
        Timeout { config: config.clone(), smoothed: None, backoff: 0 }
    }

    /// The ACK of a TAIL arrived after `rtt` seconds.
    pub fn on_sample(&mut self, rtt: f64) {
        self.backoff = 0;
        self.smoothed = Some(match self.smoothed {
            None => (rtt, rtt / 2.0),
            Some((mean, deviation)) => {
                let deviation = deviation + 0.25 * ((rtt - mean).abs() - deviation);
                (mean + 0.125 * (rtt - mean), deviation)
            }
        });
    }

    /// True if a sample was taken.
    pub fn has_sample(&self) -> bool {
        self.smoothed.is_some()
    }

    /// The timer expired: doubles the RTO.
    pub fn on_expiry(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Current RTO.
    pub fn rto(&self) -> Duration {
        let base = match self.smoothed {
            None => self.config.initial,
            Some((mean, deviation)) => Duration::from_secs_f64(mean + 4.0 * deviation),
        };
        let factor = 1_u64 << self.backoff.min(20);
        Duration(base.max(self.config.min).0.saturating_mul(factor)).min(self.config.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_rfc_6298() {
        let mut timeout = Timeout::new(&Config::default());
        assert_eq!(timeout.rto(), Duration::from_secs(1));
        // SRTT 0.2, RTTVAR 0.1: 0.6 s. Then 0.25 s: RTTVAR 0.0875, SRTT 0.20625.
        timeout.on_sample(0.2);
        assert_eq!(timeout.rto(), Duration::from_millis(600));
        timeout.on_sample(0.25);
        assert_eq!(timeout.rto(), Duration::from_secs_f64(0.206_25 + 0.35));
        timeout.on_expiry();
        assert_eq!(timeout.rto(), Duration::from_secs_f64(2.0 * (0.206_25 + 0.35)));
        timeout.on_expiry();
        assert_eq!(timeout.rto(), Duration::from_secs(2));
    }
}

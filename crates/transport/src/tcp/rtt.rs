//! The retransmission timer.

use crate::config::{ParameterError, require};
use meshpace_core::Duration;

/// Parameters of the retransmission timer.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// RTO before the first sample. Default 3 s (RFC 2988; ns-2 `rtxcur_init_`).
    pub initial: Duration,
    /// Smallest RTO before back-off. Default 0.2 s (ns-2 `minrto_`).
    pub min: Duration,
    /// Largest RTO. Default 60 s (ns-2 `maxrto_`).
    pub max: Duration,
    /// Granularity of the clock that measures the RTT, above zero. Default 10 ms (ns-2 `tcpTick_`).
    pub tick: Duration,
    /// Whether a timeout doubles the next RTO (RFC 6298, 5.5). Default true; the released TCP-AP agent does not.
    pub backoff: bool,
    /// Which segments are timed.
    pub sampling: Sampling,
}

/// Which segments the retransmission timer's estimator measures.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampling {
    /// One segment at a time, never a retransmitted one (RFC 6298, section 3; ns-2 without timestamps).
    OneTimed,
    /// The time echo of every ACK of new data (RFC 7323, section 4.1; ns-2 with timestamps).
    Timestamps,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            initial: Duration::from_secs(3),
            min: Duration::from_millis(200),
            max: Duration::from_secs(60),
            tick: Duration::from_millis(10),
            backoff: true,
            sampling: Sampling::OneTimed,
        }
    }
}

impl Config {
    /// Whether every parameter is in its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        require(self.tick > Duration::ZERO, "rto.tick", self.tick, "more than 0 s")?;
        require(self.min > Duration::ZERO, "rto.min", self.min, "more than 0 s")?;
        require(self.max >= self.min, "rto.max", self.max, "at least rto.min")?;
        require(
            self.initial > Duration::ZERO && self.initial <= self.max,
            "rto.initial",
            self.initial,
            "above 0 s, at most rto.max",
        )
    }
}

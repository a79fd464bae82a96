//! The retransmission timer: its estimator, its back-off and its limits.
//!
//! RFC 6298 in the integer form of Jacobson, "Congestion Avoidance and Control", SIGCOMM 1988,
//! appendix A: the RTT is counted in clock ticks, the smoothed RTT in eighths and its variation in
//! quarters of a tick. There are three departures from the RFC, all as in ns-2.35 by default. The
//! measured RTT is the number of clock ticks that pass while the segment is in flight (at least
//! one), so it can differ from the true RTT by a tick. The minimum is 0.2 s, not 1 s. The back-off
//! is kept until a *timed* segment is acknowledged (Karn); once it exceeds 8, the smoothed RTT is
//! moved into the variation and the next sample starts anew.

use meshpace_core::parameter::require;
use meshpace_core::{Duration, Time, parameters, words};

parameters! {
    /// Parameters of the retransmission timer.
    #[derive(Clone, PartialEq, Debug)]
    pub struct Config {
        /// RTO before the first sample; at most the upper bound (max)
        initial: Duration = Duration::from_secs(3) => TIME.above(0.0), Basic, "RFC 6298, 2.1; ns-2, rtxcur_init_";
        /// lower bound of the RTO
        min: Duration = Duration::from_millis(200) => TIME.above(0.0), Basic, "RFC 6298, 2.4; ns-2, minrto_";
        /// upper bound of the RTO
        max: Duration = Duration::from_secs(60) => TIME.above(0.0), Expert, "RFC 6298, 2.5; ns-2, maxrto_";
        /// granularity of the clock
        tick: Duration = Duration::from_millis(10) => TIME.above(0.0), Basic, "ns-2, tcpTick_";
        /// whether the RTO doubles after a timeout; it does not in the agent that the authors of
        /// TCP-AP released
        backoff: bool = true => FLAG, Expert, "RFC 6298, 5.5";
        /// segments that give samples of the RTT
        sampling: Sampling = Sampling::OneTimed => choice(Sampling::WORDS), Expert, "RFC 6298, section 3";
    }
    also |config| require(config.min <= config.max, "max", config.max, "at least min")
        .and(require(config.initial <= config.max, "initial", config.initial, "at most max"));
}

/// Segments that give samples to the estimator of the retransmission timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sampling {
    /// One segment at a time is timed, never a retransmitted one (RFC 6298, section 3; ns-2 without
    /// timestamps).
    OneTimed,
    /// The echoed time stamp of every ACK of new data is a sample (RFC 7323, section 4.1; ns-2 with
    /// timestamps).
    Timestamps,
}

words! { Sampling: "one-timed" = OneTimed, "timestamps" = Timestamps }

/// State of the estimator.
#[derive(Clone, PartialEq, Debug)]
pub struct Rtt {
    config: Config,
    /// Smoothed RTT in eighths of a tick; 0 before the first sample.
    smoothed: i64,
    /// Mean deviation of the RTT in quarters of a tick.
    variation: i64,
    /// RTO before back-off and limits are applied.
    base: Duration,
    /// Factor of the back-off, a power of two.
    backoff: u64,
}

/// RTO for data after a lost SYN (RFC 6298, section 5.7).
const AFTER_LOST_SYN: Duration = Duration::from_secs(3);
/// Back-off above which the smoothed RTT is discarded (ns-2 `rtt_backoff`).
const DISTRUST_ABOVE: u64 = 8;

impl Rtt {
    /// Creates an estimator without a sample.
    pub fn new(config: &Config) -> Rtt {
        Rtt { smoothed: 0, variation: 0, base: config.initial, backoff: 1, config: config.clone() }
    }

    /// Number of clock ticks between `sent` and `now`.
    pub fn ticks_between(&self, sent: Time, now: Time) -> u64 {
        let tick = self.config.tick.0;
        (now.0 / tick).saturating_sub(sent.0 / tick)
    }

    /// Number of ticks in a time span that was measured exactly, rounded to the nearest tick.
    pub fn ticks_in(&self, span: Duration) -> u64 {
        let tick = self.config.tick.0;
        span.0.saturating_add(tick / 2) / tick
    }

    /// Takes a sample of `ticks` ticks. A sample of less than one tick counts as one.
    pub fn on_sample(&mut self, ticks: u64) {
        // More than 2^31 ticks (eight months at 10 ms) cannot be measured.
        let ticks = ticks.clamp(1, 1 << 31) as i64;
        if self.smoothed == 0 {
            self.smoothed = ticks << 3;
            self.variation = ticks << 1;
        } else {
            let error = ticks - (self.smoothed >> 3);
            self.smoothed = (self.smoothed + error).max(1);
            self.variation = (self.variation + error.abs() - (self.variation >> 2)).max(1);
        }
        // Smoothed RTT plus four times its deviation, rounded down to whole ticks.
        let ticks = ((self.variation << 3) + self.smoothed) >> 3;
        self.base = Duration(self.config.tick.0.saturating_mul(ticks as u64));
    }

    /// The smoothed RTT; zero if there is no sample or the smoothed RTT was discarded.
    pub fn smoothed(&self) -> Duration {
        Duration(self.config.tick.0.saturating_mul(self.smoothed as u64) / 8)
    }

    /// The current RTO, with back-off and limits.
    pub fn rto(&self) -> Duration {
        let backed_off = Duration(self.base.max(self.config.min).0.saturating_mul(self.backoff));
        backed_off.min(self.config.max).max(self.config.tick * 2)
    }

    /// The retransmission timer expired. Doubles the back-off.
    pub fn on_timeout(&mut self) {
        if !self.config.backoff {
            return;
        }
        if self.backoff < 64 || self.rto() < self.config.max {
            self.backoff = self.backoff.saturating_mul(2);
        }
        if self.backoff > DISTRUST_ABOVE {
            self.variation += self.smoothed >> 3;
            self.smoothed = 0;
        }
    }

    /// The handshake is over and a SYN was lost. The RTO for data starts at 3 s at least (RFC 6298,
    /// section 5.7).
    pub fn on_lost_syn(&mut self) {
        self.base = self.config.initial.max(AFTER_LOST_SYN);
        self.end_backoff();
    }

    /// Ends the back-off, because a timed segment was acknowledged.
    pub fn end_backoff(&mut self) {
        self.backoff = 1;
    }

    /// Factor of the back-off, a power of two.
    pub fn backoff(&self) -> u64 {
        self.backoff
    }

    /// Segments that give samples to the estimator.
    pub fn sampling(&self) -> Sampling {
        self.config.sampling
    }
}

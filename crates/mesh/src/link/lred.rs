//! LRED: marks or drops by the average number of MAC retries, and spreads packets by a longer backoff.
//!
//! Source: Z. Fu, P. Zerfos, H. Luo, S. Lu, L. Zhang and M. Gerla, "The Impact of Multihop Wireless Channel on TCP
//! Throughput and Loss", INFOCOM 2003; thresholds from DCC, V.B.
//!
//! ```text
//! avg = 7/8 avg + 1/8 retries                                   per unicast packet, sent or given up
//! avg < min_th: mark 0, pacing off
//! else:         mark = min((avg - min_th) / (max_th - min_th), max_p), pacing on
//! pacing on:    after a success, backoff += air time of the data frame + SIFS + MAC ACK
//! ```
//!
//! A packet is dropped or marked with probability `mark` as it leaves for the MAC; only the users' packets are, never
//! routing or ARP. Under [`LredAction::Mark`] a packet whose transport ignores marks is dropped (RFC 3168, section 5).

use meshpace_core::Duration;
use meshpace_core::parameter::{ParameterError, require};

/// Weight of a new number of retries in the average.
const WEIGHT: f64 = 0.125;

/// What happens to a chosen packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LredAction {
    /// It is dropped.
    Drop,
    /// It is marked "congestion experienced"; dropped if its transport ignores marks.
    #[default]
    Mark,
}

/// LRED's parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LredConfig {
    /// Average retries from which packets are marked and paced. Range [0, `max_threshold`), default 0.2 (DCC, V.B).
    pub min_threshold: f64,
    /// Average retries at which the straight line of the probability reaches 1. Range up to 100, default 2.0 (DCC, V.B).
    pub max_threshold: f64,
    /// Largest probability of a mark. Range [0, 1], default 0.2 (DCC, V.B).
    pub max_probability: f64,
    /// What happens to a chosen packet. Default: it is marked (DCC, III).
    pub action: LredAction,
    /// Whether the backoff after a success is longer while the average is above the lower threshold. Default yes.
    pub pacing: bool,
}

impl Default for LredConfig {
    fn default() -> Self {
        LredConfig {
            min_threshold: 0.2,
            max_threshold: 2.0,
            max_probability: 0.2,
            action: LredAction::Mark,
            pacing: true,
        }
    }
}

impl LredConfig {
    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is not.
    pub fn check(&self) -> Result<(), ParameterError> {
        let min = self.min_threshold;
        require((0.0..=100.0).contains(&self.max_threshold), "lred.max_threshold", self.max_threshold, "0 to 100")?;
        require(
            min >= 0.0 && min < self.max_threshold,
            "lred.min_threshold",
            min,
            "at least 0 and below max_threshold",
        )?;
        require((0.0..=1.0).contains(&self.max_probability), "lred.max_probability", self.max_probability, "0 to 1")
    }
}

/// One node's average.
#[derive(Clone, Debug)]
pub struct Lred {
    config: LredConfig,
    /// Moving average of retries per packet.
    average: f64,
    /// What an exchange takes beside the data frame: SIFS + MAC ACK.
    overhead: Duration,
}

impl Lred {
    /// No retries yet. `overhead`: what an exchange takes beside the data frame, SIFS + MAC ACK.
    pub fn new(config: LredConfig, overhead: Duration) -> Self {
        Lred { config, average: 0.0, overhead }
    }

    /// Moving average of retries per packet.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// What happens to a chosen packet.
    pub fn action(&self) -> LredAction {
        self.config.action
    }

    /// The MAC is done with a unicast packet after `retries` retries.
    pub fn on_done(&mut self, retries: u32) {
        self.average = (1.0 - WEIGHT) * self.average + WEIGHT * f64::from(retries);
    }

    /// The probability with which the next packet is marked or dropped.
    pub fn probability(&self) -> f64 {
        let LredConfig { min_threshold, max_threshold, max_probability, .. } = self.config;
        if self.average < min_threshold {
            0.0
        } else {
            ((self.average - min_threshold) / (max_threshold - min_threshold)).min(max_probability)
        }
    }

    /// Whether the average asks for pacing.
    pub fn paces(&self) -> bool {
        self.config.pacing && self.average >= self.config.min_threshold
    }

    /// What is added to the backoff after a success; the data frame was `data_air` on the air.
    pub fn extra_backoff(&self, data_air: Duration) -> Duration {
        if self.paces() { data_air + self.overhead } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OVERHEAD: Duration = Duration::from_micros(314);

    #[test]
    fn average_probability_and_pacing_systems_12() {
        let mut lred = Lred::new(LredConfig::default(), OVERHEAD);
        let retries = [0, 1, 0, 3, 2, 0, 5, 4, 7, 7];
        let average = [0.0, 0.125, 0.10938, 0.47070, 0.66187, 0.57913, 1.13174, 1.49027, 2.17899, 2.78162];
        let mark = [0.0, 0.0, 0.0, 0.15039, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2];
        for i in 0..retries.len() {
            lred.on_done(retries[i]);
            assert!((lred.average() - average[i]).abs() <= 0.50001e-5, "row {i}: {}", lred.average());
            assert!((lred.probability() - mark[i]).abs() <= 0.50001e-5, "row {i}: {}", lred.probability());
            assert_eq!(lred.paces(), i >= 3, "row {i}");
        }
    }

    #[test]
    fn a_quiet_link_is_forgiven() {
        let mut lred = Lred::new(LredConfig::default(), OVERHEAD);
        lred.on_done(7);
        assert!(lred.paces());
        // 0.875 (7/8)^n < 0.2 for n >= 12: 0.875^11 = 0.2302, 0.875^12 = 0.2014, 0.875^13 = 0.1762.
        for _ in 0..12 {
            assert!(lred.paces());
            lred.on_done(0);
        }
        assert!(!lred.paces());
        assert_eq!(lred.probability(), 0.0);
    }

    #[test]
    fn pacing_adds_one_exchange_and_can_be_off() {
        let data = Duration::from_micros(4464);
        let mut on = Lred::new(LredConfig::default(), OVERHEAD);
        let mut off = Lred::new(LredConfig { pacing: false, ..LredConfig::default() }, OVERHEAD);
        assert_eq!(on.extra_backoff(data), Duration::ZERO);
        on.on_done(4);
        off.on_done(4);
        assert_eq!(on.extra_backoff(data), Duration::from_micros(4464 + 314));
        assert_eq!(off.extra_backoff(data), Duration::ZERO);
        assert!(off.probability() > 0.0);
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        let fails = |config: LredConfig| config.check().map_err(|e| e.name);
        let default = LredConfig::default();
        assert_eq!(fails(default), Ok(()));
        assert_eq!(fails(LredConfig { min_threshold: 2.0, ..default }), Err("lred.min_threshold"));
        assert_eq!(fails(LredConfig { max_threshold: f64::NAN, ..default }), Err("lred.max_threshold"));
        assert_eq!(fails(LredConfig { max_probability: 1.1, ..default }), Err("lred.max_probability"));
    }
}

//! LRED: marks or drops packets according to the average number of MAC retries, and spaces packets
//! by a longer backoff.
//!
//! Source: Z. Fu, P. Zerfos, H. Luo, S. Lu, L. Zhang and M. Gerla, "The Impact of Multihop Wireless
//! Channel on TCP Throughput and Loss", INFOCOM 2003; thresholds from DCC, V.B.
//!
//! ```text
//! avg = 7/8 avg + 1/8 retries                                   per unicast packet, sent or given up
//! avg < min_th: mark 0, pacing off
//! else:         mark = min((avg - min_th) / (max_th - min_th), max_p), pacing on
//! pacing on:    after a success, backoff += air time of the data frame + SIFS + MAC ACK
//! ```
//!
//! A packet is dropped or marked with probability `mark` when it leaves for the MAC. This concerns
//! only user packets, never routing or ARP. Under [`LredAction::Mark`] a packet whose transport
//! ignores marks is dropped (RFC 3168, section 5).

use meshpace_core::parameter::require;
use meshpace_core::{Duration, parameters, words};

/// Weight of a new number of retries in the average.
const WEIGHT: f64 = 0.125;

/// Action on a selected packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LredAction {
    /// The packet is dropped.
    Drop,
    /// The packet is marked "congestion experienced", or dropped if its transport ignores marks.
    #[default]
    Mark,
}

words! { LredAction: "drop" = Drop, "mark" = Mark }

parameters! {
    /// Parameters of LRED.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct LredConfig {
        /// average number of retries from which packets are marked and paced; below max_threshold
        min_threshold: f64 = 0.2 => number(0.0, 100.0), Expert, "DCC, section V.B";
        /// average number of retries at which the linear probability reaches 1
        max_threshold: f64 = 2.0 => number(0.0, 100.0), Expert, "DCC, section V.B";
        /// upper limit of the probability
        max_probability: f64 = 0.2 => number(0.0, 1.0), Basic, "DCC, section V.B";
        /// action on a selected packet
        action: LredAction = LredAction::Mark => choice(LredAction::WORDS), Basic, "DCC, section III";
        /// whether the backoff is longer after a success while the average is above min_threshold
        pacing: bool = true => FLAG, Basic, "Fu et al., INFOCOM 2003";
    }
    also |config| {
        let is_below = config.min_threshold < config.max_threshold;
        require(is_below, "min_threshold", config.min_threshold, "below max_threshold")
    };
}

/// LRED state of one node.
#[derive(Clone, Debug)]
pub struct Lred {
    config: LredConfig,
    /// Moving average of retries per packet.
    average: f64,
    /// Time of an exchange in addition to the data frame: SIFS + MAC ACK.
    overhead: Duration,
}

impl Lred {
    /// Creates a state with an average of zero. `overhead` is the time of an exchange in addition
    /// to the data frame, SIFS + MAC ACK.
    pub fn new(config: LredConfig, overhead: Duration) -> Self {
        Lred { config, average: 0.0, overhead }
    }

    /// Moving average of retries per packet.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Action on a selected packet.
    pub fn action(&self) -> LredAction {
        self.config.action
    }

    /// Notes that the MAC has finished a unicast packet after `retries` retries.
    pub fn on_done(&mut self, retries: u32) {
        self.average = (1.0 - WEIGHT) * self.average + WEIGHT * f64::from(retries);
    }

    /// Probability with which the next packet is marked or dropped.
    pub fn probability(&self) -> f64 {
        let LredConfig { min_threshold, max_threshold, max_probability, .. } = self.config;
        if self.average < min_threshold {
            0.0
        } else {
            ((self.average - min_threshold) / (max_threshold - min_threshold)).min(max_probability)
        }
    }

    /// True if the average is high enough for pacing.
    pub fn paces(&self) -> bool {
        self.config.pacing && self.average >= self.config.min_threshold
    }

    /// Time added to the backoff after a success. `data_air` is the air time of the data frame.
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
        // 0.875 (7/8)^n < 0.2 holds for n >= 12: 0.875^11 = 0.2302, 0.875^12 = 0.2014, 0.875^13 =
        // 0.1762.
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
        let fails = |config: LredConfig| config.check().map_err(|e| e.name.into_owned());
        let default = LredConfig::default();
        assert_eq!(fails(default), Ok(()));
        assert_eq!(fails(LredConfig { min_threshold: 2.0, ..default }), Err("min_threshold".into()));
        assert_eq!(fails(LredConfig { max_threshold: f64::NAN, ..default }), Err("max_threshold".into()));
        assert_eq!(fails(LredConfig { max_probability: 1.1, ..default }), Err("max_probability".into()));
    }
}

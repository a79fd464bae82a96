//! The radio of one mesh: received powers between nodes, thresholds for sensing and decoding a
//! frame, and the kind of receiver.
//!
//! All code that needs to know who is a neighbour of whom uses this module: neighbour tables,
//! static routes, and the checks of a scenario.
//!
//! | | two-ray | log-distance, given links |
//! |---|---|---|
//! | a link, "decodable" | 250 m | at least half of the long data frames are received on a quiet medium, and their preamble is detected; for given links with [`super::Links::accept_weak_links`]: their preamble is detected |
//! | sensed | 550 m, or T_cs if it is configured | T_cs |
//! | detected preamble, `sinr` | 250 m | `detect_ratio` above the noise |
//!
//! With `sinr` receivers, frames count as interference if they are at most 10 dB below the noise;
//! weaker frames are ignored. With any receiver, frames below `radio.sensitivity` are ignored if
//! that is configured.

use super::bit_errors::Modulation;
use super::config::{Propagation, RadioConfig, RateControl, Reception};
use super::log_distance::LogDistance;
use super::ofdm::{Ofdm, OfdmRate};
use super::plcp::plcp;
use super::power::{ratio, watts};
use super::rate_model::RateModel;
use super::reception::Receiver;
use super::sinr::{Rates, Sinr, SinrConfig};
use super::two_ray;
use alloc::boxed::Box;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Rng};

/// A frame counts as interference if its power is at most this many dB below the noise.
const NEGLIGIBLE_DB: f64 = 10.0;
/// Size in bytes of the data frame that decides whether two nodes have a link: a packet of 1500
/// bytes and the larger of the two MAC headers.
const LINK_FRAME_BYTES: u32 = 1534;

/// A node within sensing range of another node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Neighbour {
    /// Number of the neighbour.
    pub node: NodeId,
    /// True if a frame of this power can be decoded.
    pub decodable: bool,
    /// Propagation delay to the neighbour.
    pub delay: Duration,
    /// Received power, in W.
    pub power: f64,
}

/// Radio of one mesh.
#[derive(Clone, PartialEq, Debug)]
pub struct Channel {
    propagation: Propagation,
    reception: Reception,
    receiver: SinrConfig,
    /// Lowest received power of a link, in W.
    link_w: f64,
    /// Lowest received power that has any effect, in W.
    min_effect_w: f64,
    /// Pairs of nodes whose connection is blocked, each with the lower number first; sorted.
    blocked: Vec<(NodeId, NodeId)>,
}

impl Channel {
    /// Creates the radio that `config` describes. Where bit errors matter, a rate that IEEE 802.11b
    /// does not define is treated as 11 Mbit/s.
    pub fn new(config: &RadioConfig) -> Channel {
        let (noise_w, detect_ratio) = (watts(config.noise_dbm), ratio(config.detect_ratio_db));
        let sense_w = config.sense_w();
        let detect_w = match &config.propagation {
            Propagation::TwoRay => two_ray::DECODE_THRESHOLD_W,
            _ => noise_w * detect_ratio,
        };
        let (rates, header) = rates(config);
        let receiver = SinrConfig { noise_w, sense_w, detect_w, detect_ratio, rates, header };
        let link_w = match &config.propagation {
            Propagation::TwoRay => two_ray::DECODE_THRESHOLD_W,
            _ => {
                // Rate control uses the slowest rate on links on which no other rate gets through.
                let slowest = match (config.rate_control, config.ofdm) {
                    (RateControl::Fixed, _) | (_, None) => config.clone(),
                    (_, Some(ofdm)) => {
                        RadioConfig { ofdm: Some(Ofdm { data: ofdm.chosen(0), ..ofdm }), ..config.clone() }
                    }
                };
                let receiver = SinrConfig { rates: self::rates(&slowest).0, ..receiver };
                let accepts_weak = matches!(&config.propagation, Propagation::Links(links) if links.has_weak_links());
                let half = if accepts_weak { 0.0 } else { ratio_for(&receiver, link_frame(&slowest), 0.5) };
                libm::fmax(detect_w, noise_w * half)
            }
        };
        let weakest = libm::fmin(link_w, sense_w);
        let min_effect_w = match config.reception {
            Reception::Ns2 => weakest,
            Reception::Sinr => libm::fmin(weakest, noise_w / ratio(NEGLIGIBLE_DB)),
        };
        let sensitivity_w = config.sensitivity_dbm.map_or(0.0, watts);
        let (link_w, min_effect_w) = (libm::fmax(link_w, sensitivity_w), libm::fmax(min_effect_w, sensitivity_w));
        Channel {
            propagation: config.propagation.clone(),
            reception: config.reception,
            receiver,
            link_w,
            min_effect_w,
            blocked: Vec::new(),
        }
    }

    /// Signal-to-noise ratio in dB at which the share `delivery` of the data frames with 1500 bytes
    /// arrives. Shares are limited to the range 0.001 to 0.999.
    pub fn snr_for(config: &RadioConfig, delivery: f64) -> f64 {
        let channel = Channel::new(config);
        10.0 * libm::log10(ratio_for(&channel.receiver, link_frame(config), delivery.clamp(0.001, 0.999)))
    }

    /// MCS of unicast data from one node to another; `None` unless a list of links gives it.
    pub fn listed_mcs(&self, from: NodeId, to: NodeId) -> Option<u8> {
        match &self.propagation {
            Propagation::Links(links) => links.mcs(from, to),
            _ => None,
        }
    }

    /// Power in W with which `to` receives `from` over `distance` metres.
    pub fn received_power(&self, from: NodeId, to: NodeId, distance: f64) -> f64 {
        match &self.propagation {
            Propagation::TwoRay => two_ray::received_power(distance),
            Propagation::LogDistance(model) => model.received_power(from, to, distance),
            Propagation::Links(links) => links.received_power(from, to),
        }
    }

    /// Blocks the connection between two nodes in both directions if `is_blocked`, or unblocks it.
    /// Neighbour tables that were made before do not change.
    pub fn set_blocked(&mut self, one: NodeId, other: NodeId, is_blocked: bool) {
        let pair = (one.min(other), one.max(other));
        match self.blocked.binary_search(&pair) {
            Ok(at) if !is_blocked => drop(self.blocked.remove(at)),
            Err(at) if is_blocked => self.blocked.insert(at, pair),
            _ => {}
        }
    }

    /// True if the connection between two nodes is blocked.
    #[inline]
    pub fn is_blocked(&self, one: NodeId, other: NodeId) -> bool {
        !self.blocked.is_empty() && self.blocked.binary_search(&(one.min(other), one.max(other))).is_ok()
    }

    /// Entry of `to` in the neighbour table of `from` over `distance` metres; `None` if frames of
    /// `from` have no effect at `to`.
    pub fn neighbour(&self, from: NodeId, to: NodeId, distance: f64) -> Option<Neighbour> {
        let power = self.received_power(from, to, distance);
        (power >= self.min_effect_w && !self.is_blocked(from, to)).then(|| Neighbour {
            node: to,
            decodable: power >= self.link_w,
            delay: Duration::from_secs_f64(distance / two_ray::SPEED_OF_LIGHT),
            power,
        })
    }

    /// True if `to` can decode frames of `from`. The reverse direction is equal unless the links
    /// are listed.
    pub fn is_link(&self, from: NodeId, to: NodeId, distance: f64) -> bool {
        self.received_power(from, to, distance) >= self.link_w && !self.is_blocked(from, to)
    }

    /// Distance in metres beyond which no frame has any effect.
    pub fn reach(&self) -> f64 {
        self.reach_of(self.min_effect_w)
    }

    /// Distance in metres beyond which there is no link.
    pub fn link_reach(&self) -> f64 {
        self.reach_of(self.link_w)
    }

    /// True if all links have the same range: all nodes have the same attenuator, and there is no
    /// shadowing.
    pub fn has_one_range(&self) -> bool {
        !matches!(self.propagation, Propagation::Links(_))
            && self.log_distance().is_none_or(|model| {
                model.shadowing_db == 0.0 && model.attenuators_db.iter().all(|&db| db == model.attenuator_db)
            })
    }

    /// Range in metres of links between nodes with the common attenuator and without shadowing.
    pub fn link_range(&self) -> f64 {
        match &self.propagation {
            Propagation::TwoRay => two_ray::range(self.link_w),
            Propagation::LogDistance(model) => model.usual_range(self.link_w),
            Propagation::Links(_) => f64::INFINITY,
        }
    }

    /// Creates the receiver of a node. `rng` decides about bit errors where the model has them.
    pub fn new_receiver(&self, rng: Rng) -> Receiver {
        match self.reception {
            Reception::Ns2 => Receiver::default(),
            Reception::Sinr => Receiver::Sinr(Box::new(Sinr::new(self.receiver, rng))),
        }
    }

    /// Parameters of a `sinr` receiver.
    pub fn sinr(&self) -> &SinrConfig {
        &self.receiver
    }

    /// Log-distance model with its parameters; `None` under another propagation model.
    pub fn log_distance(&self) -> Option<&LogDistance> {
        match &self.propagation {
            Propagation::TwoRay | Propagation::Links(_) => None,
            Propagation::LogDistance(model) => Some(model),
        }
    }

    /// Distance in metres beyond which no node receives `power_w`.
    fn reach_of(&self, power_w: f64) -> f64 {
        match &self.propagation {
            Propagation::TwoRay => two_ray::range(power_w),
            Propagation::LogDistance(model) => model.reach(power_w),
            // Listed links do not depend on positions.
            Propagation::Links(_) => f64::INFINITY,
        }
    }
}

/// Returns the modulations of the frames of each rate, and the modulation of their headers.
fn rates(config: &RadioConfig) -> (Rates, Modulation) {
    if let Some(ofdm) = config.ofdm {
        let (data, basic, response) = (ofdm.data.model(), ofdm.basic.model(), ofdm.data.response().model());
        let rates = Rates { data, basic, response, ofdm: Some(ofdm) };
        return (rates, OfdmRate::NonHt(0).modulation());
    }
    let model = |rate| RateModel {
        modulation: Modulation::of(rate).unwrap_or(Modulation::Cck11),
        header: plcp(config.preamble, rate),
    };
    let (data, basic) = (model(config.rate), model(config.basic_rate));
    (Rates { data, basic, response: basic, ofdm: None }, Modulation::Dbpsk1)
}

/// Air time of the data frame that decides whether two nodes have a link.
fn link_frame(config: &RadioConfig) -> Duration {
    match config.ofdm {
        Some(ofdm) => ofdm.data.air_time(LINK_FRAME_BYTES, ofdm.band),
        None => plcp(config.preamble, config.rate) + config.rate.time_for(LINK_FRAME_BYTES),
    }
}

/// Ratio of signal to noise at which a data frame of `air_time` is decoded with the probability
/// `chance`.
fn ratio_for(receiver: &SinrConfig, air_time: Duration, chance: f64) -> f64 {
    let (mut low, mut high) = (ratio(-20.0), ratio(30.0));
    // The probability of success grows with the ratio. After 60 bisections the interval is below
    // the resolution of a number with 53 bits.
    for _ in 0..60 {
        let middle = libm::sqrt(low * high);
        if receiver.success(air_time, middle) < chance { low = middle } else { high = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::power::dbm;
    use meshpace_core::Rate;

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);

    #[test]
    fn two_ray_links_end_at_250_metres_and_sensing_at_550() {
        let channel = Channel::new(&RadioConfig::default());
        assert!(channel.is_link(A, B, 249.9) && !channel.is_link(A, B, 250.1));
        assert!(
            channel.neighbour(A, B, 249.9).unwrap().decodable && !channel.neighbour(A, B, 250.1).unwrap().decodable
        );
        assert!(channel.neighbour(A, B, 549.5).is_some() && channel.neighbour(A, B, 550.5).is_none());
        assert!((channel.reach() - 550.0).abs() < 0.2 && (channel.link_reach() - 250.0).abs() < 0.2);
        let sinr = Channel::new(&RadioConfig { reception: Reception::Sinr, ..RadioConfig::default() });
        assert!(sinr.is_link(A, B, 249.9) && !sinr.is_link(A, B, 250.1));
        // The noise is -93.6 dBm less 10 dB. The power falls with the fourth power of the distance
        // from -64.37 dBm at 250 m.
        let expected = 250.0 * libm::pow(10.0, (103.6 - 64.374) / 40.0);
        assert!((sinr.reach() / expected - 1.0).abs() < 1e-3, "{} {expected}", sinr.reach());
    }

    #[test]
    fn a_threshold_of_carrier_sense_moves_the_range_by_the_fourth_power() {
        // 6 dB are a factor of 10^(6 / 40) in the distance under both reception models. The links
        // do not change.
        let of = |dbm: f64, reception| {
            Channel::new(&RadioConfig { two_ray_sense_dbm: Some(dbm), reception, ..RadioConfig::default() })
        };
        for (dbm, range) in [(-78.07 - 6.0, 776.9), (-78.07 + 6.0, 389.4)] {
            let channel = of(dbm, Reception::Ns2);
            assert!((channel.reach() - range).abs() < 0.5, "{dbm} dBm: {} m", channel.reach());
            assert!(channel.is_link(A, B, 249.9) && !channel.is_link(A, B, 250.1));
            assert!((watts(dbm) / of(dbm, Reception::Sinr).sinr().sense_w - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn a_frame_below_the_sensitivity_has_no_effect() {
        // Received power under two-ray at 400 m: -64.37 dBm less 40 log10(400 / 250) = -72.54 dBm;
        // at 200 m: -60.5 dBm.
        let of = |sensitivity_dbm, reception| {
            Channel::new(&RadioConfig { sensitivity_dbm, reception, ..RadioConfig::default() })
        };
        for reception in [Reception::Ns2, Reception::Sinr] {
            for (dbm, sensed, linked) in
                [(None, true, true), (Some(-72.6), true, true), (Some(-72.5), false, true), (Some(-60.0), false, false)]
            {
                let channel = of(dbm, reception);
                assert_eq!(channel.neighbour(A, B, 400.0).is_some(), sensed, "{dbm:?}, 400 m");
                assert_eq!(channel.neighbour(A, B, 200.0).is_some_and(|b| b.decodable), linked, "{dbm:?}, 200 m");
                assert_eq!(channel.is_link(A, B, 200.0), linked, "{dbm:?}: routes see the same links");
            }
            // The grids of possible neighbours follow the same threshold.
            assert!(of(Some(-72.5), reception).reach() < 400.0);
        }
    }

    fn log_distance(rate: Rate) -> RadioConfig {
        RadioConfig {
            propagation: Propagation::LogDistance(LogDistance::default()),
            reception: Reception::Sinr,
            rate,
            ..RadioConfig::default()
        }
    }

    #[test]
    fn a_log_distance_link_is_worth_an_even_chance() {
        // 1534 bytes at 11 Mbit/s need a bit error rate of ln 2 / 12272 = 5.65e-5, that is 24
        // Q(sqrt(4 S)) + 16 Q(sqrt(6 S)) + ... = 1.125e-4 or Q(sqrt(4 S)) = 4.67e-6. A table gives
        // sqrt(4 S) = 4.433, S = 4.913 = 6.91 dB.
        let channel = Channel::new(&log_distance(Rate::from_mbps(11)));
        let snr = dbm(channel.link_w) - dbm(channel.receiver.noise_w);
        assert!((snr - 6.91).abs() < 0.02, "{snr}");
        // At 1 Mbit/s half of the frames would pass at -4 dB, but their preamble needs 4 dB.
        let slow = Channel::new(&log_distance(Rate::from_mbps(1)));
        assert!((dbm(slow.link_w) - dbm(slow.receiver.noise_w) - 4.0).abs() < 1e-9);
        assert!((channel.link_reach() - channel.link_range()).abs() < 1e-9);
        assert!(
            channel.is_link(A, B, channel.link_range() * 0.999) && !channel.is_link(A, B, channel.link_range() * 1.001)
        );
    }
}

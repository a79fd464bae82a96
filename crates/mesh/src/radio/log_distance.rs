//! Log-distance propagation between antennas behind cables and attenuators: the radio of a
//! miniature testbed.
//!
//! Source: AP10, section IV.E, equations 2 and 4; ITU-R P.1238 for the loss at 1 m; T. S.
//! Rappaport, "Wireless Communications", 2nd ed., eq. 4.69 for the shadowing. In dBm and dB:
//!
//! ```text
//! P_out = P_tx + G_ant - A_cab - A_v                         (AP10, 2)
//! L(d)  = L(1 m) + 10 p log10(d / 1 m) + X                   (AP10, 4: L(1 m) = 20 log10(f_c), here less 28 dB with f_c in MHz)
//! P_rx  = P_out - L(d) + G_ant - A_cab - A_v'
//! ```
//!
//! Cables, attenuators and antennas are passive. They act on received and on transmitted signals
//! alike, so a link has the same loss in both directions. Equation 3 (L_1 = P_out - P_rx) then
//! includes the losses of the receiver in L_1; they cancel out of H_cs. The shadowing X is 0, or
//! normal with standard deviation sigma for each pair of nodes. It is truncated at 3 sigma and is
//! the same in both directions and at all times, because it belongs to the place as the distance
//! does. A loss below 0 dB is set to 0 dB.

use super::power::watts;
use alloc::vec::Vec;
use meshpace_core::parameter::require;
use meshpace_core::rng::Purpose;
use meshpace_core::{NodeId, Rng, parameters};

/// Limit at which shadowing is truncated, in standard deviations.
const SHADOWING_LIMIT: f64 = 3.0;
/// Largest setting of a node's attenuator, in dB (AP10, Table I).
pub const MAX_ATTENUATOR_DB: f64 = 30.0;

parameters! {
    /// Parameters of the model. They are the same for all nodes, except for the attenuators.
    #[derive(Clone, PartialEq, Debug)]
    pub struct LogDistance {
        /// P_tx, transmit power; not with two-ray. AP10 does not state it
        transmit_power_dbm as transmit_power: f64 = 15.0 => POWER.from(-200.0).to(200.0), Basic, "AP10, section III";
        /// G_ant, antenna gain at each end; with log-distance
        antenna_gain_dbi as antenna_gain: f64 = 0.0 => GAIN.from(-200.0).to(200.0), Basic, "AP10, section III";
        /// A_cab, cable loss at each end; with log-distance
        cable_db as cable: f64 = 0.0 => GAIN.from(0.0).to(200.0), Basic, "AP10, section III";
        /// p, path loss exponent; with log-distance
        exponent as path_loss_exponent: f64 = 3.0 => number(1.0, 10.0), Basic,
            "Rappaport, Wireless Communications, section 4.9; AP10, section IV.E";
        /// path loss at 1 m; with log-distance
        // The default is 20 log10(2437 MHz) - 28.
        reference_loss_db as reference_loss: f64 = 39.74 => GAIN.from(-200.0).to(200.0).or("39.74 dB; 46.35 dB at 5 GHz"), Basic,
            "Rappaport, Wireless Communications, section 4.9";
        /// standard deviation of the shadowing between two nodes; with log-distance
        shadowing_db as shadowing: f64 = 0.0 => GAIN.from(0.0).to(100.0), Expert,
            "Rappaport, Wireless Communications, section 4.9";
        /// seed of the shadowing, independent of the seed of the run; with log-distance
        shadowing_seed: u64 = 1 => whole("a seed", 0, i64::MAX as u64), Expert;
    }
    others {
        /// A_v in dB, 0..=30, of the nodes that `attenuators_db` does not contain. Default 0.
        attenuator_db: f64 = 0.0;
        /// A_v by node in dB, 0..=30. The list may be empty or shorter than the number of nodes.
        attenuators_db: Vec<f64> = Vec::new();
    }
    also |config| {
        let mut attenuators = config.attenuators_db.iter().chain([&config.attenuator_db]);
        let range = 0.0..=MAX_ATTENUATOR_DB;
        attenuators.try_for_each(|db| require(range.contains(db), "attenuator", db, "0 dB to 30 dB"))
    };
}

impl LogDistance {
    /// A_v of `node`, in dB.
    pub fn attenuator_of(&self, node: NodeId) -> f64 {
        self.attenuators_db.get(node.index()).copied().unwrap_or(self.attenuator_db)
    }

    /// P_out of `node`, in dBm (equation 2).
    pub fn output_power_dbm(&self, node: NodeId) -> f64 {
        self.transmit_power_dbm + self.antenna_gain_dbi - self.cable_db - self.attenuator_of(node)
    }

    /// L(d) without shadowing, in dB, for `distance` metres.
    pub fn path_loss_db(&self, distance: f64) -> f64 {
        self.reference_loss_db + 10.0 * self.exponent * libm::log10(distance)
    }

    /// Shadowing X between two nodes, in dB.
    pub fn shadowing_between(&self, a: NodeId, b: NodeId) -> f64 {
        if self.shadowing_db == 0.0 {
            return 0.0;
        }
        let pair = u64::from(a.0.min(b.0)) << 16 | u64::from(a.0.max(b.0));
        let mut rng = Rng::stream(self.shadowing_seed, Purpose::Shadowing, pair);
        // The normal number is drawn by the method of Box and Muller. A number beyond the limit is
        // drawn again.
        loop {
            let radius = libm::sqrt(-2.0 * libm::log1p(-rng.uniform()));
            let normal = radius * libm::cos(2.0 * core::f64::consts::PI * rng.uniform());
            if libm::fabs(normal) <= SHADOWING_LIMIT {
                return self.shadowing_db * normal;
            }
        }
    }

    /// P_rx in dBm at `to` of a transmission of `from` over `distance` metres.
    pub fn received_power_dbm(&self, from: NodeId, to: NodeId, distance: f64) -> f64 {
        let loss = libm::fmax(self.path_loss_db(distance) + self.shadowing_between(from, to), 0.0);
        self.output_power_dbm(from) - loss + self.antenna_gain_dbi - self.cable_db - self.attenuator_of(to)
    }

    /// Received power as [`LogDistance::received_power_dbm`], in W.
    pub fn received_power(&self, from: NodeId, to: NodeId, distance: f64) -> f64 {
        watts(self.received_power_dbm(from, to, distance))
    }

    /// Distance in metres beyond which no pair of nodes receives `power_w`, whatever their
    /// attenuators and shadowing.
    pub fn reach(&self, power_w: f64) -> f64 {
        let least = self.attenuators_db.iter().copied().chain([self.attenuator_db]).fold(MAX_ATTENUATOR_DB, libm::fmin);
        self.range(power_w, least, -SHADOWING_LIMIT * self.shadowing_db)
    }

    /// Distance in metres at which two nodes with the common attenuator and without shadowing
    /// receive `power_w`.
    pub fn usual_range(&self, power_w: f64) -> f64 {
        self.range(power_w, self.attenuator_db, 0.0)
    }

    /// Distance in metres at which `power_w` is received, with the same attenuator at both ends.
    fn range(&self, power_w: f64, attenuator_db: f64, shadowing_db: f64) -> f64 {
        let ends = 2.0 * (self.antenna_gain_dbi - self.cable_db - attenuator_db);
        let loss = self.transmit_power_dbm + ends - super::power::dbm(power_w);
        if loss <= 0.0 {
            // The transmit power is too low even without any path loss.
            return 0.0;
        }
        libm::pow(10.0, (loss - self.reference_loss_db - shadowing_db) / (10.0 * self.exponent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes of AP10 with P_tx = 15 dBm.
    fn testbed(attenuator_db: f64) -> LogDistance {
        LogDistance { antenna_gain_dbi: 2.1, cable_db: 3.71, attenuator_db, ..LogDistance::default() }
    }

    const A: NodeId = NodeId(0);
    const B: NodeId = NodeId(1);

    #[test]
    fn output_powers_of_systems_7_7() {
        assert!((testbed(16.0).output_power_dbm(A) - -2.61).abs() < 1e-9);
        assert!((testbed(29.0).output_power_dbm(A) - -15.61).abs() < 1e-9);
    }

    #[test]
    fn powers_over_hops_of_systems_7_7() {
        // The power received over one hop is -62 dBm; over two, three and four hops it is -71.031,
        // -76.314 and -80.062 dBm.
        let radio = testbed(16.0);
        let hop = radio.usual_range(watts(-62.0));
        for (hops, expected) in [(1.0, -62.0), (2.0, -71.031), (3.0, -76.314), (4.0, -80.062)] {
            let power = radio.received_power_dbm(A, B, hops * hop);
            assert!((power - expected).abs() < 5e-4, "{hops} hops: {power} dBm");
        }
    }

    #[test]
    fn attenuators_of_both_ends_count() {
        let mut radio = testbed(16.0);
        let before = radio.received_power_dbm(A, B, 0.5);
        radio.attenuators_db = alloc::vec![20.0];
        assert!((before - radio.received_power_dbm(A, B, 0.5) - 4.0).abs() < 1e-9);
        assert!((before - radio.received_power_dbm(B, A, 0.5) - 4.0).abs() < 1e-9);
        assert!((before - radio.received_power_dbm(B, NodeId(2), 0.5)).abs() < 1e-9);
        // At 2437 MHz and 1 m, Friis gives 40.2 dB and the indoor formula 39.7 dB.
        assert!((radio.path_loss_db(1.0) - 20.0 * libm::log10(2437.0) + 28.0).abs() < 0.005);
        assert!((radio.path_loss_db(10.0) - radio.path_loss_db(1.0) - 30.0).abs() < 1e-9);
    }

    #[test]
    fn an_attenuator_has_0_to_30_db() {
        assert!(testbed(30.0).check().is_ok());
        assert!(testbed(30.5).check().is_err() && testbed(-1.0).check().is_err() && testbed(f64::NAN).check().is_err());
        assert!(LogDistance { attenuators_db: alloc::vec![1.0, 31.0], ..testbed(16.0) }.check().is_err());
    }

    #[test]
    fn shadows_are_normal_symmetric_and_repeatable() {
        let radio = LogDistance { shadowing_db: 4.0, ..testbed(16.0) };
        let (mut sum, mut squares, mut n) = (0.0, 0.0, 0.0);
        for a in 0..150 {
            for b in a + 1..150 {
                let x = radio.shadowing_between(NodeId(a), NodeId(b));
                assert_eq!(x, radio.shadowing_between(NodeId(b), NodeId(a)));
                assert!(x.abs() <= 12.0);
                (sum, squares, n) = (sum + x, squares + x * x, n + 1.0);
            }
        }
        // There are 11,175 numbers, so the mean has a standard error of 0.04 dB. A normal number
        // truncated at 3 has standard deviation 0.987.
        assert!((sum / n).abs() < 0.15, "{}", sum / n);
        assert!((libm::sqrt(squares / n) / (4.0 * 0.9866) - 1.0).abs() < 0.03);
        let other = LogDistance { shadowing_seed: 2, ..radio.clone() };
        assert_ne!(radio.shadowing_between(A, B), other.shadowing_between(A, B));
    }

    #[test]
    fn nobody_beyond_reach_is_heard() {
        let mut radio = LogDistance { shadowing_db: 2.0, ..testbed(16.0) };
        radio.attenuators_db = alloc::vec![10.0, 16.0, 3.0];
        let threshold = watts(-80.0);
        let reach = radio.reach(threshold);
        for (a, b) in [(0, 1), (1, 2), (2, 7), (0, 2)] {
            assert!(radio.received_power(NodeId(a), NodeId(b), reach * 1.0001) < threshold);
        }
        // The distance is exactly that of the best possible pair, two nodes with 3 dB and a
        // shadowing of 6 dB in their favour.
        assert!((15.0 + 2.0 * (2.1 - 3.71 - 3.0) - radio.path_loss_db(reach) + 6.0 - -80.0).abs() < 1e-9);
    }
}

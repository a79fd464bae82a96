//! How many hops away a sender is still sensed, from the power at which the next hop is received.
//!
//! S. ElRakabawy, C. Lindemann, "A Practical Adaptive Pacing Scheme for TCP in Multihop Wireless Networks" (AP10), section
//! IV.E, equations 2 to 7, in dBm and dB:
//!
//! ```text
//! P_out = P_tx + G_ant - A_cab - A_v                        (2)
//! L_1   = P_out - P_rx                                      (3)
//! L_k   = L_1 + 10 p log10(k)                               (6), its correction eps taken as 0
//! H_cs  = min { k in 1..h : P_out - L_k < T_cs }            (7)
//! ```
//!
//! P_out cancels out: H_cs depends only on P_rx - 10 p log10(k) and T_cs. All inputs of the paper are accepted nevertheless.

use super::dispersion::{History, mean};
use meshpace_core::parameter::{ParameterError, require};

/// What leaves the antenna and what lies before it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkBudget {
    /// P_tx, transmit power, dBm.
    pub transmit_power_dbm: f64,
    /// G_ant, antenna gain, dBi.
    pub antenna_gain_dbi: f64,
    /// A_cab, attenuation of the cable, dB; 0 without one.
    pub cable_db: f64,
    /// A_v, setting of the variable attenuator, dB; 0 without one.
    pub attenuator_db: f64,
}

impl LinkBudget {
    /// P_out in dBm (equation 2).
    pub fn output_power_dbm(&self) -> f64 {
        self.transmit_power_dbm + self.antenna_gain_dbi - self.cable_db - self.attenuator_db
    }
}

/// Where P_rx comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PowerSource {
    /// Frames received from the next hop, those that carry the ACKs: the channel is the same both ways.
    Arrivals,
    /// What the routing table's [`PathInfo`](crate::PathInfo) tells.
    Path,
}

/// Parameters of the estimate of H_cs.
#[derive(Clone, PartialEq, Debug)]
pub struct CarrierSense {
    /// What leaves the antenna. It cancels out of the result. Default 15 dBm and the testbed's 2.1 dBi, 3.71 dB, 16 dB.
    pub budget: LinkBudget,
    /// T_cs, the power below which a node does not sense, dBm. AP10 does not give it. Default -78.07, two-ray at 550 m.
    pub threshold_dbm: f64,
    /// p, the path-loss exponent, 1..=10. AP10: 3 indoors. Default 4, two-ray ground beyond 86 m.
    pub exponent: f64,
    /// Frames over which P_rx is averaged, 1 or more. Default 10.
    pub frames: usize,
    /// Where P_rx comes from. Default: arrivals.
    pub source: PowerSource,
}

impl CarrierSense {
    /// For the two-ray ground model with decoding to 250 m and sensing to 550 m.
    pub fn two_ray() -> CarrierSense {
        CarrierSense {
            budget: LinkBudget { transmit_power_dbm: 15.0, antenna_gain_dbi: 2.1, cable_db: 3.71, attenuator_db: 16.0 },
            threshold_dbm: -78.07,
            exponent: 4.0,
            frames: 10,
            source: PowerSource::Arrivals,
        }
    }

    /// For an indoor testbed: exponent 3 (AP10, section IV.E). The threshold is that of the receiver's energy detection.
    pub fn testbed(threshold_dbm: f64) -> CarrierSense {
        CarrierSense { threshold_dbm, exponent: 3.0, ..CarrierSense::two_ray() }
    }

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    ///
    /// Names the first parameter that is not, its value and its range.
    pub fn check(&self) -> Result<(), ParameterError> {
        let output = self.budget.output_power_dbm();
        require(output.is_finite(), "pacing.output_power", output, "a power in dBm")?;
        let threshold = self.threshold_dbm;
        require(threshold.is_finite(), "pacing.carrier_sense_threshold", threshold, "a power in dBm")?;
        require((1.0..=10.0).contains(&self.exponent), "pacing.path_loss_exponent", self.exponent, "1 to 10")?;
        require((1..=65536).contains(&self.frames), "pacing.power_frames", self.frames, "1 to 65536 frames")
    }
}

/// The power in dBm sensed `hops` hops away of a sender whose next hop receives `received_dbm` (equations 3 and 6).
pub fn sensed_power_dbm(output_dbm: f64, received_dbm: f64, exponent: f64, hops: u8) -> f64 {
    let first = output_dbm - received_dbm;
    output_dbm - (first + 10.0 * exponent * libm::log10(f64::from(hops)))
}

/// H_cs (equation 7): the first hop of `path_hops` at which the sender is no longer sensed; none if all sense it.
pub fn carrier_sense_hops(config: &CarrierSense, received_dbm: f64, path_hops: u8) -> Option<u8> {
    let output = config.budget.output_power_dbm();
    (1..=path_hops).find(|&k| sensed_power_dbm(output, received_dbm, config.exponent, k) < config.threshold_dbm)
}

/// The average of the powers received last.
#[derive(Clone, PartialEq, Debug)]
pub struct ReceivedPower(History);

impl ReceivedPower {
    /// No frame yet.
    pub fn new(frames: usize) -> ReceivedPower {
        ReceivedPower(History::new(frames))
    }

    /// A frame was received; what is not a power is ignored.
    pub fn on_frame(&mut self, dbm: f32) {
        if dbm.is_finite() {
            self.0.push(f64::from(dbm));
        }
    }

    /// The average in dBm; none before the first frame.
    pub fn average_dbm(&self) -> Option<f64> {
        (!self.0.samples().is_empty()).then(|| mean(self.0.samples()))
    }
}

//! Estimates over how many hops a sender is sensed, from the power at which the next hop is
//! received.
//!
//! S. ElRakabawy, C. Lindemann, "A Practical Adaptive Pacing Scheme for TCP in Multihop Wireless
//! Networks" (AP10), section IV.E, equations 2 to 7, in dBm and dB:
//!
//! ```text
//! P_out = P_tx + G_ant - A_cab - A_v                        (2)
//! L_1   = P_out - P_rx                                      (3)
//! L_k   = L_1 + 10 p log10(k)                               (6), its correction eps taken as 0
//! H_cs  = min { k in 1..h : P_out - L_k < T_cs }            (7)
//! ```
//!
//! P_out cancels out: H_cs depends only on P_rx - 10 p log10(k) and on T_cs. Nevertheless all
//! inputs of the paper are parameters.

use super::dispersion::{History, mean};
use meshpace_core::{parameters, words};

parameters! {
    /// Link budget: transmit power, and gains and losses up to the antenna. The defaults are the testbed's of AP10, section III.
    #[derive(Clone, Copy, PartialEq, Debug)]
    pub struct LinkBudget {
        /// P_tx, transmit power that the estimate of H_cs assumes
        transmit_power_dbm as transmit_power: f64 = 15.0 => POWER.or("the radio's"), Expert, "AP10, section III";
        /// G_ant, antenna gain that the estimate of H_cs assumes
        antenna_gain_dbi as antenna_gain: f64 = 2.1 => GAIN.or("the radio's"), Expert, "AP10, section III";
        /// A_cab, cable loss that the estimate of H_cs assumes
        cable_db as cable: f64 = 3.71 => GAIN.or("the radio's"), Expert, "AP10, section III";
        /// A_v, attenuation that the estimate of H_cs assumes
        attenuator_db as attenuator: f64 = 16.0 => GAIN.or("the radio's"), Expert, "AP10, section III";
    }
}

impl LinkBudget {
    /// P_out in dBm (equation 2).
    pub fn output_power_dbm(&self) -> f64 {
        self.transmit_power_dbm + self.antenna_gain_dbi - self.cable_db - self.attenuator_db
    }
}

/// Source of P_rx, the received power.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PowerSource {
    /// Frames received from the next hop, which carry the ACKs. The channel is assumed to be the
    /// same in both directions.
    Arrivals,
    /// Measurements that come with the routing table's [`PathInfo`](crate::PathInfo).
    Path,
}

words! { PowerSource: "arrivals" = Arrivals, "path" = Path }

parameters! {
    /// Parameters of the estimate of H_cs. The defaults are for two-ray ground with decoding to 250 m and sensing to 550 m.
    #[derive(Clone, PartialEq, Debug)]
    pub struct CarrierSense {
        /// T_cs, received power below which a node does not sense a frame; not given in AP10
        threshold_dbm as carrier_sense_threshold: f64 = -78.07 => POWER.or("the radio's"), Expert, "AP10, section IV.E";
        /// p, path loss exponent that the estimate of H_cs assumes; 3 indoors in AP10
        exponent as path_loss_exponent: f64 = 4.0 => number(1.0, 10.0).or("the radio's"), Expert, "AP10, section IV.E";
        /// number of frames over which the received power is averaged
        frames as power_frames: usize = 10 => whole("frames", 1, 65536), Expert, "AP10, section IV.E";
        /// source of the received power
        source as power_source: PowerSource = PowerSource::Arrivals => choice(PowerSource::WORDS), Expert, "AP10, section IV.E";
    }
    parts {
        /// Power that leaves the antenna. It cancels out of the result.
        budget: LinkBudget = LinkBudget::default();
    }
}

impl CarrierSense {
    /// Parameters for the two-ray ground model, with decoding up to 250 m and sensing up to 550 m.
    pub fn two_ray() -> CarrierSense {
        CarrierSense::default()
    }

    /// Parameters for an indoor testbed: path loss exponent 3 (AP10, section IV.E). `threshold_dbm`
    /// is the threshold of the receiver's energy detection.
    pub fn testbed(threshold_dbm: f64) -> CarrierSense {
        CarrierSense { threshold_dbm, exponent: 3.0, ..CarrierSense::two_ray() }
    }
}

/// Power in dBm at which a sender is sensed `hops` hops away, if its next hop receives it at
/// `received_dbm` (equations 3 and 6).
pub fn sensed_power_dbm(output_dbm: f64, received_dbm: f64, exponent: f64, hops: u8) -> f64 {
    let first = output_dbm - received_dbm;
    output_dbm - (first + 10.0 * exponent * libm::log10(f64::from(hops)))
}

/// H_cs (equation 7): the first hop, of `path_hops`, at which the sender is no longer sensed.
/// `None` if the sender is sensed at all of them.
pub fn carrier_sense_hops(config: &CarrierSense, received_dbm: f64, path_hops: u8) -> Option<u8> {
    let output = config.budget.output_power_dbm();
    (1..=path_hops).find(|&k| sensed_power_dbm(output, received_dbm, config.exponent, k) < config.threshold_dbm)
}

/// Average of the most recently received powers.
#[derive(Clone, PartialEq, Debug)]
pub struct ReceivedPower(History);

impl ReceivedPower {
    /// Creates an average over the last `frames` frames, with no frame received yet.
    pub fn new(frames: usize) -> ReceivedPower {
        ReceivedPower(History::new(frames))
    }

    /// Adds the power of a received frame. A value that is not finite is ignored.
    pub fn on_frame(&mut self, dbm: f32) {
        if dbm.is_finite() {
            self.0.push(f64::from(dbm));
        }
    }

    /// The average in dBm; `None` before the first frame.
    pub fn average_dbm(&self) -> Option<f64> {
        (!self.0.samples().is_empty()).then(|| mean(self.0.samples()))
    }
}

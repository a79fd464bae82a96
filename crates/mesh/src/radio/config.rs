//! Configuration of the radio.

use super::bit_errors::Modulation;
use super::frame::FrameRate;
use super::links::Links;
use super::log_distance::LogDistance;
use super::ofdm::Ofdm;
use super::plcp::{Preamble, plcp};
use super::power::watts;
use super::two_ray;
use meshpace_core::parameter::require;
use meshpace_core::{Duration, ParameterError, Rate, parameters};

/// Reception model: decides which frame a receiver keeps if several overlap.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reception {
    /// Rule of ns-2: the first frame locks the receiver and survives a later frame only if it is at
    /// least 10 dB stronger.
    #[default]
    Ns2,
    /// A detected preamble locks the receiver. Bit errors depend on the ratio of signal to noise
    /// and interference.
    Sinr,
}

/// Propagation model: received power between two nodes.
#[derive(Clone, PartialEq, Debug, Default)]
pub enum Propagation {
    /// Two-ray ground with the constants of ns-2: links up to 250 m, sensing up to 550 m.
    #[default]
    TwoRay,
    /// Log-distance with cables, attenuators and shadowing.
    LogDistance(LogDistance),
    /// Received powers listed for each pair of nodes.
    Links(Links),
}

/// Rule by which stations choose rates. Each rule is a file of [`crate::mac::rate_control`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RateControl {
    /// One rate for all links.
    #[default]
    Fixed,
    /// The station knows the signal-to-noise ratio of the link and chooses by it.
    Ideal,
    /// The station tries rates and measures their success (minstrel_ht of Linux).
    Minstrel,
    /// The list of links contains the rate of each link.
    Listed,
}

impl RateControl {
    /// All rules, with their names in scenarios.
    pub const ALL: &[(&str, RateControl)] = &[
        ("fixed", RateControl::Fixed),
        ("ideal", RateControl::Ideal),
        ("minstrel", RateControl::Minstrel),
        ("listed", RateControl::Listed),
    ];
}

parameters! {
    /// Parameters of the radio, shared by all nodes.
    #[derive(Clone, PartialEq, Debug)]
    pub struct RadioConfig {
        /// noise power over 22 MHz, or over 20 MHz with OFDM, including the receiver's noise
        /// figure; with reception by sinr
        // The default is thermal noise over 22 MHz plus a noise figure of 7 dB.
        noise_dbm as noise: f64 = -93.6 => POWER.from(-200.0).to(100.0).or("-93.6 dBm; -94 dBm with OFDM"), Expert;
        /// ratio to noise and interference from which the preamble of a frame is detected; with
        /// reception by sinr
        detect_ratio_db as preamble_sinr: f64 = 4.0 => GAIN.from(-50.0).to(50.0), Basic, "ns-3.44";
        /// T_cs, received power from which the medium is busy
        carrier_sense_dbm as carrier_sense_threshold: f64 = -70.0
            => POWER.from(-200.0).to(100.0).or("-70 dBm; -62 dBm with OFDM; under two-ray that of 550 m, -78.07 dBm"), Basic, "IEEE 802.11b-1999, 18.4.8.4";
        /// received power below which a frame has no effect: it is neither sensed, nor decoded, nor
        /// added to the interference
        sensitivity_dbm as sensitivity: Option<f64> = None => POWER.from(-200.0).to(100.0).or_none(), Expert, "ns-3.44, RxSensitivity";
    }
    others {
        /// Rate of unicast data frames.
        rate: Rate = Rate::from_mbps(2);
        /// Rate of control frames and broadcasts.
        basic_rate: Rate = Rate::from_mbps(1);
        /// Radio of 802.11a or 802.11n, whose rates then replace the two rates above. `None`: radio
        /// of 802.11b.
        ofdm: Option<Ofdm> = None;
        /// 802.11n: rule by which stations choose the rate of unicast data. The configured data
        /// rate is then the highest.
        rate_control: RateControl = RateControl::Fixed;
        /// Length of the preamble of 802.11b frames.
        preamble: Preamble = Preamble::Long;
        /// Reception model of all receivers.
        reception: Reception = Reception::Ns2;
        /// Propagation model of all links.
        propagation: Propagation = Propagation::TwoRay;
        /// T_cs under two-ray, in dBm, -200 to 100. It replaces [`RadioConfig::carrier_sense_dbm`]:
        /// the medium is busy from this power on, and with [`Reception::Ns2`] a weaker frame has no
        /// effect. `None`: the threshold of ns-2, which is received over 550 m
        /// ([`two_ray::SENSE_THRESHOLD_W`]).
        two_ray_sense_dbm: Option<f64> = None;
    }
    also |config| config.check_others();
}

impl RadioConfig {
    /// Carrier frequency in Hz. OFDM: the frequency of the band. Otherwise 914 MHz of the WaveLAN
    /// under two-ray, and channel 6 of the 2.4 GHz band under the other models.
    pub fn frequency_hz(&self) -> f64 {
        match (self.ofdm, &self.propagation) {
            (Some(ofdm), _) => ofdm.band.frequency_hz(),
            (None, Propagation::TwoRay) => two_ray::FREQUENCY_HZ,
            (None, _) => 2437e6,
        }
    }

    /// Received power from which the medium is busy, in W.
    pub fn sense_w(&self) -> f64 {
        match (&self.propagation, self.two_ray_sense_dbm) {
            (Propagation::TwoRay, None) => two_ray::SENSE_THRESHOLD_W,
            (Propagation::TwoRay, Some(dbm)) => watts(dbm),
            _ => watts(self.carrier_sense_dbm),
        }
    }

    /// Returns the bit rate of frames with this rate, and the time of the preamble and header
    /// before them.
    pub fn rate_and_header(&self, rate: FrameRate) -> (Rate, Duration) {
        if let Some(ofdm) = self.ofdm {
            let rate = ofdm.rate_of(rate);
            return (rate.rate(), rate.preamble());
        }
        let rate = if rate == FrameRate::DATA { self.rate } else { self.basic_rate };
        (rate, plcp(self.preamble, rate))
    }

    fn check_others(&self) -> Result<(), ParameterError> {
        let by_errors = self.reception == Reception::Sinr || self.propagation != Propagation::TwoRay;
        for (name, rate) in [("radio.rate", self.rate), ("radio.basic_rate", self.basic_rate)] {
            let known = !by_errors || self.ofdm.is_some() || Modulation::of(rate).is_some();
            require(known, name, rate.0, "1, 2, 5.5 or 11 Mbit/s, whose bit errors are known")?;
        }
        if self.ofdm.is_some() {
            let by_sinr = self.reception == Reception::Sinr;
            require(by_sinr, "radio.reception", "ns2", "sinr with the rates of 802.11a and 802.11n")?;
            let has_its_frequency = self.propagation != Propagation::TwoRay;
            require(
                has_its_frequency,
                "radio.model",
                "two-ray",
                "log-distance or links with the rates of 802.11a and 802.11n",
            )?;
        }
        let sense = self.two_ray_sense_dbm.unwrap_or(self.carrier_sense_dbm);
        require((-200.0..=100.0).contains(&sense), "radio.carrier_sense_threshold", sense, "-200 dBm to 100 dBm")?;
        match &self.propagation {
            Propagation::TwoRay => Ok(()),
            Propagation::LogDistance(model) => model.check().map_err(|error| error.inside("radio")),
            Propagation::Links(links) => links.check(),
        }
    }
}

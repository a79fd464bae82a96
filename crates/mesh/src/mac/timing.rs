//! Times, sizes and limits of the MAC over its radio.
//!
//! Source: IEEE Std 802.11-1999, 15.3.3 (DSSS PHY: slot 20 us, SIFS 10 us, CCA 15 us, long
//! preamble), 9.2.3 (DIFS, EIFS), 9.2.4 (contention window), 11.4.4 (retry limits). Profile `ns2`:
//! ns-2.35 as measured.

use super::config::{HtConfig, MacConfig, RtsPolicy};
use super::rate_control::{Limits, RateSet};
use super::rules::Rules;
use crate::category::Category;
use crate::radio::config::RadioConfig;
use crate::radio::ofdm::OfdmRate;
use crate::radio::ofdm::{Ofdm, RX_START_DELAY, SLOT};
use crate::radio::plcp::{PLCP, Preamble, plcp};
use crate::radio::{FrameRate, RateKind};
use meshpace_core::{Duration, Rate};

/// Size in bytes of an RTS with its FCS.
pub const RTS_BYTES: u32 = 20;
/// Size in bytes of a CTS or ACK with its FCS.
pub const CTS_ACK_BYTES: u32 = 14;
/// Size in bytes of a compressed block ACK with its FCS (IEEE Std 802.11-2016, 9.3.1.9.3).
pub const BLOCK_ACK_BYTES: u32 = 32;
/// Size in bytes of a compressed block ACK request with its FCS (9.3.1.8).
pub const BLOCK_ACK_REQ_BYTES: u32 = 24;
/// Allowance for propagation in both directions in the time-out for the data after a CTS, as in
/// ns-2.
const PROPAGATION: Duration = Duration::from_micros(4);

/// Parameters of a category's access to the medium.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Access {
    /// Time for which the medium must be idle before a frame: AIFS, or DIFS without categories.
    pub aifs: Duration,
    /// Time for which the medium must be idle after a damaged frame.
    pub eifs: Duration,
    /// Smallest contention window, in slots.
    pub cw_min: u32,
    /// Largest contention window, in slots.
    pub cw_max: u32,
    /// TXOP limit: time for which exchanges may follow each other. Zero permits one exchange.
    pub txop: Duration,
}

/// All constants of the MAC for one configuration.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Timing {
    /// Rules of the profile.
    pub rules: Rules,
    /// Length of a slot.
    pub slot: Duration,
    /// Short interframe space (SIFS).
    pub sifs: Duration,
    /// Distributed interframe space (DIFS): SIFS + 2 slots. 802.11n: the smallest AIFS in use;
    /// without EDCA, the AIFS of best effort.
    pub difs: Duration,
    /// Extended interframe space (EIFS): SIFS + an ACK at 1 Mbit/s (OFDM: 6 Mbit/s) + DIFS.
    pub eifs: Duration,
    /// Time before the end of a slot from which the slot counts as elapsed when the medium becomes
    /// busy: the CCA time; with the slots of EDCA, one slot more.
    pub counts_ahead: Duration,
    /// True if frames have categories with their own access (EDCA).
    pub edca: bool,
    /// Access parameters by category. Without EDCA all entries are equal.
    pub access: [Access; Category::COUNT],
    /// Number of attempts for an RTS, or for a frame sent without RTS.
    pub short_retry_limit: u32,
    /// Number of attempts for a data frame sent after RTS/CTS.
    pub long_retry_limit: u32,
    /// Rate of unicast data frames.
    pub rate: Rate,
    /// Rate of control frames and broadcasts.
    pub basic_rate: Rate,
    rts: RtsPolicy,
    preamble: Preamble,
    /// Slack added to a response time-out. Taken from the rules; one slot if the rules set none.
    answer_margin: Duration,
    /// Air time of an RTS.
    pub rts_air: Duration,
    /// Air time of a CTS.
    pub cts_air: Duration,
    /// Air time of an ACK.
    pub ack_air: Duration,
    /// Radio of 802.11a or 802.11n; `None` for 802.11b.
    pub ofdm: Option<Ofdm>,
    /// Rates from which the stations choose; `None` without rate control.
    pub rates: Option<RateSet>,
    /// Parameters of 802.11n; `None` without 802.11n.
    pub ht: Option<HtConfig>,
    /// Air time of a block ACK. Zero without OFDM.
    pub block_ack_air: Duration,
}

impl Timing {
    /// Computes the constants of a MAC over a radio.
    pub fn new(config: &MacConfig, radio: &RadioConfig) -> Timing {
        if let Some(ofdm) = radio.ofdm {
            return Timing::with_ofdm(config, radio, ofdm);
        }
        let rules = config.rules(false);
        let (slot, sifs) = (Duration::from_micros(20), Duration::from_micros(10));
        let difs = sifs + slot * 2;
        let eifs = sifs + difs + PLCP + Rate::from_mbps(1).time_for(CTS_ACK_BYTES);
        let control = |bytes| plcp(radio.preamble, radio.basic_rate) + radio.basic_rate.time_for(bytes);
        Timing {
            rules,
            slot,
            sifs,
            difs,
            eifs,
            counts_ahead: rules.cca_time,
            edca: false,
            access: [Access { aifs: difs, eifs, cw_min: 31, cw_max: 1023, txop: Duration::ZERO }; Category::COUNT],
            short_retry_limit: config.retries.short,
            long_retry_limit: config.retries.long,
            rate: radio.rate,
            basic_rate: radio.basic_rate,
            rts: config.rts,
            preamble: radio.preamble,
            answer_margin: rules.answer_margin.unwrap_or(slot),
            rts_air: control(RTS_BYTES),
            cts_air: control(CTS_ACK_BYTES),
            ack_air: control(CTS_ACK_BYTES),
            ofdm: None,
            rates: None,
            ht: None,
            block_ack_air: Duration::ZERO,
        }
    }

    /// Computes the constants of 802.11a, or of 802.11n (IEEE Std 802.11-2016, tables 17-21 and
    /// 19-25; 802.11-2012, table 8-105).
    fn with_ofdm(config: &MacConfig, radio: &RadioConfig, ofdm: Ofdm) -> Timing {
        let rules = config.rules(true);
        let sifs = ofdm.band.sifs();
        let basic = |bytes| ofdm.basic.air_time(bytes, ofdm.band);
        let response = |bytes| ofdm.data.response().air_time(bytes, ofdm.band);
        let slowest = OfdmRate::NonHt(0).air_time(CTS_ACK_BYTES, ofdm.band);
        let access = |aifsn, cw_min, cw_max, txop| {
            let aifs = sifs + SLOT * aifsn;
            Access { aifs, eifs: sifs + aifs + slowest, cw_min, cw_max, txop }
        };
        let access = match config.ht.map(|ht| ht.edca) {
            // The entries are in the order of the categories.
            Some(Some(edca)) => [
                access(7, 15, 1023, Duration::ZERO),
                access(3, 15, 1023, Duration::ZERO),
                access(2, 7, 15, edca.video_txop),
                access(2, 3, 7, edca.voice_txop),
            ],
            Some(None) => [access(3, 15, 1023, Duration::ZERO); Category::COUNT],
            None => [access(2, 15, 1023, Duration::ZERO); Category::COUNT],
        };
        let Access { aifs: difs, eifs, .. } = access[Category::Voice as usize];
        let edca = config.ht.is_some_and(|ht| ht.edca.is_some());
        let counts_ahead = rules.cca_time + if rules.busy_slot_counts { SLOT } else { Duration::ZERO };
        let timing = Timing {
            rules,
            slot: SLOT,
            sifs,
            difs,
            eifs,
            counts_ahead,
            edca,
            access,
            short_retry_limit: config.retries.short,
            long_retry_limit: if rules.one_retry_limit { config.retries.short } else { config.retries.long },
            rate: radio.rate,
            basic_rate: radio.basic_rate,
            rts: config.rts,
            preamble: radio.preamble,
            answer_margin: rules.answer_margin.unwrap_or(SLOT),
            rts_air: basic(RTS_BYTES),
            cts_air: basic(CTS_ACK_BYTES),
            ack_air: response(CTS_ACK_BYTES),
            ofdm: Some(ofdm),
            rates: None,
            ht: config.ht,
            block_ack_air: response(BLOCK_ACK_BYTES),
        };
        let rates = config.ht.and_then(|HtConfig { bytes, mpdus, longest, .. }| {
            let Access { aifs, cw_min, .. } = access[Category::BestEffort as usize];
            let backoff = SLOT.as_secs_f64() * f64::from(cw_min) / 2.0;
            let rts = |mpdu| if timing.uses_rts(mpdu) { timing.handshake() } else { Duration::ZERO };
            let limits = Limits { bytes, mpdus, longest, overhead: rules.data_overhead };
            RateSet::new(radio.rate_control, ofdm, &limits, |mpdu| (aifs + rts(mpdu) + sifs, backoff))
        });
        Timing { rates, ..timing }
    }

    /// Air time of a unicast or broadcast data frame of `bytes`.
    #[inline]
    pub fn data_air(&self, bytes: u32, broadcast: bool) -> Duration {
        if let Some(ofdm) = &self.ofdm {
            return if broadcast { ofdm.basic } else { ofdm.data }.air_time(bytes, ofdm.band);
        }
        let rate = if broadcast { self.basic_rate } else { self.rate };
        plcp(self.preamble, rate) + rate.time_for(bytes)
    }

    /// True if a unicast MPDU of `bytes` is preceded by RTS/CTS.
    #[inline]
    pub fn uses_rts(&self, bytes: u32) -> bool {
        match self.rts {
            RtsPolicy::Always => true,
            RtsPolicy::Never => false,
            RtsPolicy::Threshold(limit) => bytes.saturating_add(self.rules.rts_extra) > limit,
        }
    }

    /// Time from the start of an RTS or data frame of `air_time` until the sender stops waiting for
    /// the answer, which has the air time `answer`.
    #[inline]
    pub fn answer_timeout(&self, air_time: Duration, answer: Duration) -> Duration {
        let answer = if self.rules.awaits_start_of_answer { RX_START_DELAY } else { answer };
        air_time + self.sifs + answer + self.answer_margin
    }

    /// Time from the start of a CTS until its sender stops waiting for the data. `nav` is the
    /// duration field of the CTS.
    #[inline]
    pub fn data_timeout(&self, nav: Duration) -> Duration {
        if !self.rules.awaits_data {
            return self.cts_air;
        }
        (self.cts_air + nav + PROPAGATION).saturating_sub(self.sifs + self.ack_air)
    }

    /// Time that RTS and CTS take before a frame, including two SIFS.
    pub fn handshake(&self) -> Duration {
        self.rts_air + self.cts_air + self.sifs * 2
    }

    /// Bit rate of a rate of the mesh.
    pub fn rate_of(&self, rate: FrameRate) -> Rate {
        match (&self.ofdm, rate) {
            (Some(ofdm), _) => ofdm.rate_of(rate).rate(),
            (None, FrameRate::DATA) => self.rate,
            (None, _) => self.basic_rate,
        }
    }

    /// Air time of a frame of `bytes` at a rate that the configuration or the sender has chosen.
    /// Zero without OFDM.
    pub fn air_at(&self, rate: FrameRate, bytes: u32) -> Duration {
        self.ofdm.map_or(Duration::ZERO, |ofdm| ofdm.rate_of(rate).air_time(bytes, ofdm.band))
    }

    /// Air time of an ACK at the rate of a response.
    #[inline]
    pub fn answer_air(&self, rate: FrameRate) -> Duration {
        if let RateKind::Answering(_) = rate.kind() { self.air_at(rate, CTS_ACK_BYTES) } else { self.ack_air }
    }

    /// Largest size in bytes of a unicast PSDU at a rate whose exchange takes at most `time`,
    /// whatever the answer is. Zero without OFDM.
    pub fn bytes_within(&self, time: Duration, rate: FrameRate) -> u32 {
        let may_need_rts = self.uses_rts(u32::MAX);
        let answer = self.air_at(rate.answer(), BLOCK_ACK_BYTES);
        let others = self.sifs + answer + if may_need_rts { self.handshake() } else { Duration::ZERO };
        self.ofdm.map_or(0, |ofdm| ofdm.rate_of(rate).bytes_within(time.saturating_sub(others), ofdm.band))
    }

    /// Value of `span` in a duration field: whole microseconds, at most 65,535 of them.
    #[inline]
    pub fn duration_field(&self, span: Duration) -> Duration {
        let us = (span.0 + self.rules.duration_rounding_ns) / 1_000;
        Duration::from_micros(us.min(65_535))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::config::MacProfile;

    #[test]
    fn the_measured_air_times() {
        // The values are items 5, 8 and 9 of the ns-2 reference.
        let t = Timing::new(&MacConfig::default(), &RadioConfig::default());
        assert_eq!(t.rts_air, Duration::from_micros(352));
        assert_eq!(t.cts_air, Duration::from_micros(304));
        assert_eq!(t.eifs, Duration::from_micros(364));
        assert_eq!(t.data_air(1500 + t.rules.data_overhead, false), Duration::from_micros(6328));
    }

    #[test]
    fn one_hop_exchange_of_systems_2_4() {
        // The expected value is that of profile `ieee` for 1460 bytes of payload in 1500 bytes:
        // 7.6540 ms with RTS/CTS and the mean backoff of 15.5 slots.
        let t = Timing::new(&MacProfile::Ieee.into(), &RadioConfig::default());
        let data = t.data_air(1500 + t.rules.data_overhead, false);
        let exchange =
            t.difs.0 as f64 + 15.5 * t.slot.0 as f64 + (t.rts_air + t.cts_air + data + t.ack_air + t.sifs * 3).0 as f64;
        assert_eq!(exchange, 7_654_000.0);
    }

    #[test]
    fn a_short_preamble_precedes_all_but_frames_at_1_mbps() {
        // 1528 bytes at 11 Mbit/s take 1111.3 us and half of 192 us. A CTS at 1 Mbit/s keeps its
        // 304 us.
        let radio = RadioConfig { rate: Rate::from_mbps(11), preamble: Preamble::Short, ..RadioConfig::default() };
        let t = Timing::new(&MacProfile::Ieee.into(), &radio);
        let data = t.data_air(1528, false).0;
        assert!((1_207_272..=1_207_273).contains(&data), "{data} ns");
        assert_eq!(t.cts_air, Duration::from_micros(304));
    }
}

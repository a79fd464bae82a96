//! Configuration of the MAC.

use super::rules::{ImmediateAccess, Rules};
use crate::radio::ofdm::LONGEST_FRAME;
use meshpace_core::parameter::{Form, TIME};
use meshpace_core::{Duration, parameters};

/// Profile that selects header size, backoff range, retry and timer rules of the MAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MacProfile {
    /// Behaviour of ns-2.35, as measured.
    #[default]
    Ns2,
    /// Behaviour that IEEE 802.11 prescribes.
    Ieee,
}

/// Condition under which RTS/CTS precede a unicast data frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RtsPolicy {
    /// RTS/CTS precede every unicast data frame (`radio.rts_cts = true`).
    #[default]
    Always,
    /// RTS/CTS are not used (`radio.rts_cts = false`).
    Never,
    /// RTS/CTS precede frames above a size in bytes (`radio.rts_threshold`). Under
    /// [`MacProfile::Ns2`] the size of the packet plus 58 bytes (MAC header and PLCP) must be at
    /// least the threshold. Under [`MacProfile::Ieee`] the size of the MPDU with its FCS must be
    /// more than the threshold.
    Threshold(u32),
}

parameters! {
    /// Numbers of attempts after which a frame is given up (IEEE Std 802.11-1999, 9.2.4).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct RetryLimits {
        /// number of attempts for RTS and short frames; under ht for any frame
        short as short_retry_limit: u32 = 7 => whole("attempts", 1, 255), Basic, "IEEE 802.11-1999, dot11ShortRetryLimit";
        /// number of attempts for frames after RTS and CTS; not under ht
        long as long_retry_limit: u32 = 4 => whole("attempts", 1, 255), Expert, "IEEE 802.11-1999, dot11LongRetryLimit";
    }
}

parameters! {
    /// Access by category (EDCA, IEEE Std 802.11-2012, 9.19.2). The other parameters have the
    /// values of table 8-105 for OFDM: [`super::timing::Access`].
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct EdcaConfig {
        /// mac.edca: TXOP limit of video; 0 s permits one exchange per TXOP
        video_txop: Duration = Duration::from_micros(3_008) => TXOP, Expert, "IEEE 802.11-2012, table 8-105";
        /// mac.edca: TXOP limit of voice; 0 s permits one exchange per TXOP
        voice_txop: Duration = Duration::from_micros(1_504) => TXOP, Expert, "IEEE 802.11-2012, table 8-105";
    }
}

/// Form of a TXOP limit: at most 65,535 times 32 us (IEEE Std 802.11-2012, 8.4.2.31).
const TXOP: Form = TIME.to(2.097_12);

parameters! {
    /// Additions of 802.11n: aggregates of MPDUs (A-MPDU) that are acknowledged one by one
    /// (compressed block ACK). The block ACK agreement between two stations is assumed to exist
    /// when the run begins.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub struct HtConfig {
        /// ht: largest number of MPDUs of an aggregate; 1 switches off aggregates and block ACK
        mpdus as ampdu_mpdus: u32 = HtConfig::WINDOW => whole("MPDUs", 1, HtConfig::WINDOW as u64), Basic,
            "IEEE 802.11-2012, 9.12";
        /// ht: largest size of an aggregate, including delimiters
        bytes as ampdu_size: u32 = 65_535 => SIZE.from(1.0).to(65_535.0), Expert, "IEEE 802.11-2016, 9.4.2.56.3";
        /// ht: longest air time of an aggregate
        longest as ampdu_time: Duration = LONGEST_FRAME => TIME.above(0.0).to(LONGEST_FRAME.0 as f64 / 1e9), Expert,
            "IEEE 802.11-2016, table 19-25, aPPDUMaxTime";
        /// ht: whether a station that misses a block ACK requests it, instead of sending all MPDUs
        /// again
        requests_block_ack as block_ack_request: bool = true => FLAG, Expert, "IEEE 802.11-2012, 9.21";
        /// ht: whether a packet that arrives at a station with nothing to send while the medium is
        /// idle needs no backoff, although the interframe space has not passed yet
        // A real receiver delivers MPDUs of an aggregate while the rest is on the air, so that a
        // relay finds the medium busy. Here they reach the MAC of the relay after the frame.
        immediate as immediate_access: Option<bool> = None => FLAG.or("true with ampdu_mpdus = 1, false with aggregates"), Expert,
            "IEEE 802.11-2016, 10.22.2.2";
        /// ht: whether an interrupted backoff counts the slot in which the medium becomes busy, as
        /// in EDCA, and not only slots that were idle to their end; always true with mac.edca
        busy_slot_counts: bool = true => FLAG, Expert, "IEEE 802.11-2016, 10.22.2.4";
        /// ht: how long a receiver buffers MPDUs behind a missing one
        reorder_timeout: Duration = Duration::from_millis(100) => TIME.above(0.0), Expert, "Linux, mac80211";
    }
    others {
        /// Categories of frames, each with its own access to the medium. `None`: all frames are
        /// best effort. Default `None`.
        edca: Option<EdcaConfig> = None;
    }
}

impl HtConfig {
    /// Window of the compressed block ACK, in MPDUs.
    pub const WINDOW: u32 = 64;

    /// True if a packet that arrives while the medium is idle needs no backoff. Set by
    /// `immediate_access`; the default is true only without aggregates.
    pub fn has_immediate_access(&self) -> bool {
        self.immediate.unwrap_or(self.mpdus == 1)
    }
}

/// Configuration of the MAC, which is the same at all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MacConfig {
    /// Profile that selects the rules.
    pub profile: MacProfile,
    /// Condition for RTS/CTS.
    pub rts: RtsPolicy,
    /// Limits on the number of attempts.
    pub retries: RetryLimits,
    /// Parameters of 802.11n, on top of [`MacProfile::Ieee`]. `None`: the MAC is not that of
    /// 802.11n.
    pub ht: Option<HtConfig>,
}

impl MacConfig {
    /// Rules of the MAC over the radio of 802.11b, or over an OFDM radio if `with_ofdm`.
    pub fn rules(&self, with_ofdm: bool) -> Rules {
        match (self.ht, self.profile) {
            (Some(ht), _) => {
                let immediate_access =
                    if ht.has_immediate_access() { ImmediateAccess::WhileIdle } else { ImmediateAccess::AfterSpace };
                let busy_slot_counts = ht.busy_slot_counts || ht.edca.is_some();
                Rules { immediate_access, busy_slot_counts, ..Rules::HT }
            }
            (None, MacProfile::Ns2) => Rules::NS2,
            (None, MacProfile::Ieee) if with_ofdm => Rules::OFDM,
            (None, MacProfile::Ieee) => Rules::IEEE,
        }
    }
}

impl From<MacProfile> for MacConfig {
    fn from(profile: MacProfile) -> MacConfig {
        MacConfig { profile, ..MacConfig::default() }
    }
}

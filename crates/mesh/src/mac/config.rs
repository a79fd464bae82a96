//! The configuration of the MAC.

use crate::radio::ofdm::LONGEST_FRAME;
use meshpace_core::Duration;

/// Header size, backoff range, retry and timer rules of the MAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MacProfile {
    /// What ns-2.35 was measured to do.
    #[default]
    Ns2,
    /// What IEEE 802.11 says.
    Ieee,
}

/// When a unicast data frame is preceded by RTS/CTS.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RtsPolicy {
    /// Before every unicast data frame (`radio.rts_cts = true`).
    #[default]
    Always,
    /// Never (`radio.rts_cts = false`).
    Never,
    /// Before frames of at least this many bytes (`radio.rts_threshold`). Under [`MacProfile::Ns2`] the packet's size
    /// plus 58 bytes (MAC header and PLCP) is compared, under [`MacProfile::Ieee`] the MPDU with its FCS, and "at least"
    /// is "more than".
    Threshold(u32),
}

/// After how many attempts a frame is given up (IEEE Std 802.11-1999, 9.2.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RetryLimits {
    /// Attempts for an RTS or a frame sent without one, 1 or more. Default 7.
    pub short: u32,
    /// Attempts for a data frame sent after RTS/CTS, 1 or more. Default 4.
    pub long: u32,
}

impl Default for RetryLimits {
    fn default() -> RetryLimits {
        RetryLimits { short: 7, long: 4 }
    }
}

/// Access by category (EDCA, IEEE Std 802.11-2012, 9.19.2). The other parameters are those of table 8-105 for OFDM: [`super::timing::Access`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EdcaConfig {
    /// TXOP limit of video; zero: one exchange. Default 3.008 ms.
    pub video_txop: Duration,
    /// TXOP limit of voice; zero: one exchange. Default 1.504 ms.
    pub voice_txop: Duration,
}

impl Default for EdcaConfig {
    fn default() -> EdcaConfig {
        EdcaConfig { video_txop: Duration::from_micros(3_008), voice_txop: Duration::from_micros(1_504) }
    }
}

/// What 802.11n adds: aggregates of MPDUs (A-MPDU) that are acknowledged one by one (compressed block ACK). The agreement between
/// two stations is taken for made when the run begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HtConfig {
    /// MPDUs of an aggregate at most, 1 to 64; 1: no aggregates and no block ACK. Default 64.
    pub mpdus: u32,
    /// Bytes of an aggregate at most, delimiters included. Default 65,535 (IEEE Std 802.11-2016, 9.4.2.56.3).
    pub bytes: u32,
    /// Air time of an aggregate at most. Default 5.484 ms (aPPDUMaxTime, table 19-25).
    pub longest: Duration,
    /// Whether a station that misses a block ACK asks for it instead of sending everything again. Default yes.
    pub asks: bool,
    /// Whether a packet that comes while the medium is idle, with nothing else to send, goes without backoff when the interframe space is over,
    /// though it is not over yet (IEEE Std 802.11-2016, 10.22.2.2 a). Default no: then the medium must have been idle for that space.
    pub immediate: bool,
    /// Whether backoffs are counted at the slot boundaries of EDCA (IEEE Std 802.11-2016, 10.22.2.4), the first of which is the end of the interframe
    /// space: then the slot in which the medium becomes busy counts, too. Default no: only slots that were idle to their end, as in the DCF. With
    /// `edca` they always are.
    pub busy_slot_counts: bool,
    /// How long a receiver keeps what came after something that is missing. Default 100 ms (Linux's mac80211).
    pub reorder_timeout: Duration,
    /// Whether frames have categories with their own access to the medium; None: all are best effort. Default None.
    pub edca: Option<EdcaConfig>,
}

impl HtConfig {
    /// The window of the compressed block ACK.
    pub const WINDOW: u32 = 64;
}

impl Default for HtConfig {
    fn default() -> HtConfig {
        HtConfig {
            mpdus: HtConfig::WINDOW,
            bytes: 65_535,
            longest: LONGEST_FRAME,
            asks: true,
            immediate: false,
            busy_slot_counts: false,
            reorder_timeout: Duration::from_millis(100),
            edca: None,
        }
    }
}

/// The MAC, the same at all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MacConfig {
    /// Its rules.
    pub profile: MacProfile,
    /// When RTS/CTS is used.
    pub rts: RtsPolicy,
    /// How often it tries.
    pub retries: RetryLimits,
    /// Whether it is that of 802.11n, over [`MacProfile::Ieee`].
    pub ht: Option<HtConfig>,
}

impl From<MacProfile> for MacConfig {
    fn from(profile: MacProfile) -> MacConfig {
        MacConfig { profile, ..MacConfig::default() }
    }
}

//! What a scenario says about the MAC.

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

/// The MAC, the same at all nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MacConfig {
    /// Its rules.
    pub profile: MacProfile,
    /// When RTS/CTS is used.
    pub rts: RtsPolicy,
    /// How often it tries.
    pub retries: RetryLimits,
}

impl From<MacProfile> for MacConfig {
    fn from(profile: MacProfile) -> MacConfig {
        MacConfig { profile, ..MacConfig::default() }
    }
}

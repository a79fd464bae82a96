//! The named TPAs: cwnd_max of 2 or 3, ACKs as in TPA or TPA*, with or without pacing.

use super::{Config, ack, congestion};
use crate::about::Named;
use crate::pacing::{self, AdaptiveConfig};

/// TPA with cwnd_max `window` (TPA, section 3.5) and the paper's table 1.
pub fn plain(window: u8, ack: ack::Rule) -> Config {
    Config { congestion: congestion::Config { window, ..congestion::Config::default() }, ack, ..Config::default() }
}

/// TPA-AP: the same with adaptive pacing, alpha 0.7 (TPA, section 5.2).
pub fn paced(window: u8, ack: ack::Rule) -> Config {
    Config { pacing: pacing::Config::Adaptive(AdaptiveConfig::paper()), ..plain(window, ack) }
}

/// TPA-2.
pub const TPA_2: Named<Config> = Named {
    name: "tpa-2",
    description: "TPA with a window of 2 segments, one ACK for 2 segments",
    source: "TPA, section 3",
    config: || plain(2, ack::Rule::EveryOther),
};
/// TPA-3.
pub const TPA_3: Named<Config> = Named {
    name: "tpa-3",
    description: "TPA with a window of 3 segments, one ACK for 2 segments",
    source: "TPA, section 3",
    config: || plain(3, ack::Rule::EveryOther),
};
/// TPA-AP-2.
pub const TPA_AP_2: Named<Config> = Named {
    name: "tpa-ap-2",
    description: "TPA with a window of 2 segments, one ACK for 2 segments, adaptive pacing",
    source: "TPA, sections 3 and 5.2; AP05",
    config: || paced(2, ack::Rule::EveryOther),
};
/// TPA-AP-3.
pub const TPA_AP_3: Named<Config> = Named {
    name: "tpa-ap-3",
    description: "TPA with a window of 3 segments, one ACK for 2 segments, adaptive pacing",
    source: "TPA, sections 3 and 5.2; AP05",
    config: || paced(3, ack::Rule::EveryOther),
};
/// TPA*-2.
pub const TPA_STAR_2: Named<Config> = Named {
    name: "tpa*-2",
    description: "TPA with a window of 2 segments, one ACK for 2 segments",
    source: "TPA, section 3",
    config: || plain(2, ack::Rule::EveryWindow),
};
/// TPA*-3.
pub const TPA_STAR_3: Named<Config> = Named {
    name: "tpa*-3",
    description: "TPA with a window of 3 segments, one ACK for 3 segments",
    source: "TPA, section 3",
    config: || plain(3, ack::Rule::EveryWindow),
};
/// TPA*-AP-2.
pub const TPA_STAR_AP_2: Named<Config> = Named {
    name: "tpa*-ap-2",
    description: "TPA with a window of 2 segments, one ACK for 2 segments, adaptive pacing",
    source: "TPA, sections 3 and 5.2; AP05",
    config: || paced(2, ack::Rule::EveryWindow),
};
/// TPA*-AP-3.
pub const TPA_STAR_AP_3: Named<Config> = Named {
    name: "tpa*-ap-3",
    description: "TPA with a window of 3 segments, one ACK for 3 segments, adaptive pacing",
    source: "TPA, sections 3 and 5.2; AP05",
    config: || paced(3, ack::Rule::EveryWindow),
};

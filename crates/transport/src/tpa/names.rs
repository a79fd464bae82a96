//! The named TPAs: cwnd_max of 2 or 3, ACKs as in TPA or TPA*, with or without pacing.

use super::{Config, ack, congestion};
use crate::pacing::{self, AdaptiveConfig};

/// TPA with cwnd_max `window` (TPA, section 3.5) and the paper's table 1.
pub fn plain(window: u8, ack: ack::Rule) -> Config {
    Config { congestion: congestion::Config { window, ..congestion::Config::default() }, ack, ..Config::default() }
}

/// TPA-AP: the same with adaptive pacing, alpha 0.7 (TPA, section 5.2).
pub fn paced(window: u8, ack: ack::Rule) -> Config {
    Config { pacing: pacing::Config::Adaptive(AdaptiveConfig::paper()), ..plain(window, ack) }
}

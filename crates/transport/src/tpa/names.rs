//! The named variants of TPA: cwnd_max of 2 or 3, ACKs as in TPA or as in TPA*, with or without
//! pacing.

use super::{Config, ack, congestion};
use crate::about::Named;
use crate::pacing::{self, AdaptiveConfig};

/// TPA with cwnd_max `window` (TPA, section 3.5) and the paper's table 1.
pub fn plain(window: u8, ack: ack::Rule) -> Config {
    Config { congestion: congestion::Config { window, ..congestion::Config::default() }, ack, ..Config::default() }
}

/// TPA-AP: [`plain`] with adaptive pacing, alpha 0.7 (TPA, section 5.2).
pub fn paced(window: u8, ack: ack::Rule) -> Config {
    Config { pacing: pacing::Config::Adaptive(AdaptiveConfig::paper()), ..plain(window, ack) }
}

/// A named variant of TPA. The number of segments that share an ACK is part of its description.
macro_rules! tpa {
    ($CONST:ident, $name:literal, $make:ident($window:literal, $rule:ident), $ack:literal, $pacing:literal, $source:literal) => {
        #[doc = concat!("`", $name, "`.")]
        pub const $CONST: Named<Config> = Named {
            name: $name,
            description: concat!(
                "TPA with a window of ",
                $window,
                " segments, one ACK for ",
                $ack,
                " segments",
                $pacing
            ),
            source: $source,
            config: || $make($window, ack::Rule::$rule),
        };
    };
}

tpa!(TPA_2, "tpa-2", plain(2, EveryOther), 2, "", "TPA, section 3");
tpa!(TPA_3, "tpa-3", plain(3, EveryOther), 2, "", "TPA, section 3");
tpa!(TPA_AP_2, "tpa-ap-2", paced(2, EveryOther), 2, ", adaptive pacing", "TPA, sections 3 and 5.2; AP05");
tpa!(TPA_AP_3, "tpa-ap-3", paced(3, EveryOther), 2, ", adaptive pacing", "TPA, sections 3 and 5.2; AP05");
tpa!(TPA_STAR_2, "tpa*-2", plain(2, EveryWindow), 2, "", "TPA, section 3");
tpa!(TPA_STAR_3, "tpa*-3", plain(3, EveryWindow), 3, "", "TPA, section 3");
tpa!(TPA_STAR_AP_2, "tpa*-ap-2", paced(2, EveryWindow), 2, ", adaptive pacing", "TPA, sections 3 and 5.2; AP05");
tpa!(TPA_STAR_AP_3, "tpa*-ap-3", paced(3, EveryWindow), 3, ", adaptive pacing", "TPA, sections 3 and 5.2; AP05");

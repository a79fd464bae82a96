//! Rate control by known signal-to-noise ratio: uses the rate with the best expected goodput.
//!
//! ```text
//! expected goodput of an MCS = P(a packet of 1500 bytes arrives) * payload bits per second of a lone station without losses
//! ```
//!
//! P is the probability of [`crate::radio::coded`]. The payload rate includes AIFS, half of CWmin,
//! RTS and CTS if they are used, the longest aggregate and its answer. Interference is not known
//! beforehand and is left out, and the rule learns nothing from losses. It shows the best that rate
//! control can do without hidden stations. A similar rule is `IdealWifiManager` of ns-3, which
//! instead takes the fastest rate whose error rate is low enough.

use super::{Choice, Query, RateRule, RateSet};

/// State of the rule for one neighbour.
#[derive(Clone, Debug)]
pub struct Ideal {
    snr: f64,
    mcs: u8,
}

impl RateRule for Ideal {
    fn new(_set: &RateSet) -> Ideal {
        Ideal { snr: f64::NAN, mcs: 0 }
    }

    fn on_link_snr(&mut self, set: &RateSet, snr: f64) {
        if snr != self.snr {
            let goodput = |&mcs: &u8| set.speed(mcs) * set.delivery(mcs, snr);
            // If two rates have equal goodput, the more robust one is chosen: the iterator is
            // reversed, so the last of equal rates is the slower one.
            let best = set.all().rev().max_by(|one, other| goodput(one).total_cmp(&goodput(other)));
            (self.snr, self.mcs) = (snr, best.unwrap_or(0));
        }
    }

    fn choose(&mut self, _query: Query<'_>) -> Choice {
        Choice { mcs: self.mcs, is_probe: false }
    }
}

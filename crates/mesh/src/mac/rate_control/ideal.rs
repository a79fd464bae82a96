//! The rate with the best expected goodput at the ratio of signal to noise, which the station knows.
//!
//! ```text
//! expected goodput of an MCS = P(a packet of 1500 bytes arrives) * payload bits per second of a lone station that loses nothing
//! ```
//!
//! P is that of [`crate::radio::coded`]; the payload rate counts AIFS, half of CWmin, RTS and CTS if there are any, the longest aggregate and its answer.
//! Interference is not known beforehand and left out, and nothing is learnt from losses: what rate control can do at best where nobody is hidden.
//! A rule of this kind is ns-3's `IdealWifiManager`, which takes the fastest rate whose errors are rare enough instead.

use super::{Choice, Query, RateRule, RateSet};

/// The rule.
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
            // The last of equal ones would be a faster one: the more robust one is taken.
            let best = set.all().rev().max_by(|one, other| goodput(one).total_cmp(&goodput(other)));
            (self.snr, self.mcs) = (snr, best.unwrap_or(0));
        }
    }

    fn choose(&mut self, _query: Query<'_>) -> Choice {
        Choice { mcs: self.mcs, probes: false }
    }
}

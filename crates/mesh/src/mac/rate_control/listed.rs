//! The rate that the list of links gives a direction, or the highest where it gives none: for meshes of which the rates are known, and not how they were chosen.

use super::{Choice, Query, RateRule, RateSet};

/// The rule.
#[derive(Clone, Debug)]
pub struct Listed {
    mcs: u8,
}

impl RateRule for Listed {
    fn new(set: &RateSet) -> Listed {
        Listed { mcs: set.highest }
    }

    fn on_link_mcs(&mut self, set: &RateSet, mcs: u8) {
        self.mcs = mcs.min(set.highest);
    }

    fn choose(&mut self, _query: Query<'_>) -> Choice {
        Choice { mcs: self.mcs, probes: false }
    }
}

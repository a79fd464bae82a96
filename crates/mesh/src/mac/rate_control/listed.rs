//! Rate control by a list: uses the rate that the list of links gives for a direction, or the
//! highest rate if the list gives none. It is meant for meshes whose rates are known, but not the
//! rule that chose them.

use super::{Choice, Query, RateRule, RateSet};

/// State of the rule for one neighbour.
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
        Choice { mcs: self.mcs, is_probe: false }
    }
}

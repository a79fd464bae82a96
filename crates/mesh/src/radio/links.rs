//! A radio whose links are listed for each pair of nodes instead of computed from positions. It
//! represents measurements of a real mesh.
//!
//! Two nodes whose pair is not listed have no effect on each other. Positions then only determine
//! the propagation delay. A direction may have a rate of its own, which the sender uses for data
//! with [`super::config::RateControl::Listed`].

use super::power::watts;
use alloc::vec::Vec;
use meshpace_core::parameter::require;
use meshpace_core::{NodeId, ParameterError};

/// Listed links. A scenario gives transmit powers and losses in dB, or received powers in dBm; only
/// the resulting received power is stored.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Links {
    /// Sender, receiver and received power in dBm; sorted.
    received: Vec<(NodeId, NodeId, f64)>,
    /// Sender, receiver and MCS of unicast data; sorted.
    rates: Vec<(NodeId, NodeId, u8)>,
    /// True if every pair whose preambles are detected counts as a link, however many frames are
    /// lost.
    has_weak_links: bool,
}

impl Links {
    /// Creates the links of a list of sender, receiver and received power in dBm. If a direction is
    /// listed twice, the last entry counts.
    pub fn new(mut received: Vec<(NodeId, NodeId, f64)>) -> Links {
        received.reverse();
        received.sort_by_key(|&(from, to, _)| (from, to));
        received.dedup_by_key(|&mut (from, to, _)| (from, to));
        Links { received, ..Links::default() }
    }

    /// Returns these links with rates, a list of sender, receiver and MCS. If a direction is listed
    /// twice, the last entry counts.
    pub fn with_rates(self, mut rates: Vec<(NodeId, NodeId, u8)>) -> Links {
        rates.reverse();
        rates.sort_by_key(|&(from, to, _)| (from, to));
        rates.dedup_by_key(|&mut (from, to, _)| (from, to));
        Links { rates, ..self }
    }

    /// MCS of unicast data in this direction; `None` if the list has none.
    pub fn mcs(&self, from: NodeId, to: NodeId) -> Option<u8> {
        let place = self.rates.binary_search_by_key(&(from, to), |&(from, to, _)| (from, to));
        place.ok().map(|place| self.rates[place].2)
    }

    /// Makes every pair whose preambles are detected a link. Without this call a link has to carry
    /// at least half of the frames.
    pub fn accept_weak_links(&mut self) {
        self.has_weak_links = true;
    }

    /// True if links may carry fewer than half of the frames.
    pub fn has_weak_links(&self) -> bool {
        self.has_weak_links
    }

    /// All links: sender, receiver and received power in dBm.
    pub fn all(&self) -> &[(NodeId, NodeId, f64)] {
        &self.received
    }

    /// Checks every received power against its range.
    ///
    /// # Errors
    /// The error names the first power that is outside the range.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.received.iter().try_for_each(|&(_, _, dbm)| {
            require((-300.0..=100.0).contains(&dbm), "radio.links", dbm, "a received power of -300 dBm to 100 dBm")
        })
    }

    /// Power in W with which `to` receives `from`. 0 if the direction is not listed.
    pub fn received_power(&self, from: NodeId, to: NodeId) -> f64 {
        let place = self.received.binary_search_by_key(&(from, to), |&(from, to, _)| (from, to));
        place.map_or(0.0, |place| watts(self.received[place].2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_its_own_power_and_the_last_entry_counts() {
        let (a, b, c) = (NodeId(0), NodeId(1), NodeId(2));
        let links = Links::new([(b, a, -60.0), (a, b, -50.0), (a, b, -30.0)].into());
        assert!((links.received_power(a, b) / 1e-6 - 1.0).abs() < 1e-12);
        assert!((links.received_power(b, a) / 1e-9 - 1.0).abs() < 1e-12);
        assert_eq!(links.received_power(a, c), 0.0);
    }
}

//! A radio whose links are given for each pair of nodes instead of computed from places: what is known of a real mesh.
//!
//! A pair that is not listed hears nothing of each other. Places then only say how long a frame is under way.

use super::power::watts;
use alloc::vec::Vec;
use meshpace_core::parameter::require;
use meshpace_core::{NodeId, ParameterError};

/// Transmit powers and losses in dB, or received powers in dBm: what arrives counts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Links {
    /// From, to, and the power with which it is received, dBm; sorted.
    received: Vec<(NodeId, NodeId, f64)>,
}

impl Links {
    /// The links of that list: from, to, received power in dBm. Of two entries for a pair in one direction the last counts.
    pub fn new(mut received: Vec<(NodeId, NodeId, f64)>) -> Links {
        received.reverse();
        received.sort_by_key(|&(from, to, _)| (from, to));
        received.dedup_by_key(|&mut (from, to, _)| (from, to));
        Links { received }
    }

    /// All of them.
    pub fn all(&self) -> &[(NodeId, NodeId, f64)] {
        &self.received
    }

    /// Checks every power against its range.
    ///
    /// # Errors
    /// The first that is not.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.received.iter().try_for_each(|&(_, _, dbm)| {
            require((-300.0..=100.0).contains(&dbm), "radio.links", dbm, "a received power of -300 dBm to 100 dBm")
        })
    }

    /// Power in W at which `to` hears `from`.
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

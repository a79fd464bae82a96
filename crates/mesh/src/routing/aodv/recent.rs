//! Small cache of the latest requests that a node has received. Duplicates of a request mostly
//! arrive shortly after each other. In a flood, the cache therefore recognises most of them without
//! access to the larger memory of all requests (`seen.rs`).

use meshpace_core::NodeId;

/// Number of cached requests: as many as fit on the first cache line of the protocol. In floods
/// over 3000 nodes they recognise two thirds of the duplicates.
const COUNT: usize = 4;

/// The latest requests of a node.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// Numbers of the requests.
    ids: [u32; COUNT],
    /// Origins of the requests.
    origins: [NodeId; COUNT],
    /// Number of cached requests.
    filled: u8,
    /// Index of the entry that is replaced next, modulo [`COUNT`].
    oldest: u8,
}

impl Recent {
    /// Empty cache.
    pub const NONE: Recent = Recent { ids: [0; COUNT], origins: [NodeId(0); COUNT], filled: 0, oldest: 0 };

    /// True if this request is in the cache. Otherwise adds it.
    #[inline]
    pub fn holds(&mut self, origin: NodeId, id: u32) -> bool {
        let filled = usize::from(self.filled);
        let mut known = self.origins.iter().zip(&self.ids).take(filled);
        if known.any(|(&from, &number)| from == origin && number == id) {
            return true;
        }
        let at = usize::from(self.oldest) % COUNT;
        (self.origins[at], self.ids[at]) = (origin, id);
        self.oldest = self.oldest.wrapping_add(1);
        self.filled = self.filled.max(at as u8 + 1);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_gives_way() {
        let mut recent = Recent::NONE;
        assert!(!recent.holds(NodeId(0), 0), "nothing is known at first");
        for n in 1..4 {
            assert!(!recent.holds(NodeId(n), 7));
        }
        assert!(recent.holds(NodeId(0), 0) && recent.holds(NodeId(3), 7) && !recent.holds(NodeId(3), 8));
        assert!(recent.holds(NodeId(1), 7) && !recent.holds(NodeId(0), 0), "(n3, 8) took the place of (n0, 0)");
        for n in 0..1000 {
            assert!(!recent.holds(NodeId(9), n) && recent.holds(NodeId(9), n));
            assert!(n < 3 || recent.clone().holds(NodeId(9), n - 3));
            assert!(n < 4 || !recent.clone().holds(NodeId(9), n - 4));
        }
    }
}

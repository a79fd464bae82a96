//! A small cache of the last requests that a node has received. Copies of a request mostly arrive soon after each other, so in a flood this
//! cache recognises most of them, without access to the larger memory of all requests (`seen.rs`).

use meshpace_core::NodeId;

/// Number of them: as many as the protocol's first cache line has room for. In floods over 3000 nodes they hold two thirds of the copies.
const COUNT: usize = 4;

/// A few requests.
#[derive(Clone, Debug)]
pub(super) struct Recent {
    /// Their numbers.
    ids: [u32; COUNT],
    /// The origin of the request.
    origins: [NodeId; COUNT],
    /// Their number.
    filled: u8,
    /// Which one gives way next.
    oldest: u8,
}

impl Recent {
    /// None.
    pub const NONE: Recent = Recent { ids: [0; COUNT], origins: [NodeId(0); COUNT], filled: 0, oldest: 0 };

    /// True if this request is among them; notes it if not.
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

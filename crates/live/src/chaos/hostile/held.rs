//! Memory that the buffers of the end under attack have taken, counted from the buffers and not from its books.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// What a connection holds, and who pays for it: an address, and the number of a key if keys are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Holding {
    pub(super) bytes: usize,
    pub(super) source: IpAddr,
    pub(super) key: Option<usize>,
}

/// What all connections hold.
#[derive(Debug, Default)]
pub(super) struct Held {
    holdings: BTreeMap<u64, Holding>,
}

impl Held {
    /// Connection `id` holds this, or nothing any more. Returns what it held before.
    pub(super) fn note(&mut self, id: u64, holding: Option<Holding>) -> Option<Holding> {
        match holding {
            Some(holding) => self.holdings.insert(id, holding),
            None => self.holdings.remove(&id),
        }
    }

    /// What connection `id` holds.
    pub(super) fn of(&self, id: u64) -> Option<Holding> {
        self.holdings.get(&id).copied()
    }

    fn sum(&self, counts: impl Fn(&Holding) -> bool) -> usize {
        self.holdings.values().filter(|holding| counts(holding)).map(|holding| holding.bytes).sum()
    }

    /// Bytes of all connections.
    pub(super) fn all(&self) -> usize {
        self.sum(|_| true)
    }

    /// Bytes of those with one source.
    pub(super) fn of_source(&self, source: IpAddr) -> usize {
        self.sum(|holding| holding.source == source)
    }

    /// Bytes of those with the holder of one key.
    pub(super) fn of_key(&self, key: usize) -> usize {
        self.sum(|holding| holding.key == Some(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_counts_for_its_source_and_its_key() {
        let holding = |bytes: usize, host: u8, key| Some(Holding { bytes, source: [10, 0, 0, host].into(), key });
        let mut held = Held::default();
        for (id, what) in [(1, holding(5, 1, Some(0))), (2, holding(70, 1, Some(1))), (3, holding(900, 2, Some(0)))] {
            assert_eq!(held.note(id, what), None);
        }
        assert_eq!((held.all(), held.of_source([10, 0, 0, 1].into()), held.of_key(0)), (975, 75, 905));
        assert_eq!(held.note(3, None), holding(900, 2, Some(0)));
        assert_eq!((held.all(), held.of_key(0)), (75, 5));
    }
}

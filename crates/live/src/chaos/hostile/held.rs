//! Memory that the buffers of the end under attack have allocated. It is measured at the buffers
//! and not taken from the accounts of that end.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Memory of a connection, and the identities for which it counts: an address, and the number of a
/// key if keys are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Holding {
    pub(super) bytes: usize,
    pub(super) source: IpAddr,
    pub(super) key: Option<usize>,
}

/// Memory of all connections.
#[derive(Debug, Default)]
pub(super) struct Held {
    holdings: BTreeMap<u64, Holding>,
}

impl Held {
    /// Records the memory of connection `id`; `None` if the connection has been removed. Returns
    /// the previous value.
    pub(super) fn note(&mut self, id: u64, holding: Option<Holding>) -> Option<Holding> {
        match holding {
            Some(holding) => self.holdings.insert(id, holding),
            None => self.holdings.remove(&id),
        }
    }

    /// Memory of connection `id`.
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

    /// Bytes of all connections with one source.
    pub(super) fn of_source(&self, source: IpAddr) -> usize {
        self.sum(|holding| holding.source == source)
    }

    /// Bytes of all connections with the holder of one key.
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

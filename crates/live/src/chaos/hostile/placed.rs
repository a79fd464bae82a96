//! Places of the connections of the end under attack. They are counted from the connections and not
//! taken from its endpoint.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Connections that count against the limits, and their number per address.
#[derive(Debug, Default)]
pub(super) struct Placed {
    at: BTreeMap<u64, IpAddr>,
    counts: BTreeMap<IpAddr, usize>,
}

impl Placed {
    /// Creates a count without connections. The counts of these addresses are compared even while
    /// they are zero.
    pub(super) fn among(addresses: impl IntoIterator<Item = IpAddr>) -> Placed {
        Placed { at: BTreeMap::new(), counts: addresses.into_iter().map(|at| (at, 0)).collect() }
    }

    /// Records the place of connection `id`; `None` if it has no place. Returns whether this is a
    /// change.
    pub(super) fn note(&mut self, id: u64, place: Option<IpAddr>) -> bool {
        let before = match place {
            Some(at) => self.at.insert(id, at),
            None => self.at.remove(&id),
        };
        if before == place {
            return false;
        }
        if let Some(count) = before.and_then(|at| self.counts.get_mut(&at)) {
            *count -= 1;
        }
        if let Some(at) = place {
            *self.counts.entry(at).or_default() += 1;
        }
        true
    }

    /// Number of connections of an address.
    pub(super) fn count(&self, at: IpAddr) -> usize {
        self.counts.get(&at).copied().unwrap_or(0)
    }

    /// Number of connections of each address.
    pub(super) fn counts(&self) -> impl Iterator<Item = (IpAddr, usize)> {
        self.counts.iter().map(|(at, count)| (*at, *count))
    }

    /// Number of all connections.
    pub(super) fn all(&self) -> usize {
        self.at.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_where_they_are() {
        let at = |host: u8| IpAddr::from([10, 0, 0, host]);
        let mut placed = Placed::among([at(9)]);
        for (id, place) in [(1, Some(at(1))), (2, Some(at(1))), (2, Some(at(2))), (3, None), (1, Some(at(1)))] {
            placed.note(id, place);
        }
        assert_eq!(placed.counts().collect::<Vec<_>>(), [(at(1), 1), (at(2), 1), (at(9), 0)]);
        placed.note(1, None);
        assert_eq!((placed.counts().next(), placed.all()), (Some((at(1), 0)), 1));
    }
}

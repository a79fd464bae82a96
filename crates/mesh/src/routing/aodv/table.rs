//! The routing table. As in ns-2.35 an entry is never deleted, so that its sequence number never goes back: even while the
//! route is valid, odd after it was lost (RFC 3561, section 6.1, lets a node forget it after DELETE_PERIOD).

use super::index::Index;
use super::route::{Entry, Route, Usage, waits_until};
use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// All routes of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// Where each is.
    index: Index,
    /// In the order of creation.
    routes: Vec<Route>,
    /// In the order of first use.
    usages: Vec<Usage>,
}

impl Table {
    /// The route to `destination`, brought up to date; None if there is no entry.
    #[inline]
    pub fn get(&mut self, now: Time, destination: NodeId) -> Option<Entry<'_>> {
        let place = self.index.get(destination)?;
        Some(self.at(now, place))
    }

    /// The route to `destination`, not brought up to date.
    pub fn peek(&self, destination: NodeId) -> Option<&Route> {
        Some(&self.routes[self.index.get(destination)?])
    }

    /// Until when no request for the route to `destination` is sent; None if there is no entry.
    pub fn waits_until(&self, destination: NodeId) -> Option<Time> {
        Some(waits_until(self.peek(destination)?, &self.usages))
    }

    /// The route to `destination`, brought up to date, or a new entry that is down with sequence number 0.
    #[inline]
    pub fn entry(&mut self, now: Time, destination: NodeId) -> Entry<'_> {
        let place = match self.index.get(destination) {
            Some(place) => place,
            None => self.add(destination),
        };
        self.at(now, place)
    }

    /// Makes an entry and tells its place.
    fn add(&mut self, destination: NodeId) -> usize {
        let place = self.routes.len();
        if place == self.routes.capacity() {
            // A large mesh has thousands of large tables: twice the room would be much that is empty.
            self.routes.reserve_exact((place / 4).max(4));
        }
        self.routes.push(Route::new(destination));
        // At most one entry per node number, of which there are fewer than 2^16.
        self.index.push(destination, place as u16);
        place
    }

    #[inline]
    fn at(&mut self, now: Time, place: usize) -> Entry<'_> {
        let route = &mut self.routes[place];
        route.settle(now);
        Entry::new(route, &mut self.usages)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// The destination of the newest entry but `place`, which is below [`Self::len`].
    pub fn newest(&self, place: usize) -> NodeId {
        self.routes[self.routes.len() - 1 - place].destination
    }

    /// All routes, the newest entry first as in ns-2 (seen in the order of destinations in a RERR), not brought up to date.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Route> {
        self.routes.iter_mut().rev()
    }

    /// Forgets that `neighbour` may use any of the routes.
    pub fn remove_precursor(&mut self, neighbour: NodeId) {
        for usage in &mut self.usages {
            usage.remove_precursor(neighbour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::route::{State, UNREACHABLE};
    use super::*;
    use alloc::collections::{BTreeMap, BTreeSet};
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;

    const S: u64 = 1_000_000_000;

    #[test]
    fn an_expired_route_lives_until_the_next_tick() {
        let mut table = Table::default();
        table.entry(Time::ZERO, NodeId(7)).set(4, 3, NodeId(1), Time(10 * S));
        // At 10.0 s it has not expired *before* the tick; the next tick is 10.5 s.
        for (now, up) in [(10 * S, true), (10 * S + 1, true), (10 * S + S / 2 - 1, true), (10 * S + S / 2, false)] {
            let mut table = table.clone();
            let route = table.get(Time(now), NodeId(7)).unwrap();
            assert_eq!(route.state == State::Up, up, "at {now} ns");
            assert_eq!((route.sequence, route.lost_hops), if up { (4, UNREACHABLE) } else { (5, 3) });
        }
    }

    #[test]
    fn entries_are_found_by_number_and_listed_newest_first() {
        let mut table = Table::default();
        for n in [5, 2, 9] {
            table.entry(Time::ZERO, NodeId(n));
        }
        table.entry(Time::ZERO, NodeId(2)).sequence = 8;
        assert_eq!(table.peek(NodeId(2)).unwrap().sequence, 8);
        assert!(table.peek(NodeId(3)).is_none());
        assert!(table.iter_mut().map(|route| route.destination.0).eq([9, 2, 5]));
    }

    /// What the table is to know of a destination.
    #[derive(Default)]
    struct Plain {
        sequence: u32,
        precursors: BTreeSet<NodeId>,
        waits_until: Time,
    }

    #[test]
    fn each_route_keeps_what_is_its_own() {
        for seed in 1..=10 {
            let mut rng = Rng::stream(seed, Purpose::Test, 0);
            let (mut table, mut plain, mut order) = (Table::default(), BTreeMap::<_, Plain>::new(), Vec::new());
            let range = 1 + rng.below(1500);
            for step in 0..4000 {
                let now = Time(step * S);
                let destination = NodeId(rng.below(range) as u16);
                let neighbour = NodeId(rng.below(9) as u16);
                assert_eq!(table.get(now, destination).is_some(), plain.contains_key(&destination), "seed {seed}");
                let known = plain.entry(destination).or_insert_with(|| {
                    order.push(destination);
                    Plain::default()
                });
                let mut entry = table.entry(now, destination);
                assert_eq!((entry.destination, entry.sequence), (destination, known.sequence), "seed {seed}");
                assert_eq!(entry.waits_until(), known.waits_until, "seed {seed} step {step}");
                match rng.below(12) {
                    0..4 => {
                        entry.sequence += 2;
                        known.sequence += 2;
                    }
                    4..6 => {
                        entry.add_precursor(neighbour);
                        known.precursors.insert(neighbour);
                    }
                    6 => {
                        assert_eq!(entry.clear_precursors(), !known.precursors.is_empty(), "seed {seed} step {step}");
                        known.precursors.clear();
                    }
                    7 => {
                        // TTL 1, nothing measured: 2 x 1 x 30 ms.
                        entry.search().ask_once(now, 1);
                        known.waits_until = Time(now.0 + S * 6 / 100);
                    }
                    8 => {
                        table.remove_precursor(neighbour);
                        for other in plain.values_mut() {
                            other.precursors.remove(&neighbour);
                        }
                    }
                    _ => {}
                }
                assert_eq!(table.waits_until(destination), Some(plain[&destination].waits_until), "seed {seed}");
            }
            let listed: Vec<_> = table.iter_mut().map(|route| route.destination).collect();
            assert!(listed.iter().eq(order.iter().rev()), "seed {seed}");
            assert!((0..table.len()).map(|place| table.newest(place)).eq(listed), "seed {seed}");
        }
    }
}

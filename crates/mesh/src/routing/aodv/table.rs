//! Routing table. As in ns-2.35, an entry is never deleted, so that its sequence number never
//! decreases: the number is even while the route is valid, and odd after it was lost.
//!
//! RFC 3561, section 6.1, permits a node to delete an entry after DELETE_PERIOD, when no other node
//! can still send over the lost route. If such a period is configured, the table is swept when the
//! period has passed since the last sweep. Entries that were lost at that sweep and are still lost
//! are deleted, so an entry stays for one to two periods. A node that receives no requests, so that
//! its table does not grow, is not swept.

use super::index::Index;
use super::route::{Entry, Route, Usage, waits_until};
use alloc::boxed::Box;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Time};

/// All routes of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// Position of the route to each destination in `routes`.
    index: Index,
    /// Routes in the order of creation.
    routes: Vec<Route>,
    /// Usages in the order of first use.
    usages: Vec<Usage>,
    /// Schedule of the sweeps; `None` if entries are never deleted.
    sweeps: Option<Box<Sweeps>>,
}

#[derive(Clone, Debug)]
struct Sweeps {
    period: Duration,
    next: Time,
}

impl Table {
    /// Creates an empty table. Lost routes are deleted after `delete_period`, or never if it is
    /// `None`.
    pub fn with_delete_period(delete_period: Option<Duration>) -> Table {
        let sweeps = delete_period.map(|period| Box::new(Sweeps { period, next: Time::ZERO }));
        Table { sweeps, ..Table::default() }
    }

    /// Deletes routes that were lost long ago, if a sweep is due. Routes to destinations that
    /// `is_wanted` are kept.
    pub fn sweep(&mut self, now: Time, is_wanted: impl Fn(NodeId) -> bool) {
        match &mut self.sweeps {
            Some(sweeps) if sweeps.next <= now => sweeps.next = now + sweeps.period,
            _ => return,
        }
        let (mut old, mut kept) = (core::mem::take(&mut self.usages), Vec::new());
        self.routes.retain_mut(|route| !route.can_be_deleted(now, is_wanted(route.destination), &mut old, &mut kept));
        self.usages = kept;
        self.routes.shrink_to(self.routes.len() + self.routes.len() / 4);
        self.index = Index::default();
        for (place, route) in self.routes.iter().enumerate() {
            self.index.push(route.destination, place as u16);
        }
    }

    /// Updated route to `destination`; `None` if there is no entry.
    #[inline]
    pub fn get(&mut self, now: Time, destination: NodeId) -> Option<Entry<'_>> {
        let place = self.index.get(destination)?;
        Some(self.at(now, place))
    }

    /// Route to `destination` without an update; `None` if there is no entry.
    pub fn peek(&self, destination: NodeId) -> Option<&Route> {
        Some(&self.routes[self.index.get(destination)?])
    }

    /// Time before which no request for a route to `destination` is sent; `None` if there is no
    /// entry.
    pub fn waits_until(&self, destination: NodeId) -> Option<Time> {
        Some(waits_until(self.peek(destination)?, &self.usages))
    }

    /// Updated route to `destination`. If there is no entry, creates one that is down with sequence
    /// number 0.
    #[inline]
    pub fn entry(&mut self, now: Time, destination: NodeId) -> Entry<'_> {
        let place = match self.index.get(destination) {
            Some(place) => place,
            None => self.add(destination),
        };
        self.at(now, place)
    }

    /// Creates an entry and returns its position.
    fn add(&mut self, destination: NodeId) -> usize {
        let place = self.routes.len();
        if place == self.routes.capacity() {
            // The vector grows by a quarter, because a large mesh has thousands of large tables,
            // and doubling would leave much memory unused.
            self.routes.reserve_exact((place / 4).max(4));
        }
        self.routes.push(Route::new(destination));
        // There is at most one entry per node number, and fewer than 2^16 node numbers.
        self.index.push(destination, place as u16);
        place
    }

    /// Updated entry at a position.
    #[inline]
    fn at(&mut self, now: Time, place: usize) -> Entry<'_> {
        let route = &mut self.routes[place];
        route.apply_purge_ticks(now);
        Entry::new(route, &mut self.usages)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Destination of entry number `place` counted from the newest entry. `place` must be below
    /// [`Self::len`].
    pub fn newest(&self, place: usize) -> NodeId {
        self.routes[self.routes.len() - 1 - place].destination
    }

    /// All routes without an update, the newest entry first as in ns-2 (visible in the order of
    /// destinations in a RERR).
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Route> {
        self.routes.iter_mut().rev()
    }

    /// Removes `neighbour` from the precursors of all routes.
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
        // At 10.0 s the route has not expired *before* the tick; the next tick is at 10.5 s.
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

    #[test]
    fn what_was_lost_for_two_sweeps_is_forgotten_and_nothing_else() {
        let period = Duration::from_secs(50);
        let mut table = Table::with_delete_period(Some(period));
        table.sweep(Time(S), |_| false);
        // Route 1 is lost at 20 s; 2 is found again at 90 s; 3 is used to the end; a packet waits
        // for 4; the transport of 5 waits for the notice of a new route; 6 is being requested.
        for (n, expires) in [(1, 20 * S), (2, 20 * S), (3, 900 * S), (4, 20 * S), (5, 20 * S), (6, 20 * S)] {
            table.entry(Time(S), NodeId(n)).set(2, 3, NodeId(9), Time(expires));
        }
        table.entry(Time(S), NodeId(5)).loss_notified = true;
        table.entry(Time(S), NodeId(3)).add_precursor(NodeId(8));
        table.entry(Time(S), NodeId(6)).add_precursor(NodeId(7));
        let known = |table: &mut Table| table.iter_mut().map(|route| route.destination.0).collect::<Vec<_>>();
        table.sweep(Time(51 * S), |_| false);
        assert_eq!(table.get(Time(51 * S), NodeId(1)).unwrap().sequence, 3, "lost, and remembered for its number");
        table.entry(Time(90 * S), NodeId(2)).set(6, 2, NodeId(9), Time(100 * S));
        table.sweep(Time(100 * S), |_| false);
        assert_eq!(known(&mut table), [6, 5, 4, 3, 2, 1]);
        table.entry(Time(101 * S), NodeId(6)).search().start_single(Time(101 * S), 30);
        table.sweep(Time(101 * S), |destination| destination == NodeId(4));
        assert_eq!(known(&mut table), [6, 5, 4, 3, 2]);
        assert!(table.peek(NodeId(1)).is_none());
        assert_eq!(table.peek(NodeId(2)).unwrap().sequence, 7, "lost since, but not for two sweeps");
        // Each remaining route has kept its own usage.
        assert!(table.entry(Time(101 * S), NodeId(3)).clear_precursors());
        assert!(table.entry(Time(101 * S), NodeId(6)).clear_precursors());
        assert!(!table.entry(Time(101 * S), NodeId(4)).clear_precursors());
        assert_eq!(table.waits_until(NodeId(6)), Some(Time(101 * S + S * 18 / 10)), "2 x 30 hops x 30 ms");
        for now in [151, 201, 251] {
            table.sweep(Time(now * S), |_| false);
        }
        assert_eq!(known(&mut table), [5, 3]);
    }

    #[test]
    fn with_a_delete_period_a_table_stops_growing() {
        let entries = |delete_period, seconds| {
            let mut table = Table::with_delete_period(delete_period);
            for second in 1..=seconds {
                // In each second, another node sends a request.
                let now = Time(u64::from(second) * S);
                table.sweep(now, |_| false);
                table.entry(now, NodeId(second)).set(2, 3, NodeId(0), Time(now.0 + 6 * S));
            }
            (table.len(), table.routes.capacity())
        };
        assert_eq!([entries(None, 300).0, entries(None, 3000).0], [300, 3000]);
        let period = Some(Duration::from_secs(50));
        for (len, capacity) in [entries(period, 300), entries(period, 3000)] {
            // A route lives for 6 s, up to half a second to the tick, and at most two sweeps.
            assert!((50..=6 + 1 + 2 * 50).contains(&len) && capacity < 160, "{len} in {capacity}");
        }
    }

    /// Route with the values that the table must hold.
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
                        // The wait is that of TTL 1 without a measurement: 2 x 1 x 30 ms.
                        entry.search().start_single(now, 1);
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

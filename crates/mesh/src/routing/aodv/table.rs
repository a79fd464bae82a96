//! The routing table: sequence numbers, validity, lifetimes, precursors (RFC 3561, sections 2, 6.1 and 6.2).
//!
//! As in ns-2.35 an entry is never deleted, so that its sequence number never goes back: even while the route is valid,
//! odd after it was lost. A valid route that expires is lost at the next purge tick, a multiple of 0.5 s. The tick itself
//! touches nothing else, so it is not run: [`Route::settle`] does its work when the entry is next looked at.

use super::search::Search;
use alloc::vec::Vec;
use meshpace_core::{Duration, NodeId, Time};

/// Hop count of a route that is lost.
pub(super) const UNREACHABLE: u8 = u8::MAX;
/// Distance of the purge ticks, which start at time 0.
const PURGE_TICK: Duration = Duration::from_millis(500);
/// How long a route lasts after a packet was forwarded along it.
pub(super) const ACTIVE_ROUTE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first purge tick after `time`.
pub(super) fn tick_after(time: Time) -> Time {
    Time((time.0 / PURGE_TICK.0 + 1).saturating_mul(PURGE_TICK.0))
}

/// The first purge tick at or after `time`.
pub(super) fn tick_from(time: Time) -> Time {
    Time(time.0.div_ceil(PURGE_TICK.0).saturating_mul(PURGE_TICK.0))
}

/// Whether sequence number `a` is newer than `b`, across the wrap of 32 bits (RFC 3561, section 6.1).
pub(super) fn newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// The newer of two sequence numbers.
pub(super) fn newest(a: u32, b: u32) -> u32 {
    if newer(a, b) { a } else { b }
}

/// Whether a route can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// No.
    Down,
    /// Yes.
    Up,
    /// This node looks for another way and keeps packets meanwhile; next hop and hop count are those before the failure.
    InRepair,
}

/// The route to one destination.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// Where it leads.
    pub destination: NodeId,
    /// The neighbour to send to; meaningless when down.
    pub next_hop: NodeId,
    /// Whether it can be used.
    pub state: State,
    /// Hops to the destination, [`UNREACHABLE`] when down.
    pub hops: u8,
    /// Hops when it was last lost; [`UNREACHABLE`] if it never was.
    pub lost_hops: u8,
    /// How new it is.
    pub sequence: u32,
    /// A valid route is lost at the first purge tick after this.
    pub expires: Time,
    /// Whether this node's own transport has sent over it since it was found.
    pub used_here: bool,
    /// Whether the transport has been told that it is lost, and not yet that it is found.
    pub missed: bool,
    /// Asking for a route to this destination.
    pub search: Search,
    /// Neighbours that may use this route, to be told of its loss.
    precursors: Vec<NodeId>,
}

impl Route {
    fn new(destination: NodeId) -> Self {
        Route {
            destination,
            next_hop: NodeId::BROADCAST,
            state: State::Down,
            hops: UNREACHABLE,
            lost_hops: UNREACHABLE,
            sequence: 0,
            expires: Time::ZERO,
            used_here: false,
            missed: false,
            search: Search::new(),
            precursors: Vec::new(),
        }
    }

    /// Does what the purge ticks since the last visit would have done.
    #[inline]
    pub fn settle(&mut self, now: Time) {
        if self.lapsed(now) {
            self.sequence = self.sequence.wrapping_add(1);
            self.go_down();
            // Nobody used it.
            self.used_here = false;
        }
    }

    /// Whether the transport is to be told that the route, just lost, is lost.
    pub fn note_loss(&mut self) -> bool {
        let tell = self.used_here && !self.missed;
        self.missed |= tell;
        self.used_here = false;
        tell
    }

    /// Whether a purge tick has found this route expired.
    #[inline]
    pub fn lapsed(&self, now: Time) -> bool {
        self.state == State::Up && now > self.expires && now >= tick_after(self.expires)
    }

    /// Whether a route with these properties is to replace this one: newer, or as new and shorter.
    pub fn yields_to(&self, sequence: u32, hops: u8) -> bool {
        newer(sequence, self.sequence) || (sequence == self.sequence && hops < self.hops)
    }

    /// Becomes the route over `next_hop`.
    pub fn set(&mut self, sequence: u32, hops: u8, next_hop: NodeId, expires: Time) {
        self.sequence = sequence;
        self.hops = hops;
        self.next_hop = next_hop;
        self.state = State::Up;
        self.expires = expires;
    }

    /// Is lost. The caller raises the sequence number where that is called for.
    pub fn go_down(&mut self) {
        if self.state != State::Down {
            self.lost_hops = self.hops;
            self.hops = UNREACHABLE;
            self.state = State::Down;
            self.next_hop = NodeId::BROADCAST;
            self.expires = Time::ZERO;
        }
    }

    /// Notes that `neighbour` may use this route.
    pub fn add_precursor(&mut self, neighbour: NodeId) {
        if !self.precursors.contains(&neighbour) {
            self.precursors.push(neighbour);
        }
    }

    /// Forgets one neighbour.
    pub fn remove_precursor(&mut self, neighbour: NodeId) {
        self.precursors.retain(|&known| known != neighbour);
    }

    /// Forgets all neighbours that may use this route; whether there was any.
    pub fn clear_precursors(&mut self) -> bool {
        let any = !self.precursors.is_empty();
        self.precursors.clear();
        any
    }
}

/// All routes of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    /// In the order of creation.
    routes: Vec<Route>,
    /// Destinations in ascending order with their place in `routes`.
    index: Vec<(NodeId, u16)>,
}

impl Table {
    /// The route to `destination`, brought up to date; None if there is no entry.
    pub fn get(&mut self, now: Time, destination: NodeId) -> Option<&mut Route> {
        let at = self.index.binary_search_by_key(&destination, |entry| entry.0).ok()?;
        let route = &mut self.routes[usize::from(self.index[at].1)];
        route.settle(now);
        Some(route)
    }

    /// The route to `destination`, not brought up to date.
    pub fn peek(&self, destination: NodeId) -> Option<&Route> {
        let at = self.index.binary_search_by_key(&destination, |entry| entry.0).ok()?;
        Some(&self.routes[usize::from(self.index[at].1)])
    }

    /// The route to `destination`, brought up to date, or a new entry that is down with sequence number 0.
    pub fn entry(&mut self, now: Time, destination: NodeId) -> &mut Route {
        let place = match self.index.binary_search_by_key(&destination, |entry| entry.0) {
            Ok(at) => usize::from(self.index[at].1),
            Err(at) => {
                let place = self.routes.len();
                self.routes.push(Route::new(destination));
                // At most one entry per node number, of which there are fewer than 2^16.
                self.index.insert(at, (destination, place as u16));
                place
            }
        };
        let route = &mut self.routes[place];
        route.settle(now);
        route
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// The destination of the newest entry but `place`, which is below [`Self::len`].
    pub fn newest(&self, place: usize) -> NodeId {
        self.routes[self.routes.len() - 1 - place].destination
    }

    /// All routes, brought up to date, the newest entry first as in ns-2 (seen in the order of destinations in a RERR).
    pub fn iter(&mut self, now: Time) -> impl Iterator<Item = &mut Route> {
        for route in &mut self.routes {
            route.settle(now);
        }
        self.routes.iter_mut().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn sequence_numbers_decide_before_hops() {
        let mut route = Route::new(NodeId(1));
        assert!(route.yields_to(0, 9), "a lost route yields to any as new");
        route.set(4, 3, NodeId(2), Time::NEVER);
        assert!(route.yields_to(6, 200) && route.yields_to(4, 2));
        assert!(!route.yields_to(4, 3) && !route.yields_to(2, 1));
        route.sequence = u32::MAX - 1;
        assert!(route.yields_to(2, 9), "newer across the wrap");
    }

    #[test]
    fn ticks_are_multiples_of_half_a_second() {
        assert_eq!(tick_after(Time(0)), Time(S / 2));
        assert_eq!(tick_after(Time(S / 2)), Time(S));
        assert_eq!(tick_from(Time(S / 2)), Time(S / 2));
        assert_eq!(tick_from(Time(S / 2 + 1)), Time(S));
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
        assert!(table.iter(Time::ZERO).map(|route| route.destination.0).eq([9, 2, 5]));
    }
}

//! A route: what a node knows about the path to one destination (RFC 3561, sections 2, 6.1 and 6.2).
//!
//! As in ns-2.35 a valid route that expires is lost at the next purge tick, a multiple of 0.5 s. The tick itself touches nothing
//! else, so it is not run: [`Route::settle`] does its work when the route is next looked at.
//!
//! Every flood gives every node a route back to its origin, and most of these are never used. So the data of routes in use,
//! a search and precursors, is stored separately ([`Usage`]), and a route itself is small.

use super::search::Search;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use meshpace_core::{Duration, NodeId, Time};

/// Hop count of a route that is lost.
pub(super) const UNREACHABLE: u8 = u8::MAX;
/// Distance of the purge ticks, which start at time 0.
const PURGE_TICK: Duration = Duration::from_millis(500);
/// Lifetime of a route after a packet was forwarded along it.
pub const ACTIVE_ROUTE_TIMEOUT: Duration = Duration::from_secs(10);
/// The usage of a route that has none: there are fewer routes than this.
const NONE: u16 = u16::MAX;

/// The first purge tick after `time`.
pub(super) fn tick_after(time: Time) -> Time {
    Time((time.0 / PURGE_TICK.0 + 1).saturating_mul(PURGE_TICK.0))
}

/// The first purge tick at or after `time`.
pub(super) fn tick_from(time: Time) -> Time {
    Time(time.0.div_ceil(PURGE_TICK.0).saturating_mul(PURGE_TICK.0))
}

/// True if sequence number `a` is newer than `b`, across the wrap of 32 bits (RFC 3561, section 6.1).
pub(super) fn newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// The newer of two sequence numbers.
pub(super) fn newest(a: u32, b: u32) -> u32 {
    if newer(a, b) { a } else { b }
}

/// State of a route.
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
    /// A valid route is lost at the first purge tick after this.
    pub expires: Time,
    /// Its sequence number.
    pub sequence: u32,
    /// Its destination.
    pub destination: NodeId,
    /// The neighbour to send to; meaningless when down.
    pub next_hop: NodeId,
    /// The place of its [`Usage`], or [`NONE`].
    usage: u16,
    /// State of the route.
    pub state: State,
    /// Hops to the destination, [`UNREACHABLE`] when down.
    pub hops: u8,
    /// Hops when it was last lost; [`UNREACHABLE`] if it never was.
    pub lost_hops: u8,
    /// True if this node's own transport has sent over it since it was found.
    pub used_here: bool,
    /// True if the transport has been told that it is lost, and not yet that it is found.
    pub missed: bool,
    /// Lost already, and of no use, when the table was last swept.
    fading: bool,
}

impl Route {
    /// No way yet.
    pub fn new(destination: NodeId) -> Self {
        Route {
            expires: Time::ZERO,
            sequence: 0,
            destination,
            next_hop: NodeId::BROADCAST,
            usage: NONE,
            state: State::Down,
            hops: UNREACHABLE,
            lost_hops: UNREACHABLE,
            used_here: false,
            missed: false,
            fading: false,
        }
    }

    /// Brings the route up to date and notes whether it can be forgotten: it is lost, nobody asks or waits for it, and it was so
    /// at the last call already. What it has among `old` goes into `kept` otherwise.
    pub fn fades(&mut self, now: Time, is_wanted: bool, old: &mut [Usage], kept: &mut Vec<Usage>) -> bool {
        self.settle(now);
        let is_idle = self.state == State::Down && !self.missed && !is_wanted && waits_until(self, old) <= now;
        let goes = is_idle && self.fading;
        self.fading = is_idle;
        if !goes && let Some(usage) = old.get_mut(usize::from(self.usage)) {
            // At most one per route.
            self.usage = kept.len() as u16;
            kept.push(core::mem::replace(usage, Usage::NEW));
        }
        goes
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

    /// True if the transport is to be told that the route, just lost, is lost.
    pub fn note_loss(&mut self) -> bool {
        let tell = self.used_here && !self.missed;
        self.missed |= tell;
        self.used_here = false;
        tell
    }

    /// True if a purge tick has found this route expired.
    #[inline]
    pub fn lapsed(&self, now: Time) -> bool {
        self.state == State::Up && now > self.expires && now >= tick_after(self.expires)
    }

    /// True if a route with these properties is to replace this one: newer, or as new and shorter.
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
            self.fading = false;
        }
    }
}

/// Use of routes that are asked for or used.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Asking for a route to this destination.
    search: Search,
    /// Neighbours that may use this route, to be told of its loss.
    precursors: Vec<NodeId>,
}

impl Usage {
    const NEW: Usage = Usage { search: Search::NEW, precursors: Vec::new() };

    /// Forgets one neighbour.
    pub fn remove_precursor(&mut self, neighbour: NodeId) {
        self.precursors.retain(|&known| known != neighbour);
    }
}

/// A route with its usage.
pub(super) struct Entry<'a> {
    route: &'a mut Route,
    /// Those of all routes.
    usages: &'a mut Vec<Usage>,
}

impl<'a> Entry<'a> {
    /// `route` with its place among `usages`.
    #[inline]
    pub fn new(route: &'a mut Route, usages: &'a mut Vec<Usage>) -> Self {
        Entry { route, usages }
    }

    /// Its usage, if it has one.
    #[inline]
    fn usage(&mut self) -> Option<&mut Usage> {
        self.usages.get_mut(usize::from(self.route.usage))
    }

    /// Its usage, new if it has none.
    fn usage_or_new(&mut self) -> &mut Usage {
        if self.route.usage == NONE {
            // At most one per route.
            self.route.usage = self.usages.len() as u16;
            self.usages.push(Usage::NEW);
        }
        &mut self.usages[usize::from(self.route.usage)]
    }

    /// The search for it, to go on with.
    pub fn search(&mut self) -> &mut Search {
        &mut self.usage_or_new().search
    }

    /// Until when no request for it is sent; [`Time::ZERO`] if none is outstanding.
    #[inline]
    pub fn waits_until(&self) -> Time {
        waits_until(self.route, self.usages)
    }

    /// Notes that `neighbour` may use this route.
    pub fn add_precursor(&mut self, neighbour: NodeId) {
        let precursors = &mut self.usage_or_new().precursors;
        if !precursors.contains(&neighbour) {
            precursors.push(neighbour);
        }
    }

    /// Forgets all neighbours that may use this route; whether there was any.
    pub fn clear_precursors(&mut self) -> bool {
        self.usage().is_some_and(|usage| {
            let any = !usage.precursors.is_empty();
            usage.precursors.clear();
            any
        })
    }
}

impl Deref for Entry<'_> {
    type Target = Route;
    #[inline]
    fn deref(&self) -> &Route {
        self.route
    }
}

impl DerefMut for Entry<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Route {
        self.route
    }
}

/// Until when no request for `route` is sent; [`Time::ZERO`] if none is outstanding.
#[inline]
pub(super) fn waits_until(route: &Route, usages: &[Usage]) -> Time {
    usages.get(usize::from(route.usage)).map_or(Time::ZERO, |usage| usage.search.wait_until())
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

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
    fn a_route_is_at_most_24_bytes() {
        assert!(size_of::<Route>() <= 24, "{}", size_of::<Route>());
    }
}

//! Route of a node to one destination (RFC 3561, sections 2, 6.1 and 6.2).
//!
//! As in ns-2.35, a valid route that expires is lost at the next purge tick, a multiple of 0.5 s.
//! The tick has no other effect, so it is not executed: [`Route::apply_purge_ticks`] does its work
//! when the route is used next.
//!
//! Every flood gives every node a route back to its origin, and most of these routes are never
//! used. The data of used routes (a search and precursors) is therefore stored separately
//! ([`Usage`]), so that a route itself is small.

use super::search::Search;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};
use meshpace_core::{Duration, NodeId, Time};

/// Hop count of a lost route.
pub(super) const UNREACHABLE: u8 = u8::MAX;
/// Interval of the purge ticks, which start at time 0.
const PURGE_TICK: Duration = Duration::from_millis(500);
/// Lifetime of a route after a packet was forwarded along it.
pub const ACTIVE_ROUTE_TIMEOUT: Duration = Duration::from_secs(10);
/// Index of the usage of a route that has none. There are fewer routes than this.
const NONE: u16 = u16::MAX;

/// First purge tick after `time`.
pub(super) fn tick_after(time: Time) -> Time {
    Time((time.0 / PURGE_TICK.0 + 1).saturating_mul(PURGE_TICK.0))
}

/// First purge tick at or after `time`.
pub(super) fn tick_from(time: Time) -> Time {
    Time(time.0.div_ceil(PURGE_TICK.0).saturating_mul(PURGE_TICK.0))
}

/// True if sequence number `a` is newer than `b`, with wrap-around at 32 bits (RFC 3561, section
/// 6.1).
pub(super) fn newer(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() > 0
}

/// Newer of two sequence numbers.
pub(super) fn newest(a: u32, b: u32) -> u32 {
    if newer(a, b) { a } else { b }
}

/// State of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The route is not valid.
    Down,
    /// The route is valid.
    Up,
    /// This node searches for another path and keeps packets meanwhile. Next hop and hop count are
    /// those before the failure.
    InRepair,
}

/// Route to one destination.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// Expiry time. A valid route is lost at the first purge tick after it.
    pub expires: Time,
    /// Sequence number of the route.
    pub sequence: u32,
    /// Destination of the route.
    pub destination: NodeId,
    /// Neighbour to which packets are sent; meaningless if the route is down.
    pub next_hop: NodeId,
    /// Index of the [`Usage`] of the route, or [`NONE`].
    usage: u16,
    /// State of the route.
    pub state: State,
    /// Number of hops to the destination; [`UNREACHABLE`] if the route is down.
    pub hops: u8,
    /// Number of hops when the route was last lost; [`UNREACHABLE`] if it never was.
    pub lost_hops: u8,
    /// True if this node's own transport has sent packets over the route since it was found.
    pub used_here: bool,
    /// True if the transport has been notified of the loss, but not yet of a new route.
    pub loss_notified: bool,
    /// True if the route was lost and unused when the table was last swept.
    was_idle_at_sweep: bool,
}

impl Route {
    /// Creates an entry without a route.
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
            loss_notified: false,
            was_idle_at_sweep: false,
        }
    }

    /// Updates the route and returns whether it can be deleted: it is lost, no search or packet
    /// needs it, and this was the case at the last call already. If it is kept, its usage is moved
    /// from `old` to `kept`.
    pub fn can_be_deleted(&mut self, now: Time, is_wanted: bool, old: &mut [Usage], kept: &mut Vec<Usage>) -> bool {
        self.apply_purge_ticks(now);
        let is_idle = self.state == State::Down && !self.loss_notified && !is_wanted && waits_until(self, old) <= now;
        let is_deleted = is_idle && self.was_idle_at_sweep;
        self.was_idle_at_sweep = is_idle;
        if !is_deleted && let Some(usage) = old.get_mut(usize::from(self.usage)) {
            // There is at most one usage per route, so the index fits.
            self.usage = kept.len() as u16;
            kept.push(core::mem::replace(usage, Usage::NEW));
        }
        is_deleted
    }

    /// Applies the purge ticks since the last access.
    #[inline]
    pub fn apply_purge_ticks(&mut self, now: Time) {
        if self.is_expired(now) {
            self.sequence = self.sequence.wrapping_add(1);
            self.go_down();
            // The route expired without use, so its loss is not notified.
            self.used_here = false;
        }
    }

    /// Returns true if the transport must be notified that the route, which has just been lost, is
    /// lost.
    pub fn note_loss(&mut self) -> bool {
        let must_notify = self.used_here && !self.loss_notified;
        self.loss_notified |= must_notify;
        self.used_here = false;
        must_notify
    }

    /// True if a purge tick has found this route expired.
    #[inline]
    pub fn is_expired(&self, now: Time) -> bool {
        self.state == State::Up && now > self.expires && now >= tick_after(self.expires)
    }

    /// True if a route with these properties replaces this one: it is newer, or as new and shorter.
    pub fn is_replaced_by(&self, sequence: u32, hops: u8) -> bool {
        newer(sequence, self.sequence) || (sequence == self.sequence && hops < self.hops)
    }

    /// Replaces the route by one over `next_hop`, which is valid until `expires`.
    pub fn set(&mut self, sequence: u32, hops: u8, next_hop: NodeId, expires: Time) {
        self.sequence = sequence;
        self.hops = hops;
        self.next_hop = next_hop;
        self.state = State::Up;
        self.expires = expires;
    }

    /// Marks the route as lost. The caller raises the sequence number where necessary.
    pub fn go_down(&mut self) {
        if self.state != State::Down {
            self.lost_hops = self.hops;
            self.hops = UNREACHABLE;
            self.state = State::Down;
            self.next_hop = NodeId::BROADCAST;
            self.expires = Time::ZERO;
            self.was_idle_at_sweep = false;
        }
    }
}

/// Additional data of a route that was requested or used.
#[derive(Clone, Debug)]
pub(super) struct Usage {
    /// Search for a route to this destination.
    search: Search,
    /// Neighbours that may use this route and must be informed of its loss.
    precursors: Vec<NodeId>,
}

impl Usage {
    const NEW: Usage = Usage { search: Search::NEW, precursors: Vec::new() };

    /// Removes one neighbour from the precursors.
    pub fn remove_precursor(&mut self, neighbour: NodeId) {
        self.precursors.retain(|&known| known != neighbour);
    }
}

/// Reference to a route together with its usage.
pub(super) struct Entry<'a> {
    route: &'a mut Route,
    /// Usages of all routes.
    usages: &'a mut Vec<Usage>,
}

impl<'a> Entry<'a> {
    /// Combines `route` with its usage in `usages`.
    #[inline]
    pub fn new(route: &'a mut Route, usages: &'a mut Vec<Usage>) -> Self {
        Entry { route, usages }
    }

    /// Usage of the route; `None` if it has none.
    #[inline]
    fn usage(&mut self) -> Option<&mut Usage> {
        self.usages.get_mut(usize::from(self.route.usage))
    }

    /// Usage of the route, which is created if it has none.
    fn usage_or_new(&mut self) -> &mut Usage {
        if self.route.usage == NONE {
            // There is at most one usage per route, so the index fits.
            self.route.usage = self.usages.len() as u16;
            self.usages.push(Usage::NEW);
        }
        &mut self.usages[usize::from(self.route.usage)]
    }

    /// Search for this route, for a change of its state.
    pub fn search(&mut self) -> &mut Search {
        &mut self.usage_or_new().search
    }

    /// Time before which no request for this route is sent; [`Time::ZERO`] if no request is
    /// outstanding.
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

    /// Removes all precursors. Returns whether there was any.
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

/// Time before which no request for `route` is sent; [`Time::ZERO`] if no request is outstanding.
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
        assert!(route.is_replaced_by(0, 9), "a lost route yields to any as new");
        route.set(4, 3, NodeId(2), Time::NEVER);
        assert!(route.is_replaced_by(6, 200) && route.is_replaced_by(4, 2));
        assert!(!route.is_replaced_by(4, 3) && !route.is_replaced_by(2, 1));
        route.sequence = u32::MAX - 1;
        assert!(route.is_replaced_by(2, 9), "newer across the wrap");
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

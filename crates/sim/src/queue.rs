//! Event queue: timers, one slot per owner, so that setting a timer again moves it.
//!
//! Each kind of owner has a tournament of times, whose slots are ordered as the nodes are. The
//! order among events of equal time is evaluated only if times are equal.
//!
//! Events at equal times are ordered by kind, where ends of frames come before timers, and then by
//! node. (Starts of frames are not events, see [`meshpace_mesh::mac::OrderedTime`].) The order
//! never depends on the time of insertion, so another queue implementation would give the same
//! results.

use crate::tournament::Tournament;
use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// Time of an event, and its order among events of the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    time: Time,
    order: u64,
}

impl Key {
    /// Key after all events.
    pub const NEVER: Key = Key { time: Time::NEVER, order: u64::MAX };

    #[inline]
    fn new(time: Time, class: u64, node: NodeId, rank: u32) -> Key {
        Key { time, order: class << 62 | u64::from(node.0) << 32 | u64::from(rank) }
    }

    /// Key of the end of a frame from `sender` at `node`.
    #[inline]
    pub fn frame_end(time: Time, node: NodeId, sender: NodeId) -> Key {
        Key::new(time, 0, node, u32::from(sender.0))
    }

    /// Key of a timer at `node`; `rank` orders the timers of a node.
    #[inline]
    pub fn timer(time: Time, node: NodeId, rank: u32) -> Key {
        Key::new(time, 1, node, rank)
    }

    /// Time of the event.
    #[inline]
    pub fn time(self) -> Time {
        self.time
    }
}

/// Rank of delayed packets among a node's timers of equal time. It follows those of MAC and
/// routing. Delayed packets are ordered by the start of their delay; discipline, link layer and
/// then the driver's timers follow.
pub const DELAYED_RANK: u32 = 2;
/// Number of delayed packets after which their ranks repeat. It is larger than the number of
/// simultaneously delayed packets.
pub const DELAYED_RANKS: u32 = 1 << 28;
/// Rank of discipline and link layer.
pub const LINK_RANK: u32 = DELAYED_RANK + DELAYED_RANKS;
/// Rank of the MAC's reorder buffers.
const REORDER_RANK: u32 = LINK_RANK + 1;
/// Rank of the driver's first timer.
pub const HOST_RANK: u32 = REORDER_RANK + 1;

/// Owner of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// MAC of a node.
    Mac,
    /// Transmission: its end at a station of its audience.
    FrameEnd,
    /// Driver of the engine.
    Host,
    /// Routing protocol of a node.
    Routing,
    /// Delayed packet.
    Delayed,
    /// Queue discipline of a node.
    Link,
    /// Reorder buffers of a node.
    Reorder,
}

impl Owner {
    /// Rank of a timer of which each node has exactly one, whose index is the node's number; `None`
    /// for other events.
    #[inline]
    const fn rank(self) -> Option<u32> {
        match self {
            Owner::Mac => Some(0),
            Owner::Routing => Some(1),
            Owner::Link => Some(LINK_RANK),
            Owner::Reorder => Some(REORDER_RANK),
            Owner::FrameEnd | Owner::Delayed | Owner::Host => None,
        }
    }
}

const OWNERS: [Owner; 7] =
    [Owner::Mac, Owner::FrameEnd, Owner::Host, Owner::Routing, Owner::Delayed, Owner::Link, Owner::Reorder];
/// Number of owners at the start of `OWNERS` that have most of the events.
const OFTEN: usize = 3;

/// An event in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// Time and order of the event. [`Key::NEVER`], or another key at [`Time::NEVER`], if there is
    /// no event.
    pub key: Key,
    /// Owner of the event.
    pub owner: Owner,
    /// Number of the node, transmission, packet or timer.
    pub index: u32,
}

/// Queue of the timers of all owners.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// Times of the slots, by owner.
    tournaments: [Tournament; OWNERS.len()],
    /// Earliest time of each tournament.
    earliest: [Time; OWNERS.len()],
    /// Earliest time of the owners that rarely have events.
    rest: Time,
    /// Orders among events of the same time, by owner and index. Empty for owners whose order
    /// follows from the index.
    orders: [Vec<u64>; OWNERS.len()],
    /// Earliest event of all.
    first: Event,
    /// True if `first` must be determined again.
    stale: bool,
}

impl Default for EventQueue {
    fn default() -> Self {
        EventQueue {
            tournaments: Default::default(),
            earliest: [Time::NEVER; OWNERS.len()],
            rest: Time::NEVER,
            orders: Default::default(),
            first: Event { key: Key::NEVER, owner: Owner::Host, index: 0 },
            stale: false,
        }
    }
}

impl EventQueue {
    /// Time of the next event; [`Time::NEVER`] if the queue is empty.
    pub fn time(&self) -> Time {
        let [mac, frame_end, host, ..] = self.earliest;
        mac.min(frame_end).min(host.min(self.rest))
    }

    /// Earliest event, which stays in the queue.
    #[inline]
    pub fn first(&mut self) -> Event {
        if self.stale {
            self.find_first();
        }
        self.first
    }

    /// Time of the timer of `owner` at `node`, for timers of which each node has exactly one.
    #[inline]
    pub fn timer(&self, owner: Owner, node: NodeId) -> Time {
        self.tournaments[owner as usize].get(u32::from(node.0))
    }

    /// Sets the timer of `owner` at `node`, for timers of which each node has exactly one.
    /// [`Time::NEVER`] cancels it.
    #[inline]
    pub fn set_timer(&mut self, owner: Owner, node: NodeId, at: Time) {
        debug_assert!(owner.rank().is_some());
        self.put(Event { key: Key::timer(at, node, owner.rank().unwrap_or(0)), owner, index: u32::from(node.0) });
    }

    /// Sets event number `index` of `owner` to `key`, for events of which a node may have several.
    #[inline]
    pub fn set(&mut self, owner: Owner, index: u32, key: Key) {
        debug_assert!(owner.rank().is_none());
        let orders = &mut self.orders[owner as usize];
        if orders.len() <= index as usize {
            orders.resize(index as usize + 1, u64::MAX);
        }
        orders[index as usize] = key.order;
        self.put(Event { key, owner, index });
    }

    /// Removes event number `index` of `owner`.
    #[inline]
    pub fn cancel(&mut self, owner: Owner, index: u32) {
        self.put(Event { key: Key::NEVER, owner, index });
    }

    /// Sets an event. The function is inlined where the owner is known.
    #[inline(always)]
    fn put(&mut self, event: Event) {
        let owner = event.owner as usize;
        let earliest = &mut self.earliest[owner];
        *earliest = self.tournaments[owner].set(event.index, event.key.time, *earliest);
        if owner >= OFTEN {
            let [.., a, b, c, d] = self.earliest;
            self.rest = a.min(b).min(c.min(d));
        }
        if event.key < self.first.key {
            self.first = event;
            self.stale = false;
        } else if event.index == self.first.index && event.owner == self.first.owner {
            self.stale = true;
        }
    }

    /// Determines the earliest event again.
    #[inline]
    fn find_first(&mut self) {
        self.stale = false;
        let time = self.time();
        if time == Time::NEVER {
            self.first.key = Key::NEVER;
            return;
        }
        let [mac, frame_end, host, ..] = self.earliest.map(|earliest| earliest == time);
        self.first = match (mac, frame_end, host, self.rest == time) {
            (true, false, false, false) => self.winner(Owner::Mac, time),
            (false, true, false, false) => self.winner(Owner::FrameEnd, time),
            (false, false, true, false) => self.winner(Owner::Host, time),
            _ => self.first_of_several(time),
        };
    }

    /// First event of an owner, which is at `time`.
    #[inline(always)]
    fn winner(&self, owner: Owner, time: Time) -> Event {
        let tournament = &self.tournaments[owner as usize];
        let (index, order) = match owner.rank() {
            Some(rank) => {
                // At equal times, the node with the lowest number comes first, as the slots are
                // ordered.
                let index = tournament.first_at(time);
                (index, Key::timer(time, NodeId(index as u16), rank).order)
            }
            None => {
                let orders = &self.orders[owner as usize];
                let index = tournament.due_at(time, |index| orders[index as usize]);
                (index, orders[index as usize])
            }
        };
        Event { key: Key { time, order }, owner, index }
    }

    /// First event of all, which is at `time`, if several owners may have one at that time.
    #[cold]
    fn first_of_several(&self, time: Time) -> Event {
        let due = OWNERS.into_iter().filter(|&owner| self.earliest[owner as usize] == time);
        let events = due.map(|owner| self.winner(owner, time));
        events.min_by_key(|event| event.key).unwrap_or(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;

    #[test]
    fn equal_times_are_ordered_by_kind_then_node() {
        let (t, a, b) = (Time(5), NodeId(1), NodeId(2));
        let mut keys = [Key::timer(t, b, 0), Key::frame_end(t, b, a), Key::timer(t, a, 1), Key::frame_end(t, a, b)];
        keys.sort();
        assert_eq!(keys, [Key::frame_end(t, a, b), Key::frame_end(t, b, a), Key::timer(t, a, 1), Key::timer(t, b, 0),]);
    }

    #[test]
    fn agrees_with_an_ordered_map_under_random_use() {
        let seed = 42;
        let mut rng = Rng::stream(seed, Purpose::Test, 0);
        let mut queue = EventQueue::default();
        let mut model: BTreeMap<Key, (Owner, u32)> = BTreeMap::new();
        let mut keys: BTreeMap<(u8, u32), Key> = BTreeMap::new();
        for step in 0..40_000u64 {
            // The number of slots grows, so that the trees grow while they are full, up to four
            // levels of groups.
            let index = 37 * rng.below(1 + step / 400) as u32;
            let owner = OWNERS[rng.below(OWNERS.len() as u64) as usize];
            let slot = (owner as u8, index);
            match rng.below(4) {
                0 => {
                    if let Some(old) = keys.remove(&slot) {
                        model.remove(&old);
                    }
                    queue.cancel(owner, index);
                }
                1 => {
                    if let Some((_, (owner, index))) = model.pop_first() {
                        queue.cancel(owner, index);
                        keys.remove(&(owner as u8, index));
                    }
                }
                _ => {
                    // There are few different times, so that many are equal; the keys differ
                    // nevertheless.
                    let (time, node) = (Time(rng.below(50)), NodeId(rng.below(5) as u16));
                    let key = match (owner, owner.rank()) {
                        (Owner::FrameEnd, _) => Key::frame_end(time, node, NodeId(index as u16)),
                        (_, Some(rank)) => Key::timer(time, NodeId(index as u16), rank),
                        _ => Key::timer(time, node, 8 + 8 * index + owner as u32),
                    };
                    if let Some(old) = keys.insert(slot, key) {
                        model.remove(&old);
                    }
                    model.insert(key, (owner, index));
                    match owner.rank() {
                        Some(_) => queue.set_timer(owner, NodeId(index as u16), time),
                        None => queue.set(owner, index, key),
                    }
                    if owner.rank().is_some() {
                        assert_eq!(queue.timer(owner, NodeId(index as u16)), time, "seed {seed} step {step}");
                    }
                }
            }
            // The first event is queried only now and then, so that several changes lie between
            // queries.
            let expected = model.first_key_value().map(|(&key, &(owner, index))| Event { key, owner, index });
            assert_eq!(queue.time(), expected.map_or(Time::NEVER, |event| event.key.time), "seed {seed} step {step}");
            if rng.below(3) == 0 {
                let first = Some(queue.first()).filter(|first| first.key.time != Time::NEVER);
                assert_eq!(first, expected, "seed {seed} step {step}");
            }
        }
    }
}

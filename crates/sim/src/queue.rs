//! The event queue: timers, one slot per owner, so that setting a timer again moves it.
//!
//! Each kind of owner has a tournament of times; the slots of a mesh lie in it as its nodes do. Places among events of
//! equal time are looked at only where times are equal.
//!
//! Events at equal times are ordered by what they are: frames end before timers fire; then by node. (Frames that begin are
//! no events, see [`meshpace_mesh::mac::OrderedTime`].) The order never depends on when something was inserted, so another queue
//! would give the same results.

use crate::tournament::Tournament;
use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// When an event happens, and its place among events of the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    time: Time,
    order: u64,
}

impl Key {
    /// After everything.
    pub const NEVER: Key = Key { time: Time::NEVER, order: u64::MAX };

    #[inline]
    fn new(time: Time, class: u64, node: NodeId, rank: u32) -> Key {
        Key { time, order: class << 62 | u64::from(node.0) << 32 | u64::from(rank) }
    }

    /// The end of a frame from `sender` at `node`.
    #[inline]
    pub fn frame_end(time: Time, node: NodeId, sender: NodeId) -> Key {
        Key::new(time, 0, node, u32::from(sender.0))
    }

    /// A timer at `node`; `rank` orders the timers of a node.
    #[inline]
    pub fn timer(time: Time, node: NodeId, rank: u32) -> Key {
        Key::new(time, 1, node, rank)
    }

    /// The time.
    #[inline]
    pub fn time(self) -> Time {
        self.time
    }
}

/// Places among a node's timers of equal time, after those of MAC and routing: packets that were held back, in the order in
/// which they were, then discipline and link layer, then the driver's timers.
pub const DELAYED_RANK: u32 = 2;
/// Number of packets that are held back before their places repeat: more than ever are at a time.
pub const DELAYED_RANKS: u32 = 1 << 28;
/// The place of discipline and link layer.
pub const LINK_RANK: u32 = DELAYED_RANK + DELAYED_RANKS;
/// The place of the MAC's reordering buffers.
const REORDER_RANK: u32 = LINK_RANK + 1;
/// The place of the driver's first timer.
pub const HOST_RANK: u32 = REORDER_RANK + 1;

/// Owner of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The MAC of a node.
    Mac,
    /// A transmission: its end at somebody who is told.
    FrameEnd,
    /// A timer of whoever drives the engine.
    Host,
    /// The routing protocol of a node.
    Routing,
    /// A packet that routing holds back.
    Delayed,
    /// The queue discipline of a node.
    Link,
    /// The reordering buffers of a node.
    Reorder,
}

impl Owner {
    /// The place among a node's timers of one that each node has one of, whose number is the node's; None for other events.
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
/// The first of these have most of the events.
const OFTEN: usize = 3;

/// An event in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When, and its place among those of the same time. [`Key::NEVER`] or another key of [`Time::NEVER`]: there is none.
    pub key: Key,
    /// Its owner.
    pub owner: Owner,
    /// The number of the node, transmission, packet or timer.
    pub index: u32,
}

/// The queue.
#[derive(Clone, Debug)]
pub struct EventQueue {
    /// By owner.
    tournaments: [Tournament; OWNERS.len()],
    /// The earliest time of each tournament.
    earliest: [Time; OWNERS.len()],
    /// The earliest time of those that do not have events often.
    rest: Time,
    /// By owner and number, the places among events of the same time; empty where the number tells.
    orders: [Vec<u64>; OWNERS.len()],
    /// The earliest event of all.
    first: Event,
    /// True if `first` must be looked for.
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
    /// Time at which the next event is, or [`Time::NEVER`].
    pub fn time(&self) -> Time {
        let [mac, frame_end, host, ..] = self.earliest;
        mac.min(frame_end).min(host.min(self.rest))
    }

    /// The earliest event, which stays where it is.
    #[inline]
    pub fn first(&mut self) -> Event {
        if self.stale {
            self.find_first();
        }
        self.first
    }

    /// Time at which the timer of `owner` at `node` is due; for timers of which each node has one.
    #[inline]
    pub fn timer(&self, owner: Owner, node: NodeId) -> Time {
        self.tournaments[owner as usize].get(u32::from(node.0))
    }

    /// Sets the timer of `owner` at `node`, of which each node has one; [`Time::NEVER`] cancels it.
    #[inline]
    pub fn set_timer(&mut self, owner: Owner, node: NodeId, at: Time) {
        debug_assert!(owner.rank().is_some());
        self.put(Event { key: Key::timer(at, node, owner.rank().unwrap_or(0)), owner, index: u32::from(node.0) });
    }

    /// Sets the event of `owner` number `index` to `key`; for events of which a node may have several.
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

    /// Takes the event of `owner` number `index` out.
    #[inline]
    pub fn cancel(&mut self, owner: Owner, index: u32) {
        self.put(Event { key: Key::NEVER, owner, index });
    }

    /// Inlined where the owner is known.
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

    /// The first event of an owner, which is at `time`.
    #[inline(always)]
    fn winner(&self, owner: Owner, time: Time) -> Event {
        let tournament = &self.tournaments[owner as usize];
        let (index, order) = match owner.rank() {
            Some(rank) => {
                // Of equal times the node of least number comes first, as the slots lie.
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

    /// The first event of all, which is at `time`, where several owners may have one.
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
            // More and more slots, so that the trees grow while they are full, to four groups one above the other.
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
                    // Few different times, so that many are equal; keys differ all the same.
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
            // Asked for only now and then, so that several changes come between.
            let expected = model.first_key_value().map(|(&key, &(owner, index))| Event { key, owner, index });
            assert_eq!(queue.time(), expected.map_or(Time::NEVER, |event| event.key.time), "seed {seed} step {step}");
            if rng.below(3) == 0 {
                let first = Some(queue.first()).filter(|first| first.key.time != Time::NEVER);
                assert_eq!(first, expected, "seed {seed} step {step}");
            }
        }
    }
}

//! The event queue: timers, one slot per owner, so that setting a timer again moves it.
//!
//! Each kind of owner has a tournament: a binary tree over its slots in which every inner node holds the earlier of the two
//! below it. Nothing is moved but the winners on one path, which ends early where somebody else wins anyway, and the
//! slots of a mesh lie where its nodes do. (D. E. Knuth, The Art of Computer Programming, vol. 3, 5.4.1.)
//!
//! Events at equal times are ordered by what they are: frames end before timers fire; then by node. (Frames that begin are
//! no events, see [`meshpace_mesh::mac::Moment`].) The order never depends on when something was inserted, so another queue
//! would give the same results.

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

/// Whose event it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The MAC of a node.
    Mac,
    /// The routing protocol of a node.
    Routing,
    /// A transmission: its end at somebody who is told.
    FrameEnd,
    /// A packet that routing holds back.
    Delayed,
    /// The queue discipline of a node.
    Link,
    /// A timer of whoever drives the engine.
    Host,
}

const OWNERS: [Owner; 6] = [Owner::Mac, Owner::Routing, Owner::FrameEnd, Owner::Delayed, Owner::Link, Owner::Host];

/// The queue.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    /// By owner.
    tournaments: [Tournament; OWNERS.len()],
    /// The winners of the tournaments.
    winners: [Contender; OWNERS.len()],
    /// The owner of the earliest event of all.
    first: usize,
}

impl EventQueue {
    /// The earliest key, or [`Key::NEVER`].
    #[inline]
    pub fn first(&self) -> Key {
        self.next().map_or(Key::NEVER, |next| next.0)
    }

    /// The earliest event, which stays where it is.
    #[inline]
    pub fn next(&self) -> Option<(Key, Owner, u32)> {
        let Contender { time, index } = self.winners[self.first];
        (time != Time::NEVER).then(|| (Key { time, order: self.order(self.first) }, OWNERS[self.first], index))
    }

    /// Sets the event of `owner` number `index` to `key`; a time of [`Time::NEVER`] cancels it.
    #[inline]
    pub fn set(&mut self, owner: Owner, index: u32, key: Key) {
        let owner = owner as usize;
        if let Some(winner) = self.tournaments[owner].set(index, key) {
            self.winners[owner] = winner;
            if owner == self.first || winner.time == self.winners[self.first].time {
                self.find_first();
            } else if winner.time < self.winners[self.first].time {
                self.first = owner;
            }
        }
    }

    /// Takes out the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Key, Owner, u32)> {
        let next = self.next()?;
        self.set(next.1, next.2, Key::NEVER);
        Some(next)
    }

    /// The place of an owner's winner among the events of its time.
    #[inline]
    fn order(&self, owner: usize) -> u64 {
        self.tournaments[owner].orders[self.winners[owner].index as usize]
    }

    #[inline]
    fn find_first(&mut self) {
        let mut first = 0;
        for owner in 1..OWNERS.len() {
            let (one, best) = (self.winners[owner].time, self.winners[first].time);
            if one < best || one == best && one != Time::NEVER && self.order(owner) < self.order(first) {
                first = owner;
            }
        }
        self.first = first;
    }
}

/// A slot and when its event is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Contender {
    time: Time,
    index: u32,
}

impl Default for Contender {
    fn default() -> Self {
        Contender { time: Time::NEVER, index: 0 }
    }
}

/// The slots of one kind of owner.
#[derive(Clone, Debug, Default)]
struct Tournament {
    /// The winner of all at 1, the winners of its halves at 2 and 3, and so on; the slots are the second half. Empty, or a
    /// power of two long.
    tree: Vec<Contender>,
    /// The places of the slots' events among those of the same time.
    orders: Vec<u64>,
}

impl Tournament {
    /// Returns the winner if that may have changed.
    #[inline]
    fn set(&mut self, index: u32, key: Key) -> Option<Contender> {
        if self.orders.len() <= index as usize {
            self.grow(index as usize + 1);
        }
        let Tournament { tree, orders } = self;
        orders[index as usize] = key.order;
        let mut place = orders.len() + index as usize;
        let mut winner = Contender { time: key.time, index };
        tree[place] = winner;
        while place > 1 {
            winner = earlier(orders, tree[place ^ 1], winner);
            place /= 2;
            // Another slot wins here as it did before: nothing changes further up.
            if winner.index != index && tree[place] == winner {
                return None;
            }
            tree[place] = winner;
        }
        Some(winner)
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        let slots = slots.next_power_of_two();
        let place = |place| Contender { index: (place % slots) as u32, ..Contender::default() };
        let mut tree: Vec<Contender> = (0..2 * slots).map(place).collect();
        let half = self.tree.len() / 2;
        tree[slots..slots + half].copy_from_slice(&self.tree[half..]);
        self.orders.resize(slots, u64::MAX);
        for place in (1..slots).rev() {
            tree[place] = earlier(&self.orders, tree[2 * place], tree[2 * place + 1]);
        }
        self.tree = tree;
    }
}

#[inline]
fn earlier(orders: &[u64], a: Contender, b: Contender) -> Contender {
    // Slots without an event are equal in time, and it does not matter which of them wins.
    let tie = || a.time == b.time && a.time != Time::NEVER && orders[a.index as usize] < orders[b.index as usize];
    if a.time < b.time || tie() { a } else { b }
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
            // More and more slots, so that the trees grow while they are full.
            let index = rng.below(1 + step / 400) as u32;
            let owner = OWNERS[rng.below(6) as usize];
            let slot = (owner as u8, index);
            match rng.below(4) {
                0 => {
                    if let Some(old) = keys.remove(&slot) {
                        model.remove(&old);
                    }
                    queue.set(owner, index, Key::NEVER);
                }
                1 => {
                    let popped = queue.pop();
                    let expected = model.pop_first().map(|(key, (owner, index))| (key, owner, index));
                    assert_eq!(popped, expected, "seed {seed} step {step}");
                    if let Some((_, owner, index)) = expected {
                        keys.remove(&(owner as u8, index));
                    }
                }
                _ => {
                    // Few different times, so that many are equal; keys differ all the same.
                    let (time, node) = (Time(rng.below(50)), NodeId(rng.below(5) as u16));
                    let key = match owner {
                        Owner::FrameEnd => Key::frame_end(time, node, NodeId(index as u16)),
                        _ => Key::timer(time, node, 8 * index + owner as u32),
                    };
                    if let Some(old) = keys.insert(slot, key) {
                        model.remove(&old);
                    }
                    model.insert(key, (owner, index));
                    queue.set(owner, index, key);
                }
            }
            let first = model.first_key_value().map_or(Key::NEVER, |(&key, _)| key);
            assert_eq!(queue.first(), first, "seed {seed} step {step}");
        }
    }
}

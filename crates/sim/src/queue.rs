//! The event queue: an indexed heap of timers, one slot per owner, so that setting a timer again moves it.
//!
//! Events at equal times are ordered by what they are: frames end before timers fire, timers fire before frames start
//! (a station cannot sense in zero time); then by node. The order never depends on when something was inserted, so
//! another queue would give the same results.

use alloc::vec::Vec;
use meshpace_core::{NodeId, Time};

/// When an event happens, and its place among events of the same time: one number to compare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key(u128);

impl Key {
    /// After everything.
    pub const NEVER: Key = Key(u128::MAX);

    #[inline]
    fn new(time: Time, class: u64, node: NodeId, rank: u32) -> Key {
        let order = class << 62 | u64::from(node.0) << 32 | u64::from(rank);
        Key(u128::from(time.0) << 64 | u128::from(order))
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
        Time((self.0 >> 64) as u64)
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

/// A power of two not below the number of owners, so that a slot comes apart with shifts.
const SLOTS_PER_INDEX: u32 = 8;
const NOT_QUEUED: u32 = u32::MAX;

/// A slot: an owner and its number, in one index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Slot(u32);

impl Slot {
    #[inline]
    fn new(owner: Owner, index: u32) -> Slot {
        debug_assert!(index < u32::MAX / SLOTS_PER_INDEX);
        Slot(index * SLOTS_PER_INDEX + owner as u32)
    }

    #[inline]
    fn place(self) -> usize {
        self.0 as usize
    }

    #[inline]
    fn parts(self) -> (Owner, u32) {
        (BY_NUMBER[(self.0 % SLOTS_PER_INDEX) as usize], self.0 / SLOTS_PER_INDEX)
    }
}

const BY_NUMBER: [Owner; SLOTS_PER_INDEX as usize] = [
    Owner::Mac,
    Owner::Routing,
    Owner::FrameEnd,
    Owner::Delayed,
    Owner::Link,
    Owner::Host,
    // Not used.
    Owner::Host,
    Owner::Host,
];

/// The queue.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    /// A heap with four children per entry: shallower, and the children share a cache line or two.
    heap: Vec<(Key, Slot)>,
    /// Where each slot is in the heap.
    place: Vec<u32>,
}

impl EventQueue {
    /// The earliest key, or [`Key::NEVER`].
    #[inline]
    pub fn first(&self) -> Key {
        self.heap.first().map_or(Key::NEVER, |entry| entry.0)
    }

    /// Sets the event of `owner` number `index` to `key`; a time of [`Time::NEVER`] cancels it.
    #[inline]
    pub fn set(&mut self, owner: Owner, index: u32, key: Key) {
        let slot = Slot::new(owner, index);
        if self.place.len() <= slot.place() {
            self.place.resize(slot.place() + 1, NOT_QUEUED);
        }
        let at = self.place[slot.place()];
        if key.time() == Time::NEVER {
            if at != NOT_QUEUED {
                self.remove(at as usize);
            }
        } else if at == NOT_QUEUED {
            self.heap.push((key, slot));
            self.rise(self.heap.len() - 1);
        } else {
            let old = self.heap[at as usize].0;
            self.heap[at as usize].0 = key;
            if key < old {
                self.rise(at as usize);
            } else if key > old {
                self.sink(at as usize);
            }
        }
    }

    /// Takes out the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Key, Owner, u32)> {
        let &(key, slot) = self.heap.first()?;
        self.remove(0);
        let (owner, index) = slot.parts();
        Some((key, owner, index))
    }

    /// The number of queued events.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    fn remove(&mut self, at: usize) {
        self.place[self.heap[at].1.place()] = NOT_QUEUED;
        let Some(last) = self.heap.pop() else { return };
        if at < self.heap.len() {
            self.heap[at] = last;
            if at > 0 && last.0 < self.heap[(at - 1) / 4].0 {
                self.rise(at);
            } else {
                self.sink(at);
            }
        }
    }

    fn rise(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.heap[parent].0 <= entry.0 {
                break;
            }
            self.put(at, self.heap[parent]);
            at = parent;
        }
        self.put(at, entry);
    }

    fn sink(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let first = 4 * at + 1;
            let end = (first + 4).min(self.heap.len());
            let Some(children) = self.heap.get(first..end).filter(|children| !children.is_empty()) else { break };
            let (mut least, mut key) = (0, children[0].0);
            for (place, child) in children.iter().enumerate().skip(1) {
                if child.0 < key {
                    (least, key) = (place, child.0);
                }
            }
            if entry.0 <= key {
                break;
            }
            self.put(at, self.heap[first + least]);
            at = first + least;
        }
        self.put(at, entry);
    }

    #[inline]
    fn put(&mut self, at: usize, entry: (Key, Slot)) {
        self.heap[at] = entry;
        self.place[entry.1.place()] = at as u32;
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
        let mut model: BTreeMap<(Key, u32), ()> = BTreeMap::new();
        let mut keys = [None; 40];
        for step in 0..20_000 {
            let index = rng.below(40) as u32;
            match rng.below(4) {
                0 => {
                    if let Some(old) = keys[index as usize].take() {
                        model.remove(&(old, index));
                    }
                    queue.set(Owner::Mac, index, Key::NEVER);
                }
                1 => {
                    let popped = queue.pop();
                    let expected = model.pop_first().map(|((key, index), ())| (key, index));
                    assert_eq!(popped.map(|(k, _, i)| (k, i)), expected, "seed {seed} step {step}");
                    if let Some((_, index)) = expected {
                        keys[index as usize] = None;
                    }
                }
                _ => {
                    let key = Key::timer(Time(rng.below(1000)), NodeId(index as u16), 0);
                    if let Some(old) = keys[index as usize].replace(key) {
                        model.remove(&(old, index));
                    }
                    model.insert((key, index), ());
                    queue.set(Owner::Mac, index, key);
                }
            }
            assert_eq!(queue.len(), model.len());
        }
    }
}

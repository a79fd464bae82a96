//! Index of the routing table: maps a destination to the position of its route in the list. It is a
//! hash table whose hash is the node number, because node numbers are spread evenly.

use alloc::boxed::Box;
use alloc::vec;
use meshpace_core::NodeId;

/// Initial number of slots: one cache line.
const FIRST_ROOM: usize = 16;

/// A destination and the position of its route.
#[derive(Clone, Copy, Debug)]
struct Slot {
    destination: NodeId,
    place: u16,
}

impl Slot {
    /// Value of a free slot. There are fewer than 2^16 nodes, so no route has this position.
    const FREE: Slot = Slot { destination: NodeId::BROADCAST, place: u16::MAX };

    #[inline]
    fn is_free(self) -> bool {
        self.place == u16::MAX
    }
}

/// Positions by destination, with linear probing.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// Slots. Their number is a power of two, and at least a quarter of them are free; or there are
    /// none. A destination is in the slot given by the low bits of its number, or in a later slot
    /// with no free one in between, where the first slot follows the last.
    slots: Box<[Slot]>,
}

impl Index {
    /// Position of the route to `destination`; `None` if there is no route.
    #[inline]
    pub fn get(&self, destination: NodeId) -> Option<usize> {
        let last = self.slots.len().checked_sub(1)?;
        let mut at = destination.index() & last;
        loop {
            let slot = self.slots[at];
            if slot.is_free() {
                return None;
            }
            if slot.destination == destination {
                return Some(usize::from(slot.place));
            }
            at = (at + 1) & last;
        }
    }

    /// Adds a destination that is not yet present. Positions are assigned consecutively from 0.
    pub fn push(&mut self, destination: NodeId, place: u16) {
        if (usize::from(place) + 1) * 4 > self.slots.len() * 3 {
            let room = (self.slots.len() * 2).max(FIRST_ROOM);
            let old = core::mem::replace(&mut self.slots, vec![Slot::FREE; room].into());
            for slot in old.into_iter().filter(|slot| !slot.is_free()) {
                self.put(slot);
            }
        }
        self.put(Slot { destination, place });
    }

    /// Stores an entry in the next free slot. There must be one.
    fn put(&mut self, slot: Slot) {
        let last = self.slots.len() - 1;
        let mut at = slot.destination.index() & last;
        while !self.slots[at].is_free() {
            at = (at + 1) & last;
        }
        self.slots[at] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;

    #[test]
    fn it_finds_what_a_map_finds() {
        for seed in 1..=20 {
            let mut rng = Rng::stream(seed, Purpose::Test, 0);
            // The numbers are dense, scattered, or all belong to the same few slots.
            let (range, step) = [(2000, 1), (65_535, 1), (250, 256)][seed as usize % 3];
            let (mut index, mut map) = (Index::default(), BTreeMap::new());
            for _ in 0..3000 {
                let destination = NodeId((rng.below(range) * step) as u16);
                assert_eq!(index.get(destination), map.get(&destination).copied(), "seed {seed} {destination}");
                if rng.below(3) == 0 && !map.contains_key(&destination) {
                    index.push(destination, map.len() as u16);
                    map.insert(destination, map.len());
                }
            }
            for (&destination, &place) in &map {
                assert_eq!(index.get(destination), Some(place), "seed {seed} {destination}");
            }
            assert!(
                index.slots.len() * 3 < map.len().max(8) * 8,
                "seed {seed}: {} for {}",
                index.slots.len(),
                map.len()
            );
        }
    }

    #[test]
    fn it_holds_every_node_there_can_be() {
        let mut index = Index::default();
        for n in 0..NodeId::MAX_NODES as u16 {
            index.push(NodeId(n), n);
        }
        for n in 0..NodeId::MAX_NODES as u16 {
            assert_eq!(index.get(NodeId(n)), Some(usize::from(n)));
        }
        assert_eq!(index.get(NodeId::BROADCAST), None);
    }
}

//! The index of the routing table: from a destination to the place of its route in the list. A hash table whose hash is the node number, since
//! node numbers are spread evenly.

use alloc::boxed::Box;
use alloc::vec;
use meshpace_core::NodeId;

/// Room at first: a cache line.
const FIRST_ROOM: usize = 16;

/// A destination and the place of its route.
#[derive(Clone, Copy, Debug)]
struct Slot {
    destination: NodeId,
    place: u16,
}

impl Slot {
    /// There are fewer nodes than 2^16 and so no such place.
    const FREE: Slot = Slot { destination: NodeId::BROADCAST, place: u16::MAX };

    #[inline]
    fn is_free(self) -> bool {
        self.place == u16::MAX
    }
}

/// Places by destination.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    /// As many as a power of two, at least a quarter of them free, or none at all. A destination is in the slot that its low
    /// bits say, or after it with no free one between, round the end.
    slots: Box<[Slot]>,
}

impl Index {
    /// The place of `destination`.
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

    /// Notes the place of a destination that is not in yet; places are given from 0 on.
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

    /// Fills the next free slot, of which there are some.
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
            // Dense numbers, scattered ones, and ones that all want the same few slots.
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

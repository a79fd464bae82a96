//! Tournament tree: stores a time per slot and determines the earliest, in groups of eight, one
//! cache line each.
//!
//! Every entry above the slots is the earliest of the group below it (D. E. Knuth, The Art of
//! Computer Programming, vol. 3, 5.4.1: a tree of winners, here with eight contenders per match).
//! Moving a slot that is not the earliest of its group to a later time touches that group and one
//! entry above it, whatever the number of slots.

use alloc::vec::Vec;
use meshpace_core::Time;

/// Number of entries of a group.
const WIDTH: usize = 8;

/// Group of entries that compete, on one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Group([Time; WIDTH]);

impl Group {
    /// Group without any time.
    const EMPTY: Group = Group([Time::NEVER; WIDTH]);

    /// Earliest time of the group.
    #[inline]
    fn earliest(&self) -> Time {
        let [a, b, c, d, e, f, g, h] = self.0;
        a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)))
    }

    /// Bit set of the entries that equal `time`.
    #[inline]
    fn equal(&self, time: Time) -> u32 {
        self.0.iter().enumerate().fold(0, |mask, (entry, &at)| mask | u32::from(at == time) << entry)
    }
}

/// Tournament of slots 0, 1, 2 and so on. Slots that were never set are at [`Time::NEVER`].
#[derive(Clone, Debug)]
pub struct Tournament {
    /// Groups of entries. The entry at place `p` is entry `p % 8` of group `p / 8`. It is the
    /// earliest of group `p + 1`, unless it is a slot. Group 0 is the final.
    groups: Vec<Group>,
    /// Place of slot 0, a multiple of [`WIDTH`].
    slots: usize,
}

impl Default for Tournament {
    fn default() -> Self {
        Tournament { groups: alloc::vec![Group::EMPTY], slots: 0 }
    }
}

impl Tournament {
    /// Time of slot `slot`.
    #[inline]
    pub fn get(&self, slot: u32) -> Time {
        let place = self.slots + slot as usize;
        self.groups.get(place / WIDTH).map_or(Time::NEVER, |group| group.0[place % WIDTH])
    }

    /// Moves slot `slot` to `time`. Returns the earliest time of all slots, which was `earliest`
    /// before.
    #[inline]
    pub fn set(&mut self, slot: u32, time: Time, earliest: Time) -> Time {
        let place = self.slots + slot as usize;
        let Some(group) = self.groups.get_mut(place / WIDTH) else {
            self.grow(slot as usize);
            return self.set(slot, time, earliest);
        };
        let before = core::mem::replace(&mut group.0[place % WIDTH], time);
        if place >= WIDTH {
            self.propagate(place / WIDTH, before, time).unwrap_or(earliest)
        } else if time <= earliest {
            time
        } else if before == earliest {
            group.earliest()
        } else {
            earliest
        }
    }

    /// Propagates a change of an entry of `group`, which is not the final, from `before` to `after`
    /// to the groups above. Returns the new earliest time of all, or `None` if it did not change.
    fn propagate(&mut self, mut group: usize, mut before: Time, mut after: Time) -> Option<Time> {
        loop {
            let place = group - 1;
            let above = self.groups[place / WIDTH].0[place % WIDTH];
            if after > above {
                if before != above {
                    // Another entry of the group is still the earliest.
                    return None;
                }
                after = self.groups[group].earliest();
            }
            if after == above {
                return None;
            }
            (before, group) = (above, place / WIDTH);
            self.groups[group].0[place % WIDTH] = after;
            if group == 0 {
                return Some(self.groups[0].earliest());
            }
        }
    }

    /// Slot with the lowest `order` among those at `time`, which must be the earliest time of all
    /// and not [`Time::NEVER`].
    #[inline]
    pub fn due_at(&self, time: Time, order: impl Fn(u32) -> u64) -> u32 {
        let mut group = 0;
        loop {
            let equal = self.groups[group].equal(time);
            if !equal.is_power_of_two() {
                return self.first_of_equals(group, time, &order).1;
            }
            let place = WIDTH * group + equal.trailing_zeros() as usize;
            if place >= self.slots {
                return (place - self.slots) as u32;
            }
            group = place + 1;
        }
    }

    /// First slot at `time`, which must be the earliest time of all and not [`Time::NEVER`].
    #[inline]
    pub fn first_at(&self, time: Time) -> u32 {
        let mut group = 0;
        loop {
            let place = WIDTH * group + self.groups[group].equal(time).trailing_zeros() as usize;
            if place >= self.slots {
                return (place - self.slots) as u32;
            }
            group = place + 1;
        }
    }

    /// Slot with the lowest order, and its order, among the slots below `group` at `time`.
    #[cold]
    fn first_of_equals(&self, group: usize, time: Time, order: &impl Fn(u32) -> u64) -> (u64, u32) {
        let equal = self.groups[group].equal(time);
        let places = (WIDTH * group..WIDTH * (group + 1)).filter(|place| equal >> (place % WIDTH) & 1 == 1);
        let best = places.map(|place| match place.checked_sub(self.slots) {
            Some(slot) => (order(slot as u32), slot as u32),
            None => self.first_of_equals(place + 1, time, order),
        });
        best.min().unwrap_or((u64::MAX, 0))
    }

    /// Grows the tree so that it contains slot `slot`.
    #[cold]
    fn grow(&mut self, slot: usize) {
        // A tree whose slots begin at place p has 7 p + 8 slots.
        while slot >= (WIDTH - 1) * self.slots + WIDTH {
            let below = self.groups.split_off(self.slots / WIDTH);
            self.slots = WIDTH * (self.slots + 1);
            self.groups.clear();
            self.groups.resize(self.slots / WIDTH, Group::EMPTY);
            self.groups.extend(below);
            for group in (1..self.groups.len()).rev() {
                let place = group - 1;
                self.groups[place / WIDTH].0[place % WIDTH] = self.groups[group].earliest();
            }
        }
        let groups = (self.slots + slot) / WIDTH + 1;
        self.groups.resize(self.groups.len().max(groups), Group::EMPTY);
    }
}

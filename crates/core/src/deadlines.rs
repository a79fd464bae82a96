//! Deadlines of many endpoints, for the program that runs them.

use crate::Time;
use alloc::collections::{BTreeMap, BTreeSet};

/// Time at which each of many endpoints has to be woken.
#[derive(Debug, Default)]
pub struct Deadlines {
    by_time: BTreeSet<(Time, u64)>,
    by_id: BTreeMap<u64, Time>,
}

impl Deadlines {
    /// Sets the time at which endpoint `id` has to be woken, replacing the earlier time.
    /// [`Time::NEVER`] removes it.
    pub fn set(&mut self, id: u64, at: Time) {
        let before = if at == Time::NEVER { self.by_id.remove(&id) } else { self.by_id.insert(id, at) };
        if before == Some(at) {
            return;
        }
        if let Some(before) = before {
            self.by_time.remove(&(before, id));
        }
        if at != Time::NEVER {
            self.by_time.insert((at, id));
        }
    }

    /// Earliest deadline; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        self.by_time.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Removes and returns the earliest deadline that has passed, with its endpoint. `None` if no
    /// deadline has passed.
    pub fn pop_due(&mut self, now: Time) -> Option<(Time, u64)> {
        let (at, id) = *self.by_time.first().filter(|(at, _)| *at <= now)?;
        self.set(id, Time::NEVER);
        Some((at, id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_a_new_time_replaces_the_old() {
        let mut deadlines = Deadlines::default();
        deadlines.set(1, Time(30));
        deadlines.set(2, Time(20));
        deadlines.set(1, Time(10));
        assert_eq!(deadlines.next(), Time(10));
        assert_eq!(deadlines.pop_due(Time(9)), None);
        assert_eq!(deadlines.pop_due(Time(25)), Some((Time(10), 1)));
        assert_eq!(deadlines.pop_due(Time(25)), Some((Time(20), 2)));
        assert_eq!(deadlines.pop_due(Time(25)), None);
        deadlines.set(3, Time(5));
        deadlines.set(3, Time::NEVER);
        assert_eq!(deadlines.next(), Time::NEVER);
    }
}

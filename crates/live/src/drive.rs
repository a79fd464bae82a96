//! Driving state machines in real time: what every runtime does with an endpoint, whatever carries its segments.
//!
//! The contract is that of [`meshpace_transport::Endpoint`]: after anything happened, take segments until there are none,
//! then come back at the wake-up. [`Deadlines`] tells a thread with many endpoints which one is next.

use meshpace_core::Time;
use meshpace_transport::{Endpoint, Segment, tpa};
use std::collections::{BTreeMap, BTreeSet};

/// What a runtime asks of an endpoint.
pub trait Machine {
    /// What it sends.
    type Segment;
    /// The time of its wake-up has come.
    fn on_timer(&mut self, now: Time);
    /// The next segment that may leave now.
    fn poll_transmit(&mut self, now: Time) -> Option<Self::Segment>;
    /// When it wants to be woken; [`Time::NEVER`] if never.
    fn next_wakeup(&self) -> Time;
}

impl Machine for Endpoint {
    type Segment = Segment;
    fn on_timer(&mut self, now: Time) {
        Endpoint::on_timer(self, now);
    }
    fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        Endpoint::poll_transmit(self, now)
    }
    fn next_wakeup(&self) -> Time {
        Endpoint::next_wakeup(self)
    }
}

impl Machine for tpa::Connection {
    type Segment = tpa::Segment;
    fn on_timer(&mut self, now: Time) {
        tpa::Connection::on_timer(self, now);
    }
    fn poll_transmit(&mut self, now: Time) -> Option<tpa::Segment> {
        tpa::Connection::poll_transmit(self, now)
    }
    fn next_wakeup(&self) -> Time {
        tpa::Connection::next_wakeup(self)
    }
}

/// Lets `machine` do at `now` what is due, hands every segment to `send`, and returns when to come back. To be called
/// after everything that happens to it, and at that time.
pub fn pump<M: Machine>(machine: &mut M, now: Time, mut send: impl FnMut(M::Segment)) -> Time {
    if machine.next_wakeup() <= now {
        machine.on_timer(now);
    }
    while let Some(segment) = machine.poll_transmit(now) {
        send(segment);
    }
    machine.next_wakeup()
}

/// When each of many endpoints wants to be woken.
#[derive(Debug, Default)]
pub struct Deadlines {
    by_time: BTreeSet<(Time, u64)>,
    by_id: BTreeMap<u64, Time>,
}

impl Deadlines {
    /// Endpoint `id` wants to be woken at `at` and not when it said before; [`Time::NEVER`] for not at all.
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

    /// The earliest; [`Time::NEVER`] if there is none.
    pub fn next(&self) -> Time {
        self.by_time.first().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// An endpoint whose time has come, and that time, earliest first; it is forgotten until set again.
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

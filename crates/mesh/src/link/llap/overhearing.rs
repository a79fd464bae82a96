//! Packets that a neighbour is expected to forward.
//!
//! Source: LLAP, section III.C: the measurement starts when the MAC's ACK arrives, and an entry is
//! forgotten if the packet is not overheard for a while.

use alloc::collections::VecDeque;
use meshpace_core::{Duration, NodeId, Time};

/// Largest number of expected packets. The oldest entry is removed first. The two queues of a next
/// node hold fewer packets.
const CAPACITY: usize = 64;

/// A packet that the next node is expected to forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Expected {
    id: u32,
    next_hop: NodeId,
    destination: NodeId,
    sent: Time,
}

/// Packets sent to neighbours that are not their destination, the oldest first.
#[derive(Clone, Debug)]
pub struct Overhearing {
    expected: VecDeque<Expected>,
    timeout: Duration,
}

impl Overhearing {
    /// Creates an empty list. Entries are forgotten after `timeout`.
    pub fn new(timeout: Duration) -> Self {
        Overhearing { expected: VecDeque::with_capacity(CAPACITY), timeout }
    }

    /// Notes that `next_hop` has acknowledged packet `id` and is expected to forward it.
    pub fn expect(&mut self, now: Time, id: u32, next_hop: NodeId, destination: NodeId) {
        self.forget(now);
        if self.expected.len() == CAPACITY {
            self.expected.pop_front();
        }
        self.expected.push_back(Expected { id, next_hop, destination, sent: now });
    }

    /// Notes that `transmitter` was overheard sending packet `id`. If the packet was expected,
    /// returns its destination and its stay in that node.
    pub fn on_overheard(&mut self, now: Time, transmitter: NodeId, id: u32) -> Option<(NodeId, Duration)> {
        self.forget(now);
        let at = self.expected.iter().position(|e| e.id == id && e.next_hop == transmitter)?;
        let entry = self.expected.remove(at)?;
        Some((entry.destination, now.since(entry.sent)))
    }

    /// Removes entries that are older than the time-out.
    fn forget(&mut self, now: Time) {
        while self.expected.front().is_some_and(|oldest| now.since(oldest.sent) > self.timeout) {
            self.expected.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEXT: NodeId = NodeId(1);
    const FAR: NodeId = NodeId(5);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn only_the_next_node_and_only_the_first_time() {
        let mut overhearing = Overhearing::new(Duration::from_secs(1));
        overhearing.expect(at(10), 7, NEXT, FAR);
        assert_eq!(overhearing.on_overheard(at(20), NodeId(2), 7), None);
        assert_eq!(overhearing.on_overheard(at(20), NEXT, 8), None);
        assert_eq!(overhearing.on_overheard(at(25), NEXT, 7), Some((FAR, Duration::from_millis(15))));
        assert_eq!(overhearing.on_overheard(at(30), NEXT, 7), None);
    }

    #[test]
    fn forgets_after_its_patience() {
        let mut overhearing = Overhearing::new(Duration::from_secs(1));
        overhearing.expect(at(0), 1, NEXT, FAR);
        overhearing.expect(at(500), 2, NEXT, FAR);
        assert_eq!(overhearing.on_overheard(at(1001), NEXT, 1), None);
        assert_eq!(overhearing.on_overheard(at(1500), NEXT, 2), Some((FAR, Duration::from_secs(1))));
    }

    #[test]
    fn memory_is_bounded() {
        let mut overhearing = Overhearing::new(Duration::from_secs(1));
        for id in 0..1000 {
            overhearing.expect(at(1), id, NEXT, FAR);
        }
        assert_eq!(overhearing.expected.len(), CAPACITY);
        assert!(overhearing.on_overheard(at(2), NEXT, 999).is_some());
        assert!(overhearing.on_overheard(at(2), NEXT, 0).is_none());
    }
}

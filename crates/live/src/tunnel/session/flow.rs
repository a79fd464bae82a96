//! Datagrams of one flow on their way to the far end: which of them wait, how long, and by which carrier they go.
//!
//! The carriers lose nothing, so a datagram is lost here or nowhere: when it has waited too long, when a later one replaces it, or when too much
//! waits. Datagrams of a flow never overtake each other, although the carriers do: a flow changes from one to the other only when nothing of
//! it is under way any more. It goes to bulk when more waits than it may send by express, and back once its whole budget has come back.

use super::bucket::{BURST, Bucket};
use super::carrier::Carrier;
use super::store::{Kept, Store};
use meshpace_core::{Duration, Time};
use std::collections::VecDeque;

/// Bytes of a flow that may wait, and datagrams.
pub(crate) const QUEUE: usize = 256 << 10;
pub(crate) const MOST: usize = 1024;

/// What becomes of datagrams that wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// They wait as long as it takes; what finds 256 KiB waiting, or no memory, is not taken.
    Reliable,
    /// They wait for so long at most, in whole milliseconds; where too much waits, the oldest is given up.
    Expiring(Duration),
    /// A later one replaces what waits: for the state of something, of which only the latest is of use.
    Latest,
}

/// A datagram that waits, and until when.
#[derive(Debug)]
struct Waiting {
    bytes: Kept,
    until: Time,
}

/// One direction of a flow, and where it stands.
#[derive(Debug)]
pub(super) struct Flow {
    class: Class,
    queue: VecDeque<Waiting>,
    /// Bytes in the queue.
    kept: usize,
    budget: Bucket,
    /// Memory for what waits, which all flows of the session share.
    store: Store,
    /// By which it sends, or sent last.
    carrier: Carrier,
    /// The peer has been told of the flow, so that datagrams may follow.
    pub(super) is_known: bool,
    /// Where it stands in line.
    pub(super) listed: Option<Carrier>,
    /// What is left of its turn, bytes.
    pub(super) turn: usize,
    /// Positions in the carriers after the last frame of this flow.
    pub(super) handed: [u64; 2],
}

impl Flow {
    pub(super) fn new(now: Time, class: Class, is_known: bool, turn: usize, store: Store) -> Flow {
        Flow {
            class,
            queue: VecDeque::new(),
            kept: 0,
            budget: Bucket::for_express(now),
            store,
            carrier: Carrier::Express,
            is_known,
            listed: None,
            turn,
            handed: [0; 2],
        }
    }

    /// Takes a datagram; how many are given up for it, itself included if it is not taken.
    pub(super) fn put(&mut self, now: Time, bytes: &[u8]) -> u64 {
        let mut given_up = self.expire(now);
        let until = match self.class {
            Class::Expiring(life) => now.saturating_add(life),
            Class::Reliable | Class::Latest => Time::NEVER,
        };
        let is_full = |flow: &Flow| flow.kept + bytes.len() > QUEUE || flow.queue.len() >= MOST;
        match self.class {
            Class::Reliable if is_full(self) => return given_up + 1,
            Class::Reliable => {}
            Class::Latest => given_up += self.forget(),
            Class::Expiring(_) => {
                while is_full(self) && self.take().is_some() {
                    given_up += 1;
                }
            }
        }
        match self.store.keep(bytes) {
            Some(bytes) => {
                self.kept += bytes.len();
                self.queue.push_back(Waiting { bytes, until });
                given_up
            }
            None => given_up + 1,
        }
    }

    /// Gives up what has waited too long; how many.
    pub(super) fn expire(&mut self, now: Time) -> u64 {
        let mut expired = 0;
        while self.queue.front().is_some_and(|first| first.until <= now) && self.take().is_some() {
            expired += 1;
        }
        expired
    }

    /// Gives up all that waits; how many.
    pub(super) fn forget(&mut self) -> u64 {
        let all = self.queue.len() as u64;
        (self.queue, self.kept) = (VecDeque::new(), 0);
        all
    }

    /// Bytes of the next datagram; none if nothing waits.
    pub(super) fn next(&self) -> Option<usize> {
        self.queue.front().map(|first| first.bytes.len())
    }

    fn take(&mut self) -> Option<Kept> {
        let first = self.queue.pop_front()?;
        self.kept -= first.bytes.len();
        if self.queue.is_empty() {
            // A flow that is silent keeps no memory.
            self.queue = VecDeque::new();
        }
        Some(first.bytes)
    }

    /// The next datagram, which leaves.
    pub(super) fn leave(&mut self) -> Option<Kept> {
        let first = self.take()?;
        self.budget.spend(first.len() as u64);
        Some(first)
    }

    /// Which carrier the next datagram takes, where positions up to `acknowledged` have arrived; none if it has to wait for what is under way by
    /// the other one.
    pub(super) fn choose(&mut self, now: Time, acknowledged: &[u64; 2]) -> Option<Carrier> {
        let left = self.budget.left(now);
        let wanted = match self.carrier {
            Carrier::Express if self.kept as u64 > left => Carrier::Bulk,
            Carrier::Bulk if left == BURST && self.kept as u64 <= BURST => Carrier::Express,
            present => present,
        };
        let at = self.carrier as usize;
        if wanted != self.carrier && self.handed[at] > acknowledged[at] {
            return None;
        }
        self.carrier = wanted;
        Some(wanted)
    }

    /// Bytes that wait.
    pub(super) fn kept(&self) -> usize {
        self.kept
    }

    /// Datagrams that wait.
    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn all(flow: &mut Flow) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| flow.leave()).map(|kept| kept.to_vec()).collect()
    }

    #[test]
    fn what_has_waited_too_long_is_given_up_and_nothing_else() {
        let mut flow = Flow::new(at(0), Class::Expiring(Duration::from_millis(100)), true, 0, Store::default());
        assert_eq!([flow.put(at(0), b"a"), flow.put(at(60), b"b"), flow.put(at(99), b"")], [0; 3]);
        assert_eq!(flow.expire(at(99)), 0);
        assert_eq!(flow.expire(at(100)), 1);
        assert_eq!(flow.put(at(160), b"d"), 1, "b");
        assert_eq!(all(&mut flow), [&b""[..], b"d"]);
        // Where too much waits, the oldest goes.
        let half = vec![7; QUEUE / 2];
        assert_eq!([flow.put(at(200), b"x"), flow.put(at(200), &half), flow.put(at(200), &half)], [0, 0, 1]);
        assert_eq!((flow.kept(), all(&mut flow).len(), flow.kept()), (QUEUE, 2, 0));
        let given_up: u64 = (0..MOST + 5).map(|_| flow.put(at(300), b"")).sum();
        assert_eq!(given_up, 5);
    }

    #[test]
    fn the_latest_replaces_what_waits() {
        let mut flow = Flow::new(at(0), Class::Latest, true, 0, Store::default());
        assert_eq!([flow.put(at(0), b"a"), flow.put(at(1), b"b"), flow.put(at(1_000_000), b"c")], [0, 1, 1]);
        assert_eq!(all(&mut flow), [b"c"]);
        assert_eq!((flow.next(), flow.expire(at(2_000_000))), (None, 0));
    }

    #[test]
    fn what_is_reliable_waits_and_what_finds_no_room_is_not_taken() {
        let mut flow = Flow::new(at(0), Class::Reliable, true, 0, Store::default());
        let half = vec![7; QUEUE / 2];
        assert_eq!([flow.put(at(0), &half), flow.put(at(0), &half), flow.put(at(1_000_000), b"x")], [0, 0, 1]);
        assert_eq!(all(&mut flow), [half.clone(), half]);
    }

    #[test]
    fn a_flow_changes_its_carrier_when_nothing_of_it_is_under_way() {
        let mut flow = Flow::new(at(0), Class::Reliable, true, 0, Store::default());
        flow.put(at(0), &[1; 8000]);
        assert_eq!(flow.choose(at(0), &[0; 2]), Some(Carrier::Express));
        flow.leave();
        flow.handed = [8000, 0];
        // 192 bytes of its budget are left.
        flow.put(at(0), &[2; 1000]);
        assert_eq!(flow.choose(at(0), &[7999, 0]), None);
        assert_eq!(flow.choose(at(0), &[8000, 0]), Some(Carrier::Bulk));
        flow.leave();
        flow.handed = [8000, 1000];
        // It comes back at 16 KiB per second, and only all of it is a reason to change.
        flow.put(at(400), &[3; 100]);
        assert_eq!(flow.choose(at(400), &[8000, 1000]), Some(Carrier::Bulk));
        assert_eq!(flow.choose(at(501), &[8000, 0]), None, "the others are under way");
        assert_eq!(flow.choose(at(501), &[8000, 1000]), Some(Carrier::Express));
    }
}

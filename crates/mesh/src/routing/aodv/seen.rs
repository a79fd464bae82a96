//! Memory of the requests that a node has handled, so that it handles each request only once (RFC
//! 3561, section 6.5).
//!
//! As in ns-2.35, a request is remembered for 6 s and then until the next multiple of 6 s, when the
//! list is swept. Every remembered request is therefore removed by one of the next two sweeps, so
//! that two bits per request suffice. The memory must be small, because a flood brings a copy of
//! the request to every neighbour of every node.

use alloc::boxed::Box;
use alloc::vec;
use core::mem;
use meshpace_core::{Duration, NodeId, Time};

/// Time for which a request is remembered, and interval of the sweeps, which start at time 0.
const BCAST_ID_SAVE: Duration = Duration::from_secs(6);
/// Number of request numbers in a block.
const NUMBERS: u32 = u8::BITS;
/// Initial number of blocks: one cache line.
const FIRST_ROOM: usize = 8;

/// Time of sweep `number`.
#[inline]
fn sweep_at(number: u32) -> Time {
    Time(u64::from(number).saturating_mul(BCAST_ID_SAVE.0))
}

/// Memory of eight consecutive request numbers of one node.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// Request numbers divided by [`NUMBERS`].
    numbers: u32,
    /// Origin of the requests.
    origin: NodeId,
    /// Bit set of the requests that the next sweep removes.
    next: u8,
    /// Bit set of the requests that the sweep after it removes. A request is in at most one of the
    /// two sets. A block with two empty sets is free.
    later: u8,
}

impl Block {
    const FREE: Block = Block { numbers: 0, origin: NodeId(0), next: 0, later: 0 };

    #[inline]
    fn is_free(self) -> bool {
        self.next | self.later == 0
    }
}

/// Memory of handled requests, a hash table of blocks with linear probing.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Blocks. Their number is a power of two, and at least a quarter of them are free; or there
    /// are none. A block is at the index given by the low bits of its origin's number, or at a
    /// later index with no free block in between, where the first index follows the last.
    blocks: Box<[Block]>,
    /// Number of blocks that are not free.
    used: u32,
    /// Number of the next sweep, counted from time 0. It may be overdue.
    next_sweep: u32,
}

impl Seen {
    /// Executes the sweeps that are due by `now`. Returns whether one was due.
    #[inline]
    pub fn sweep(&mut self, now: Time) -> bool {
        let due = now >= sweep_at(self.next_sweep);
        if due {
            self.forget(now);
        }
        due
    }

    /// True if this is the first copy of the request. Notes the request in this case.
    #[inline]
    pub fn first_time(&mut self, now: Time, origin: NodeId, id: u32) -> bool {
        self.sweep(now);
        let (numbers, bit) = (id / NUMBERS, 1 << (id % NUMBERS));
        let mut at = self.place_of(origin, numbers);
        if let Some(at) = at
            && (self.blocks[at].next | self.blocks[at].later) & bit != 0
        {
            return false;
        }
        if at.is_none_or(|at| self.blocks[at].is_free()) {
            if (self.used as usize + 1) * 4 > self.blocks.len() * 3 {
                self.resize((self.blocks.len() * 2).max(FIRST_ROOM));
                at = self.place_of(origin, numbers);
            }
            self.used += 1;
        }
        if let Some(at) = at {
            let block = &mut self.blocks[at];
            (block.numbers, block.origin) = (numbers, origin);
            // At the exact time of a sweep, six seconds end at the next sweep.
            if now + BCAST_ID_SAVE == sweep_at(self.next_sweep) {
                block.next |= bit;
            } else {
                block.later |= bit;
            }
        }
        true
    }

    /// Index of the block, or of the free block in which it belongs; `None` if there is neither.
    #[inline]
    fn place_of(&self, origin: NodeId, numbers: u32) -> Option<usize> {
        let last = self.blocks.len().checked_sub(1)?;
        let mut at = origin.index() & last;
        loop {
            let block = self.blocks[at];
            if block.is_free() || (block.origin == origin && block.numbers == numbers) {
                return Some(at);
            }
            at = (at + 1) & last;
        }
    }

    /// Does the work of all sweeps up to `now`.
    #[cold]
    fn forget(&mut self, now: Time) {
        // The number of sweeps until the end of time fits into 32 bits.
        let next = (now.0 / BCAST_ID_SAVE.0) as u32 + 1;
        let one = next == self.next_sweep + 1;
        self.used = 0;
        for block in &mut self.blocks {
            block.next = if one { block.later } else { 0 };
            block.later = 0;
            self.used += u32::from(!block.is_free());
        }
        self.next_sweep = next;
        // A node that has handled a storm of requests does not keep the memory for it.
        let idle = self.used as usize * 8 < self.blocks.len();
        self.resize(if idle { self.blocks.len() / 2 } else { self.blocks.len() });
    }

    /// Moves all blocks into a table with `room` places, which suffices for them.
    fn resize(&mut self, room: usize) {
        let old = mem::replace(&mut self.blocks, vec![Block::FREE; room].into());
        for block in old.into_iter().filter(|block| !block.is_free()) {
            if let Some(at) = self.place_of(block.origin, block.numbers) {
                self.blocks[at] = block;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_request_is_forgotten_at_the_first_sweep_after_six_seconds() {
        let mut seen = Seen::default();
        assert!(seen.first_time(Time(S), NodeId(1), 1));
        assert!(seen.first_time(Time(S), NodeId(2), 1), "numbers are per origin");
        assert!(!seen.first_time(Time(8 * S), NodeId(1), 1), "7 s have passed, the sweep at 6 s came too early");
        assert!(!seen.first_time(Time(12 * S - 1), NodeId(1), 1));
        assert!(seen.first_time(Time(12 * S), NodeId(1), 1));
        let mut seen = Seen::default();
        assert!(seen.first_time(Time(6 * S), NodeId(1), 1));
        assert!(seen.first_time(Time(12 * S), NodeId(1), 1), "six seconds to the instant");
    }

    #[test]
    fn it_answers_like_a_plain_list() {
        for seed in 1..=20 {
            let mut rng = Rng::stream(seed, Purpose::Test, 0);
            // The list holds, for each request, the time at which it is forgotten, its origin and
            // its number.
            let mut list: Vec<(u64, NodeId, u32)> = Vec::new();
            let (mut seen, mut now, mut copies) = (Seen::default(), 0, 0);
            // A few origins send many requests and many origins send few, crowded into one part of
            // the table; numbers wrap.
            let (origins, newest) = (1 + rng.below(300), rng.below(1 << 32));
            for step in 0..4000 {
                now += match rng.below(200) {
                    0 => rng.below(20 * S),
                    // The time is moved exactly to a sweep.
                    1 => 6 * S - now % (6 * S),
                    2..100 => rng.below(S / 50),
                    _ => 0,
                };
                let origin = NodeId((rng.below(origins) * 16) as u16);
                let id = (newest + step / 100).wrapping_sub(rng.below(12)) as u32;
                list.retain(|&(forgotten, ..)| forgotten > now);
                let first = list.iter().all(|&(_, from, number)| (from, number) != (origin, id));
                if first {
                    list.push(((now + 6 * S).div_ceil(6 * S) * 6 * S, origin, id));
                }
                copies += u32::from(!first);
                assert_eq!(seen.first_time(Time(now), origin, id), first, "seed {seed} step {step}");
            }
            assert!(copies > 0, "seed {seed}");
        }
    }

    #[test]
    fn what_is_forgotten_takes_no_room() {
        let mut seen = Seen::default();
        let mut storm = |from: u64, numbers: core::ops::Range<u32>| {
            for number in numbers {
                assert!(seen.first_time(Time(from + u64::from(number)), NodeId((number % 50) as u16), number / 50));
            }
            (seen.used, seen.blocks.len())
        };
        // There are 50 origins with 40 requests each: five blocks of eight each.
        let (used, room) = storm(S, 0..2000);
        assert_eq!(used, 250);
        assert!((250 * 4 / 3..=250 * 8 / 3).contains(&room), "{room}");
        for round in 1..40 {
            let more = 2000 * round..2000 * (round + 1);
            // The memory holds at most the requests of two sweeps.
            let (used, now_room) = storm(S + 6 * S * u64::from(round), more);
            assert!(used <= 600 && now_room <= 2 * room, "{used} in {now_room}");
        }
        for quiet in 50..60 {
            seen.first_time(Time(quiet * 6 * S), NodeId(3), 1_000_000 + quiet as u32);
        }
        assert!(seen.used <= 2 && seen.blocks.len() <= 2 * FIRST_ROOM, "{} in {}", seen.used, seen.blocks.len());
    }

    #[test]
    fn a_block_is_eight_bytes() {
        assert_eq!(size_of::<Block>(), 8);
    }
}

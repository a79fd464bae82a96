//! The requests a node has already handled, so that it handles each only once (RFC 3561, section 6.5).
//!
//! As in ns-2.35 a request is remembered for 6 s and then until the next multiple of 6 s, when the list is swept. So what is
//! remembered at any moment goes with one of two sweeps, and two bits per request hold it all: a flood brings a copy to every
//! neighbour of every node, and what is asked here must touch little memory.

use alloc::boxed::Box;
use alloc::vec;
use core::mem;
use meshpace_core::{Duration, NodeId, Time};

/// Time for which a request is remembered, and between two sweeps, which start at time 0.
const BCAST_ID_SAVE: Duration = Duration::from_secs(6);
/// Numbers that share a block.
const NUMBERS: u32 = u8::BITS;
/// Room for blocks at first: a cache line.
const FIRST_ROOM: usize = 8;

/// Time at which sweep `number` is made.
#[inline]
fn sweep_at(number: u32) -> Time {
    Time(u64::from(number).saturating_mul(BCAST_ID_SAVE.0))
}

/// Eight successive request numbers of one node.
#[derive(Clone, Copy, Debug)]
struct Block {
    /// The numbers divided by [`NUMBERS`].
    numbers: u32,
    /// The origin of the request.
    origin: NodeId,
    /// Which of them are forgotten at the next sweep, one bit each.
    next: u8,
    /// Which at the one after it. A number is in one of both at most; a block without any is free.
    later: u8,
}

impl Block {
    const FREE: Block = Block { numbers: 0, origin: NodeId(0), next: 0, later: 0 };

    #[inline]
    fn is_free(self) -> bool {
        self.next | self.later == 0
    }
}

/// The memory of requests.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// As many places as a power of two, at least a quarter of them free, or none at all. A block is at the place that its
    /// origin's number says, or after it with no free place between, round the end.
    blocks: Box<[Block]>,
    /// Blocks that are not free.
    used: u32,
    /// The next sweep, or one that has not been made yet, counted from time 0 on.
    next_sweep: u32,
}

impl Seen {
    /// Forgets what is over by `now`; whether a sweep was due.
    #[inline]
    pub fn sweep(&mut self, now: Time) -> bool {
        let due = now >= sweep_at(self.next_sweep);
        if due {
            self.forget(now);
        }
        due
    }

    /// True if this is the first copy of the request; notes it if so.
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
            // Exactly at a sweep six seconds end at the next one.
            if now + BCAST_ID_SAVE == sweep_at(self.next_sweep) {
                block.next |= bit;
            } else {
                block.later |= bit;
            }
        }
        true
    }

    /// Where a block is, or the free place where it belongs; None if there is neither.
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

    /// Does what the sweeps up to `now` would have done.
    #[cold]
    fn forget(&mut self, now: Time) {
        // Time ends before 32 bits of sweeps.
        let next = (now.0 / BCAST_ID_SAVE.0) as u32 + 1;
        let one = next == self.next_sweep + 1;
        self.used = 0;
        for block in &mut self.blocks {
            block.next = if one { block.later } else { 0 };
            block.later = 0;
            self.used += u32::from(!block.is_free());
        }
        self.next_sweep = next;
        // Who was in the middle of a storm need not keep the room for it.
        let idle = self.used as usize * 8 < self.blocks.len();
        self.resize(if idle { self.blocks.len() / 2 } else { self.blocks.len() });
    }

    /// Puts all blocks into `room` places, which is enough for them.
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
            // When each is forgotten, its origin and its number.
            let mut list: Vec<(u64, NodeId, u32)> = Vec::new();
            let (mut seen, mut now, mut copies) = (Seen::default(), 0, 0);
            // Few origins that ask much and many that ask little, crowded into one part of the places; numbers wrap.
            let (origins, newest) = (1 + rng.below(300), rng.below(1 << 32));
            for step in 0..4000 {
                now += match rng.below(200) {
                    0 => rng.below(20 * S),
                    // To a sweep, to the instant.
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
        // 50 origins with 40 requests each: five blocks of eight each.
        let (used, room) = storm(S, 0..2000);
        assert_eq!(used, 250);
        assert!((250 * 4 / 3..=250 * 8 / 3).contains(&room), "{room}");
        for round in 1..40 {
            let more = 2000 * round..2000 * (round + 1);
            // At most two sweeps' worth.
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

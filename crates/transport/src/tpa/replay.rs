//! Protection against replay: which of a peer's numbered datagrams have been seen. Each is accepted once.
//!
//! The window of RFC 4303, section 3.4.3, with the numbers of a connection's datagrams. It is much wider than any window
//! of TPA, so that of the datagrams that are not repeated only very late ones are refused.

/// Numbers behind the highest seen that are still told apart.
pub const WINDOW: u64 = 1024;

const WORDS: usize = WINDOW as usize / 64;

/// The numbers seen.
#[derive(Clone, Debug, Default)]
pub struct Replay {
    /// Behind the highest seen; 0 before any.
    next: u64,
    /// A bit per number of the window, at its place modulo the window's length.
    seen: [u64; WORDS],
}

impl Replay {
    /// True if `number` is neither seen nor too old.
    pub fn is_new(&self, number: u64) -> bool {
        number >= self.next || (self.next - number <= WINDOW && self.seen[word(number)] & bit(number) == 0)
    }

    /// `number`, which is new, was seen, and its datagram is authentic.
    pub fn see(&mut self, number: u64) {
        if number >= self.next {
            let skipped = number - self.next;
            if skipped >= WINDOW {
                self.seen = [0; WORDS];
            } else {
                for forgotten in self.next..number {
                    self.seen[word(forgotten)] &= !bit(forgotten);
                }
            }
            self.next = number.saturating_add(1);
        }
        self.seen[word(number)] |= bit(number);
    }
}

fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use meshpace_core::Rng;
    use meshpace_core::rng::Purpose;

    #[test]
    fn each_number_is_new_once_in_any_order() {
        // Against a set that remembers everything.
        for seed in 0..200 {
            let mut rng = Rng::stream(seed, Purpose::Test, 1);
            let (mut replay, mut seen, mut highest) = (Replay::default(), BTreeSet::new(), 0u64);
            for _ in 0..3000 {
                let near = highest.saturating_sub(rng.below(1200));
                let number = if rng.below(3) == 0 { near } else { highest + rng.below(3) };
                let number = if rng.below(500) == 0 { highest + rng.below(5000) } else { number };
                let old = highest >= WINDOW && number <= highest - WINDOW;
                assert_eq!(replay.is_new(number), !old && !seen.contains(&number), "{number} after {highest}");
                if replay.is_new(number) {
                    replay.see(number);
                    seen.insert(number);
                    highest = highest.max(number);
                }
            }
        }
    }

    #[test]
    fn the_last_number_of_all() {
        let mut replay = Replay::default();
        replay.see(u64::MAX - 1);
        assert!(!replay.is_new(u64::MAX - 1) && replay.is_new(u64::MAX - 2) && !replay.is_new(5));
    }
}

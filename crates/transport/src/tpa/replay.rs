//! Protection against replay: remembers which of a peer's numbered datagrams were received. Each
//! number is accepted once.
//!
//! The window is that of RFC 4303, section 3.4.3, over the numbers of a connection's datagrams. It
//! is much wider than any window of TPA: apart from repeated datagrams, only very late ones are
//! rejected.

/// Distance from the highest number received up to which numbers are still told apart.
pub const WINDOW: u64 = 1024;

/// Declares a window for numbers of the type `$word`, with `$words` words of the same type as
/// bitmap. The tests check every case exhaustively with 8-bit numbers, and the program uses 64
/// bits; the macro makes both share one source.
macro_rules! replay {
    ($(#[$about:meta])* $name:ident, $word:ty, $words:expr) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            /// One more than the highest number seen; 0 before any.
            next: $word,
            /// Bitmap of the window: the bit of a number is at the number modulo the length of the
            /// window.
            seen: [$word; $words],
        }

        impl $name {
            const BITS: $word = <$word>::BITS as $word;
            const WORDS: usize = $words;
            const WINDOW: $word = Self::WORDS as $word * Self::BITS;

            /// True if `number` was not seen before and is not too old.
            pub fn is_new(&self, number: $word) -> bool {
                number >= self.next
                    || (self.next - number <= Self::WINDOW && self.seen[Self::word(number)] & Self::bit(number) == 0)
            }

            /// Records `number`, which must be new, after its datagram was authenticated.
            pub fn see(&mut self, number: $word) {
                if number >= self.next {
                    let skipped = number - self.next;
                    if skipped >= Self::WINDOW {
                        self.seen = [0; Self::WORDS];
                    } else {
                        for forgotten in self.next..number {
                            self.seen[Self::word(forgotten)] &= !Self::bit(forgotten);
                        }
                    }
                    self.next = number.saturating_add(1);
                }
                self.seen[Self::word(number)] |= Self::bit(number);
            }

            #[allow(clippy::modulo_one, reason = "tests have a window of one word, too")]
            fn word(number: $word) -> usize {
                (number / Self::BITS) as usize % Self::WORDS
            }

            fn bit(number: $word) -> $word {
                1 << (number % Self::BITS)
            }
        }
    };
}

replay! {
    /// The numbers seen. The largest 64-bit number, 2^64 - 1, must not be used: `next` cannot be
    /// larger.
    Replay, u64, WINDOW as usize / 64
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

    replay!(Short, u8, 1);
    replay!(Long, u8, 2);

    /// Tests every step from every state of a window of 8-bit numbers. A number is new if and only
    /// if it is not in the set of all numbers seen, and the step leads to the state that stands for
    /// the set with one more number. By induction this holds after any list of numbers.
    macro_rules! every_step {
        ($name:ident, $all:ident, $nexts:expr, $reach:expr) => {{
            const WINDOW: i32 = <$name>::WINDOW as i32;
            let mut steps = 0_u64;
            // The set, as far as it can matter: whether the number `age` behind `next` was seen, a bit for each age from 1.
            let set = |state: &$name| {
                (1..=WINDOW.min(i32::from(state.next))).fold(0_u32, |set, age| {
                    let number = i32::from(state.next) - age;
                    let place = number % WINDOW;
                    set | u32::from(state.seen[place as usize / 8] >> (place % 8) & 1) << age
                })
            };
            for next in $nexts {
                // States that cannot be: the highest was not seen, or numbers before the first were.
                let states = (0..=$all::MAX).map(|bits| $name { next, seen: bits.to_le_bytes() });
                let is_possible = |state: &$name| {
                    let of_none = (i32::from(next)..WINDOW).any(|place| state.seen[place as usize / 8] >> (place % 8) & 1 == 1);
                    !of_none && (next == 0 || set(state) & 1 << 1 != 0)
                };
                for state in states.filter(is_possible) {
                    let known = set(&state);
                    for number in next.saturating_sub($reach)..next.saturating_add($reach).min(u8::MAX) {
                        let age = i32::from(next) - i32::from(number);
                        let is_new = age <= 0 || age <= WINDOW && known >> age & 1 == 0;
                        assert_eq!(state.is_new(number), is_new, "{number}, {state:?}");
                        if !is_new {
                            continue;
                        }
                        let mut after = state.clone();
                        after.see(number);
                        let ahead = (1 - age).max(0);
                        assert_eq!(i32::from(after.next), i32::from(next) + ahead);
                        let most = (1_u64 << (WINDOW + 1)) - 1;
                        let moved = if ahead > WINDOW { 0 } else { u64::from(known) << ahead & most };
                        let expected = moved | 1 << (age + ahead);
                        assert_eq!(u64::from(set(&after)), expected, "{number}, {state:?}");
                        steps += 1;
                    }
                }
            }
            steps
        }};
    }

    #[test]
    fn every_step_of_eight_bits_does_what_a_set_does() {
        assert!(every_step!(Short, u8, 0..=u8::MAX, u8::MAX) > 1_000_000);
        // Two words: at the beginning, where the window begins at each place of them, and at the end of all numbers; numbers up to the window away.
        assert!(
            every_step!(Long, u16, [0, 1, 7, 16, 17].into_iter().chain(100..=116).chain(252..=u8::MAX), 18) > 1_000_000
        );
    }
}

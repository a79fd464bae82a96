//! Numbers that the peer of a connection cannot predict, although it has all keys of the
//! connection.
//!
//! A connection needs them for path challenges (RFC 9000, section 8.2.1), and to decide which
//! numbers of its segments it skips (RFC 9000, section 21.4). Each number is SipHash-2-4 of a
//! counter under a random key that never leaves this end.

use super::host::{Randomness, random};
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::io;

/// Generator of unpredictable numbers.
pub struct Unpredictable {
    key: [u8; 16],
    drawn: u64,
}

impl std::fmt::Debug for Unpredictable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpredictable").field("drawn", &self.drawn).finish_non_exhaustive()
    }
}

impl Unpredictable {
    /// Creates a generator with a key from `randomness`.
    ///
    /// # Errors
    ///
    /// `randomness` has no random numbers.
    pub fn new(randomness: &mut (impl Randomness + ?Sized)) -> io::Result<Unpredictable> {
        Ok(Unpredictable { key: random(randomness)?, drawn: 0 })
    }

    /// The next number.
    pub(crate) fn draw(&mut self) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(self.drawn);
        self.drawn += 1;
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source that always returns the same byte.
    struct Constant(u8);

    impl Randomness for Constant {
        fn fill(&mut self, bytes: &mut [u8]) -> io::Result<()> {
            bytes.fill(self.0);
            Ok(())
        }
    }

    #[test]
    fn numbers_differ_and_follow_from_the_key() {
        let drawn = |key: u8| {
            let mut numbers = Unpredictable::new(&mut Constant(key)).unwrap();
            (0..1000).map(|_| numbers.draw()).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1), drawn(1));
        let both: std::collections::BTreeSet<u64> = drawn(1).into_iter().chain(drawn(2)).collect();
        assert_eq!(both.len(), 2000);
    }
}

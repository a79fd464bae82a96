//! Growth of a receive window with what the application has read.
//!
//! A peer may send so much beyond what was read that the first round trips are not held back, and later four times what was read in all:
//! as long as a sender looks for the rate of the path, it has sent less than that before. So a peer cannot have memory taken for an
//! application that reads nothing.

/// The window after `window` bytes where `taken` bytes were read in all: `most` bytes at most, and no larger than before unless it `may` grow.
pub fn grown_window(window: u64, taken: u64, most: u64, may: impl FnOnce() -> bool) -> u64 {
    let wanted = taken.saturating_mul(4).min(most);
    if wanted > window && may() { wanted } else { window }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_follows_what_is_read() {
        let grown = |taken| grown_window(64, taken, 1000, || true);
        assert_eq!([0, 16, 17, 250, 1 << 62].map(grown), [64, 64, 68, 1000, 1000]);
        assert_eq!(grown_window(64, 250, 1000, || false), 64);
        assert_eq!(grown_window(64, 250, 10, || true), 64, "it is never taken back");
    }
}

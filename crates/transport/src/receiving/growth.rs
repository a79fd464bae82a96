//! Growth of a receive window with the data that the application has read.
//!
//! The window starts large enough not to limit the first round trips. Later it may grow to four
//! times the number of bytes that the application has read in all. A sender that still searches for
//! the rate of the path sends less than that beyond what was read. So a peer cannot make this end
//! use memory for an application that reads nothing.

/// New size of a window of `window` bytes after the application has read `taken` bytes in all. The
/// window grows to at most `most` bytes, and only if `may` returns true. It never shrinks.
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

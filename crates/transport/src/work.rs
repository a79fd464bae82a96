//! Counter of the steps of work that a datagram causes, for tests.
//!
//! A step is a search in a sorted set, or one more element that is looked at or removed. The tests
//! in `hostile` limit the number of steps per datagram. Steps are counted only with the feature
//! `count-work`, which tests of other crates enable, or in tests of this crate.

#[cfg(any(test, feature = "count-work"))]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Counts a step.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(any(test, feature = "count-work"))]
    STEPS.set(STEPS.get() + 1);
}

/// Returns the number of steps of this thread since the last call. It is 0 if steps are not
/// counted.
pub fn take_steps() -> u64 {
    #[cfg(any(test, feature = "count-work"))]
    return STEPS.replace(0);
    #[cfg(not(any(test, feature = "count-work")))]
    0
}

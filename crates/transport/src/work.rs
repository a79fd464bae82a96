//! Steps of work that a datagram causes, counted in tests.
//!
//! A step is a search in a sorted set, or one more element that is looked at or removed. The tests in `hostile` bound the number
//! of steps per datagram. Nothing is counted without the feature `count-work`, which tests of other crates ask for.

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

/// Takes the number of steps of this thread since the last call; 0 where nothing is counted.
pub fn take_steps() -> u64 {
    #[cfg(any(test, feature = "count-work"))]
    return STEPS.replace(0);
    #[cfg(not(any(test, feature = "count-work")))]
    0
}

//! Steps of work that a datagram causes, counted in tests of this crate.
//!
//! A step is a search in a sorted set, or one more element that is looked at or removed. The tests in `hostile` bound the number
//! of steps per datagram; outside of tests nothing is counted.

#[cfg(test)]
std::thread_local! {
    static STEPS: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

/// Counts a step.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(test)]
    STEPS.set(STEPS.get() + 1);
}

/// Takes the number of steps of this thread since the last call.
#[cfg(test)]
pub(crate) fn take_steps() -> u64 {
    STEPS.replace(0)
}

//! Real time for the protocols: nanoseconds of the machine's monotonic clock.
//!
//! The monotonic clock does not jump or run backwards when the time of day is set. No timer of a
//! protocol can therefore expire too early or never because of that. All threads and connections of
//! a process share the origin of the clock.

use meshpace_core::{Duration, Time};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;

/// The monotonic clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// Current time.
    #[inline]
    pub fn now(self) -> Time {
        let now = clock_gettime(ClockId::Monotonic);
        Time(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }
}

/// Requests that the kernel ends sleeps of this thread on time. By default the kernel may delay
/// them by up to 50 us to save wake-ups (prctl(2), PR_SET_TIMERSLACK).
pub fn sharpen_timers() {
    // This fails only if a sandbox forbids prctl. The timers then keep the default accuracy.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Time that is left until `deadline`, for system calls that take a relative time. Such a call
/// starts counting slightly later, on the same clock. The wake-up is late by that difference, and
/// the differences do not accumulate.
pub(crate) fn until(deadline: Time) -> Duration {
    deadline.since(Clock.now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_day_has_no_part_in_it() {
        let reading = |clock| {
            let now = clock_gettime(clock);
            Time(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
        };
        // Whoever sets the time of day sets the real-time clock; the monotonic one goes on (clock_gettime(2)).
        let before = reading(ClockId::Monotonic);
        let ours = Clock.now();
        assert!(before <= ours && ours <= reading(ClockId::Monotonic));
        // Decades since 1970 on one, the time since the machine's start on the other.
        assert!(reading(ClockId::Realtime).since(ours) > Duration::from_secs(365 * 86_400));
    }
}

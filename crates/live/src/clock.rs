//! Real time as the protocols count it: nanoseconds of the machine's monotonic clock.
//!
//! The monotonic clock neither jumps nor runs backwards when somebody sets the time of day, so no timer of a protocol can
//! fire early or never because of that. All threads and connections of a process share its origin.

use meshpace_core::{Duration, Time};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZeroU64;

/// The monotonic clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock;

impl Clock {
    /// Now.
    #[inline]
    pub fn now(self) -> Time {
        let now = clock_gettime(ClockId::Monotonic);
        Time(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }
}

/// Asks the kernel to end this thread's sleeps on time: it may otherwise be up to 50 us late to spare wake-ups
/// (prctl(2), PR_SET_TIMERSLACK).
pub fn sharpen_timers() {
    // Refused only where a sandbox forbids prctl: then timers are as they are.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Time that is left until `deadline`, for system calls that want a span. They start from now, as this does, and both read the
/// same clock: what passes in between makes the wake-up late by that much, and nothing adds up.
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

//! Waiting for a condition until a time of the machine's clock.

use crate::Clock;
use meshpace_core::{Duration, Time};
use std::io;
use std::sync::{Condvar, MutexGuard, PoisonError};

/// Waits for `condition` until `deadline`; [`io::ErrorKind::WouldBlock`] when that has passed.
pub fn wait_until<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline: Time,
) -> (MutexGuard<'a, T>, io::Result<()>) {
    if deadline == Time::NEVER {
        return (condition.wait(guard).unwrap_or_else(PoisonError::into_inner), Ok(()));
    }
    let left = deadline.since(Clock.now());
    if left == Duration::ZERO {
        return (guard, Err(io::ErrorKind::WouldBlock.into()));
    }
    let left = std::time::Duration::from_nanos(left.0);
    (condition.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0, Ok(()))
}

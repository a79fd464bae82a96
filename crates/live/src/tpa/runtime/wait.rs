//! Waiting for a condition until a time of the machine's clock, or until a signal arrives.
//!
//! The condition variable differs from the standard library's in its treatment of signals: std's
//! continues to wait after a signal, but callers in C expect EINTR. The kernel applies its rule for
//! sockets (signal(7)). Without a deadline, a wait continues after a handler with SA_RESTART. With
//! a deadline, any handler ends the wait.

use crate::Clock;
use meshpace_core::{Duration, Time};
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Condition variable on a futex, whose value counts the notifications.
#[derive(Debug, Default)]
pub struct Condition(AtomicU32);

/// Limits of the waiting time of a call.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Time at which the wait ends. [`Time::NEVER`] for no limit.
    pub deadline: Time,
    /// True if a signal also ends the wait.
    pub ends_with_signal: bool,
}

impl From<Time> for Patience {
    fn from(deadline: Time) -> Patience {
        Patience { deadline, ends_with_signal: false }
    }
}

impl Condition {
    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        self.notify(u32::MAX);
    }

    /// Wakes one waiting thread.
    pub fn notify_one(&self) {
        self.notify(1);
    }

    fn notify(&self, most: u32) {
        self.0.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.0, Flags::PRIVATE, most);
    }

    /// Waits for a notification; it may also return without one. `guard` has to be a guard of
    /// `mutex`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] when the deadline has passed, [`io::ErrorKind::Interrupted`]
    /// if a signal has ended the wait.
    pub fn wait<'a, T>(
        &self,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        patience: Patience,
    ) -> (MutexGuard<'a, T>, io::Result<()>) {
        let left = (patience.deadline != Time::NEVER).then(|| patience.deadline.since(Clock.now()));
        if left == Some(Duration::ZERO) {
            return (guard, Err(io::ErrorKind::WouldBlock.into()));
        }
        let left = left
            .map(|left| Timespec { tv_sec: (left.0 / 1_000_000_000) as i64, tv_nsec: (left.0 % 1_000_000_000) as i64 });
        // A thread that changes the guarded value increments the count after the change. From here
        // on, such a change therefore makes the count differ.
        let count = self.0.load(Ordering::Acquire);
        drop(guard);
        let waited = futex::wait(&self.0, Flags::PRIVATE, count, left.as_ref());
        let guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
        match waited {
            Err(Errno::INTR) if patience.ends_with_signal => (guard, Err(io::ErrorKind::Interrupted.into())),
            _ => (guard, Ok(())),
        }
    }
}

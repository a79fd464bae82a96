//! Waiting for a condition until a time of the machine's clock, or until a signal comes.
//!
//! A condition variable like std's, but for signals: std's goes on waiting after one, and callers in C expect EINTR. The kernel tells by
//! its rule for sockets (signal(7)): without a deadline a wait goes on after a handler with SA_RESTART; with a deadline any handler
//! ends it.

use crate::Clock;
use meshpace_core::{Duration, Time};
use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};
use rustix::time::Timespec;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A condition variable: the count of its notifications.
#[derive(Debug, Default)]
pub struct Condition(AtomicU32);

/// How long a call waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until when; never for without end.
    pub deadline: Time,
    /// True if a signal ends it, too.
    pub ends_with_signal: bool,
}

impl From<Time> for Patience {
    fn from(deadline: Time) -> Patience {
        Patience { deadline, ends_with_signal: false }
    }
}

impl Condition {
    /// Wakes everybody who waits.
    pub fn notify_all(&self) {
        self.notify(u32::MAX);
    }

    /// Wakes one who waits.
    pub fn notify_one(&self) {
        self.notify(1);
    }

    fn notify(&self, most: u32) {
        self.0.fetch_add(1, Ordering::Release);
        let _ = futex::wake(&self.0, Flags::PRIVATE, most);
    }

    /// Waits for a notification; it may also return without one. `guard` is of `mutex`.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] when the deadline has passed, [`io::ErrorKind::Interrupted`] if a signal has ended it.
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
        // Whoever changes what `mutex` guards counts afterwards: from here on the count is another.
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

//! Waiting for many streams and listeners with one thread. Each is identified by a token, and the
//! wait returns the tokens of those that may be ready.
//!
//! Streams and listeners are polled with a [`Waker`] (`poll_read`, `poll_write`, `poll_accept`).
//! Each waker of a [`Selector`] adds its token to the selector's set; [`Selector::wait`] returns
//! the tokens that were added since the last call. A child after `fork` has to create its own
//! selector, because no thread adds tokens to its copy of the parent's selector.

use crate::tpa::runtime::wait::Condition;
use meshpace_core::Time;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// Set of tokens to which wakers of any thread can add.
#[derive(Clone, Debug, Default)]
pub struct Selector(Arc<Queue>);

#[derive(Debug, Default)]
struct Queue {
    noted: Mutex<BTreeSet<u64>>,
    grown: Condition,
}

#[derive(Debug)]
struct Note {
    token: u64,
    queue: Arc<Queue>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Note {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.queue.lock().insert(self.token) {
            self.queue.grown.notify_one();
        }
    }
}

impl Selector {
    /// Creates a waker that adds `token` to the set.
    pub fn waker(&self, token: u64) -> Waker {
        Arc::new(Note { token, queue: Arc::clone(&self.0) }).into()
    }

    /// Returns the tokens that were added since the last call, in ascending order. If there are
    /// none, waits for one until `deadline`.
    pub fn wait(&self, deadline: Time) -> BTreeSet<u64> {
        let mut noted = self.0.lock();
        while noted.is_empty() {
            let (guard, in_time) = self.0.grown.wait(&self.0.noted, noted, deadline.into());
            noted = guard;
            if in_time.is_err() {
                break;
            }
        }
        std::mem::take(&mut noted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use meshpace_core::Duration;

    #[test]
    fn tokens_are_told_once() {
        let selector = Selector::default();
        let (one, two) = (selector.waker(1), selector.waker(2));
        two.wake_by_ref();
        one.wake_by_ref();
        two.wake_by_ref();
        assert_eq!(selector.wait(Time::NEVER), BTreeSet::from([1, 2]));
        assert_eq!(selector.wait(Clock.now() + Duration::from_millis(1)), BTreeSet::new());
        let waiting = std::thread::spawn(move || selector.wait(Time::NEVER));
        one.wake();
        assert_eq!(waiting.join().unwrap(), BTreeSet::from([1]));
    }
}

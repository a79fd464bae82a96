//! Busy polling: checks for the peer's answer for a short time before sleeping, if that saves time.
//!
//! One block of 17 kB is sent per round trip, and two hosts that are close answer each other within
//! some tens of microseconds. Putting a thread and its processor to sleep and waking both takes as
//! long again at either end, and often longer. After a datagram of a connection, the thread
//! therefore polls for the next one for a short time.
//!
//! Between two checks it yields its processor to other threads that want to run there: the peer or
//! the application. If no datagram arrived within that time, or other threads had the processor for
//! longer, it polls less and less often. Polling thus costs very little with a distant, slow or
//! silent peer, or on a busy machine. Datagrams of unknown senders do not start polling.

use crate::Clock;
use crate::poll::{Poller, Ready};
use meshpace_core::{Duration, Time};
use std::io;

/// Time for which the thread polls. It has to exceed the round trip to a peer whose thread sleeps.
/// Otherwise two ends that both sleep would never find out that polling saves time.
const MOMENT: Duration = Duration::from_micros(250);

/// Maximum number of consecutive waits without polling.
const MOST_PATIENT: u32 = 255;

/// State that is adapted to the results of the last polls.
#[derive(Debug, Default)]
pub(super) struct BusyPoll {
    /// Number of waits until polling is tried again.
    rest: u32,
    /// Number of waits without polling after the next failure.
    patience: u32,
}

impl BusyPoll {
    /// Waits like [`Poller::wait`]. `expects` is true if an answer may follow what has just been
    /// done.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub(super) fn wait(
        &mut self,
        poller: &Poller,
        deadline: Time,
        expects: bool,
        ready: &mut Vec<Ready>,
    ) -> io::Result<()> {
        if expects && self.wants() {
            let start = Clock.now();
            let left = deadline.since(start);
            let found = poller.look(left.min(MOMENT), ready)?;
            // A sleeping thread is woken in time even if other threads use the processor; a polling
            // thread waits for its turn. Polling therefore counts as failed if it took longer than
            // `MOMENT`.
            self.learn(found && Clock.now().since(start) <= MOMENT);
            if found || left <= MOMENT {
                return Ok(());
            }
        }
        poller.wait(deadline, ready)
    }

    fn wants(&mut self) -> bool {
        let wants = self.rest == 0;
        self.rest = self.rest.saturating_sub(1);
        wants
    }

    fn learn(&mut self, found: bool) {
        self.patience = if found { self.patience / 2 } else { (2 * self.patience + 1).min(MOST_PATIENT) };
        self.rest = if found { 0 } else { self.patience };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many waits, those that look first.
    fn looks(busy_poll: &mut BusyPoll, waits: u32, found: bool) -> u32 {
        let mut looked = 0;
        for _ in 0..waits {
            if busy_poll.wants() {
                busy_poll.learn(found);
                looked += 1;
            }
        }
        looked
    }

    #[test]
    fn it_is_done_as_long_as_it_pays() {
        let mut busy_poll = BusyPoll::default();
        assert_eq!(looks(&mut busy_poll, 1000, true), 1000);
        // The waits 0, 2, 6, 14 ..., 254, then every 256th from 510 on.
        assert_eq!(looks(&mut busy_poll, 510, false), 8);
        assert_eq!(looks(&mut busy_poll, 25_600, false), 100);
        // The next one is due; where something is found again, it is done every time.
        assert_eq!(looks(&mut busy_poll, 1000, true), 1000);
    }
}

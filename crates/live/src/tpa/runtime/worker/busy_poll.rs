//! Busy polling: looks for the peer's answer for a moment before sleeping, where that pays.
//!
//! A block of 17 kB goes per round trip, and two ends that are near answer within some tens of microseconds. To put a thread and its
//! processor to sleep and to wake both takes as long again at either end, and often longer. So after a datagram of a connection the
//! thread looks for the next one for a moment first, as long as that pays. Between two looks it offers its processor to whoever else
//! wants to run there: the peer, or the application. Where nothing came within the moment, or others had the processor for
//! longer, it looks less and less often, so that a distant peer, a slow or a silent one, or a busy machine, costs nothing to speak of.
//! Datagrams of strangers are no reason to look.

use crate::Clock;
use crate::poll::{Poller, Ready};
use meshpace_core::{Duration, Time};
use std::io;

/// Time for which to look. The round trip to a peer that sleeps has to fit in, or two ends that both sleep would never find out that looking
/// pays.
const MOMENT: Duration = Duration::from_micros(250);

/// Most waits in a row without looking.
const MOST_PATIENT: u32 = 255;

/// State learnt from the last times.
#[derive(Debug, Default)]
pub(super) struct BusyPoll {
    /// Waits until it is tried again.
    rest: u32,
    /// Waits to rest after the next failure.
    patience: u32,
}

impl BusyPoll {
    /// Waits as [`Poller::wait`]; `expects` is whether an answer may follow what has just been done.
    ///
    /// # Errors
    ///
    /// The system's.
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
            // Who sleeps is woken in time even where others have the processor: who looks waits for its turn.
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

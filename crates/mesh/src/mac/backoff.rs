//! The backoff timer: whole slots are counted down while the medium is idle.
//!
//! Source: IEEE Std 802.11-1999, 9.2.5.2; ns-2.35 as measured: time is continuous, there is no
//! common slot grid; when the medium becomes busy only whole elapsed slots are deducted. Profile `ieee` sees slots as
//! stations do that share their boundaries up to propagation and sensing: see [`Backoff::pause`].

use meshpace_core::{Duration, Time};

/// A backoff timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backoff {
    /// Not in use.
    #[default]
    Off,
    /// The medium is busy.
    Paused {
        /// What remains to be counted down.
        remaining: Duration,
    },
    /// The medium is idle.
    Running {
        /// When counting down begins: the end of the interframe space.
        from: Time,
        /// What remains to be counted down from then.
        remaining: Duration,
    },
}

impl Backoff {
    /// Whether the timer is in use.
    #[inline]
    pub fn busy(self) -> bool {
        self != Backoff::Off
    }

    /// When the timer expires if the medium stays idle.
    #[inline]
    pub fn expiry(self) -> Option<Time> {
        match self {
            Backoff::Running { from, remaining } => Some(from + remaining),
            _ => None,
        }
    }

    /// Adds `extra` to what remains.
    pub fn extend(&mut self, extra: Duration) {
        if let Backoff::Paused { remaining } | Backoff::Running { remaining, .. } = self {
            *remaining = *remaining + extra;
        }
    }

    /// The medium became busy. A slot whose end is less than `commit` away counts as elapsed: it is too late to sense that it is
    /// not idle to its end.
    #[inline]
    pub fn pause(&mut self, now: Time, slot: Duration, commit: Duration) {
        if let Backoff::Running { from, remaining } = *self {
            let elapsed = (now.since(from) + commit).0 / slot.0 * slot.0;
            *self = Backoff::Paused { remaining: remaining.saturating_sub(Duration(elapsed)) };
        }
    }

    /// The medium is idle; counting down goes on at `from`.
    #[inline]
    pub fn resume(&mut self, from: Time) {
        if let Backoff::Paused { remaining } = *self {
            *self = Backoff::Running { from, remaining };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_slots_are_deducted() {
        let slot = Duration::from_micros(20);
        let mut backoff = Backoff::Paused { remaining: slot * 10 };
        backoff.resume(Time(50_000));
        assert_eq!(backoff.expiry(), Some(Time(250_000)));
        backoff.pause(Time(50_000 + 59_999), slot, Duration::ZERO);
        assert_eq!(backoff, Backoff::Paused { remaining: slot * 8 });
        backoff.resume(Time(1_000_000));
        backoff.pause(Time(999_000), slot, Duration::ZERO);
        assert_eq!(
            backoff,
            Backoff::Paused { remaining: slot * 8 },
            "nothing is deducted before the interframe space ends"
        );
    }

    #[test]
    fn a_slot_about_to_end_is_deducted() {
        // CCA takes 15 us: what begins in the last 15 us of a slot, or the first 5 us of the next, begins between the two.
        let (slot, commit) = (Duration::from_micros(20), Duration::from_micros(15));
        for (busy_us, slots) in [(0, 10), (4, 10), (5, 9), (20, 9), (24, 9), (25, 8), (179, 1)] {
            let mut backoff = Backoff::Running { from: Time(1_000_000), remaining: slot * 10 };
            backoff.pause(Time(1_000_000 + busy_us * 1_000), slot, commit);
            assert_eq!(backoff, Backoff::Paused { remaining: slot * slots }, "busy after {busy_us} us");
        }
        let mut backoff = Backoff::Running { from: Time(1_000_000), remaining: slot };
        backoff.pause(Time(990_000), slot, commit);
        assert_eq!(backoff, Backoff::Paused { remaining: slot }, "the interframe space is no slot");
    }
}

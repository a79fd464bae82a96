//! The backoff timer: whole slots are counted down while the medium is idle.
//!
//! Source: IEEE Std 802.11-1999, 9.2.5.2; ns-2.35 as measured: time is continuous, there is no
//! common slot grid; when the medium becomes busy only whole elapsed slots are deducted.

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

    /// The medium became busy.
    #[inline]
    pub fn pause(&mut self, now: Time, slot: Duration) {
        if let Backoff::Running { from, remaining } = *self {
            let elapsed = now.since(from).0 / slot.0 * slot.0;
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
        backoff.pause(Time(50_000 + 59_999), slot);
        assert_eq!(backoff, Backoff::Paused { remaining: slot * 8 });
        backoff.resume(Time(1_000_000));
        backoff.pause(Time(999_000), slot);
        assert_eq!(
            backoff,
            Backoff::Paused { remaining: slot * 8 },
            "nothing is deducted before the interframe space ends"
        );
    }
}

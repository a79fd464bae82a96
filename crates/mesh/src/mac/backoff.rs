//! Backoff timer: whole slots are counted down while the medium is idle.
//!
//! Source: IEEE Std 802.11-1999, 9.2.5.2; ns-2.35 as measured: time is continuous and there is no
//! common slot grid. When the medium becomes busy, only slots that have elapsed completely are
//! deducted. Under profile `ieee` the slots of stations share their boundaries, apart from
//! propagation and sensing: see [`Backoff::pause`].

use meshpace_core::{Duration, Time};

/// Backoff timer. The remaining time is stored in ns, at most 4.2 s; the longest contention window
/// takes 20 ms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Backoff {
    /// The timer is not in use.
    #[default]
    Off,
    /// The timer is stopped, because the medium is busy.
    Paused {
        /// Time that remains to be counted down, in ns.
        remaining_ns: u32,
    },
    /// The timer runs, because the medium is idle.
    Running {
        /// Time at which counting down begins: the end of the interframe space.
        from: Time,
        /// Time that remains to be counted down from that time on, in ns.
        remaining_ns: u32,
    },
}

impl Backoff {
    /// Creates a stopped timer with `remaining` to count down.
    #[inline]
    pub fn paused(remaining: Duration) -> Backoff {
        Backoff::Paused { remaining_ns: remaining.0 as u32 }
    }

    /// True if the timer is in use.
    #[inline]
    pub fn busy(self) -> bool {
        self != Backoff::Off
    }

    /// Time at which the timer expires if the medium stays idle; `None` if it does not run.
    #[inline]
    pub fn expiry(self) -> Option<Time> {
        match self {
            Backoff::Running { from, remaining_ns } => Some(from + Duration(u64::from(remaining_ns))),
            _ => None,
        }
    }

    /// True if a station with this timer notices that the medium becomes busy. During the time
    /// `commit` before its own transmission the station does not notice it, and transmits.
    #[inline]
    pub fn notices(self, now: Time, commit: Duration) -> bool {
        self.expiry().is_none_or(|at| at.since(now) >= commit)
    }

    /// Adds `extra` to the remaining time.
    pub fn extend(&mut self, extra: Duration) {
        if let Backoff::Paused { remaining_ns } | Backoff::Running { remaining_ns, .. } = self {
            *remaining_ns = (u64::from(*remaining_ns) + extra.0).min(u64::from(u32::MAX)) as u32;
        }
    }

    /// Stops the timer because the medium became busy. A slot that ends within the time `ahead`
    /// counts as elapsed. With the CCA time for `ahead`, this models that it is too late to sense a
    /// busy medium before the end of the slot. With one slot more, the slot in which the medium
    /// became busy also counts, as in EDCA.
    #[inline]
    pub fn pause(&mut self, now: Time, slot: Duration, ahead: Duration) {
        if let Backoff::Running { from, remaining_ns } = *self {
            let elapsed = (now + ahead).since(from).0 / slot.0 * slot.0;
            *self = Backoff::Paused { remaining_ns: u64::from(remaining_ns).saturating_sub(elapsed) as u32 };
        }
    }

    /// Continues counting down at `from`, because the medium is idle.
    #[inline]
    pub fn resume(&mut self, from: Time) {
        if let Backoff::Paused { remaining_ns } = *self {
            *self = Backoff::Running { from, remaining_ns };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(remaining: Duration) -> Backoff {
        Backoff::Running { from: Time(1_000_000), remaining_ns: remaining.0 as u32 }
    }

    #[test]
    fn only_whole_slots_are_deducted() {
        let slot = Duration::from_micros(20);
        let mut backoff = Backoff::paused(slot * 10);
        backoff.resume(Time(50_000));
        assert_eq!(backoff.expiry(), Some(Time(250_000)));
        backoff.pause(Time(50_000 + 59_999), slot, Duration::ZERO);
        assert_eq!(backoff, Backoff::paused(slot * 8));
        backoff.resume(Time(1_000_000));
        backoff.pause(Time(999_000), slot, Duration::ZERO);
        assert_eq!(backoff, Backoff::paused(slot * 8), "nothing is deducted before the interframe space ends");
    }

    #[test]
    fn a_slot_about_to_end_is_deducted() {
        // CCA takes 15 us. A frame that begins in the last 15 us of a slot, or in the first 5 us of
        // the next slot, begins between the two.
        let (slot, commit) = (Duration::from_micros(20), Duration::from_micros(15));
        for (busy_us, slots) in [(0, 10), (4, 10), (5, 9), (20, 9), (24, 9), (25, 8), (179, 1)] {
            let mut backoff = running(slot * 10);
            backoff.pause(Time(1_000_000 + busy_us * 1_000), slot, commit);
            assert_eq!(backoff, Backoff::paused(slot * slots), "busy after {busy_us} us");
        }
        let mut backoff = running(slot);
        backoff.pause(Time(990_000), slot, commit);
        assert_eq!(backoff, Backoff::paused(slot), "the interframe space is no slot");
    }

    #[test]
    fn with_the_slots_of_edca_the_one_in_which_the_medium_becomes_busy_counts() {
        // 802.11n has slot boundaries at the end of the interframe space and every 9 us after it.
        // CCA takes 4 us.
        let (slot, ahead) = (Duration::from_micros(9), Duration::from_micros(4 + 9));
        for (busy_us, slots) in [(0, 9), (4, 9), (5, 8), (9, 8), (13, 8), (14, 7), (81, 0)] {
            let mut backoff = running(slot * 10);
            backoff.pause(Time(1_000_000 + busy_us * 1_000), slot, ahead);
            assert_eq!(backoff, Backoff::paused(slot * slots), "busy after {busy_us} us");
        }
        let mut backoff = running(slot);
        backoff.pause(Time(995_000), slot, ahead);
        assert_eq!(backoff, Backoff::paused(slot), "the interframe space was not over");
    }
}

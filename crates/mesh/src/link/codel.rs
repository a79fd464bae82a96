//! CoDel: decides by the time a packet has waited whether it is to be dropped or marked.
//!
//! Source: RFC 8289, sections 4 and 5 (estimator, set point, control law); marking instead of dropping as in RFC 8290,
//! section 5.2.6. The controller holds no packets: it is shown the head of a queue, one after the other, and judges it.
//! Departures: none known; times are whole nanoseconds, the control law rounds to the nearest.

use meshpace_core::{Duration, Time};

/// A queue that stays below this many bytes is not judged (MAXPACKET in RFC 8289, section 5: the largest packet).
pub const MAX_PACKET: u32 = 1514;

/// CoDel's two parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelParameters {
    /// Waiting time that is accepted to persist. Default 5 ms (RFC 8289, 4.4).
    pub target: Duration,
    /// Window in which the smallest waiting time must have been below the target. Default 100 ms (RFC 8289, 4.3).
    pub interval: Duration,
}

/// Decision on the packet at the head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodelDecision {
    /// It may leave.
    Pass,
    /// It is dropped, and the next one judged; or it is marked and leaves.
    Drop,
}

/// The controller of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Codel {
    /// Time at which the waiting time will have been above the target for an interval.
    first_above: Option<Time>,
    dropping: bool,
    /// Time at which the next packet is dropped.
    drop_next: Time,
    /// Drops since the dropping state was entered; 1 is the first.
    count: u32,
    last_count: u32,
    /// State in which the packet before this one was dropped in the same request for a packet; None if it was not.
    just_dropped: Option<Entering>,
}

/// Place of a drop in its dropping state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Entering {
    /// It was the first of a dropping state.
    First,
    /// It was one of several.
    Further,
}

impl Codel {
    /// True if packets are being dropped.
    pub fn dropping(&self) -> bool {
        self.dropping
    }

    /// Judges the head of the queue, which has waited since `arrived`; `left` bytes remain behind it. After
    /// [`CodelDecision::Drop`] the caller either drops it and asks about the next one, or marks it and calls
    /// [`Codel::on_marked`]; if there is none, it calls [`Codel::on_empty`].
    pub fn judge(&mut self, now: Time, arrived: Time, left: u32, p: &CodelParameters) -> CodelDecision {
        let above = self.above(now, arrived, left, p);
        match self.just_dropped.take() {
            // The packet after the first drop of a state leaves in any case.
            Some(Entering::First) => return CodelDecision::Pass,
            Some(Entering::Further) => {
                if !above {
                    self.dropping = false;
                    return CodelDecision::Pass;
                }
                self.drop_next = control_law(self.drop_next, self.count, p);
            }
            None => {}
        }
        if self.dropping {
            if !above {
                self.dropping = false;
            } else if now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.just_dropped = Some(Entering::Further);
                return CodelDecision::Drop;
            }
        } else if above {
            self.enter(now, p);
            self.just_dropped = Some(Entering::First);
            return CodelDecision::Drop;
        }
        CodelDecision::Pass
    }

    /// The packet judged last was marked instead of dropped, and leaves.
    pub fn on_marked(&mut self, p: &CodelParameters) {
        if self.just_dropped.take() == Some(Entering::Further) {
            self.drop_next = control_law(self.drop_next, self.count, p);
        }
    }

    /// The queue is empty.
    pub fn on_empty(&mut self) {
        self.first_above = None;
        if self.just_dropped.take() != Some(Entering::First) {
            self.dropping = false;
        }
    }

    /// The estimator: whether the waiting time has been above the target for an interval.
    fn above(&mut self, now: Time, arrived: Time, left: u32, p: &CodelParameters) -> bool {
        if now.since(arrived) < p.target || left <= MAX_PACKET {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + p.interval);
                false
            }
            Some(at) => now >= at,
        }
    }

    /// Begins to drop; where it left off if the last time was not long ago.
    fn enter(&mut self, now: Time, p: &CodelParameters) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < p.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = control_law(now, self.count, p);
        self.last_count = self.count;
    }
}

/// The next drop after one at `t`: an interval divided by the square root of the number of drops.
fn control_law(t: Time, count: u32, p: &CodelParameters) -> Time {
    t + Duration::from_secs_f64(p.interval.as_secs_f64() / libm::sqrt(f64::from(count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const DEFAULT: CodelParameters =
        CodelParameters { target: Duration::from_millis(5), interval: Duration::from_millis(100) };

    fn ms(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// One packet is asked for every millisecond; all have waited `wait` ms. The times (ms) of the drops.
    fn drops(codel: &mut Codel, span: core::ops::Range<u64>, wait: u64, marks: bool) -> Vec<u64> {
        let mut times = Vec::new();
        for t in span {
            while codel.judge(ms(t + wait), ms(t), 100_000, &DEFAULT) == CodelDecision::Drop {
                times.push(t + wait);
                if marks {
                    codel.on_marked(&DEFAULT);
                    break;
                }
            }
        }
        times
    }

    #[test]
    fn drops_come_at_the_interval_over_the_root_of_their_number_rfc_8289_5() {
        // Above the target from 50 ms, so the first drop is at 150 ms; the others after 100/sqrt(n) ms more:
        // 250, 320.71, 378.45, 428.45, 473.17; asked for every millisecond, rounded up.
        for marks in [false, true] {
            let mut codel = Codel::default();
            assert_eq!(drops(&mut codel, 0..430, 50, marks), [150, 250, 321, 379, 429, 474], "marks: {marks}");
        }
    }

    #[test]
    fn a_short_wait_or_a_short_queue_is_never_punished() {
        let mut codel = Codel::default();
        assert!(drops(&mut codel, 0..1000, 4, false).is_empty());
        for t in 0..1000 {
            assert_eq!(codel.judge(ms(t + 500), ms(t), MAX_PACKET, &DEFAULT), CodelDecision::Pass);
        }
    }

    #[test]
    fn one_short_wait_ends_it() {
        let mut codel = Codel::default();
        assert_eq!(drops(&mut codel, 0..151, 50, false), [150]);
        assert!(codel.dropping());
        assert_eq!(codel.judge(ms(250), ms(246), 100_000, &DEFAULT), CodelDecision::Pass);
        assert!(!codel.dropping());
        // A whole interval above the target must pass again: above from 251 ms on.
        assert_eq!(drops(&mut codel, 201..302, 50, false), [351]);
    }

    #[test]
    fn resumes_near_the_old_rate_within_16_intervals_rfc_8289_5() {
        let relapse = |pause: u64| {
            let mut codel = Codel::default();
            // Six drops, the last at 474 ms: count 6.
            assert_eq!(drops(&mut codel, 0..430, 50, false).len(), 6);
            assert_eq!(codel.judge(ms(480), ms(480), 100_000, &DEFAULT), CodelDecision::Pass);
            let again = drops(&mut codel, pause..pause + 160, 50, false);
            (again[0] - pause - 50, again[1] - again[0])
        };
        // count restarts at 6 - 1 = 5: the second drop follows after 100/sqrt(5) = 44.7 ms.
        assert_eq!(relapse(600), (100, 45));
        // After more than 1.6 s at 1: 100 ms would be beyond the 160 packets looked at.
        let mut codel = Codel::default();
        drops(&mut codel, 0..430, 50, false);
        codel.judge(ms(480), ms(480), 100_000, &DEFAULT);
        let again = drops(&mut codel, 3000..3300, 50, false);
        assert_eq!(again[..2], [3150, 3250]);
    }

    #[test]
    fn an_emptied_queue_stops_the_dropping() {
        let mut codel = Codel::default();
        drops(&mut codel, 0..151, 50, false);
        codel.on_empty();
        assert!(!codel.dropping());
    }
}

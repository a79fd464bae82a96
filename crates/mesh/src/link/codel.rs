//! CoDel: drops or marks packets according to the time that they have waited.
//!
//! Source: RFC 8289, sections 4 and 5 (estimator, set point, control law); marking instead of
//! dropping as in RFC 8290, section 5.2.6. The controller holds no packets. The queue passes each
//! packet at its head to the controller, which decides about it. Departures: none known. Times are
//! whole nanoseconds, and the control law rounds to the nearest.

use meshpace_core::{Duration, Time};

/// CoDel does not drop while at most this many bytes are left in the queue (MAXPACKET in RFC 8289,
/// section 5: the largest packet).
pub const MAX_PACKET: u32 = 1514;

/// The two parameters of CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelParameters {
    /// Standing waiting time that is accepted. Default 5 ms (RFC 8289, 4.4).
    pub target: Duration,
    /// Window in which the smallest waiting time must have been below the target. Default 100 ms
    /// (RFC 8289, 4.3).
    pub interval: Duration,
}

/// Decision about the packet at the head of the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodelDecision {
    /// The packet may leave.
    Pass,
    /// The packet is dropped, and the next packet is judged; or the packet is marked and leaves.
    Drop,
}

/// Controller of one queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Codel {
    /// Time at which the waiting time will have been above the target for one interval. `None`
    /// while it is below the target or the queue is short.
    first_above: Option<Time>,
    dropping: bool,
    /// Time of the next drop.
    drop_next: Time,
    /// Number of drops since the dropping state began, where the first drop counts as 1.
    count: u32,
    /// Value of `count` when the dropping state began last.
    last_count: u32,
    /// Position of the previous drop, if the packet before this one was dropped in the same request
    /// for a packet; `None` otherwise.
    just_dropped: Option<DropPosition>,
}

/// Position of a drop within its dropping state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DropPosition {
    /// First drop of a dropping state.
    First,
    /// Any later drop.
    Further,
}

impl Codel {
    /// True if the controller is in the dropping state.
    pub fn dropping(&self) -> bool {
        self.dropping
    }

    /// Judges the packet at the head of the queue, which has waited since `arrived`; `left` bytes
    /// remain behind it. After [`CodelDecision::Drop`] the caller does one of three things: it
    /// drops the packet and passes the next one, it marks the packet and calls
    /// [`Codel::on_marked`], or, if no packet is left, it calls [`Codel::on_empty`].
    pub fn judge(&mut self, now: Time, arrived: Time, left: u32, p: &CodelParameters) -> CodelDecision {
        let above = self.above(now, arrived, left, p);
        match self.just_dropped.take() {
            // The packet after the first drop of a dropping state always leaves.
            Some(DropPosition::First) => return CodelDecision::Pass,
            Some(DropPosition::Further) => {
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
                self.just_dropped = Some(DropPosition::Further);
                return CodelDecision::Drop;
            }
        } else if above {
            self.enter(now, p);
            self.just_dropped = Some(DropPosition::First);
            return CodelDecision::Drop;
        }
        CodelDecision::Pass
    }

    /// Notes that the packet judged last was marked instead of dropped, and leaves.
    pub fn on_marked(&mut self, p: &CodelParameters) {
        if self.just_dropped.take() == Some(DropPosition::Further) {
            self.drop_next = control_law(self.drop_next, self.count, p);
        }
    }

    /// Notes that the queue is empty.
    pub fn on_empty(&mut self) {
        self.first_above = None;
        if self.just_dropped.take() != Some(DropPosition::First) {
            self.dropping = false;
        }
    }

    /// Estimator: true if the waiting time has been above the target for one interval.
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

    /// Enters the dropping state. If the last dropping state was recent, its drop rate is resumed.
    fn enter(&mut self, now: Time, p: &CodelParameters) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.last_count);
        let recent = now.since(self.drop_next) < p.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = control_law(now, self.count, p);
        self.last_count = self.count;
    }
}

/// Time of the next drop after a drop at `t`: one interval divided by the square root of the number
/// of drops.
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

    /// Requests one packet every millisecond, each of which has waited `wait` ms. Returns the times
    /// of the drops in ms.
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
        // The waiting time is above the target from 50 ms, so the first drop is at 150 ms. The
        // others follow after 100/sqrt(n) ms: 250, 320.71, 378.45, 428.45, 473.17, rounded up
        // because packets are requested every millisecond.
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
        // A whole interval above the target must pass again; the time is above from 251 ms on.
        assert_eq!(drops(&mut codel, 201..302, 50, false), [351]);
    }

    #[test]
    fn resumes_near_the_old_rate_within_16_intervals_rfc_8289_5() {
        let relapse = |pause: u64| {
            let mut codel = Codel::default();
            // There are six drops, the last at 474 ms, so the count is 6.
            assert_eq!(drops(&mut codel, 0..430, 50, false).len(), 6);
            assert_eq!(codel.judge(ms(480), ms(480), 100_000, &DEFAULT), CodelDecision::Pass);
            let again = drops(&mut codel, pause..pause + 160, 50, false);
            (again[0] - pause - 50, again[1] - again[0])
        };
        // The count restarts at 6 - 1 = 5: the second drop follows after 100/sqrt(5) = 44.7 ms.
        assert_eq!(relapse(600), (100, 45));
        // After more than 1.6 s the count restarts at 1: a drop after 100 ms would be beyond the
        // 160 packets of this test.
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

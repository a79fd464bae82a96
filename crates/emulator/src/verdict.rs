//! Verdict on a run in real time: whether its result can be trusted.
//!
//! Two things make a run invalid. The first is frames that are delivered later than their time on
//! the air on the last hop: a program then sees another network than the emulated one. The second
//! is programs that were ready to run and had to wait for a processor: the programs are then slower
//! than the network. Smaller lateness is part of every measurement. It is reported, but not judged,
//! because waking a thread nearly always takes longer than a slot of 20 us.
//!
//! | verdict | share of late frames | mean wait of a program for a processor |
//! |---|---|---|
//! | `held` | at most a tenth of the budget | at most a tenth of a full frame's time on the air |
//! | `held within the budget` | at most the budget | at most a full frame's time on the air |
//! | `not valid` | more | more |
//!
//! The wait is the mean time before each assignment of a processor. It does not count for a program
//! that waited for less than 1 % of its lifetime: such a program did little, and waited mostly at
//! its start.

use crate::lateness::Summary;
use std::fmt;

/// Limits within which a run is still valid.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    /// Share of the frames that may be later than their own time on the air.
    pub late: f64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { late: 0.01 }
    }
}

/// Waiting of a program for a processor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Waiting {
    /// Share of the program's lifetime for which it waited.
    pub share: f64,
    /// Mean wait before each assignment of a processor, seconds.
    pub mean_s: f64,
}

/// Least share of a program's lifetime with which its waiting counts.
const LEAST_SHARE: f64 = 0.01;
/// Part of a budget up to which the verdict is `held`.
const UNREMARKED: f64 = 0.1;

/// The verdict on a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// The mesh was on time, and the programs did not wait long for a processor.
    Held,
    /// There were exceptions, within the budget.
    WithinBudget,
    /// The result describes the machine, not the mesh.
    NotValid,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Held => "held",
            Verdict::WithinBudget => "held within the budget",
            Verdict::NotValid => "not valid",
        })
    }
}

impl Verdict {
    fn of(share: f64, budget: f64) -> Verdict {
        // The share is NaN if nothing was delivered. Nothing was late then.
        if share > budget {
            Verdict::NotValid
        } else if share > budget * UNREMARKED {
            Verdict::WithinBudget
        } else {
            Verdict::Held
        }
    }

    /// Verdict on the lateness of frames and on the waiting of the programs. `frame_s` is the time
    /// on the air of a full frame, in seconds of the machine's clock.
    pub fn judge(
        lateness: &Summary,
        programs: impl IntoIterator<Item = Waiting>,
        frame_s: f64,
        budget: &Budget,
    ) -> Verdict {
        let late = Verdict::of(lateness.later_than_air_time, budget.late);
        let noticed = programs.into_iter().filter(|program| program.share >= LEAST_SHARE);
        noticed.map(|program| Verdict::of(program.mean_s, frame_s)).fold(late, Verdict::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lateness::Lateness;
    use meshpace_core::Duration;

    /// Summary of a thousand frames, of which `late` are 7 ms late with 6 ms on the air.
    fn summary(late: u32) -> Summary {
        let mut lateness = Lateness::default();
        for frame in 0..1000 {
            let micros = if frame < late { 7000 } else { 50 };
            let (slot, air) = (Duration::from_micros(20), Duration::from_millis(6));
            lateness.record(Duration::from_micros(micros), 1, slot, air);
        }
        lateness.summary()
    }

    fn judge(late: u32, programs: &[(f64, f64)]) -> Verdict {
        let programs = programs.iter().map(|&(share, mean_s)| Waiting { share, mean_s });
        Verdict::judge(&summary(late), programs, 6e-3, &Budget::default())
    }

    #[test]
    fn late_frames_turn_the_verdict() {
        assert_eq!([0, 1].map(|late| judge(late, &[])), [Verdict::Held; 2]);
        assert_eq!([2, 10].map(|late| judge(late, &[])), [Verdict::WithinBudget; 2]);
        assert_eq!([11, 1000].map(|late| judge(late, &[])), [Verdict::NotValid; 2]);
    }

    #[test]
    fn starved_programs_turn_it_too() {
        assert_eq!(judge(0, &[(0.0, 0.0), (0.05, 0.5e-3)]), Verdict::Held);
        assert_eq!(judge(0, &[(0.0, 0.0), (0.05, 3e-3)]), Verdict::WithinBudget);
        assert_eq!(judge(0, &[(0.05, 7e-3), (0.0, 0.0)]), Verdict::NotValid);
        assert_eq!(judge(0, &[(0.005, 7e-3)]), Verdict::Held, "a wait or two at its start");
        assert_eq!(judge(5, &[(0.05, 7e-3)]), Verdict::NotValid, "the worse of both");
    }

    #[test]
    fn the_words_are_fixed() {
        let all = [Verdict::Held, Verdict::WithinBudget, Verdict::NotValid].map(|verdict| verdict.to_string());
        assert_eq!(all, ["held", "held within the budget", "not valid"]);
        let nothing = Lateness::default().summary();
        assert_eq!(Verdict::judge(&nothing, [], 6e-3, &Budget::default()), Verdict::Held);
    }
}

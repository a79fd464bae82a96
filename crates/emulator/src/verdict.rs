//! Whether a run in real time can be trusted.
//!
//! Two things spoil it: frames that are handed over later than they were on the air on their last hop (a program then sees
//! another network than the one emulated), and programs that were ready to run and had to wait for a processor (they then
//! are the slow part, not the network). Lateness below that is part of every measurement and is reported, not judged: a
//! slot is 20 us, which a machine that wakes a thread is nearly always late by.
//!
//! | verdict | share of late frames | share of the run a program waited for a processor |
//! |---|---|---|
//! | `held` | at most a tenth of the budget | at most a tenth of the budget |
//! | `held within the budget` | at most the budget | at most the budget |
//! | `not valid` | more | more |

use crate::lateness::Summary;
use std::fmt;

/// What may go wrong in a run that is still valid.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Budget {
    /// Share of the frames that may be later than their own air time.
    pub late: f64,
    /// Share of its time in which any one program may wait for a processor.
    pub waiting: f64,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { late: 0.01, waiting: 0.05 }
    }
}

/// The part of a budget within which nothing is said about it.
const UNTOUCHED: f64 = 0.1;

/// The verdict on a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Verdict {
    /// The mesh kept the time and the programs could run.
    Held,
    /// With exceptions that the budget allows.
    WithinBudget,
    /// What was measured is the machine.
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
        // NaN: nothing was delivered, so nothing was late.
        if share > budget {
            Verdict::NotValid
        } else if share > budget * UNTOUCHED {
            Verdict::WithinBudget
        } else {
            Verdict::Held
        }
    }

    /// The verdict on the lateness of frames and on how long programs waited, each as the share of its time.
    pub fn judge(lateness: &Summary, waiting: impl IntoIterator<Item = f64>, budget: &Budget) -> Verdict {
        let late = Verdict::of(lateness.later_than_air_time, budget.late);
        waiting.into_iter().map(|share| Verdict::of(share, budget.waiting)).fold(late, Verdict::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lateness::Lateness;
    use meshpace_core::Duration;

    /// The summary of a thousand frames, so many of them 7 ms late with 6 ms on the air.
    fn summary(late: u32) -> Summary {
        let mut lateness = Lateness::default();
        for frame in 0..1000 {
            let micros = if frame < late { 7000 } else { 50 };
            let (slot, air) = (Duration::from_micros(20), Duration::from_millis(6));
            lateness.record(Duration::from_micros(micros), 1, slot, air);
        }
        lateness.summary()
    }

    #[test]
    fn late_frames_turn_the_verdict() {
        let judge = |late| Verdict::judge(&summary(late), [0.0], &Budget::default());
        assert_eq!([0, 1].map(judge), [Verdict::Held; 2]);
        assert_eq!([2, 10].map(judge), [Verdict::WithinBudget; 2]);
        assert_eq!([11, 1000].map(judge), [Verdict::NotValid; 2]);
    }

    #[test]
    fn starved_programs_turn_it_too() {
        let judge = |waiting: &[f64]| Verdict::judge(&summary(0), waiting.iter().copied(), &Budget::default());
        assert_eq!(judge(&[]), Verdict::Held);
        assert_eq!(judge(&[0.004, 0.005]), Verdict::Held);
        assert_eq!(judge(&[0.0, 0.03]), Verdict::WithinBudget);
        assert_eq!(judge(&[0.2, 0.0]), Verdict::NotValid);
    }

    #[test]
    fn the_words_are_fixed() {
        let all = [Verdict::Held, Verdict::WithinBudget, Verdict::NotValid].map(|verdict| verdict.to_string());
        assert_eq!(all, ["held", "held within the budget", "not valid"]);
        let nothing = Lateness::default().summary();
        assert_eq!(Verdict::judge(&nothing, [], &Budget::default()), Verdict::Held);
    }
}

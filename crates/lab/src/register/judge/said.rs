//! What an interval says about a statement: that it holds, that it fails, or neither. These are
//! rules 1 and 2 of "Rules of judgement" in `docs/register.md`.

use super::Verdict;
use super::compare::Comparison;

/// Difference in per cent below which the papers themselves speak of no difference: TPA, on its
/// Fig. 5.
pub const NO_DIFFERENCE_PCT: f64 = 2.0;

/// What an interval says about a statement, the most favourable first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Said {
    /// The whole interval is on the side of the statement.
    Holds,
    /// The interval contains both answers.
    Open,
    /// The whole interval is on the other side.
    Fails,
}

impl Said {
    /// Tests that a value lies within `from` and `to`. `low` and `high` are the ends of its
    /// interval.
    pub fn within([low, high]: [f64; 2], [from, to]: [f64; 2]) -> Said {
        if from <= low && high <= to {
            Said::Holds
        } else if high < from || to < low {
            Said::Fails
        } else {
            Said::Open
        }
    }

    /// Tests that a gain is above `by` per cent. The statement also fails if the interval shows
    /// that there is no relevant difference, that is, none of [`NO_DIFFERENCE_PCT`].
    pub fn above(gain: &Comparison, by: f64) -> Said {
        Said::on_side([gain.low, gain.high], by, NO_DIFFERENCE_PCT)
    }

    /// Tests that a value is above `limit`. The statement also fails if the whole interval is less
    /// than `none` above the limit.
    pub fn on_side([low, high]: [f64; 2], limit: f64, none: f64) -> Said {
        if low > limit {
            Said::Holds
        } else if high < limit + none || high <= limit {
            Said::Fails
        } else {
            Said::Open
        }
    }

    /// Verdict that follows. `holds` is the verdict if the statement holds.
    pub fn verdict(self, holds: Verdict) -> Verdict {
        match self {
            Said::Holds => holds,
            Said::Open => Verdict::CannotBeTold,
            Said::Fails => Verdict::Differs,
        }
    }
}

/// Joins statements that have to hold together: one that fails decides, otherwise one that is open.
pub fn all(said: impl IntoIterator<Item = Said>) -> Said {
    said.into_iter().max().unwrap_or(Said::Holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_holds_both_answers_says_nothing() {
        let above = |low: f64, high: f64| Said::above(&Comparison { pct: 0.5 * (low + high), low, high }, 0.0);
        assert_eq!((above(1.0, 9.0), above(-1.0, 9.0), above(-9.0, -1.0)), (Said::Holds, Said::Open, Said::Fails));
        assert_eq!(above(-9.0, 3.0), Said::Open, "the side of the mean does not matter");
        // Known to be less than 2 %: no difference is an answer.
        assert_eq!((above(-0.5, 1.9), above(-0.5, 2.1), above(0.1, 0.3)), (Said::Fails, Said::Open, Said::Holds));
        let within = |low: f64, high: f64| Said::within([low, high], [-5.0, 5.0]);
        assert_eq!((within(-4.0, 5.0), within(4.0, 6.0), within(5.5, 6.0)), (Said::Holds, Said::Open, Said::Fails));
        assert_eq!(all([Said::Holds, Said::Open]), Said::Open);
        assert_eq!(all([Said::Open, Said::Fails]), Said::Fails);
    }
}

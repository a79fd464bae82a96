//! Meaning of an interval for a statement: that it holds, that it fails, or neither. Rules 1 and 2 of "Rules of judgement" in
//! `docs/register.md`.

use super::Verdict;
use super::compare::Comparison;

/// A difference below this, per cent, the papers themselves call none: TPA, on its Fig. 5.
pub const NO_DIFFERENCE_PCT: f64 = 2.0;

/// Answer of an interval to a statement, the most favourable first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Said {
    /// The whole interval is on its side.
    Holds,
    /// The interval holds both answers.
    Open,
    /// The whole interval is on the other side.
    Fails,
}

impl Said {
    /// `low` and `high` are the ends of an interval that is to lie within `from` and `to`.
    pub fn within([low, high]: [f64; 2], [from, to]: [f64; 2]) -> Said {
        if from <= low && high <= to {
            Said::Holds
        } else if high < from || to < low {
            Said::Fails
        } else {
            Said::Open
        }
    }

    /// A gain above `by`, per cent. It also fails where the interval shows that there is no difference worth the name.
    pub fn above(gain: &Comparison, by: f64) -> Said {
        Said::on_side([gain.low, gain.high], by, NO_DIFFERENCE_PCT)
    }

    /// An interval above `limit`; it fails where it is nowhere more than `none` above it.
    pub fn on_side([low, high]: [f64; 2], limit: f64, none: f64) -> Said {
        if low > limit {
            Said::Holds
        } else if high < limit + none || high <= limit {
            Said::Fails
        } else {
            Said::Open
        }
    }

    /// The verdict on what does not hold; `holds` on what does.
    pub fn verdict(self, holds: Verdict) -> Verdict {
        match self {
            Said::Holds => holds,
            Said::Open => Verdict::CannotBeTold,
            Said::Fails => Verdict::Differs,
        }
    }
}

/// Several statements that are to hold together: one that fails decides, otherwise one that is open.
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

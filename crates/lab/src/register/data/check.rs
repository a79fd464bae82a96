//! Checks of statements. The rules by which they are judged are in
//! [`judge`](crate::register::judge).

use super::Term;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The x at which a gain is judged.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// The x where the gain is largest.
    #[default]
    Largest,
    /// The x where the gain is smallest.
    Smallest,
    /// Every x.
    Every,
}

/// Bounds of a level.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The quantity is above this number.
    Above(f64),
    /// The quantity is below this number.
    Below(f64),
    /// The quantity is between the two numbers.
    Between([f64; 2]),
}

/// Check of a statement. `core` is the range of x in which the shape must hold. Without it, the
/// shape must hold at every x.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Check {
    /// The gain of `of` over `over` has the published size.
    Gain {
        /// Term that gains.
        of: Term,
        /// Term that it is compared with.
        over: Term,
        /// The x at which the gain is judged.
        #[serde(default)]
        at: At,
        /// Published gain in per cent, or the smallest and the largest one. Negative for a loss.
        published_pct: Range,
        /// Largest distance of the gain from the published one, in percentage points.
        tolerance_pct: f64,
        /// Range of x that is judged.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// The best of several terms gains over the best of several others. Each side's best is chosen
    /// over all of its terms and all x.
    BestGain {
        /// Terms among which the best is chosen.
        of: Vec<Term>,
        /// Terms among which the best to compare with is chosen.
        over: Vec<Term>,
        /// Whether the smallest value is the best.
        #[serde(default)]
        smaller: bool,
        /// Published gain, in per cent of the best of `over`.
        published_pct: f64,
    },
    /// Each term of `of` is above each term of `over`.
    Above {
        /// Terms that are above.
        of: Vec<Term>,
        /// Terms that are below.
        over: Vec<Term>,
        /// Smallest distance between them, in per cent.
        #[serde(default)]
        by_pct: f64,
        /// Range of x in which the shape must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// Each term is above the next one.
    Order {
        /// Terms from the largest to the smallest.
        of: Vec<Term>,
        /// Range of x in which the shape must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// One term is above the other beyond the x where the curves cross.
    AboveBeyond {
        /// The upper term.
        of: Term,
        /// The lower term.
        over: Term,
        /// Largest x at which nothing is claimed.
        beyond: f64,
    },
    /// Two terms are the same within a margin.
    Same {
        /// The first term.
        of: Term,
        /// The second term.
        over: Term,
        /// Margin, in per cent of the second term.
        within_pct: f64,
        /// Range of x in which the shape must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity is above, below or between numbers at every x.
    Level {
        /// Terms that are judged.
        of: Vec<Term>,
        /// The numbers, in the metric's unit.
        is: Bound,
        /// Range of x in which it must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity has a published value.
    Value {
        /// Term that is judged, at one x.
        of: Term,
        /// Published value, in the metric's unit.
        published: f64,
        /// Largest distance of our value from it, in per cent of it.
        tolerance_pct: f64,
    },
    /// A quantity falls along x as a whole.
    Falls {
        /// Terms that are judged.
        of: Vec<Term>,
        /// Largest rise between two neighbouring x that does not break the shape, in per cent.
        tolerance_pct: f64,
        /// Range of x that is judged.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity rises along x as a whole.
    Rises {
        /// Terms that are judged.
        of: Vec<Term>,
        /// Largest fall between two neighbouring x that does not break the shape, in per cent.
        tolerance_pct: f64,
        /// Range of x that is judged.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity is the same at every x.
    Flat {
        /// Terms that are judged.
        of: Vec<Term>,
        /// Largest excess of the largest mean over the smallest, in per cent.
        within_pct: f64,
        /// Range of x that is judged.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity is largest at an x. With `over`, its gain over another term is largest there.
    Peak {
        /// Term that is judged.
        of: Term,
        /// Term that it is compared with.
        #[serde(default)]
        over: Option<Term>,
        /// Published x, or the first and the last x of a range.
        x: Range,
    },
    /// The best value of a tuned parameter is small.
    TunedBelow {
        /// The tuned curve.
        of: Term,
        /// Number that the best value is below.
        limit: f64,
        /// Range of x in which it must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// The statement cannot be judged.
    NotJudged {
        /// Reason why it cannot be judged.
        why: String,
    },
}

/// A number, or the first and last of a range.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Range {
    /// One number.
    One(f64),
    /// The range from the first to the second number.
    Two([f64; 2]),
}

impl Range {
    /// The two ends of the range. Both are the same for a single number.
    pub fn ends(self) -> [f64; 2] {
        match self {
            Range::One(number) => [number, number],
            Range::Two(ends) => ends,
        }
    }
}

impl Check {
    /// Published number of the check, or the smallest and largest one. `None` for a check without a
    /// published number.
    pub fn published(&self) -> Option<[f64; 2]> {
        match self {
            Check::Gain { published_pct, .. } => Some(published_pct.ends()),
            Check::BestGain { published_pct, .. } => Some([*published_pct; 2]),
            Check::Value { published, .. } => Some([*published; 2]),
            _ => None,
        }
    }

    /// All terms of the check. The first one is the subject that
    /// [`Claim::also`](super::Claim::also) replaces.
    pub fn terms(&self) -> Vec<&Term> {
        match self {
            Check::Gain { of, over, .. } | Check::AboveBeyond { of, over, .. } | Check::Same { of, over, .. } => {
                vec![of, over]
            }
            Check::BestGain { of, over, .. } | Check::Above { of, over, .. } => of.iter().chain(over).collect(),
            Check::Order { of, .. }
            | Check::Level { of, .. }
            | Check::Falls { of, .. }
            | Check::Rises { of, .. }
            | Check::Flat { of, .. } => of.iter().collect(),
            Check::Value { of, .. } | Check::TunedBelow { of, .. } => vec![of],
            Check::Peak { of, over, .. } => std::iter::once(of).chain(over).collect(),
            Check::NotJudged { .. } => Vec::new(),
        }
    }

    /// The check with other curves in place of those that are keys of `curves`. `None` if that
    /// changes nothing.
    pub fn with(&self, curves: &BTreeMap<String, String>) -> Option<Check> {
        let mut check = self.clone();
        let mut is_changed = false;
        for term in check.terms_mut() {
            if let Some(other) = curves.get(&term.curve) {
                other.clone_into(&mut term.curve);
                is_changed = true;
            }
        }
        is_changed.then_some(check)
    }

    fn terms_mut(&mut self) -> Vec<&mut Term> {
        match self {
            Check::Gain { of, over, .. } | Check::AboveBeyond { of, over, .. } | Check::Same { of, over, .. } => {
                vec![of, over]
            }
            Check::BestGain { of, over, .. } | Check::Above { of, over, .. } => of.iter_mut().chain(over).collect(),
            Check::Order { of, .. }
            | Check::Level { of, .. }
            | Check::Falls { of, .. }
            | Check::Rises { of, .. }
            | Check::Flat { of, .. } => of.iter_mut().collect(),
            Check::Value { of, .. } | Check::TunedBelow { of, .. } => vec![of],
            Check::Peak { of, over, .. } => std::iter::once(of).chain(over).collect(),
            Check::NotJudged { .. } => Vec::new(),
        }
    }

    /// The comparisons that the check makes, each as a text. If two checks have a comparison in
    /// common, it is judged twice.
    pub fn comparisons(&self) -> Vec<String> {
        let above = |of: &Term, over: &Term, core: &Option<[f64; 2]>| format!("{of:?} above {over:?} in {core:?}");
        let each = |kind: &str, of: &[Term], rest: String| -> Vec<String> {
            of.iter().map(|term| format!("{kind} {term:?} {rest}")).collect()
        };
        match self {
            Check::Above { of, over, core, .. } => {
                of.iter().flat_map(|one| over.iter().map(move |other| above(one, other, core))).collect()
            }
            Check::Order { of, core } => of.windows(2).map(|pair| above(&pair[0], &pair[1], core)).collect(),
            Check::Level { of, is, core } => each("level", of, format!("{is:?} in {core:?}")),
            Check::Falls { of, core, .. } => each("falls", of, format!("in {core:?}")),
            Check::Rises { of, core, .. } => each("rises", of, format!("in {core:?}")),
            Check::Flat { of, core, .. } => each("flat", of, format!("in {core:?}")),
            Check::NotJudged { .. } => Vec::new(),
            other => vec![format!("{other:?}")],
        }
    }

    /// The check for another reading of its subject: `curve` replaces the curve of the first term
    /// wherever that curve occurs. If a check judges several terms separately, only the terms that
    /// are changed are kept.
    pub fn about(&self, curve: &str) -> Check {
        let Some(subject) = self.terms().first().map(|term| term.curve.clone()) else { return self.clone() };
        let mut check = self.clone();
        let swap = |term: &mut Term| {
            if term.curve == subject {
                curve.clone_into(&mut term.curve);
            }
        };
        match &mut check {
            Check::Gain { of, over, .. } | Check::AboveBeyond { of, over, .. } | Check::Same { of, over, .. } => {
                swap(of);
                swap(over);
            }
            Check::Peak { of, over, .. } => {
                swap(of);
                over.iter_mut().for_each(swap);
            }
            Check::Value { of, .. } | Check::TunedBelow { of, .. } => swap(of),
            Check::Order { of, .. } => of.iter_mut().for_each(swap),
            Check::BestGain { of, over, .. } | Check::Above { of, over, .. } => {
                of.retain(|term| term.curve == subject);
                of.iter_mut().chain(over).for_each(swap);
            }
            Check::Level { of, .. } | Check::Falls { of, .. } | Check::Rises { of, .. } | Check::Flat { of, .. } => {
                of.retain(|term| term.curve == subject);
                of.iter_mut().for_each(swap);
            }
            Check::NotJudged { .. } => {}
        }
        check
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_reading_stands_wherever_the_subject_stood() {
        let about = |text: &str| {
            let check: Check = toml::from_str(text).unwrap();
            let about = check.about("new");
            about.terms().iter().map(|term| term.curve.clone()).collect::<Vec<_>>()
        };
        assert_eq!(about("kind = \"same\"\nof = \"a:x\"\nover = \"a:y\"\nwithin_pct = 1.0"), ["new", "new"]);
        assert_eq!(about("kind = \"above\"\nof = [\"a\", \"b\"]\nover = [\"c\"]"), ["new", "c"]);
        assert_eq!(about("kind = \"order\"\nof = [\"a\", \"b\", \"a:y\"]"), ["new", "b", "new"]);
    }

    #[test]
    fn a_whole_reading_has_all_its_curves() {
        let check = |text: &str| toml::from_str::<Check>(text).unwrap();
        let curves = BTreeMap::from([("a".to_owned(), "x".to_owned()), ("b".to_owned(), "y".to_owned())]);
        let with = |text: &str| check(text).with(&curves);
        let gain = |of: &str, over: &str| {
            format!("kind = \"gain\"\nof = \"{of}\"\nover = \"{over}\"\npublished_pct = 1.0\ntolerance_pct = 1.0")
        };
        assert_eq!(with(&gain("a", "b")), Some(check(&gain("x", "y"))));
        assert_eq!(with(&gain("c", "b:jain@2")), Some(check(&gain("c", "y:jain@2"))));
        assert_eq!(with(&gain("c", "d")), None);
    }

    #[test]
    fn what_is_compared_is_the_same_however_it_is_said() {
        let of = |text: &str| toml::from_str::<Check>(text).unwrap().comparisons();
        let order = of("kind = \"order\"\nof = [\"a\", \"b\", \"c\"]");
        let above = of("kind = \"above\"\nof = [\"b\"]\nover = [\"c\", \"d\"]\nby_pct = 50.0");
        assert!(order.contains(&above[0]) && !order.contains(&above[1]), "{order:?} {above:?}");
        let level = of("kind = \"level\"\nof = [\"a\", \"b\"]\nis = { above = 1.0 }");
        assert_eq!(
            (level.len(), level.contains(&of("kind = \"level\"\nof = [\"b\"]\nis = { above = 1.0 }")[0])),
            (2, true)
        );
    }

    #[test]
    fn a_bound_is_one_of_three() {
        let bound = |text: &str| toml::from_str::<Check>(&format!("kind = \"level\"\nof = [\"a\"]\nis = {text}"));
        assert!(matches!(bound("{ above = 0.99 }"), Ok(Check::Level { is: Bound::Above(0.99), .. })));
        assert!(matches!(bound("{ between = [0.4, 0.6] }"), Ok(Check::Level { is: Bound::Between([0.4, 0.6]), .. })));
        assert!(bound("{ around = 1.0 }").is_err());
    }
}

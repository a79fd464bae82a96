//! Checks of statements. The rules themselves are in [`judge`](crate::register::judge).

use super::Term;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Where a gain is looked at.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// At the x where it is largest.
    #[default]
    Largest,
    /// At the x where it is smallest.
    Smallest,
    /// At every x.
    Every,
}

/// Bounds of a level.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Above this.
    Above(f64),
    /// Below this.
    Below(f64),
    /// From the first to the second.
    Between([f64; 2]),
}

/// Check of a statement. `core` is the range of x in which the shape must hold; all of x without.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Check {
    /// The gain of the first over the second, in per cent.
    Gain {
        /// The curve that gains.
        of: Term,
        /// The term that it is compared with.
        over: Term,
        /// Where.
        #[serde(default)]
        at: At,
        /// The published gain, or smallest and largest; negative for a loss.
        published_pct: Range,
        /// Largest distance of the gain from it, percentage points.
        tolerance_pct: f64,
        /// The range that is judged.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// The gain of the best of several over the best of others, at every x by itself.
    BestGain {
        /// Among which the best is looked for.
        of: Vec<Term>,
        /// Among which the best to compare with is looked for.
        over: Vec<Term>,
        /// Whether the smallest is the best.
        #[serde(default)]
        smaller: bool,
        /// The published gain, per cent of the second.
        published_pct: f64,
    },
    /// Each of the first is above each of the others.
    Above {
        /// Those above.
        of: Vec<Term>,
        /// Those below.
        over: Vec<Term>,
        /// By how much at least, per cent.
        #[serde(default)]
        by_pct: f64,
        /// Where the shape must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// Each is above the next.
    Order {
        /// From the largest to the smallest.
        of: Vec<Term>,
        /// Where the shape must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// One is above the other beyond an x, where the curves cross.
    AboveBeyond {
        /// The upper term.
        of: Term,
        /// The lower term.
        over: Term,
        /// The last x at which nothing is claimed.
        beyond: f64,
    },
    /// The two are the same within a margin.
    Same {
        /// The one.
        of: Term,
        /// The other.
        over: Term,
        /// The margin, per cent of the other.
        within_pct: f64,
        /// Where the shape must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity is above, below or between numbers at every x.
    Level {
        /// Which.
        of: Vec<Term>,
        /// The numbers, in the metric's unit.
        is: Bound,
        /// Where it must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity has a published value.
    Value {
        /// Which; at one x.
        of: Term,
        /// The value, in the metric's unit.
        published: f64,
        /// Largest distance of ours from it, per cent of it.
        tolerance_pct: f64,
    },
    /// A quantity falls from each x to the next.
    Falls {
        /// Which.
        of: Vec<Term>,
        /// A rise of less than this, per cent, does not break the shape.
        tolerance_pct: f64,
        /// The range that is judged.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity rises from each x to the next.
    Rises {
        /// Which.
        of: Vec<Term>,
        /// A fall of less than this, per cent, does not break the shape.
        tolerance_pct: f64,
        /// The range that is judged.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity is the same at every x.
    Flat {
        /// Which.
        of: Vec<Term>,
        /// Largest over smallest mean, per cent.
        within_pct: f64,
        /// The range that is judged.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// A quantity, or with `over` its gain over another, is largest at an x.
    Peak {
        /// Which.
        of: Term,
        /// The term that it is compared with.
        #[serde(default)]
        over: Option<Term>,
        /// The published x, or first and last.
        x: Range,
    },
    /// The best value of a tuned parameter is small.
    TunedBelow {
        /// The tuned curve.
        of: Term,
        /// The value it is below.
        limit: f64,
        /// Where it must hold.
        #[serde(default)]
        core: Option<[f64; 2]>,
    },
    /// Nothing can be said.
    NotJudged {
        /// Why.
        why: String,
    },
}

/// A number, or the first and last of a range.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Range {
    /// One number.
    One(f64),
    /// From the first to the second.
    Two([f64; 2]),
}

impl Range {
    /// First and last.
    pub fn ends(self) -> [f64; 2] {
        match self {
            Range::One(number) => [number, number],
            Range::Two(ends) => ends,
        }
    }
}

impl Check {
    /// The published number, or smallest and largest, of a check that has one.
    pub fn published(&self) -> Option<[f64; 2]> {
        match self {
            Check::Gain { published_pct, .. } => Some(published_pct.ends()),
            Check::BestGain { published_pct, .. } => Some([*published_pct; 2]),
            Check::Value { published, .. } => Some([*published; 2]),
            _ => None,
        }
    }

    /// Every term of it, the first being the subject that [`Claim::also`](super::Claim::also) replaces.
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

    /// The check with other curves in the places of some; None if that changes nothing.
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

    /// The comparisons it makes, each as a text: two checks with one in common judge it twice.
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

    /// The check about another reading of its subject: `curve` stands wherever the curve of the first term stood. Of terms
    /// that are judged each for itself only those stay that this changes.
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

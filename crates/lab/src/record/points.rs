//! Points of scenarios by their keys, and the decision whether a record of one point belongs to
//! another point.

use super::given::Given;
use super::rules;
use meshpace_scenario::effective::{Digest, Identity, OBSERVED, Outlines};
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;

/// True if the point `new` observes everything that the point `old` observes. If `new` observes
/// more, the records of `old` are kept, and a run is repeated if its record lacks the additional
/// data.
fn observes_no_more_than(old: &Identity, new: &Identity) -> bool {
    old.observed.iter().zip(new.observed.iter()).all(|(old, new)| old.is_none() || old == new)
}

/// Point with its place in the list of scenarios.
#[derive(Debug)]
struct Point {
    /// Everything that its runs depend on as it is written, except the seed and the revision of the
    /// model.
    identity: Identity,
    /// Index of the point's scenario in the list.
    source: usize,
    /// Number of the point in that scenario.
    number: usize,
}

/// Digest of the point as the reader of scenarios builds it, and the meaning of its pacing rules
/// written in Python.
type Built = ([u8; 32], String);

/// Points of scenarios by their keys. If several scenarios name a point, the last of them defines
/// it.
#[derive(Debug, Default)]
pub struct Points {
    by_key: BTreeMap<String, Point>,
    sources: Vec<Given>,
    /// Outlines of the scenarios, read when the first point needs one.
    outlines: OnceCell<Vec<Option<Outlines>>>,
    /// Points that were built so far; `None` for a point that cannot be built.
    built: RefCell<BTreeMap<String, Option<Built>>>,
}

impl Points {
    /// Creates the table of the points of a list of scenarios.
    pub fn of<'a>(list: impl IntoIterator<Item = &'a Given>) -> Points {
        let mut points = Points { sources: list.into_iter().cloned().collect(), ..Points::default() };
        for (source, given) in points.sources.iter().enumerate() {
            let by_key = &mut points.by_key;
            given.each_point(|number, key, identity| drop(by_key.insert(key, Point { identity, source, number })));
        }
        points
    }

    /// True if one of the scenarios has this point.
    pub fn has(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    /// Digest of the settings that decide the runs of a point, as the scenario writes them.
    pub fn run(&self, key: &str) -> Option<Digest> {
        self.by_key.get(key).map(|point| point.identity.run)
    }

    /// Place of a point's scenario in the list, and the number of the point in it.
    pub fn place(&self, key: &str) -> Option<(usize, usize)> {
        self.by_key.get(key).map(|point| (point.source, point.number))
    }

    /// Values of the keys of [`OBSERVED`] at a point.
    pub fn observed(&self, key: &str) -> [Option<String>; OBSERVED.len()] {
        self.by_key.get(key).map(|point| (*point.identity.observed).clone()).unwrap_or_default()
    }

    /// True if the point `key` of `self` and the point `other` of `new` are the same run, and `new`
    /// observes no less. Records of `key` then belong to `other`.
    pub fn fits(&self, key: &str, new: &Points, other: &str) -> bool {
        let (Some(old), Some(asked)) = (self.by_key.get(key), new.by_key.get(other)) else { return false };
        observes_no_more_than(&old.identity, &asked.identity)
            && (old.identity.run == asked.identity.run
                || self.built(key).is_some_and(|built| Some(built) == new.built(other)))
    }

    /// Keys of points by the digests of their settings.
    pub fn by_run(&self) -> BTreeMap<Digest, &str> {
        self.by_key.iter().rev().map(|(key, point)| (point.identity.run, key.as_str())).collect()
    }

    /// Keys of points by the digests of their settings without possible defaults. Points with the
    /// same digest may be the same run, and [`Points::fits`] decides that.
    pub fn without_defaults(&self) -> BTreeMap<Digest, Vec<String>> {
        let mut groups: BTreeMap<Digest, Vec<String>> = BTreeMap::new();
        for key in self.by_key.keys() {
            self.without_default(key)
                .into_iter()
                .for_each(|digest| groups.entry(digest).or_default().push(key.clone()));
        }
        groups
    }

    /// The digest of one point in [`Points::without_defaults`].
    pub fn without_default(&self, key: &str) -> Option<Digest> {
        let point = self.by_key.get(key)?;
        Some(self.outline(point.source)?.point(point.number)?.1.digest_without_defaults())
    }

    fn outline(&self, source: usize) -> Option<&Outlines> {
        self.outlines.get_or_init(|| self.sources.iter().map(Given::outline).collect()).get(source)?.as_ref()
    }

    /// Builds a point, and caches the result. `None` if a file is not available, or if this program
    /// rejects the point.
    fn built(&self, key: &str) -> Option<Built> {
        if let Some(known) = self.built.borrow().get(key) {
            return known.clone();
        }
        let build = || {
            let point = self.by_key.get(key)?;
            let given = self.sources.get(point.source).filter(|given| given.unlisted.is_none())?;
            let built = self.outline(point.source)?.built(point.number, &|name| given.load(name))?;
            Some((built, rules::meaning(&given.rules)))
        };
        let built = build();
        self.built.borrow_mut().insert(key.to_owned(), built.clone());
        built
    }
}

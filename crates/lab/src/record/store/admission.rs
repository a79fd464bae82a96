//! Decides to which point of the current scenario an existing record belongs.

use super::super::given::{Given, conflict};
use super::super::line::Observed;
use super::super::points::Points;
use meshpace_scenario::effective::Digest;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// Points of the current scenario, and of the scenarios that were run before.
#[derive(Debug)]
pub struct Admission {
    /// The current scenario.
    given: Given,
    named: Points,
    /// Scenarios of the records.
    sources: Vec<Given>,
    /// Points of these scenarios; `None` if they are the points of the current scenario.
    known: Option<Points>,
    /// Keys of the current points by the digests of the settings that determine their runs. Empty
    /// if `known` is `None`.
    by_run: BTreeMap<Digest, String>,
    /// The same keys by digests without settings that may equal a default. They are computed when
    /// they are first needed.
    without_defaults: OnceCell<BTreeMap<Digest, Vec<String>>>,
}

impl Admission {
    /// Creates the rules for records of the scenarios `sources`. `given` is the current scenario.
    pub fn new(given: &Given, sources: &[Given]) -> Admission {
        let named = Points::of([given]);
        let (known, by_run) = match sources.iter().all(|source| source.is_same_scenario(given)) {
            true => (None, BTreeMap::new()),
            false => {
                let by_run = named.by_run().into_iter().map(|(run, key)| (run, key.to_owned())).collect();
                (Some(Points::of(sources)), by_run)
            }
        };
        let without_defaults = OnceCell::new();
        Admission { given: given.clone(), named, sources: sources.to_vec(), known, by_run, without_defaults }
    }

    /// True if the current scenario has this point.
    pub fn names(&self, key: &str) -> bool {
        self.named.has(key)
    }

    /// Returns the current scenario.
    pub fn given(&self) -> &Given {
        &self.given
    }

    /// Name of the current scenario.
    pub fn scenario(&self) -> &str {
        &self.given.scenario
    }

    /// Additional data that the current scenario observes at a point.
    pub fn observed(&self, key: &str) -> Observed {
        let [series, watch] = self.named.observed(key);
        Observed { nodes: false, series: series.is_some(), links: watch.is_some() }
    }

    /// Returns the key of a record's point in the current scenario: the key of the current point
    /// with the same run, or the record's own key if there is none.
    ///
    /// # Errors
    /// Why the record does not fit the current scenario.
    pub fn admit(&self, own: &str) -> Result<String, String> {
        let known = self.known.as_ref().unwrap_or(&self.named);
        match self.named.has(own) {
            true if known.fits(own, &self.named, own) => Ok(own.to_owned()),
            true => Err(conflict(own, &self.sources, std::slice::from_ref(&self.given))),
            false => Ok(self.same_run(known, own).unwrap_or(own).to_owned()),
        }
    }

    /// Returns the key of the current point that is the same run as the point `own` of `known`.
    fn same_run(&self, known: &Points, own: &str) -> Option<&str> {
        let fits = |key: &&str| known.fits(own, &self.named, key);
        if let Some(key) = self.by_run.get(&known.run(own)?) {
            return Some(key.as_str()).filter(fits);
        }
        let groups = self.without_defaults.get_or_init(|| self.named.without_defaults());
        groups.get(&known.without_default(own)?)?.iter().map(String::as_str).find(fits)
    }
}

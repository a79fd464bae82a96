//! Decides where a record that is there belongs among the points of today's scenario.

use super::super::given::{Given, conflict};
use super::super::line::Observed;
use super::super::points::Points;
use meshpace_scenario::effective::Digest;
use std::cell::OnceCell;
use std::collections::BTreeMap;

/// The points of today's scenario, and those of the scenarios before.
#[derive(Debug)]
pub struct Admission {
    /// Today's scenario.
    given: Given,
    named: Points,
    /// The scenarios of the records.
    sources: Vec<Given>,
    /// Their points; `None` if they are those of today's scenario.
    known: Option<Points>,
    /// The keys of today's points by what decides their runs, where that is needed.
    by_run: BTreeMap<Digest, String>,
    /// The keys of today's points by what decides their runs, but for defaults that are written, once that is needed.
    without_defaults: OnceCell<BTreeMap<Digest, Vec<String>>>,
}

impl Admission {
    /// For records of `sources`.
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

    /// True if today's scenario has this point.
    pub fn names(&self, key: &str) -> bool {
        self.named.has(key)
    }

    /// Today's scenario.
    pub fn given(&self) -> &Given {
        &self.given
    }

    /// Name of today's scenario.
    pub fn scenario(&self) -> &str {
        &self.given.scenario
    }

    /// What today's scenario observes at a point.
    pub fn observed(&self, key: &str) -> Observed {
        let [series, watch] = self.named.observed(key);
        Observed { nodes: false, series: series.is_some(), links: watch.is_some() }
    }

    /// The key of a record's point today: that of today's point with the same run, or its own.
    ///
    /// # Errors
    /// Why the record does not fit today's scenario.
    pub fn admit(&self, own: &str) -> Result<String, String> {
        let known = self.known.as_ref().unwrap_or(&self.named);
        match self.named.has(own) {
            true if known.fits(own, &self.named, own) => Ok(own.to_owned()),
            true => Err(conflict(own, &self.sources, std::slice::from_ref(&self.given))),
            false => Ok(self.same_run(known, own).unwrap_or(own).to_owned()),
        }
    }

    /// The key of today's point that is the same run as the point `own` of `known`.
    fn same_run(&self, known: &Points, own: &str) -> Option<&str> {
        let fits = |key: &&str| known.fits(own, &self.named, key);
        if let Some(key) = self.by_run.get(&known.run(own)?) {
            return Some(key.as_str()).filter(fits);
        }
        let groups = self.without_defaults.get_or_init(|| self.named.without_defaults());
        groups.get(&known.without_default(own)?)?.iter().map(String::as_str).find(fits)
    }
}

//! Decides where a record that is there belongs among the points of today's scenario.

use super::super::given::{Given, Meaning, Points, conflict};
use super::super::line::Observed;
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
    by_run: BTreeMap<[u8; 32], String>,
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
        Admission { given: given.clone(), named, sources: sources.to_vec(), known, by_run }
    }

    /// True if today's scenario has this point.
    pub fn names(&self, key: &str) -> bool {
        self.named.get(key).is_some()
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
        let [series, watch] = self.named.get(key).map(|meaning| meaning.observed.clone()).unwrap_or_default();
        Observed { nodes: false, series: series.is_some(), links: watch.is_some() }
    }

    /// The key of a record's point today: that of today's point with the same run, or its own.
    ///
    /// # Errors
    /// Why the record does not fit today's scenario.
    pub fn admit(&self, own: &str) -> Result<String, String> {
        let known = self.known.as_ref().unwrap_or(&self.named).get(own);
        match (self.named.get(own), known) {
            (Some(new), Some(old)) if old.fits(new) => Ok(own.to_owned()),
            (Some(_), _) => Err(conflict(own, &self.sources, std::slice::from_ref(&self.given))),
            (None, Some(old)) => Ok(self.same_run(old).unwrap_or(own).to_owned()),
            (None, None) => Ok(own.to_owned()),
        }
    }

    fn same_run(&self, old: &Meaning) -> Option<&str> {
        let key = self.by_run.get(&old.run)?;
        self.named.get(key).is_some_and(|new| old.fits(new)).then_some(key)
    }
}

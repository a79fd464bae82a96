//! Look-up of the names in an experiment's file: metrics, curves, and the names that a term uses.

use super::data::{Curve, Metric, Published, Term, standard};
use std::collections::BTreeSet;

impl Published {
    /// Metric called `id`: one that the file defines, or else a standard one.
    pub fn metric(&self, id: &str) -> Option<Metric> {
        self.metrics.iter().find(|metric| metric.id == id).cloned().or_else(|| standard(id))
    }

    /// Id of the metric that a term means if it names no metric.
    pub fn first_metric(&self) -> String {
        let drawn = || self.figures.first().and_then(|figure| figure.metrics.first()).cloned();
        self.metrics.first().map(|metric| metric.id.clone()).or_else(drawn).unwrap_or_else(|| "goodput".to_owned())
    }

    /// All texts of the file that may refer to numbers of the records.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let readings = self.readings.iter().flat_map(|reading| [&reading.what, &reading.result]);
        let whys = self.claims.iter().filter_map(|claim| claim.why.as_ref());
        self.finding.iter().chain(&self.caution).chain(&self.notes).chain(readings).chain(whys).map(String::as_str)
    }

    /// Ids of the curves that serve only as other readings of the paper. No claim is judged by such
    /// a curve, and no gain is computed relative to it.
    pub fn other_readings(&self) -> BTreeSet<&str> {
        let whole = self.beside.iter().flat_map(|whole| whole.curves.values()).map(String::as_str);
        let also = self.claims.iter().flat_map(|claim| &claim.also).map(String::as_str);
        let of_rows = self.curves.iter().filter(|curve| curve.reading_of.is_some()).map(|curve| curve.id.as_str());
        let judged = self.claims.iter().flat_map(|claim| claim.check.terms()).map(|term| term.curve.as_str());
        let over = self.figures.iter().filter_map(|figure| figure.over.as_deref());
        let over = over.chain(self.decomposition.iter().map(|parts| parts.over.as_str()));
        let counting: BTreeSet<&str> = judged.chain(over).collect();
        whole.chain(also).chain(of_rows).filter(|id| !counting.contains(id)).collect()
    }

    /// Curve called `id`.
    pub fn curve(&self, id: &str) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.id == id)
    }
}

/// Adds a message to `told` for each name in `term` that does not exist. `place` says where the
/// term stands.
pub fn check_term(published: &Published, term: &Term, place: &str, told: &mut Vec<String>) {
    if published.curve(&term.curve).is_none() {
        told.push(format!("{place}: there is no curve \"{}\"", term.curve));
    }
    let id = term.metric.clone().unwrap_or_else(|| published.first_metric());
    match published.metric(&id) {
        None => told.push(format!("{place}: there is no metric \"{id}\"")),
        Some(metric) if metric.is_of_each() != term.flow.is_some() => {
            let needed = if metric.is_of_each() {
                "has a value for each flow: say which with #0"
            } else {
                "is not of each flow: leave out the #"
            };
            told.push(format!("{place}: the metric \"{id}\" {needed}"));
        }
        Some(_) => {}
    }
}

//! Names in the file of an experiment: metrics and curves by name, and the names that a term uses.

use super::data::{Curve, Metric, Published, Term, standard};
use std::collections::BTreeSet;

impl Published {
    /// The metric called `id`: the file's own, or a standard one.
    pub fn metric(&self, id: &str) -> Option<Metric> {
        self.metrics.iter().find(|metric| metric.id == id).cloned().or_else(|| standard(id))
    }

    /// The metric of terms that name none.
    pub fn first_metric(&self) -> String {
        let drawn = || self.figures.first().and_then(|figure| figure.metrics.first()).cloned();
        self.metrics.first().map(|metric| metric.id.clone()).or_else(drawn).unwrap_or_else(|| "goodput".to_owned())
    }

    /// The texts that may refer to numbers.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let readings = self.readings.iter().flat_map(|reading| [&reading.what, &reading.result]);
        let whys = self.claims.iter().filter_map(|claim| claim.why.as_ref());
        self.finding.iter().chain(&self.caution).chain(&self.notes).chain(readings).chain(whys).map(String::as_str)
    }

    /// Curves that are other readings of what is judged, and nothing else: no claim is judged by them, and no gain is told over them.
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

    /// The curve called `id`.
    pub fn curve(&self, id: &str) -> Option<&Curve> {
        self.curves.iter().find(|curve| curve.id == id)
    }
}

/// Names in a term of `place` that do not exist.
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

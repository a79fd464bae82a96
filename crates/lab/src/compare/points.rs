//! Comparisons point by point: the lines of each point of the swept keys, and what the means over
//! the points are taken over.

use super::{Line, Run, Side};
use crate::record::excerpt::Excerpt;
use crate::record::plain;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Points or values that a sentence names at most.
const MOST_NAMED: usize = 8;

/// A metric at one point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AtPoint {
    /// The keys that are swept, with their values at this point.
    #[serde(serialize_with = "shared")]
    pub point: Arc<Map<String, Value>>,
    /// The comparison at this point.
    #[serde(flatten)]
    pub line: Line,
}

/// Writes a point that several lines share.
fn shared<S: Serializer>(point: &Map<String, Value>, serializer: S) -> Result<S::Ok, S::Error> {
    point.serialize(serializer)
}

/// The runs of a side by point.
pub(super) struct ByPoint<'a> {
    /// The points in the order of the runs.
    pub order: Vec<String>,
    /// The runs at each.
    pub of: BTreeMap<String, Vec<&'a Excerpt>>,
}

impl<'a> ByPoint<'a> {
    /// The runs at a point, which has this number.
    pub fn runs(&self, number: usize, point: &str) -> Vec<Run<'a>> {
        let runs = self.of.get(point).into_iter().flatten();
        runs.map(|of| Run { point: number, of }).collect()
    }
}

/// The runs by their values of `keys`.
pub(super) fn by_point<'a>(runs: &[&'a Excerpt], keys: &BTreeSet<&str>) -> ByPoint<'a> {
    let mut found = ByPoint { order: Vec::new(), of: BTreeMap::new() };
    for run in runs {
        let text = |key: &&str| Some(format!("{key} = {}", run.point.get(*key)?));
        let point = keys.iter().filter_map(text).collect::<Vec<_>>().join(", ");
        let of = found.of.entry(point).or_insert_with_key(|point| {
            found.order.push(point.clone());
            Vec::new()
        });
        of.push(*run);
    }
    found
}

/// The values of a run for `keys`.
pub(super) fn values(run: &Excerpt, keys: &BTreeSet<&str>) -> Arc<Map<String, Value>> {
    let has = |key: &&str| Some(((*key).to_owned(), run.point.get(*key)?.clone()));
    Arc::new(keys.iter().filter_map(has).collect())
}

/// Gives each line its part of `at_point`, the lines of one point.
pub(super) fn attach(lines: &mut [Line], point: &Arc<Map<String, Value>>, at_point: Vec<Line>) {
    for line in at_point {
        if let Some(pooled) = lines.iter_mut().find(|pooled| pooled.metric == line.metric) {
            pooled.points.push(AtPoint { point: Arc::clone(point), line });
        }
    }
}

/// A point for people: "topology.hops = 10, flow.max_window = 8"; empty without keys.
pub fn place(point: &Map<String, Value>) -> String {
    point.iter().map(|(key, value)| format!("{key} = {}", plain(value))).collect::<Vec<_>>().join(", ")
}

/// The points of a comparison with the lines of each; empty if only one point was compared.
pub fn at_points(lines: &[Line]) -> Vec<(String, Vec<&Line>)> {
    let mut found: Vec<(String, Vec<&Line>)> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for at in lines.iter().flat_map(|line| &line.points) {
        let place = place(&at.point);
        let number = *numbers.entry(place.clone()).or_insert(found.len());
        if number == found.len() {
            found.push((place, Vec::new()));
        }
        found[number].1.push(&at.line);
    }
    found
}

/// What the means of a line are taken over: "3 points (topology.hops = 2, 4, 7)". `None` if only one
/// point was compared.
pub fn over(line: &Line) -> Option<String> {
    let named = named(&line.points.iter().collect::<Vec<_>>());
    (!line.points.is_empty()).then(|| format!("{} points ({named})", line.points.len()))
}

/// Points in words, key by key where they sweep one key: "topology.hops = 2, 4".
fn named(points: &[&AtPoint]) -> String {
    let keys: BTreeSet<&str> = points.iter().flat_map(|at| at.point.keys().map(String::as_str)).collect();
    let mut parts = Vec::new();
    for key in keys {
        let (mut values, mut seen) = (Vec::new(), BTreeSet::new());
        for value in points.iter().filter_map(|at| at.point.get(key)).map(plain) {
            if seen.insert(value.clone()) {
                values.push(value);
            }
        }
        let more = values.len().saturating_sub(MOST_NAMED);
        values.truncate(MOST_NAMED);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        parts.push(format!("{key} = {}{rest}", values.join(", ")));
    }
    parts.join("; ")
}

/// The points at which the first side is better and those at which the second is, in words, if there
/// are both: the mean over the points says nothing then.
pub fn disagreeing(line: &Line) -> Option<[String; 2]> {
    let better = |side: Side| -> Vec<&AtPoint> {
        line.points.iter().filter(|at| at.line.better_in_family == Some(side)).collect()
    };
    let sides = [Side::A, Side::B].map(better);
    let several = line.points.first().is_some_and(|at| at.point.len() > 1);
    let told = |points: &Vec<&AtPoint>| match points.len() {
        count if several && count > 1 => format!("{count} points"),
        _ => named(points),
    };
    sides.iter().all(|points| !points.is_empty()).then(|| [told(&sides[0]), told(&sides[1])])
}

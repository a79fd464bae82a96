//! Groups records by point of the sweep, and chooses the axis.

use crate::parts::digits;
use meshpace_lab::record::{FlowRecord, Record};
use meshpace_lab::statistics::{Estimate, estimate};
use meshpace_lab::summary::{LEAST, Mean};
use meshpace_scenario::Plot as Settings;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Runs of one point.
pub struct Group<'a> {
    /// Values of the sweep at the point.
    pub point: Map<String, Value>,
    /// Runs of the point, one for each seed.
    pub records: Vec<&'a Record>,
}

/// Mean of the finite values. It has an interval if there are at least three values. `None` if
/// there is no finite value.
pub fn estimate_of(values: &[f64]) -> Option<Estimate> {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let found = estimate(&values, 0.95);
    let half_width = if values.len() < LEAST { f64::NAN } else { found.half_width };
    (!values.is_empty()).then_some(Estimate { half_width, ..found })
}

/// Groups the records by point, in the order in which the points first occur.
pub fn groups(records: &[Record]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: BTreeMap<Vec<(&str, String)>, usize> = BTreeMap::new();
    for record in records {
        // Points are equal even if their keys have different orders.
        let mut values: Vec<(&str, String)> =
            record.point.iter().map(|(key, value)| (key.as_str(), value.to_string())).collect();
        values.sort_unstable();
        let place = *places.entry(values).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(group) => group.records.push(record),
            None => groups.push(Group { point: record.point.clone(), records: vec![record] }),
        }
    }
    groups
}

/// A swept value as a number: 4, or the 20 of "20 kbit/s".
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.split(' ').next()?.parse().ok().filter(|number: &f64| number.is_finite()),
        value => value.as_f64(),
    }
}

/// Unit that follows the number; empty if there is none.
fn unit(value: &Value) -> &str {
    value.as_str().and_then(|text| text.split_once(' ')).map_or("", |(_, unit)| unit)
}

/// A key, followed by the unit of its values if they have one.
pub fn with_unit(key: &str, groups: &[&Group]) -> String {
    match groups.iter().find_map(|group| group.point.get(key)).map_or("", unit) {
        "" => key.to_owned(),
        unit => format!("{key}, {unit}"),
    }
}

/// Key of the horizontal axis: the one that the scenario names, or else the swept key with the most
/// different numbers. All values of the key must be numbers of the same unit, and at least two must
/// differ. Points may lack the key, as those of another part of a campaign do. `None` if no key
/// fits.
pub fn axis(groups: &[&Group], settings: &Settings) -> Option<String> {
    let lines = settings.lines.as_deref().unwrap_or_default();
    let mut keys: Vec<&String> = Vec::new();
    let mut known = BTreeSet::new();
    for key in groups.iter().flat_map(|group| group.point.keys()) {
        let may_be = match &settings.x {
            Some(x) => x == key,
            None => !lines.contains(key),
        };
        if may_be && known.insert(key) {
            keys.push(key);
        }
    }
    let count = |key: &str| -> usize {
        let values = || groups.iter().filter_map(|group| group.point.get(key));
        let numbers: Option<Vec<f64>> = values().map(number).collect();
        let Some(mut numbers) = numbers else { return 0 };
        let mut units = values().map(unit);
        let first = units.next();
        if units.any(|unit| Some(unit) != first) {
            return 0;
        }
        numbers.sort_by(f64::total_cmp);
        numbers.dedup();
        numbers.len()
    };
    let counted: Vec<(usize, &String)> =
        keys.into_iter().map(|key| (count(key), key)).filter(|(count, _)| *count > 1).collect();
    let most = counted.iter().map(|(count, _)| *count).max()?;
    counted.iter().find(|(count, _)| *count == most).map(|(_, key)| (*key).clone())
}

/// Key of an axis of names: the one that the scenario names, if its values are not numbers and the
/// scenario chooses another swept key for the lines.
pub fn named_axis(groups: &[&Group], settings: &Settings) -> Option<String> {
    let x = settings.x.as_ref()?;
    let lines = settings.lines.as_deref().unwrap_or_default();
    let fits = |group: &&Group| {
        group.point.contains_key(x) && lines.iter().any(|line| line != x && group.point.contains_key(line))
    };
    groups.iter().any(fits).then(|| x.clone())
}

/// Values of an axis of names, in the order of the points.
pub fn names(groups: &[&Group], axis: &str) -> Vec<String> {
    let mut names = Vec::new();
    for name in groups.iter().map(|group| group.value(axis)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl Group<'_> {
    /// Value of one key, in words.
    pub fn value(&self, key: &str) -> String {
        self.values(|other| other == key)
    }

    /// Values of the sweep at the point, in words.
    pub fn told(&self) -> String {
        self.label(|_| true)
    }

    /// Values of the sweep at the point without that of the axis, in words.
    pub fn label_without(&self, axis: &str) -> String {
        self.label(|key| key != axis)
    }

    /// Label of a flow of the point. It contains the transport if there are no swept values, or if
    /// the flows have different transports.
    pub fn flow_label(&self, flow: usize) -> String {
        let transport = self.transport(flow);
        let count = self.records.first().map_or(0, |record| record.flows.len());
        let differ = (0..count).any(|other| self.transport(other) != transport);
        let name = self.name(flow).map_or_else(|| format!("flow {flow}"), str::to_owned);
        match (self.values(|_| true), transport) {
            (told, "") => format!("{told}, {name}"),
            (told, _) if told.is_empty() => format!("{transport}, {name}"),
            (told, _) if differ => format!("{told}, {transport}, {name}"),
            (told, _) => format!("{told}, {name}"),
        }
    }

    /// Name of a flow's transport.
    pub fn transport(&self, flow: usize) -> &str {
        self.flow(flow).map(|flow| flow.transport.as_str()).unwrap_or_default()
    }

    /// Name that the scenario gives to a flow.
    pub fn name(&self, flow: usize) -> Option<&str> {
        self.flow(flow).and_then(|flow| flow.name.as_deref())
    }

    /// Record of a flow in the first run.
    fn flow(&self, number: usize) -> Option<&FlowRecord> {
        self.records.first().and_then(|record| record.flows.get(number))
    }

    /// Values of the selected keys, in words. Empty if there are none.
    pub fn values(&self, is_shown: impl Fn(&str) -> bool) -> String {
        meshpace_lab::record::told_values(&self.point, is_shown)
    }

    fn label(&self, is_shown: impl Fn(&str) -> bool) -> String {
        let told = self.values(is_shown);
        if !told.is_empty() {
            return told;
        }
        // Without swept values, the label consists of the names of the transports.
        let mut names: Vec<&str> = Vec::new();
        let flows = self.records.first().map(|record| record.flows.as_slice()).unwrap_or_default();
        for name in flows.iter().map(|flow| flow.transport.as_str()) {
            // The swept value is already on the axis, so the parameters of the transport are not
            // part of the label.
            let name = if self.point.is_empty() { name } else { name.split('{').next().unwrap_or(name) };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(" + ")
    }

    /// Position of the group on the axis.
    pub fn x(&self, axis: &str) -> Option<f64> {
        number(self.point.get(axis)?)
    }

    /// Mean over the runs, with its interval.
    pub fn estimate(&self, of: impl Fn(&Record) -> Option<f64>) -> Option<Estimate> {
        estimate_of(&self.records.iter().filter_map(|record| of(record)).collect::<Vec<_>>())
    }

    /// Mean over the runs that also counts the runs with the result "none", in which a flow was
    /// starved.
    pub fn mean(&self, of: impl Fn(&Record) -> Option<f64>) -> Option<Mean> {
        Mean::of(&self.records.iter().map(|record| of(record).unwrap_or(f64::NAN)).collect::<Vec<_>>())
    }
}

/// Formats a mean for people.
pub fn told(mean: Option<&Mean>) -> String {
    mean.map_or_else(|| "–".to_owned(), |mean| mean.told(digits))
}

/// Mean over several points, for each seed that all of them have. It is infinite if a point has the
/// result "none", and NaN if the metric was not measured at a point.
pub fn over_groups(groups: &[&Group], of: impl Fn(&Record) -> Option<f64>) -> BTreeMap<u64, f64> {
    let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for record in groups.iter().flat_map(|group| &group.records) {
        by_seed.entry(record.seed).or_default().push(of(record).unwrap_or(f64::NAN));
    }
    by_seed.retain(|_, values| values.len() == groups.len());
    by_seed.into_iter().map(|(seed, values)| (seed, meshpace_lab::summary::mean(&values))).collect()
}

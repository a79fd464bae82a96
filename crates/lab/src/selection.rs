//! Selection of records of a sweep by `--where key=value`. Several values are separated by commas;
//! several keys are several conditions.

use crate::record::Record;
use crate::variants::{bare, split, toml_value};
use crate::words::{plain, spoken};
use serde_json::{Map, Value};
use std::borrow::Borrow;

/// Conditions on records. A record is selected if, for each key, its point has one of the given
/// values.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Selection {
    /// Keys of the sweep, each with the selected values.
    conditions: Vec<(String, Vec<String>)>,
}

impl Selection {
    /// Reads conditions, each of the form `key=value` or `key=value,value`. If a key is given
    /// twice, the values of both conditions are selected.
    ///
    /// # Errors
    /// A condition has no key or no value.
    pub fn parse(conditions: &[String]) -> Result<Selection, String> {
        let mut selection = Selection::default();
        for condition in conditions {
            let parts = condition.split_once('=').map(|(key, values)| (key.trim(), values.trim()));
            let Some((key, values)) = parts.filter(|(key, values)| !key.is_empty() && !values.is_empty()) else {
                return Err(format!(
                    "{condition}: expected key=value, such as topology.hops=4 or flow.transport=newreno,tcp-ap"
                ));
            };
            let values = split(values);
            match selection.conditions.iter_mut().find(|(known, _)| known == key) {
                Some((_, known)) => known.extend(values),
                None => selection.conditions.push((key.to_owned(), values)),
            }
        }
        Ok(selection)
    }

    /// Arguments that give this selection.
    pub fn arguments(&self) -> Vec<String> {
        self.conditions.iter().map(|(key, values)| format!("{key}={}", values.join(","))).collect()
    }

    /// Selects from `records`.
    ///
    /// # Errors
    /// The records do not have a key or a value (the message says what they have instead), or no
    /// record fulfils all conditions.
    pub fn of<T: Borrow<Record>>(&self, records: Vec<T>) -> Result<Vec<T>, String> {
        self.of_runs(records, |record| &record.borrow().point)
    }

    /// Returns those of `runs` that are selected. `point` returns the point of a run.
    ///
    /// # Errors
    /// As for [`Selection::of`].
    pub fn of_runs<T>(&self, mut runs: Vec<T>, point: impl Fn(&T) -> &Map<String, Value>) -> Result<Vec<T>, String> {
        for (key, wanted) in &self.conditions {
            let known = values_of(runs.iter().map(&point), key)?;
            for one in wanted {
                if !known.iter().any(|value| is_meant(value, one)) {
                    let known: Vec<String> = known.iter().map(spoken).collect();
                    return Err(format!("no record has {key} = {one}; there are {}", known.join(", ")));
                }
            }
        }
        runs.retain(|run| {
            self.conditions.iter().all(|(key, wanted)| {
                let value = point(run).get(key);
                value.is_some_and(|value| wanted.iter().any(|one| is_meant(value, one)))
            })
        });
        match runs.is_empty() && !self.conditions.is_empty() {
            true => Err(format!("no record has all of {}", self.arguments().join(" and "))),
            false => Ok(runs),
        }
    }
}

/// Different values of a swept key, in the order in which they occur.
fn values_of<'a>(points: impl Iterator<Item = &'a Map<String, Value>>, key: &str) -> Result<Vec<Value>, String> {
    let mut values: Vec<Value> = Vec::new();
    let mut keys: Vec<&str> = Vec::new();
    for point in points {
        match point.get(key) {
            Some(value) if !values.contains(value) => values.push(value.clone()),
            Some(_) => {}
            None => keys.extend(point.keys().map(String::as_str)),
        }
    }
    if values.is_empty() {
        keys.sort_unstable();
        keys.dedup();
        let swept = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
        return Err(format!("the records do not sweep {key}; they sweep {swept}"));
    }
    Ok(values)
}

/// Returns whether `wanted` stands for `value`: as its text, as its text for people, or as TOML, in
/// which 4 and 4.0 are the same number.
fn is_meant(value: &Value, wanted: &str) -> bool {
    let wanted = wanted.trim();
    if plain(value) == bare(wanted) || spoken(value) == bare(wanted) {
        return true;
    }
    match toml_value(wanted) {
        Some(read) if value.is_number() && read.is_number() => value.as_f64() == read.as_f64(),
        Some(read) => read == *value,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn records() -> Vec<Record> {
        let paced = json!({"name": "tcp-ap", "pacing": {"alpha": 0.5}});
        let mut records = Vec::new();
        for transport in [json!("newreno"), paced] {
            for hops in [2, 4, 7] {
                let point =
                    [("topology.hops".to_owned(), json!(hops)), ("flow.transport".to_owned(), transport.clone())];
                records.push(Record { point: point.into_iter().collect(), seed: 1, ..Record::default() });
            }
        }
        records
    }

    fn selected(conditions: &[&str]) -> Result<usize, String> {
        let conditions: Vec<String> = conditions.iter().map(|&text| text.to_owned()).collect();
        Ok(Selection::parse(&conditions)?.of(records())?.len())
    }

    #[test]
    fn values_are_numbers_texts_tables_and_what_people_are_told() {
        for (conditions, count) in [
            (&[][..], 6),
            (&["topology.hops=4"], 2),
            (&["topology.hops=4.0"], 2),
            (&["topology.hops=2,7"], 4),
            (&["topology.hops=2", "topology.hops=7"], 4),
            (&["topology.hops = 4", "flow.transport=newreno"], 1),
            (&["flow.transport=\"newreno\""], 3),
            (&["flow.transport='tcp-ap (alpha 0.5)'"], 3),
            (&["flow.transport={ name = \"tcp-ap\", pacing = { alpha = 0.5 } }"], 3),
        ] {
            assert_eq!(selected(conditions).as_ref(), Ok(&count), "{conditions:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        for (conditions, told) in [
            (&["topology.hops=5"][..], "there are 2, 4, 7"),
            (&["topology.hops=4,5"], "topology.hops = 5"),
            (&["topology.hop=4"], "they sweep flow.transport, topology.hops"),
            (&["topology.hops"], "expected key=value"),
            (&["=4"], "expected key=value"),
            (&["topology.hops="], "expected key=value"),
        ] {
            let refused = selected(conditions).unwrap_err();
            assert!(refused.contains(told), "{conditions:?}: {refused}");
        }
        let unswept = Selection::parse(&["a=1".to_owned()]).unwrap().of(vec![Record::default()]).unwrap_err();
        assert!(unswept.contains("they sweep nothing"), "{unswept}");
    }
}

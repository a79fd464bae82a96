//! Goodput by panel, transport and hop count, from records.

use super::{Published, Tuned};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What is needed of a record.
#[derive(Clone, Debug, Deserialize)]
pub struct Row {
    /// The seed.
    pub seed: u64,
    /// The values of the sweep.
    pub point: Map<String, Value>,
    /// Sum of the flows' goodputs, bit/s.
    pub aggregate_goodput_bps: f64,
}

/// Goodputs in kbit/s, one per seed, by panel, transport and hop count.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Values by (panel number, transport, hops).
    values: BTreeMap<(usize, String, u64), Vec<f64>>,
    /// What a tuned curve was chosen from, by (panel number, curve, hops), ascending in the parameter.
    choices: BTreeMap<(usize, String, u64), Vec<Choice>>,
    /// Records that belong to no panel.
    pub strangers: usize,
}

/// One value of a tuned parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// The value as the scenario writes it.
    pub text: String,
    /// Its number.
    pub value: f64,
    /// Goodputs, kbit/s, one per seed.
    pub kbps: Vec<f64>,
}

impl Choice {
    /// Mean goodput, kbit/s.
    pub fn mean(&self) -> f64 {
        self.kbps.iter().sum::<f64>() / self.kbps.len() as f64
    }
}

impl Results {
    /// Reads the lines of a file of records.
    ///
    /// # Errors
    /// The number of the line that is no record, and why.
    pub fn read(lines: &str, published: &Published) -> Result<Results, String> {
        let mut results = Results::default();
        for (number, line) in lines.lines().enumerate() {
            let row: Row = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
            results.add(&row, published);
        }
        results.tune();
        Ok(results)
    }

    /// Each tuned curve is, at every hop count, the choice with the highest mean.
    fn tune(&mut self) {
        for (key, choices) in &mut self.choices {
            choices.sort_by(|a, b| a.value.total_cmp(&b.value));
            if let Some(best) = best(choices) {
                self.values.insert(key.clone(), best.kbps.clone());
            }
        }
    }

    fn offer(&mut self, key: (usize, String, u64), tuned: &Tuned, transport: &Value, kbps: f64) -> bool {
        let Some(value) = transport.pointer(&tuned.parameter) else { return false };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let Some(number) = text.split(' ').next().and_then(|number| number.parse().ok()) else { return false };
        let choices = self.choices.entry(key).or_default();
        match choices.iter_mut().find(|choice| choice.text == text) {
            Some(choice) => choice.kbps.push(kbps),
            None => choices.push(Choice { text, value: number, kbps: vec![kbps] }),
        }
        true
    }

    /// What a tuned curve was chosen from at a hop count, ascending in the parameter; empty if it is not tuned.
    pub fn choices(&self, panel: usize, curve: &str, hops: u64) -> &[Choice] {
        self.choices.get(&(panel, curve.to_owned(), hops)).map_or(&[], Vec::as_slice)
    }

    /// What was chosen.
    pub fn chosen(&self, panel: usize, curve: &str, hops: u64) -> Option<&Choice> {
        best(self.choices(panel, curve, hops))
    }

    fn add(&mut self, row: &Row, published: &Published) {
        let panel = published.panels.iter().position(|panel| row.point.get("routing") == Some(&panel.point));
        let transport = row.point.get("flow.transport");
        let hops = row.point.get("topology.hops").and_then(Value::as_u64);
        let kbps = row.aggregate_goodput_bps / 1e3;
        let (Some(panel), Some(transport), Some(hops)) = (panel, transport, hops) else {
            self.strangers += 1;
            return;
        };
        if let Some(name) = transport.as_str() {
            self.values.entry((panel, name.to_owned(), hops)).or_default().push(kbps);
            return;
        }
        let of = |tuned: &&Tuned| transport.get("name").and_then(Value::as_str) == Some(&tuned.of);
        let taken = published
            .tuned
            .iter()
            .find(of)
            .is_some_and(|tuned| self.offer((panel, tuned.id.clone(), hops), tuned, transport, kbps));
        self.strangers += usize::from(!taken);
    }

    /// The goodputs of a transport at a hop count, kbit/s; empty if there are none.
    pub fn goodputs(&self, panel: usize, transport: &str, hops: u64) -> &[f64] {
        self.values.get(&(panel, transport.to_owned(), hops)).map_or(&[], Vec::as_slice)
    }

    /// All hop counts there are, ascending.
    pub fn hops(&self) -> Vec<u64> {
        let mut hops: Vec<u64> = self.values.keys().map(|(_, _, hops)| *hops).collect();
        hops.sort_unstable();
        hops.dedup();
        hops
    }

    /// All transports there are.
    pub fn transports(&self) -> Vec<String> {
        let mut names: Vec<String> = self.values.keys().map(|(_, name, _)| name.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Runs per point: the smallest and the largest number.
    pub fn runs_per_point(&self) -> (usize, usize) {
        let counts = self.values.values().map(Vec::len);
        (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0))
    }

    /// Adds made-up goodputs.
    #[cfg(test)]
    pub fn put(&mut self, panel: usize, transport: &str, hops: u64, kbps: &[f64]) {
        self.values.insert((panel, transport.to_owned(), hops), kbps.to_vec());
    }

    /// Adds a made-up choice of a tuned curve.
    #[cfg(test)]
    pub fn put_choice(&mut self, panel: usize, curve: &str, hops: u64, value: f64, kbps: &[f64]) {
        let choice = Choice { text: value.to_string(), value, kbps: kbps.to_vec() };
        self.choices.entry((panel, curve.to_owned(), hops)).or_default().push(choice);
        self.tune();
    }
}

/// The choice with the highest mean, the first of several.
fn best(choices: &[Choice]) -> Option<&Choice> {
    choices.iter().rev().max_by(|a, b| a.mean().total_cmp(&b.mean()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::Experiment;

    #[test]
    fn a_tuned_curve_is_its_best_choice_at_every_hop_count() {
        let published = Experiment::find("AP05-F15").unwrap().published().unwrap();
        let line = |transport: &str, hops: u64, seed: u64, bps: f64| {
            format!(
                r#"{{"seed":{seed},"point":{{"routing":{{"protocol":"static"}},"topology.hops":{hops},"flow.transport":{transport}}},"aggregate_goodput_bps":{bps}}}"#
            )
        };
        let clamp = |n: u64| format!(r#"{{"name":"newreno","window":{{"kind":"clamp","segments":{n}}}}}"#);
        let lines = [
            line(&clamp(10), 4, 1, 301e3),
            line(&clamp(2), 4, 1, 300e3),
            line(&clamp(2), 4, 2, 310e3),
            line(&clamp(10), 4, 2, 303e3),
            line(&clamp(10), 5, 1, 301e3),
            line(r#""tcp-ap-sync""#, 4, 1, 200e3),
            line(r#"{"name":"few"}"#, 4, 1, 200e3),
        ];
        let results = Results::read(&lines.join("\n"), &published).unwrap();
        let panel = published.panels.iter().position(|panel| panel.id == "static").unwrap();
        assert_eq!(results.goodputs(panel, "newreno-cwl", 4), [300.0, 310.0]);
        assert_eq!(results.chosen(panel, "newreno-cwl", 4).unwrap().text, "2");
        assert_eq!(results.choices(panel, "newreno-cwl", 4).len(), 2);
        assert_eq!(results.goodputs(panel, "newreno-cwl", 5), [301.0]);
        assert_eq!(results.goodputs(panel, "tcp-ap-sync", 4), [200.0]);
        assert_eq!(results.strangers, 1, "nothing is tuned of few");
    }
}

//! Excerpts of records: what a comparison needs of a run. A directory may have a hundred thousand runs, and the
//! whole record of each takes several kilobytes of memory.

use super::Record;
use super::metrics::{Metric, compared};
use super::starvation::{Silence, Starved, lacks_path};
use super::tally::{Tallied, Tally};
use crate::words::{part, within_part};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What comparisons need of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Excerpt {
    /// The values of the sweep.
    pub point: Arc<Map<String, Value>>,
    /// The seed.
    pub seed: u64,
    /// Length of the run, seconds.
    pub duration_s: f64,
    /// Start of the measured interval, seconds.
    pub warmup_s: f64,
    /// Frames put on the air.
    pub frames: u64,
    /// True if the run can be repeated: it was not measured in real time, and has a fingerprint.
    pub is_simulated: bool,
    /// True if no path connected the ends of some flow at any time.
    pub lacks_path: bool,
    /// Hash of the fingerprint; `None` if the record has none.
    pub fingerprint: Option<u64>,
    /// The silence beyond which a flow is starved, seconds.
    starved_after_s: f64,
    flows: Arc<[Flow]>,
    /// The flows that were silent for long, by their numbers, in ascending order.
    silences: Box<[(usize, Silence)]>,
    /// The value of each metric, NaN where it was not measured.
    values: Box<[f64]>,
    /// A bit for each metric, set where it says something to people of this run.
    says: u64,
}

/// What a flow is called. Most runs of a directory share all of it with others.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Flow {
    name: Option<String>,
    ends: (u16, u16),
    transport: String,
}

/// Makes excerpts that share what is the same in several of them.
#[derive(Debug)]
pub struct Excerpts {
    metrics: Vec<&'static Metric>,
    points: Points,
    flows: BTreeSet<Arc<[Flow]>>,
}

impl Default for Excerpts {
    /// Excerpts with the metrics that `compare` compares.
    fn default() -> Excerpts {
        Excerpts::with(&compared().collect::<Vec<_>>())
    }
}

impl Excerpts {
    /// Excerpts with the values of these metrics, 64 at most.
    pub fn with(metrics: &[&'static Metric]) -> Excerpts {
        Excerpts { metrics: metrics.to_vec(), points: Points::default(), flows: BTreeSet::new() }
    }

    /// The excerpts of several records, with the metrics that `compare` compares.
    pub fn of_all(records: &[Record]) -> Vec<Excerpt> {
        let mut excerpts = Excerpts::default();
        records.iter().map(|record| excerpts.of(record)).collect()
    }

    /// The excerpt of a record.
    pub fn of(&mut self, record: &Record) -> Excerpt {
        let silences = record.flows.iter().enumerate();
        let silences = silences.filter_map(|(number, flow)| Some((number, record.silence(flow)?))).collect();
        let values = self.metrics.iter().map(|metric| (metric.of)(record).unwrap_or(f64::NAN)).collect();
        let told = self.metrics.iter().enumerate().filter(|(_, metric)| (metric.says)(record));
        let says = told.fold(0, |bits, (number, _)| bits | 1 << number);
        Excerpt {
            point: self.points.shared(&record.point),
            seed: record.seed,
            duration_s: record.duration_s,
            warmup_s: record.warmup_s,
            frames: record.frames,
            is_simulated: record.real_time.is_none() && !record.fingerprint.is_empty(),
            lacks_path: lacks_path(record),
            fingerprint: (!record.fingerprint.is_empty()).then(|| hash(&record.fingerprint)),
            starved_after_s: record.starved_after(),
            flows: self.shared_flows(record),
            silences,
            values,
            says,
        }
    }

    fn shared_flows(&mut self, record: &Record) -> Arc<[Flow]> {
        let flow = |flow: &super::FlowRecord| Flow {
            name: flow.name.clone(),
            ends: (flow.from, flow.to),
            transport: flow.transport.clone(),
        };
        let flows: Arc<[Flow]> = record.flows.iter().map(flow).collect();
        match self.flows.get(&flows) {
            Some(known) => Arc::clone(known),
            None => {
                self.flows.insert(Arc::clone(&flows));
                flows
            }
        }
    }
}

/// Points, of which equal ones are held once.
#[derive(Debug, Default)]
pub struct Points(BTreeMap<String, Arc<Map<String, Value>>>);

impl Points {
    /// The point that is held.
    pub fn shared(&mut self, point: &Map<String, Value>) -> Arc<Map<String, Value>> {
        let key = serde_json::to_string(point).unwrap_or_default();
        let held = || {
            // A map that grew while it was read has more memory than it needs.
            let mut held = Map::with_capacity(point.len());
            held.extend(point.iter().map(|(key, value)| (key.clone(), value.clone())));
            Arc::new(held)
        };
        Arc::clone(self.0.entry(key).or_insert_with(held))
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl Excerpt {
    /// The value of the metric that has this number among those of the excerpt; `None` if it was not measured.
    pub fn value(&self, metric: usize) -> Option<f64> {
        self.values.get(metric).copied().filter(|value| !value.is_nan())
    }

    /// True if the metric of this number says something to people of this run.
    pub fn says(&self, metric: usize) -> bool {
        self.says >> metric & 1 == 1
    }

    /// True if a flow was silent for long, whatever the reason.
    pub fn has_silence(&self) -> bool {
        !self.silences.is_empty()
    }

    /// True if the run starved a flow.
    pub fn starves(&self) -> bool {
        self.silences.iter().any(|(_, silence)| matches!(silence, Silence::Starved(_)))
    }

    /// The numbers of the flows that were silent for long.
    pub fn silent(&self) -> impl Iterator<Item = usize> {
        self.silences.iter().map(|(number, _)| *number)
    }

    /// True if the run has a flow of this number.
    pub fn has_flow(&self, flow: usize) -> bool {
        flow < self.flows.len()
    }

    /// Name of the flow of this number, if it has one.
    pub fn name(&self, flow: usize) -> Option<&str> {
        self.flows.get(flow)?.name.as_deref()
    }

    /// Silence of the flow of this number.
    pub fn silence(&self, flow: usize) -> Option<Silence> {
        let place = self.silences.binary_search_by_key(&flow, |(number, _)| *number).ok()?;
        Some(self.silences[place].1)
    }

    /// Starvation of the flow of this number by others.
    pub fn starved(&self, flow: usize) -> Option<Starved> {
        match self.silence(flow)? {
            Silence::Starved(starved) => Some(starved),
            Silence::NoPath(_) => None,
        }
    }

    /// The transports of the flows, each once.
    pub fn transports(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for flow in self.flows.iter() {
            if !names.contains(&flow.transport.as_str()) {
                names.push(&flow.transport);
            }
        }
        names.join(" + ")
    }

    /// Counts the run in a tally, as one of the group of this name in its part.
    pub fn count_in(&self, tally: &mut Tally, group: &str) {
        let flow = |(number, flow): (usize, &Flow)| Tallied {
            name: flow.name.clone(),
            ends: flow.ends,
            silence: self.silence(number),
        };
        tally.count((part(&self.point), group), self.starved_after_s, self.flows.iter().enumerate().map(flow));
    }

    /// Counts runs by the words of their points.
    pub fn tally(excerpts: &[Excerpt]) -> Tally {
        let mut tally = Tally::default();
        excerpts.iter().for_each(|excerpt| excerpt.count_in(&mut tally, &within_part(&excerpt.point)));
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::starvation;
    use serde_json::json;

    fn record(seed: u64, hops: u64, gap: f64) -> Record {
        let flow = json!({"transport": "newreno", "from": 0, "to": hops, "delivered_bytes": 9, "longest_gap_s": 1.0});
        let mut silent = flow.clone();
        (silent["name"], silent["longest_gap_s"]) = (json!("long"), json!(gap));
        crate::record::record(json!({
            "seed": seed, "point": {"topology.hops": hops}, "fingerprint": format!("{seed}"), "duration_s": 100.0,
            "warmup_s": 0.0, "aggregate_goodput_bps": seed as f64, "flows": [flow, silent],
        }))
    }

    #[test]
    fn an_excerpt_says_what_its_record_says() {
        let records = [record(1, 2, 30.0), record(2, 2, 2.0)];
        for (record, run) in records.iter().zip(Excerpts::of_all(&records)) {
            for (number, metric) in compared().enumerate() {
                let value = (metric.of)(record).filter(|value| !value.is_nan());
                assert_eq!((run.value(number), run.says(number)), (value, (metric.says)(record)), "{}", metric.name);
            }
            let silences: Vec<_> = record.flows.iter().map(|flow| record.silence(flow)).collect();
            assert_eq!(silences, (0..2).map(|flow| run.silence(flow)).collect::<Vec<_>>());
            assert_eq!((run.starves(), run.has_silence()), (starvation::starves(record), record.has_silence()));
            assert_eq!((run.transports(), run.name(1), run.has_flow(2)), ("newreno".to_owned(), Some("long"), false));
        }
        assert_eq!(Excerpt::tally(&Excerpts::of_all(&records)), Tally::of(&records));
    }

    #[test]
    fn runs_share_their_points_and_flows() {
        let records: Vec<Record> = (1..=3).map(|seed| record(seed, 4, 1.0)).chain([record(1, 5, 1.0)]).collect();
        let runs = Excerpts::of_all(&records);
        for run in &runs[1..3] {
            assert!(Arc::ptr_eq(&run.point, &runs[0].point) && Arc::ptr_eq(&run.flows, &runs[0].flows));
        }
        assert_ne!((&runs[3].point, &runs[3].flows), (&runs[0].point, &runs[0].flows));
    }
}

//! Comparison with ns-2.35, ns-3.44 and theory. The same scenarios are run here; each point has its
//! error and a rule that it must meet.
//!
//! The values of ns-2 and ns-3 are data, embedded from `validation/reference/`; its README says how
//! they were measured. The values of theory are computed. Every table is a list of points. Nothing
//! is selected by its result: seeds are 1, 2, 3, ... and every point is printed.

mod agents;
mod bianchi;
mod chain_counts;
mod chains;
mod competing;
mod field;
pub mod ht;
pub mod kit;
mod micro;
mod ns3;
mod paced_udp;
mod page;
mod round_trips;
pub mod sample;
mod saturation;
pub mod scenes;
mod trains;

pub use page::{Heading, markdown, text};
pub use sample::Sample;

use crate::pool;
use meshpace_sim::{Config, Outcome};
use std::sync::Arc;

/// Options of a comparison.
pub struct Options<'a> {
    /// Runs per point. `None` means as many as the reference has, but at least 10.
    pub seeds: Option<usize>,
    /// Number of threads.
    pub jobs: usize,
    /// Whether each comparison has only a few of its points: the cheapest ones, and those whose
    /// error is closest to the limit of the rule.
    pub sample: bool,
    /// Called after every run with the number of runs of this step that remain.
    pub progress: &'a dyn Fn(usize),
}

impl Options<'_> {
    /// Cases of a comparison: all of them, or, for a sample, those at the positions in `sample`,
    /// counted from 0.
    ///
    /// # Panics
    /// Panics if there is no case at one of these positions.
    fn sampled<T>(&self, cases: impl IntoIterator<Item = T>, sample: &[usize]) -> Vec<T> {
        if !self.sample {
            return cases.into_iter().collect();
        }
        let is_chosen = |(place, _): &(usize, T)| sample.contains(place);
        let chosen: Vec<T> = cases.into_iter().enumerate().filter(is_chosen).map(|(_, case)| case).collect();
        assert_eq!(chosen.len(), sample.len(), "a sample of cases that are not there: {sample:?}");
        chosen
    }

    fn seeds(&self, reference: usize) -> usize {
        self.seeds.unwrap_or(reference.max(10))
    }

    /// Runs `config` with seeds 1 to `seeds`.
    fn runs(&self, config: &Config, seeds: usize) -> Vec<Outcome> {
        let config = config.clone();
        self.simulate(seeds, move |seed| meshpace_sim::run(&config, seed))
    }

    /// Calls `simulate` with seeds 1 to `seeds` and returns the results in that order.
    fn simulate<T: Send + 'static>(&self, seeds: usize, simulate: impl Fn(u64) -> T + Send + Sync + 'static) -> Vec<T> {
        let seed_of = move |seed: &u64| simulate(*seed);
        let results = pool::start(self.jobs, &Arc::default(), (1..=seeds as u64).collect(), seed_of);
        let mut outcomes: Vec<(usize, T)> = Vec::new();
        for result in results {
            outcomes.push(result);
            (self.progress)(seeds - outcomes.len());
        }
        assert_eq!(outcomes.len(), seeds, "a run panicked");
        outcomes.sort_by_key(|(place, _)| *place);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// Goodput of the first flow for every seed, kbit/s.
    fn goodputs(&self, config: &Config, seeds: usize) -> Vec<f64> {
        self.runs(config, seeds).iter().map(|outcome| outcome.flows[0].goodput_bps / 1e3).collect()
    }
}

/// Verdict on a point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The rule holds.
    Met,
    /// The rule does not hold.
    NotMet,
    /// There is no rule; the point is shown for information.
    Shown,
}

impl From<bool> for Verdict {
    fn from(met: bool) -> Verdict {
        if met { Verdict::Met } else { Verdict::NotMet }
    }
}

/// Name of the source of references that were measured with ns-2.
pub const NS2: &str = "ns-2.35";

/// One compared value.
#[derive(Clone, Debug)]
pub struct Point {
    /// Name of the run and of the value.
    pub case: String,
    /// Value of the reference, if there is one.
    pub reference: Option<Sample>,
    /// Value of this simulator.
    pub ours: Sample,
    /// Short text of the rule.
    pub rule: String,
    /// Verdict: whether the rule holds.
    pub verdict: Verdict,
}

/// One comparison.
#[derive(Clone, Debug)]
pub struct Table {
    /// Name of the comparison on the command line.
    pub name: &'static str,
    /// Title of the comparison.
    pub title: &'static str,
    /// Source of the reference.
    pub source: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// Rule in words.
    pub rule: &'static str,
    /// Compared values.
    pub points: Vec<Point>,
}

impl Table {
    /// Number of points that meet their rule, and number of points that have a rule.
    pub fn score(&self) -> (usize, usize) {
        let count = |verdict| self.points.iter().filter(|point| point.verdict == verdict).count();
        (count(Verdict::Met), count(Verdict::Met) + count(Verdict::NotMet))
    }
}

/// A comparison that can be run.
pub struct Comparison {
    /// Name on the command line.
    pub name: &'static str,
    /// Function that runs it.
    pub run: fn(&Options) -> Vec<Table>,
}

/// All comparisons, in the order of the page.
pub const COMPARISONS: &[Comparison] = &[
    Comparison { name: "micro", run: micro::compare },
    Comparison { name: "chain_static_routes", run: chains::static_routes },
    Comparison { name: "chain_aodv", run: chains::aodv },
    Comparison { name: "chain_counts", run: chain_counts::compare },
    Comparison { name: "chain_paced_udp", run: paced_udp::compare },
    Comparison { name: "quiet_train", run: trains::compare },
    Comparison { name: "cross", run: competing::cross },
    Comparison { name: "parallel", run: competing::parallel },
    Comparison { name: "agents", run: agents::compare_goodput },
    Comparison { name: "estimator", run: agents::compare_estimator },
    Comparison { name: "saturation", run: saturation::compare },
    Comparison { name: "ieee", run: ns3::compare },
    Comparison { name: "ht", run: ht::compare },
    Comparison { name: "field", run: field::compare },
];

/// Reads the rows of a reference file. Panics on a faulty file, since the files are embedded.
fn rows<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> Vec<T> {
    csv::Reader::from_reader(text.as_bytes())
        .deserialize()
        .collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("embedded reference {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_cases_that_are_there() {
        let options = |sample| Options { seeds: None, jobs: 1, sample, progress: &|_| {} };
        assert_eq!(options(false).sampled(10..14, &[1, 3]), [10, 11, 12, 13]);
        assert_eq!(options(true).sampled(10..14, &[1, 3]), [11, 13]);
        assert!(std::panic::catch_unwind(|| options(true).sampled(10..14, &[4])).is_err());
    }

    #[test]
    fn a_point_that_is_not_met_is_counted_and_shouted() {
        let point = |mean: f64, verdict| Point {
            case: format!("case {mean}"),
            reference: Some(Sample::single(100.0)),
            ours: Sample::single(mean),
            rule: "1 %".into(),
            verdict,
        };
        let points =
            vec![point(100.5, Verdict::from(true)), point(110.0, Verdict::from(false)), point(150.0, Verdict::Shown)];
        let table =
            Table { name: "made-up", title: "Made up", source: NS2, unit: "kbit/s", rule: "Within 1 %.", points };
        assert_eq!(table.score(), (1, 2));
        let page = markdown(&Heading { command: "meshpace dev validate", version: "0" }, &[table]);
        assert!(page.contains("| case 110 | 100.0 | 110.0 | 1 | +10.00 % | 1 % | NOT MET |"), "{page}");
        assert!(page.contains("| 1 of 2 | 10.0 % |"), "the largest error leaves out what has no rule: {page}");
    }
}

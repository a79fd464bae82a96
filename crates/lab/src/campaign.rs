//! Runs of a campaign and their cost. [`InOrder`] restores the order of the campaign among results.

use crate::record::directory::{Manifest, host};
use crate::record::given::Given;
use crate::record::line::{FORMAT, Key};
use crate::record::{NodeRecord, Record, keys_of};
use crate::warmup;
use meshpace_scenario::estimate::Estimate;
use meshpace_scenario::{Point, Scenario};
use meshpace_sim::{MODEL_REVISION, Outcome};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Function that makes one run. The point is already drawn for the run's seed. Returns the outcome,
/// and records of single nodes if the record is to have them.
pub type Simulate = dyn Fn(&Point, Run) -> (Outcome, Option<Vec<NodeRecord>>) + Send + Sync;

/// A [`Simulate`] that only simulates, without a probe.
pub fn simulate(point: &Point, run: Run) -> (Outcome, Option<Vec<NodeRecord>>) {
    (meshpace_sim::run(&point.config, run.seed), None)
}

/// One run of a campaign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Position of the run in the campaign, from 0.
    pub index: usize,
    /// Number of its point.
    pub point: usize,
    /// Seed of the run.
    pub seed: u64,
}

impl Run {
    /// Key of the run among the runs of its campaign. `keys` are the keys of the campaign's points.
    pub fn key(&self, keys: &[String]) -> Key {
        (keys[self.point].clone(), self.seed)
    }
}

/// An amount of runs with their estimated cost.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work {
    /// Number of runs.
    pub runs: usize,
    /// Estimated cost, seconds of CPU time.
    pub cost_s: f64,
}

impl Work {
    /// Work of `runs`. `costs` has the cost of a run of each point.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Run>, costs: &[f64]) -> Work {
        let mut work = Work::default();
        runs.into_iter().for_each(|run| work += Work { runs: 1, cost_s: costs[run.point] });
        work
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Work) {
        self.runs += other.runs;
        self.cost_s += other.cost_s;
    }
}

/// A scenario with its seeds. Every point is run with `seeds` seeds, starting at `first_seed`.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// Scenario of the campaign.
    pub scenario: Scenario,
    /// First seed of every point.
    pub first_seed: u64,
    /// Number of seeds per point.
    pub seeds: u64,
}

impl Campaign {
    /// Manifest of the campaign before anything is run, with `jobs` runs at a time.
    pub fn manifest(&self, jobs: usize) -> Manifest {
        let scenario = &self.scenario;
        Manifest {
            scenario: scenario.name.clone(),
            scenario_sha256: scenario.digest.clone(),
            scenario_text: scenario.source.text.clone(),
            set: scenario.source.sets.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            format: FORMAT,
            model: MODEL_REVISION,
            first_seed: self.first_seed,
            seeds: self.seeds,
            points: scenario.points.len(),
            records: 0,
            failed_runs: 0,
            jobs,
            host: host(),
            wall_time_s: 0.0,
            rules: Vec::new(),
            experiment: None,
            quality: None,
            complete: false,
            sources: vec![Given::new(scenario, self.first_seed, self.seeds)],
            replaces: false,
        }
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.scenario.points.len() * self.seeds as usize
    }

    /// All runs of the campaign, in order.
    pub fn all(&self) -> impl Iterator<Item = Run> + '_ {
        (0..self.runs()).map(|index| self.run(index))
    }

    /// Run number `index`. All seeds of a point come before the next point.
    pub fn run(&self, index: usize) -> Run {
        let (point, seed) = (index / self.seeds as usize, index as u64 % self.seeds);
        Run { index, point, seed: self.first_seed + seed }
    }

    /// Point of a run, not yet drawn for its seed.
    ///
    /// # Errors
    /// The values of the point are valid one by one but not together.
    pub fn point(&self, run: Run) -> Result<Cow<'_, Point>, String> {
        self.scenario.points.build(run.point)
    }

    /// Keys that are swept, in the order in which points have them.
    pub fn swept(&self) -> Vec<String> {
        let of_point = |number: usize| self.scenario.points.values(number).into_iter().map(|(key, _)| key);
        keys_of((0..self.scenario.points.len()).map(of_point))
    }

    /// Keys of the points, in order.
    pub fn keys(&self) -> Vec<String> {
        (0..self.scenario.points.len()).map(|number| self.scenario.points.key(number)).collect()
    }

    /// Description of a run in words.
    pub fn describe(&self, run: Run) -> String {
        let values = self.scenario.points.values(run.point);
        let values: Vec<String> = values.iter().map(|(key, value)| format!("{key} = {value}, ")).collect();
        format!("run with {}seed {}", values.concat(), run.seed)
    }

    /// Estimated cost of each point.
    pub fn estimates(&self) -> Vec<Estimate> {
        self.scenario.points.estimates()
    }

    /// Estimated cost of a run of each point, seconds of CPU time.
    pub fn costs(&self) -> Vec<f64> {
        self.estimates().iter().map(|estimate| estimate.cpu_s).collect()
    }

    /// Work of all runs.
    pub fn work(&self) -> Work {
        let cost_s: f64 = self.costs().iter().sum();
        Work { runs: self.runs(), cost_s: cost_s * self.seeds as f64 }
    }

    /// Sorts the longest runs to the front, so that no long run is left for a single thread at the
    /// end. Runs of the same cost keep their order.
    pub(crate) fn longest_first(&self, runs: &mut [Run]) {
        let costs = self.costs();
        let cost = |run: &Run| costs[run.point];
        runs.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    }

    /// Makes one run.
    ///
    /// # Errors
    /// The reason why the run failed: its point cannot be drawn for the seed, or the message of a
    /// panic.
    pub(crate) fn make(&self, run: Run, simulate: &Simulate) -> Result<Record, String> {
        let undrawn = self.point(run)?;
        let point = undrawn.drawn(run.seed).map_err(|why| why.to_string())?;
        // A run shares no state that a panic could leave inconsistent.
        let made = catch_unwind(AssertUnwindSafe(|| {
            let point = settled(&point, run.seed);
            (simulate(&point, run), point.config.warmup)
        }));
        let ((outcome, nodes), warmup) = made.map_err(|panic| message_of(&*panic))?;
        let mut told = Cow::Borrowed(&*undrawn);
        if told.config.warmup != warmup {
            told.to_mut().config.warmup = warmup;
        }
        Ok(Record { nodes, ..Record::new(&self.scenario, &told, run.seed, &outcome) })
    }
}

/// A drawn point with the warm-up of its run, if the scenario leaves the warm-up to the run.
fn settled(point: &Point, seed: u64) -> Cow<'_, Point> {
    let mut point = Cow::Borrowed(point);
    if point.finds_warmup {
        let warmup = warmup::of_run(&point, seed);
        point.to_mut().config.warmup = warmup;
    }
    point
}

/// Reorders items that arrive in any order: they leave in the order of their numbers, from 0.
#[derive(Debug)]
pub struct InOrder<T> {
    next: usize,
    waiting: BTreeMap<usize, T>,
}

impl<T> Default for InOrder<T> {
    fn default() -> InOrder<T> {
        InOrder { next: 0, waiting: BTreeMap::new() }
    }
}

impl<T> InOrder<T> {
    /// Adds the item with the number `index`.
    pub fn put(&mut self, index: usize, item: T) {
        self.waiting.insert(index, item);
    }
}

impl<T> Iterator for InOrder<T> {
    type Item = T;

    /// The next item in order, or `None` if it has not arrived yet.
    fn next(&mut self) -> Option<T> {
        let item = self.waiting.remove(&self.next)?;
        self.next += 1;
        Some(item)
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panicked".to_owned())
}

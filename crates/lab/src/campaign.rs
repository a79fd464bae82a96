//! The runs of a campaign and what they cost; [`InOrder`] puts what came of them into the order of the campaign.

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

/// Makes one run of its point, as that is drawn for the run's seed: the outcome, and single nodes if they are to be in the record.
pub type Simulate = dyn Fn(&Point, Run) -> (Outcome, Option<Vec<NodeRecord>>) + Send + Sync;

/// The simulation alone, without a probe: a [`Simulate`].
pub fn simulate(point: &Point, run: Run) -> (Outcome, Option<Vec<NodeRecord>>) {
    (meshpace_sim::run(&point.config, run.seed), None)
}

/// One run of a campaign.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Its place in the campaign, from 0.
    pub index: usize,
    /// The number of its point.
    pub point: usize,
    /// Its seed.
    pub seed: u64,
}

impl Run {
    /// Its key among the runs of its campaign, whose points have these `keys`.
    pub fn key(&self, keys: &[String]) -> Key {
        (keys[self.point].clone(), self.seed)
    }
}

/// Runs, and what they cost by the estimate.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work {
    /// Number of runs.
    pub runs: usize,
    /// Seconds of CPU time.
    pub cost_s: f64,
}

impl Work {
    /// Runs of points with these `costs`.
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

/// A scenario with its seeds: every point with each of `seeds` seeds from `first_seed` on.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The scenario.
    pub scenario: Scenario,
    /// The first seed of every point.
    pub first_seed: u64,
    /// Seeds per point.
    pub seeds: u64,
}

impl Campaign {
    /// Its manifest before anything is run, with so many runs at a time.
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

    /// All its runs, in their order.
    pub fn all(&self) -> impl Iterator<Item = Run> + '_ {
        (0..self.runs()).map(|index| self.run(index))
    }

    /// Run number `index`, points first, seeds within.
    pub fn run(&self, index: usize) -> Run {
        let (point, seed) = (index / self.seeds as usize, index as u64 % self.seeds);
        Run { index, point, seed: self.first_seed + seed }
    }

    /// The point of a run, not drawn for its seed.
    ///
    /// # Errors
    /// If its values, each of which is possible, do not go together.
    pub fn point(&self, run: Run) -> Result<Cow<'_, Point>, String> {
        self.scenario.points.build(run.point)
    }

    /// The keys that are swept, in the order in which points have them.
    pub fn swept(&self) -> Vec<String> {
        let of_point = |number: usize| self.scenario.points.values(number).into_iter().map(|(key, _)| key);
        keys_of((0..self.scenario.points.len()).map(of_point))
    }

    /// The keys of its points, in their order.
    pub fn keys(&self) -> Vec<String> {
        (0..self.scenario.points.len()).map(|number| self.scenario.points.key(number)).collect()
    }

    /// A run in words.
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

    /// All its runs.
    pub fn work(&self) -> Work {
        let cost_s: f64 = self.costs().iter().sum();
        Work { runs: self.runs(), cost_s: cost_s * self.seeds as f64 }
    }

    /// Puts the longest runs first, so that none is left to the end with one thread at work. Runs that cost the same keep
    /// their order.
    pub(crate) fn longest_first(&self, runs: &mut [Run]) {
        let costs = self.costs();
        let cost = |run: &Run| costs[run.point];
        runs.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    }

    /// Makes one run.
    ///
    /// # Errors
    /// Why it failed: its point cannot be drawn for the seed, or the message of a panic.
    pub(crate) fn make(&self, run: Run, simulate: &Simulate) -> Result<Record, String> {
        let undrawn = self.point(run)?;
        let point = undrawn.drawn(run.seed).map_err(|why| why.to_string())?;
        // A run shares nothing that a panic could leave half changed.
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

/// A drawn point with the warm-up of its run, if the scenario leaves that to the run.
fn settled(point: &Point, seed: u64) -> Cow<'_, Point> {
    let mut point = Cow::Borrowed(point);
    if point.finds_warmup {
        let warmup = warmup::of_run(&point, seed);
        point.to_mut().config.warmup = warmup;
    }
    point
}

/// Items that come in any order and leave in that of their numbers, from 0.
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
    /// Takes what has the number `index`.
    pub fn put(&mut self, index: usize, item: T) {
        self.waiting.insert(index, item);
    }
}

impl<T> Iterator for InOrder<T> {
    type Item = T;

    /// The next in order, as soon as it is there.
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

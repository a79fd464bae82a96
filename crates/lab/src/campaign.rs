//! Many runs on several threads, the longest first; [`InOrder`] puts their results into the order of the campaign.

use crate::pool;
use crate::record::line::{Key, point_key};
use meshpace_scenario::estimate::Estimate;
use meshpace_scenario::{Point, Scenario};
use meshpace_sim::Outcome;
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Runs at most that are handed on together.
const AT_ONCE: usize = 256;

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
    /// What tells it from the others of its campaign, whose points have these `keys`.
    pub fn key(&self, keys: &[String]) -> Key {
        (keys[self.point].clone(), self.seed)
    }
}

/// Runs, and what they cost by the estimate.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Work {
    /// How many.
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
    /// What is run.
    pub scenario: Scenario,
    /// The first seed of every point.
    pub first_seed: u64,
    /// Seeds per point.
    pub seeds: u64,
}

/// How a campaign ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// All runs were made; so many of them failed.
    Complete {
        /// Runs that panicked.
        failed: usize,
    },
    /// `stop` was set; runs are missing.
    Stopped,
}

impl Campaign {
    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.scenario.points.len() * self.seeds as usize
    }

    /// Run number `index`, points first, seeds within.
    pub fn run(&self, index: usize) -> Run {
        let (point, seed) = (index / self.seeds as usize, index as u64 % self.seeds);
        Run { index, point, seed: self.first_seed + seed }
    }

    /// The point of a run, not drawn for its seed.
    pub fn point(&self, run: Run) -> &Point {
        &self.scenario.points[run.point]
    }

    /// The keys of its points, in their order.
    pub fn keys(&self) -> Vec<String> {
        let key = |point: &Point| point_key(&serde_json::Value::Object(point.values.iter().cloned().collect()));
        self.scenario.points.iter().map(key).collect()
    }

    /// A run in words.
    pub fn describe(&self, run: Run) -> String {
        let values = self.point(run).values.iter();
        let values: Vec<String> = values.map(|(key, value)| format!("{key} = {value}, ")).collect();
        format!("run with {}seed {}", values.concat(), run.seed)
    }

    /// What each point costs, about.
    pub fn estimates(&self) -> Vec<Estimate> {
        self.scenario.points.iter().map(Estimate::of).collect()
    }

    /// What a run of each point costs, about, seconds of CPU time.
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

    /// Makes `runs` on `jobs` threads, those begun first that take longest. `simulate` makes one (and may attach a probe of its
    /// own to it) of the point as it is drawn for the run's seed; a panic in it fails that run alone. `on_results` gets those that
    /// have ended since it was called last, whatever their places, each with its outcome or the panic's message; it ends the
    /// campaign by returning an error. `on_idle` is called about every 0.1 s.
    ///
    /// When `stop` is set the campaign ends without waiting for the runs under way: their threads end with the process.
    ///
    /// # Errors
    /// That of `on_results`.
    pub fn each<E>(
        self: &Arc<Self>,
        jobs: usize,
        stop: &Arc<AtomicBool>,
        mut runs: Vec<Run>,
        simulate: impl Fn(&Point, Run) -> Outcome + Send + Sync + 'static,
        mut on_results: impl FnMut(Vec<(Run, Result<Outcome, String>)>) -> Result<(), E>,
        mut on_idle: impl FnMut(),
    ) -> Result<End, E> {
        // One thread gains nothing, and a reader waits for the first results.
        if jobs > 1 {
            self.longest_first(&mut runs);
        }
        let (mut left, mut failed) = (runs.len(), 0);
        let campaign = Arc::clone(self);
        let results = pool::start(jobs, stop, runs, move |&run: &Run| (run, campaign.make(run, &simulate)));
        while left > 0 {
            if stop.load(Ordering::Relaxed) {
                return Ok(End::Stopped);
            }
            match results.recv_timeout(Duration::from_millis(100)) {
                Ok(first) => {
                    let ready = std::iter::once(first).chain(results.try_iter()).take(AT_ONCE);
                    let ended: Vec<_> = ready.map(|(_, ended)| ended).collect();
                    left -= ended.len();
                    failed += ended.iter().filter(|(_, result)| result.is_err()).count();
                    if let Err(error) = on_results(ended) {
                        stop.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => on_idle(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(End::Stopped),
            }
        }
        Ok(End::Complete { failed })
    }

    /// Makes one run; the panic's message if it fails.
    pub(crate) fn make(&self, run: Run, simulate: &impl Fn(&Point, Run) -> Outcome) -> Result<Outcome, String> {
        let point = self.point(run).drawn(run.seed).map_err(|why| why.to_string())?;
        // A run shares nothing that a panic could leave half changed.
        let result = catch_unwind(AssertUnwindSafe(|| simulate(&point, run)));
        result.map_err(|panic| message_of(&*panic))
    }
}

/// What comes in any order leaves in that of its numbers, from 0.
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

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_scenario::Source;

    fn campaign(points: usize, seeds: u64) -> Arc<Campaign> {
        let hops: Vec<String> = (1..=points).map(|hops| hops.to_string()).collect();
        let text = format!("[[flow]]\n[sweep]\n\"topology.hops\" = [{}]\n", hops.join(", "));
        let source = Source { name: "test".to_owned(), text, sets: Vec::new() };
        let scenario = Scenario::read(source, std::path::Path::new("."), "test").unwrap();
        Arc::new(Campaign { scenario, first_seed: 10, seeds })
    }

    fn outcome(frames: u64) -> Outcome {
        Outcome {
            counters: meshpace_sim::engine::Counters::default(),
            measured_s: 1.0,
            aggregate_goodput_bps: 0.0,
            jain: 1.0,
            jain_2s: 1.0,
            idle_windows: 0,
            retransmission_index: 0.0,
            frames,
            broadcasts: 0,
            sensed: 0,
            fingerprint: 0,
            flows: Vec::new(),
            ended_s: 1.0,
            series: None,
            batches: Vec::new(),
        }
    }

    /// Point, seed, and what came of it.
    type Seen = (usize, u64, Result<u64, String>);

    fn all(campaign: &Campaign) -> Vec<Run> {
        (0..campaign.runs()).map(|index| campaign.run(index)).collect()
    }

    fn collect(jobs: usize, simulate: impl Fn(&Point, Run) -> Outcome + Send + Sync + 'static) -> (Vec<Seen>, End) {
        let (mut order, mut seen) = (InOrder::default(), Vec::new());
        let campaign = campaign(3, 4);
        let end = campaign.each(
            jobs,
            &Arc::default(),
            all(&campaign),
            simulate,
            |ended| {
                for (run, result) in ended {
                    order.put(run.index, (run.point, run.seed, result.map(|outcome| outcome.frames)));
                }
                seen.extend(order.by_ref());
                Ok::<(), ()>(())
            },
            || {},
        );
        (seen, end.unwrap())
    }

    #[test]
    fn results_come_in_order_though_the_first_run_is_the_slowest() {
        let (seen, end) = collect(2, |_, run| {
            if run.index == 0 {
                // Long enough for the other thread to finish everything else.
                let mut work = 0u64;
                (0..20_000_000u64).for_each(|i| work = std::hint::black_box(work ^ i));
            }
            outcome(run.index as u64)
        });
        let order: Vec<_> = seen.iter().map(|(point, seed, _)| (*point, *seed)).collect();
        let expected: Vec<_> = (0..3).flat_map(|point| (10..14).map(move |seed| (point, seed))).collect();
        assert_eq!(order, expected);
        assert_eq!(end, End::Complete { failed: 0 });
    }

    #[test]
    fn long_runs_start_first() {
        let campaign = campaign(3, 4);
        // Chains of one, two and three hops: the more nodes, the more patches and listeners.
        let mut runs = all(&campaign);
        campaign.longest_first(&mut runs);
        let places: Vec<usize> = runs.iter().map(|run| run.index).collect();
        assert_eq!(places, [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3], "by points, in the order of seeds within");
    }

    #[test]
    fn a_panic_fails_its_run_alone() {
        let (seen, end) = collect(2, |_, run| {
            assert!(run.index != 5, "run five is broken");
            outcome(1)
        });
        assert_eq!(end, End::Complete { failed: 1 });
        assert_eq!(seen.len(), 12);
        for (index, (_, _, result)) in seen.iter().enumerate() {
            match result {
                Ok(_) => assert_ne!(index, 5),
                Err(why) => assert_eq!((index, why.as_str()), (5, "run five is broken")),
            }
        }
    }

    #[test]
    fn a_reader_that_is_gone_ends_the_campaign() {
        let campaign = campaign(3, 4);
        let end = campaign.each(1, &Arc::default(), all(&campaign), |_, _| outcome(1), |_| Err("closed"), || {});
        assert_eq!(end, Err("closed"));
    }

    #[test]
    fn a_stop_ends_the_campaign_without_its_results() {
        let stop = Arc::new(AtomicBool::new(true));
        let campaign = campaign(1, 1);
        let end = campaign.each(1, &stop, all(&campaign), |_, _| outcome(1), |_| Err("none expected"), || {});
        assert_eq!(end, Ok(End::Stopped));
    }
}

//! Many runs on several threads; results come in the order of the runs, whatever finishes first.

use meshpace_scenario::estimate::Estimate;
use meshpace_scenario::{Point, Scenario};
use meshpace_sim::Outcome;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

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

    /// What each point costs, about.
    pub fn estimates(&self) -> Vec<Estimate> {
        self.scenario.points.iter().map(Estimate::of).collect()
    }

    /// Puts the longest runs first, so that none is left to the end with one thread at work. Runs that cost the same keep
    /// their order.
    fn longest_first(&self, runs: &mut [Run]) {
        let estimates = self.estimates();
        let cost = |run: &Run| estimates[run.point].cpu_s;
        runs.sort_by(|a, b| cost(b).total_cmp(&cost(a)));
    }

    /// Makes all runs on `jobs` threads, the longest first. `simulate` makes one (and may attach a probe of its own to it) of
    /// the point as it is drawn for the run's seed; a panic in it fails that run alone. `on_result` gets every run in order,
    /// as soon as those before it are done, with its outcome or the panic's message; it ends the campaign by returning an error. `on_idle` is called about every 0.1 s.
    ///
    /// When `stop` is set the campaign ends without waiting for the runs under way: their threads end with the process.
    ///
    /// # Errors
    /// That of `on_result`.
    pub fn execute<E>(
        self: &Arc<Self>,
        jobs: usize,
        stop: &Arc<AtomicBool>,
        simulate: impl Fn(&Point, Run) -> Outcome + Send + Sync + 'static,
        mut on_result: impl FnMut(Run, Result<Outcome, String>) -> Result<(), E>,
        mut on_idle: impl FnMut(),
    ) -> Result<End, E> {
        let mut runs: Vec<Run> = (0..self.runs()).map(|index| self.run(index)).collect();
        // One thread gains nothing, and a reader waits for the first results.
        if jobs > 1 {
            self.longest_first(&mut runs);
        }
        let results = self.start(jobs, stop, runs, simulate);
        let mut waiting = BTreeMap::new();
        let (mut next, mut failed) = (0, 0);
        while next < self.runs() {
            if stop.load(Ordering::Relaxed) {
                return Ok(End::Stopped);
            }
            match results.recv_timeout(Duration::from_millis(100)) {
                Ok((run, result)) => drop(waiting.insert(run.index, result)),
                Err(mpsc::RecvTimeoutError::Timeout) => on_idle(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(End::Stopped),
            }
            while let Some(result) = waiting.remove(&next) {
                failed += usize::from(result.is_err());
                if let Err(error) = on_result(self.run(next), result) {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                next += 1;
            }
        }
        Ok(End::Complete { failed })
    }

    /// Makes `runs` on `jobs` threads, those begun first that take longest. `on_result` gets each as it ends, whatever its
    /// place; otherwise as [`Campaign::execute`].
    ///
    /// # Errors
    /// That of `on_result`.
    pub fn each<E>(
        self: &Arc<Self>,
        jobs: usize,
        stop: &Arc<AtomicBool>,
        mut runs: Vec<Run>,
        simulate: impl Fn(&Point, Run) -> Outcome + Send + Sync + 'static,
        mut on_result: impl FnMut(Run, Result<Outcome, String>) -> Result<(), E>,
        mut on_idle: impl FnMut(),
    ) -> Result<End, E> {
        let (mut left, mut failed) = (runs.len(), 0);
        self.longest_first(&mut runs);
        let results = self.start(jobs, stop, runs, simulate);
        while left > 0 {
            if stop.load(Ordering::Relaxed) {
                return Ok(End::Stopped);
            }
            match results.recv_timeout(Duration::from_millis(100)) {
                Ok((run, result)) => {
                    left -= 1;
                    failed += usize::from(result.is_err());
                    if let Err(error) = on_result(run, result) {
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

    fn start(
        self: &Arc<Self>,
        jobs: usize,
        stop: &Arc<AtomicBool>,
        runs: Vec<Run>,
        simulate: impl Fn(&Point, Run) -> Outcome + Send + Sync + 'static,
    ) -> mpsc::Receiver<(Run, Result<Outcome, String>)> {
        let (sender, results) = mpsc::channel();
        let next = Arc::new(AtomicUsize::new(0));
        let (simulate, runs) = (Arc::new(simulate), Arc::new(runs));
        for _ in 0..jobs.clamp(1, runs.len().max(1)) {
            let (campaign, simulate, runs) = (Arc::clone(self), Arc::clone(&simulate), Arc::clone(&runs));
            let (next, stop, sender) = (Arc::clone(&next), Arc::clone(stop), sender.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Some(&run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let result = campaign.point(run).drawn(run.seed).map_err(|why| why.to_string()).and_then(|point| {
                        // A run shares nothing that a panic could leave half changed.
                        let result = catch_unwind(AssertUnwindSafe(|| simulate(&point, run)));
                        result.map_err(|panic| message_of(&*panic))
                    });
                    if sender.send((run, result)).is_err() {
                        break;
                    }
                }
            });
        }
        results
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

    fn collect(jobs: usize, simulate: impl Fn(&Point, Run) -> Outcome + Send + Sync + 'static) -> (Vec<Seen>, End) {
        let mut seen = Vec::new();
        let end = campaign(3, 4).execute(
            jobs,
            &Arc::default(),
            simulate,
            |run, result| {
                seen.push((run.point, run.seed, result.map(|outcome| outcome.frames)));
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
        let mut runs: Vec<Run> = (0..campaign.runs()).map(|index| campaign.run(index)).collect();
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
        let end = campaign(3, 4).execute(1, &Arc::default(), |_, _| outcome(1), |_, _| Err("closed"), || {});
        assert_eq!(end, Err("closed"));
    }

    #[test]
    fn a_stop_ends_the_campaign_without_its_results() {
        let stop = Arc::new(AtomicBool::new(true));
        let end = campaign(1, 1).execute(1, &stop, |_, _| outcome(1), |_, _| Err("none expected"), || {});
        assert_eq!(end, Ok(End::Stopped));
    }
}

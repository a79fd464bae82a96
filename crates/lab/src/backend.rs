//! Backends that make the runs of a campaign: on threads of this process, or in other processes
//! ([`crate::workers`]).

use crate::campaign::{self, Campaign, Run, Simulate};
use crate::pool;
use crate::record::Record;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Largest number of runs that are passed on together.
const AT_ONCE: usize = 256;

/// How the making of runs ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// All runs were made. Some of them may have failed.
    Complete,
    /// `stop` was set before all runs were made.
    Stopped,
}

/// Receiver of reports while a backend is at work.
pub trait Watch {
    /// Reports that runs have ended, each with its record or the reason why it failed. Runs come in
    /// any order. Runs that were ready together, such as those of one chunk, are reported together.
    /// A receiver that keeps records must have these on disk before it counts the runs as done.
    ///
    /// # Errors
    /// A record cannot be kept. This ends the campaign.
    fn on_runs(&mut self, made: Vec<(Run, Result<Record, String>)>) -> io::Result<()>;

    /// Called about every 0.1 s.
    fn on_idle(&mut self) {}
}

/// Something that makes runs.
pub trait Backend {
    /// Makes the runs of `todo` and reports each one to `watch` when it ends.
    ///
    /// # Errors
    /// An error of `watch`, or the reason why the backend cannot make runs. Runs that were already
    /// reported are valid.
    fn make(&mut self, campaign: &Arc<Campaign>, todo: Vec<Run>, watch: &mut dyn Watch) -> io::Result<End>;
}

/// Threads of this process. They begin with the runs that take longest.
pub struct Threads<'a> {
    /// Number of runs at a time.
    pub jobs: usize,
    /// Set to stop. Runs in progress are not waited for; their threads end with the process.
    pub stop: &'a Arc<AtomicBool>,
    /// Function that makes each run. A panic in it fails only that run.
    pub simulate: Arc<Simulate>,
}

impl<'a> Threads<'a> {
    /// Creates threads that only simulate, without a probe.
    pub fn new(jobs: usize, stop: &'a Arc<AtomicBool>) -> Threads<'a> {
        Threads { jobs, stop, simulate: Arc::new(campaign::simulate) }
    }
}

impl Backend for Threads<'_> {
    fn make(&mut self, campaign: &Arc<Campaign>, mut todo: Vec<Run>, watch: &mut dyn Watch) -> io::Result<End> {
        // With one thread the order saves no time, and a reader waits for the first results.
        if self.jobs > 1 {
            campaign.longest_first(&mut todo);
        }
        let mut left = todo.len();
        let (making, simulate) = (Arc::clone(campaign), Arc::clone(&self.simulate));
        let results = pool::start(self.jobs, self.stop, todo, move |&run: &Run| (run, making.make(run, &*simulate)));
        while left > 0 {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(End::Stopped);
            }
            match results.recv_timeout(Duration::from_millis(100)) {
                Ok(first) => {
                    let ready = std::iter::once(first).chain(results.try_iter()).take(AT_ONCE);
                    let made: Vec<_> = ready.map(|(_, made)| made).collect();
                    left -= made.len();
                    if let Err(error) = watch.on_runs(made) {
                        self.stop.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
                Err(mpsc::RecvTimeoutError::Timeout) => watch.on_idle(),
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(End::Stopped),
            }
        }
        Ok(End::Complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::campaign::InOrder;
    use meshpace_scenario::{Point, Scenario, Source};
    use meshpace_sim::Outcome;

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

    /// Receiver that notes the runs as reported, and their results in the order of the campaign.
    #[derive(Default)]
    struct Seen {
        order: InOrder<(Run, Result<u64, String>)>,
        runs: Vec<(Run, Result<u64, String>)>,
        /// True if the receiver refuses results.
        is_closed: bool,
    }

    impl Watch for Seen {
        fn on_runs(&mut self, made: Vec<(Run, Result<Record, String>)>) -> io::Result<()> {
            if self.is_closed {
                return Err(io::Error::other("closed"));
            }
            for (run, result) in made {
                self.order.put(run.index, (run, result.map(|record| record.frames)));
            }
            self.runs.extend(self.order.by_ref());
            Ok(())
        }
    }

    fn make(
        jobs: usize,
        stop: &Arc<AtomicBool>,
        seen: &mut Seen,
        simulate: impl Fn(Run) -> Outcome + Send + Sync + 'static,
    ) -> io::Result<End> {
        let campaign = campaign(3, 4);
        let simulate = Arc::new(move |_: &Point, run: Run| (simulate(run), None));
        Threads { jobs, stop, simulate }.make(&campaign, campaign.all().collect(), seen)
    }

    #[test]
    fn results_come_in_order_though_the_first_run_is_the_slowest() {
        let mut seen = Seen::default();
        let end = make(2, &Arc::default(), &mut seen, |run| {
            if run.index == 0 {
                // Long enough for the other thread to finish everything else.
                let mut work = 0u64;
                (0..20_000_000u64).for_each(|i| work = std::hint::black_box(work ^ i));
            }
            outcome(run.index as u64)
        });
        assert_eq!(end.unwrap(), End::Complete);
        let order: Vec<_> = seen.runs.iter().map(|(run, _)| (run.point, run.seed)).collect();
        let expected: Vec<_> = (0..3).flat_map(|point| (10..14).map(move |seed| (point, seed))).collect();
        assert_eq!(order, expected);
    }

    #[test]
    fn long_runs_start_first() {
        let campaign = campaign(3, 4);
        // Chains of one, two and three hops: the more nodes, the more patches and listeners.
        let mut runs: Vec<Run> = campaign.all().collect();
        campaign.longest_first(&mut runs);
        let places: Vec<usize> = runs.iter().map(|run| run.index).collect();
        assert_eq!(places, [8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3], "by points, in the order of seeds within");
    }

    #[test]
    fn a_panic_fails_its_run_alone() {
        let mut seen = Seen::default();
        let end = make(2, &Arc::default(), &mut seen, |run| {
            assert!(run.index != 5, "run five is broken");
            outcome(1)
        });
        assert_eq!((end.unwrap(), seen.runs.len()), (End::Complete, 12));
        for (index, (_, result)) in seen.runs.iter().enumerate() {
            match result {
                Ok(_) => assert_ne!(index, 5),
                Err(why) => assert_eq!((index, why.as_str()), (5, "run five is broken")),
            }
        }
    }

    #[test]
    fn a_reader_that_is_gone_ends_the_making() {
        let (stop, mut seen) = (Arc::default(), Seen { is_closed: true, ..Seen::default() });
        let end = make(1, &stop, &mut seen, |_| outcome(1));
        assert_eq!(end.unwrap_err().to_string(), "closed");
        assert!(stop.load(Ordering::Relaxed), "threads begin no other run");
    }

    #[test]
    fn a_stop_ends_the_making_without_its_results() {
        let (stop, mut seen) = (Arc::new(AtomicBool::new(true)), Seen::default());
        assert_eq!(make(1, &stop, &mut seen, |_| outcome(1)).unwrap(), End::Stopped);
        assert!(seen.runs.is_empty());
    }
}

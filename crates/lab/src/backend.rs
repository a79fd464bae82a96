//! Where the runs of a campaign are made: on threads of this process, or by others ([`crate::workers`]).

use crate::campaign::{Campaign, End, Run};
use crate::record::Record;
use meshpace_scenario::Point;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a backend tells while it is at work.
pub trait Watch {
    /// A run has ended: its record, or why it failed. Runs come in any order.
    ///
    /// # Errors
    /// If the record cannot be kept; that ends the campaign.
    fn on_run(&mut self, run: Run, result: Result<Record, String>) -> io::Result<()>;

    /// About every 0.1 s.
    fn on_idle(&mut self) {}
}

/// Makes runs.
pub trait Backend {
    /// Makes the runs of `todo` and tells `watch` of each as it ends.
    ///
    /// # Errors
    /// That of `watch`, or what keeps the backend from making runs; those it was told of are good.
    fn make(&mut self, campaign: &Arc<Campaign>, todo: Vec<Run>, watch: &mut dyn Watch) -> io::Result<End>;
}

/// Threads of this process.
#[derive(Debug)]
pub struct Threads<'a> {
    /// Runs at a time.
    pub jobs: usize,
    /// Set to stop.
    pub stop: &'a Arc<AtomicBool>,
}

impl Backend for Threads<'_> {
    fn make(&mut self, campaign: &Arc<Campaign>, todo: Vec<Run>, watch: &mut dyn Watch) -> io::Result<End> {
        let simulate = |point: &Point, run: Run| meshpace_sim::run(&point.config, run.seed);
        let watch = std::cell::RefCell::new(watch);
        let on_result = |run: Run, result: Result<meshpace_sim::Outcome, String>| {
            let record = result.map(|outcome| Record::new(&campaign.scenario, campaign.point(run), run.seed, &outcome));
            watch.borrow_mut().on_run(run, record)
        };
        campaign.each(self.jobs, self.stop, todo, simulate, on_result, || watch.borrow_mut().on_idle())
    }
}

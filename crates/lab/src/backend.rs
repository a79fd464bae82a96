//! Where the runs of a campaign are made: on threads of this process, or by other processes ([`crate::workers`]).

use crate::campaign::{Campaign, End, Run};
use crate::record::Record;
use meshpace_scenario::Point;
use meshpace_sim::Outcome;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a backend tells while it is at work.
pub trait Watch {
    /// Runs have ended: for each its record, or why it failed. They come in any order, and together those that were ready
    /// together, such as the runs of one chunk. Whoever keeps records has these on the disk when it counts them as done.
    ///
    /// # Errors
    /// If a record cannot be kept; that ends the campaign.
    fn on_runs(&mut self, made: Vec<(Run, Result<Record, String>)>) -> io::Result<()>;

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
        campaign.each(
            self.jobs,
            self.stop,
            todo,
            simulate,
            |ended| watch.borrow_mut().on_runs(records(campaign, ended)),
            || watch.borrow_mut().on_idle(),
        )
    }
}

/// The records of runs that have ended.
pub fn records(campaign: &Campaign, ended: Vec<(Run, Result<Outcome, String>)>) -> Vec<(Run, Result<Record, String>)> {
    let record = |(run, result): (Run, Result<Outcome, String>)| {
        let made = |outcome| Record::new(&campaign.scenario, campaign.point(run), run.seed, &outcome);
        (run, result.map(made))
    };
    ended.into_iter().map(record).collect()
}

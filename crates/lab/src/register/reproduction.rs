//! Runs of one experiment in a directory of their own. Runs of an earlier start are reused.

use super::data::Until;
use super::judge;
use super::observations::Observations;
use super::replication;
use super::{Register, Runs};
use crate::backend::Backend;
use crate::campaign::{Campaign, Run, Work};
use crate::record::directory::Manifest;
use crate::record::store::Store;
use crate::record::{PARQUET, Record, TABLE, csv, parquet, write_whole_by};
use crate::session::{Broken, Observer, Session};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Where and how the runs of an experiment are made.
#[derive(Debug)]
pub struct Reproduction<'a> {
    /// Directory of the records.
    pub directory: PathBuf,
    /// Register that the experiment comes from.
    pub register: &'a Register,
    /// Quality of the runs, "quick" or "paper". `None` if the number of seeds was given by the
    /// user.
    pub quality: Option<&'static str>,
    /// Whether all runs are made again, even those that have records.
    pub force: bool,
    /// Number of runs that are made at a time, for the manifest.
    pub jobs: usize,
}

/// Receiver of reports on the progress of a reproduction.
pub trait Listener: Observer {
    /// Reports the amount of work that an earlier start has already done.
    fn on_known(&mut self, work: Work);
    /// Reports the amount of work that is added because an interval is still too wide.
    fn on_more(&mut self, work: Work);
    /// Prints a sentence for people.
    fn say(&mut self, sentence: &str);
}

impl Reproduction<'_> {
    /// Makes the runs that are missing. Returns how many runs failed.
    ///
    /// # Errors
    /// The reason why the reproduction cannot be finished.
    pub fn make(&self, runs: Runs, backend: &mut dyn Backend, listener: &mut dyn Listener) -> Result<usize, Broken> {
        let times = runs.times;
        let campaign = Arc::new(Campaign { first_seed: 1, seeds: runs.scenario.seeds, scenario: runs.scenario });
        let manifest = Manifest {
            experiment: Some(runs.id.clone()),
            quality: self.quality.map(str::to_owned),
            ..campaign.manifest(self.jobs)
        };
        let mut session = Session::open(Arc::clone(&campaign), &self.directory, &manifest, self.force)?;
        session.store().iter().flat_map(|store| store.damaged()).for_each(|what| listener.say(what));
        // Points with zero seeds are not part of these runs. Their records from an earlier start
        // are kept.
        let mut seeds: Vec<u64> = runs.is_run.iter().map(|is_run| if *is_run { campaign.seeds } else { 0 }).collect();
        let mut is_first = true;
        let failed = loop {
            let every = seeds.iter().enumerate().flat_map(|(point, seeds)| (1..=*seeds).map(move |seed| (point, seed)));
            let every = every.enumerate().map(|(index, (point, seed))| Run { index, point, seed });
            let (known, todo) = session.partition(every);
            // Work of an earlier start counts as done; work that an interval still needs is added.
            match std::mem::replace(&mut is_first, false) {
                true => listener.on_known(session.work(&known)),
                false => listener.on_more(session.work(&todo)),
            }
            // In a finished campaign every point already has all the seeds that it needs.
            if todo.is_empty() && session.store().is_some_and(Store::is_finished) {
                let place = self.directory.display();
                listener.say(&format!(
                    "{}: the records in {place} are complete; only the report is written again",
                    runs.id
                ));
                return Ok(0);
            }
            let failed = session.make(todo, backend, listener)?;
            let Some(store) = session.store().filter(|_| failed == 0) else { break failed };
            let keys = session.keys();
            let is_wanting = match &runs.until {
                Some((rule, level)) => self.add_seeds(rule, *level, &runs.id, keys, &mut seeds, store)?,
                None => false,
            };
            if !is_wanting && !self.add_for_verdicts(&runs.id, times, &campaign, keys, &mut seeds, store)? {
                break failed;
            }
        };
        session
            .store()
            .map_or(Ok(()), |store| self.write_tables(store, session.keys(), &session.campaign().swept()))?;
        session.finish(self.jobs)?;
        Ok(failed)
    }

    /// Writes the records as tables, one record after the other, so that memory does not grow with
    /// the number of records.
    fn write_tables(&self, store: &Store, points: &[String], swept: &[String]) -> io::Result<()> {
        let records = || store.in_order(points).map(|line| Ok(Record::read(&line?)?));
        write_whole_by(&self.directory, TABLE, |file| {
            let mut header = true;
            records().try_for_each(|record| {
                file.write_all(csv::rows(&record?, swept, std::mem::take(&mut header))?.as_bytes())
            })
        })?;
        write_whole_by(&self.directory, PARQUET, |file| parquet::write(file, swept, records))
    }

    /// Adds one seed to each point whose interval is too wide. Returns whether there is such a
    /// point.
    fn add_seeds(
        &self,
        rule: &Until,
        level: f64,
        id: &str,
        keys: &[String],
        seeds: &mut [u64],
        store: &Store,
    ) -> io::Result<bool> {
        let Some(metric) = self.register.find(id).and_then(|experiment| experiment.published.metric(&rule.metric))
        else {
            return Ok(false);
        };
        let mut is_wanting = false;
        for (key, seeds) in keys.iter().zip(seeds).filter(|(_, seeds)| **seeds > 0) {
            if !replication::is_enough(rule, &metric, level, &kept(store, key, *seeds)?) {
                *seeds += 1;
                is_wanting = true;
            }
        }
        Ok(is_wanting)
    }

    /// Raises the seeds of each point whose claim or number cannot be told to `times` the
    /// campaign's seeds. All experiments that show these runs are considered. Returns whether there
    /// is such a point. Like a rule of replication, the decision depends on the records alone.
    fn add_for_verdicts(
        &self,
        id: &str,
        times: u64,
        campaign: &Campaign,
        keys: &[String],
        seeds: &mut [u64],
        store: &Store,
    ) -> io::Result<bool> {
        let most = times * campaign.seeds;
        if seeds.iter().all(|seeds| *seeds == 0 || *seeds >= most) {
            return Ok(false);
        }
        let mut records = Vec::new();
        for (key, seeds) in keys.iter().zip(&*seeds) {
            records.extend(kept(store, key, *seeds)?);
        }
        let records = Arc::new(records);
        let mut is_wanting = false;
        for experiment in &self.register.experiments {
            let owner = self.register.owner(experiment).ok().flatten();
            if owner.is_none_or(|owner| owner.published.id != id) {
                continue;
            }
            let published = &experiment.published;
            let untold = judge::untold(&Observations::new(published, Arc::clone(&records)));
            for (point, seeds) in campaign.scenario.points.iter().zip(&mut *seeds) {
                let values = point.values.iter().cloned().collect();
                let is_of = |untold: &judge::Untold| {
                    published.panels.get(untold.panel).is_none_or(|panel| panel.has(&values))
                        && published.curve(&untold.curve).is_some_and(|curve| curve.has(&values))
                        && untold.x.is_none_or(|x| {
                            published.x.as_ref().and_then(|axis| axis.of(&values)).is_none_or(|own| own.value == x)
                        })
                };
                if *seeds > 0 && *seeds < most && untold.iter().any(is_of) {
                    *seeds = most;
                    is_wanting = true;
                }
            }
        }
        Ok(is_wanting)
    }
}

/// Records of the first `seeds` seeds of a point.
fn kept(store: &Store, key: &str, seeds: u64) -> io::Result<Vec<Record>> {
    let record = |seed| {
        let line = store.line(&(key.to_owned(), seed)).transpose()?;
        Some(line.and_then(|line| Ok(Record::read(&line)?)))
    };
    (1..=seeds).filter_map(record).collect()
}

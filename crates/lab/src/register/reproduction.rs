//! The runs of one experiment, made or taken over from an earlier start, in a directory of their own.

use super::data::Until;
use super::judge;
use super::observations::Observations;
use super::replication;
use super::{Register, Runs};
use crate::backend::{Backend, Watch};
use crate::campaign::{Campaign, End, Run, Work};
use crate::record::directory::Manifest;
use crate::record::store::Store;
use crate::record::{PARQUET, Record, TABLE, csv, parquet, write_whole_by};
use serde_json::Value;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Where the runs of an experiment go, and how.
#[derive(Debug)]
pub struct Reproduction<'a> {
    /// The directory of its records.
    pub directory: PathBuf,
    /// Where the experiment is from.
    pub register: &'a Register,
    /// "quick" or "paper"; none if the seeds were given.
    pub quality: Option<&'static str>,
    /// Whether all runs are made anew.
    pub force: bool,
    /// Runs at a time, for the manifest.
    pub jobs: usize,
}

/// What a reproduction tells while it is at work.
pub trait Listener {
    /// These runs were there from an earlier start.
    fn on_known(&mut self, work: Work);
    /// So many more are needed for an interval that is narrow enough.
    fn on_more(&mut self, work: Work);
    /// A run of that cost has ended and is kept; why, if it failed.
    fn on_run(&mut self, campaign: &Campaign, run: Run, cost_s: f64, failure: Option<&str>);
    /// About every 0.1 s.
    fn on_idle(&mut self);
    /// A sentence for people.
    fn say(&mut self, sentence: &str);
}

/// Why runs are missing.
#[derive(Debug)]
pub enum Broken {
    /// It was stopped; so many runs are kept.
    Stopped {
        /// Runs in the directory.
        kept: usize,
    },
    /// The store cannot be opened or written, or the backend makes no more runs.
    Store(io::Error),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Store(error)
    }
}

/// Puts records where they belong.
struct Keeper<'a> {
    campaign: &'a Campaign,
    keys: &'a [String],
    costs: &'a [f64],
    store: &'a mut Store,
    listener: &'a mut dyn Listener,
}

impl Watch for Keeper<'_> {
    fn on_runs(&mut self, made: Vec<(Run, Result<Record, String>)>) -> io::Result<()> {
        for (run, result) in &made {
            if let Ok(record) = result {
                self.store.add(run.key(self.keys), &record.json_line())?;
            }
        }
        self.store.sync()?;
        for (run, result) in made {
            self.listener.on_run(self.campaign, run, self.costs[run.point], result.err().as_deref());
        }
        Ok(())
    }

    fn on_idle(&mut self) {
        self.listener.on_idle();
    }
}

impl Reproduction<'_> {
    /// Makes the runs that are missing; returns how many failed.
    ///
    /// # Errors
    /// What keeps it from the end.
    pub fn make(&self, runs: Runs, backend: &mut dyn Backend, listener: &mut dyn Listener) -> Result<usize, Broken> {
        #[expect(clippy::disallowed_methods, reason = "wall time for the manifest, never for a record")]
        let begun = Instant::now();
        let (base, times) = (runs.work(), runs.times);
        let campaign = Arc::new(Campaign { first_seed: 1, seeds: runs.scenario.seeds, scenario: runs.scenario });
        let mut manifest = Manifest {
            experiment: Some(runs.id.clone()),
            quality: self.quality.map(str::to_owned),
            ..Manifest::of(&campaign, self.jobs)
        };
        let mut store = Store::open(&self.directory, &manifest, self.force)?;
        store.damaged().iter().for_each(|what| listener.say(what));
        let (keys, costs) = (campaign.keys(), campaign.costs());
        let mut seeds = vec![campaign.seeds; keys.len()];
        let mut failed = 0;
        let mut is_first = true;
        loop {
            let every = (0..keys.len()).flat_map(|point| (1..=seeds[point]).map(move |seed| (point, seed)));
            let todo: Vec<Run> = every
                .filter(|(point, seed)| !store.has(&(keys[*point].clone(), *seed)))
                .enumerate()
                .map(|(index, (point, seed))| Run { index, point, seed })
                .collect();
            // What an earlier start has left counts as done; what an interval still needs comes on top.
            let left = Work::of(&todo, &costs);
            match std::mem::replace(&mut is_first, false) {
                true => listener.on_known(Work { runs: base.runs - left.runs, cost_s: base.cost_s - left.cost_s }),
                false => listener.on_more(left),
            }
            // Of a finished campaign every point has the seeds it needs.
            if todo.is_empty() && store.is_finished() {
                break;
            }
            let mut keeper =
                Keeper { campaign: &campaign, keys: &keys, costs: &costs, store: &mut store, listener: &mut *listener };
            match backend.make(&campaign, todo, &mut keeper)? {
                End::Complete { failed: number } => failed = number,
                End::Stopped => return Err(Broken::Stopped { kept: store.len() }),
            }
            if failed > 0 {
                break;
            }
            let is_wanting = match &runs.until {
                Some((rule, level)) => self.add_seeds(rule, *level, &runs.id, &keys, &mut seeds, &store)?,
                None => false,
            };
            if !is_wanting && !self.add_for_verdicts(&runs.id, times, &campaign, &keys, &mut seeds, &store)? {
                break;
            }
        }
        if store.is_finished() {
            let place = self.directory.display();
            listener.say(&format!("{}: the records in {place} are complete; only the report is written anew", runs.id));
            return Ok(0);
        }
        manifest.failed_runs = failed;
        manifest.wall_time_s = begun.elapsed().as_secs_f64();
        self.finish(store, &keys, &manifest)?;
        Ok(failed)
    }

    /// Puts the records in place, and the same as tables beside them, one record after the other: memory does not grow with
    /// their number.
    fn finish(&self, store: Store, keys: &[String], manifest: &Manifest) -> io::Result<()> {
        let records = || store.in_order(keys).map(|line| Ok(serde_json::from_str(&line?)?));
        write_whole_by(&self.directory, TABLE, |file| {
            let mut header = true;
            records()
                .try_for_each(|record| file.write_all(csv::rows_of(&record?, std::mem::take(&mut header))?.as_bytes()))
        })?;
        write_whole_by(&self.directory, PARQUET, |file| parquet::write(file, records))?;
        store.finish(keys, manifest)
    }

    /// One more seed for each point whose interval is too wide; whether there is such a point.
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
        for (key, seeds) in keys.iter().zip(seeds) {
            if !replication::is_enough(rule, &metric, level, &kept(store, key, *seeds)?) {
                *seeds += 1;
                is_wanting = true;
            }
        }
        Ok(is_wanting)
    }

    /// `times` the seeds for each point of a claim or number that cannot be told, of every experiment with these runs; whether there is such a
    /// point. Like a rule of replication it looks at the records alone.
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
        if seeds.iter().all(|seeds| *seeds >= most) {
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
                if *seeds < most && untold.iter().any(is_of) {
                    *seeds = most;
                    is_wanting = true;
                }
            }
        }
        Ok(is_wanting)
    }
}

/// The records of a point's first seeds.
fn kept(store: &Store, key: &str, seeds: u64) -> io::Result<Vec<Value>> {
    let record = |seed| {
        let line = store.line(&(key.to_owned(), seed)).transpose()?;
        Some(line.and_then(|line| Ok(serde_json::from_str(&line)?)))
    };
    (1..=seeds).filter_map(record).collect()
}

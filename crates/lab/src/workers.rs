//! Runs made by other processes, on this machine or on others: what a worker gets, and what it
//! returns.
//!
//! A campaign is handed out in chunks of runs, the longest runs first. A worker gets the scenario
//! as it was read, with the files that it names, and the keys of its runs. It returns the lines of
//! their records. A [`Carrier`] transports both: Dask, a pool of processes or a batch system.

use crate::backend::{Backend, End, Watch};
use crate::campaign::{self, Campaign, Run};
use crate::record::Record;
use crate::record::line::{FORMAT, Key};
use crate::reference::Reference;
use meshpace_scenario::{Scenario, Source};
use meshpace_sim::MODEL_REVISION;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Largest cost of a chunk, seconds of CPU time. It is what a lost worker costs.
const LONGEST_S: f64 = 60.0;
/// Smallest cost of a chunk if there is enough work, seconds of CPU time. Handing out a chunk takes
/// milliseconds.
const SHORTEST_S: f64 = 2.0;
/// Number of chunks per worker. It is large enough that no worker waits long for the last chunk of
/// another.
const PER_WORKER: f64 = 8.0;
/// Largest number of runs in a chunk.
const MOST_RUNS: usize = 2000;

/// A campaign as a worker needs it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Version of the meshpace that hands out the job.
    pub version: String,
    /// [`MODEL_REVISION`] of that meshpace.
    pub model: u32,
    /// Format of its records.
    pub format: u32,
    /// Name of the scenario.
    pub name: String,
    /// Name of the file that the scenario was read from, for messages.
    pub file: String,
    /// Text of the scenario.
    pub text: String,
    /// The `--set` arguments.
    pub set: Vec<String>,
    /// Contents of the files that the scenario names, by name.
    pub files: BTreeMap<String, String>,
    /// Results of the reference runs. `None` if no reference runs are made.
    #[serde(default)]
    pub reference: Option<Reference>,
}

/// A whole campaign in pieces, for a batch system.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Exported {
    /// Job of the campaign.
    pub job: Job,
    /// First seed of every point.
    pub first_seed: u64,
    /// Number of seeds per point.
    pub seeds: u64,
    /// Keys of the runs of each piece.
    pub pieces: Vec<Vec<Key>>,
    /// How points get more seeds. `None` if they do not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
}

/// How the points of a campaign in pieces get more seeds ([`crate::until`]).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Growth {
    /// Rule, such as "goodput 2 %".
    pub until: String,
    /// Largest number of seeds of a point.
    pub most: u64,
    /// Estimated CPU time of a piece, seconds.
    pub piece_s: f64,
}

/// Result of a run: its line without the newline, or the reason why it failed.
pub type Made = (Key, Result<String, String>);

impl Job {
    /// Creates the job of a campaign without reference runs.
    ///
    /// # Errors
    /// A file that the scenario names is not UTF-8 text.
    pub fn of(scenario: &Scenario) -> Result<Job, String> {
        let file = |(name, bytes): &(std::path::PathBuf, Vec<u8>)| {
            let name = name.display().to_string();
            let text = String::from_utf8(bytes.clone()).map_err(|_| format!("{name}: not UTF-8 text"))?;
            Ok((name, text))
        };
        Ok(Job {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model: MODEL_REVISION,
            format: FORMAT,
            name: scenario.name.clone(),
            file: scenario.source.name.clone(),
            text: scenario.source.text.clone(),
            set: scenario.source.sets.clone(),
            files: scenario.files.iter().map(file).collect::<Result<_, String>>()?,
            reference: None,
        })
    }

    /// Creates the job of a campaign that is handed out. It has the results of reference runs,
    /// which detect builds that differ.
    ///
    /// # Errors
    /// A file that the scenario names is not UTF-8 text.
    pub fn handed_out(scenario: &Scenario) -> Result<Job, String> {
        Ok(Job { reference: Some(Reference::of(scenario)), ..Job::of(scenario)? })
    }

    /// Checks that this program has the same version, model and format as the one that handed out
    /// the job.
    ///
    /// # Errors
    /// A sentence on what differs.
    pub fn check(&self) -> Result<(), String> {
        let ours = (env!("CARGO_PKG_VERSION"), MODEL_REVISION, FORMAT);
        if (self.version.as_str(), self.model, self.format) == ours {
            return Ok(());
        }
        Err(format!(
            "this machine has meshpace {}, revision {} of the model, format {}, but the campaign needs meshpace {}, revision {}, format {}",
            ours.0, ours.1, ours.2, self.version, self.model, self.format
        ))
    }
}

/// Maker of the runs of one job.
#[derive(Debug)]
pub struct Worker {
    campaign: Campaign,
    /// Number of each point, by its key.
    points: BTreeMap<String, usize>,
}

impl Worker {
    /// Creates a worker for `job`.
    ///
    /// # Errors
    /// This program has another version, gives other results, or cannot read the scenario.
    pub fn new(job: &Job) -> Result<Worker, String> {
        job.check()?;
        let source = Source { name: job.file.clone(), text: job.text.clone(), sets: job.set.clone() };
        let load = |name: &str| {
            let text = job.files.get(name).ok_or_else(|| format!("{name}: this file did not come with the job"))?;
            Ok(text.clone().into_bytes())
        };
        let scenario = Scenario::read_sweep_with(source, &load, &job.name).map_err(|refusal| refusal.render(false))?;
        job.reference.as_ref().map_or(Ok(()), |reference| reference.check(&scenario))?;
        let campaign = Campaign { scenario, first_seed: 1, seeds: 1 };
        let points = campaign.keys().into_iter().enumerate().map(|(number, key)| (key, number)).collect();
        Ok(Worker { campaign, points })
    }

    /// The scenario that the worker has read, as a campaign with one seed.
    pub fn into_campaign(self) -> Campaign {
        self.campaign
    }

    /// Makes the runs of a chunk, one after the other.
    pub fn make(&self, chunk: Vec<Key>) -> Vec<Made> {
        let one = |key: Key| {
            let line = self.line(&key);
            (key, line)
        };
        chunk.into_iter().map(one).collect()
    }

    fn line(&self, (point, seed): &Key) -> Result<String, String> {
        let number = *self.points.get(point).ok_or_else(|| format!("the scenario has no point {point}"))?;
        let run = Run { index: 0, point: number, seed: *seed };
        let record = self.campaign.make(run, &campaign::simulate)?;
        Ok(record.json_line().trim_end().to_owned())
    }
}

/// Divides the runs of `todo` into chunks of about the same cost for `workers` workers, the longest
/// runs first. A chunk has at least one run, whatever its cost. `size_s` is the cost of a chunk in
/// seconds of CPU time. Without it there are several chunks per worker.
pub fn chunks(campaign: &Campaign, mut todo: Vec<Run>, workers: usize, size_s: Option<f64>) -> Vec<Vec<Run>> {
    campaign.longest_first(&mut todo);
    let costs = campaign.costs();
    let total: f64 = todo.iter().map(|run| costs[run.point]).sum();
    let share = total / (workers.max(1) as f64 * PER_WORKER);
    let size = size_s.unwrap_or(share.clamp(SHORTEST_S, LONGEST_S));
    let mut chunks: Vec<Vec<Run>> = Vec::new();
    let mut cost = f64::INFINITY;
    for run in todo {
        if cost + costs[run.point] > size || chunks.last().is_some_and(|chunk| chunk.len() >= MOST_RUNS) {
            chunks.push(Vec::new());
            cost = 0.0;
        }
        cost += costs[run.point];
        if let Some(chunk) = chunks.last_mut() {
            chunk.push(run);
        }
    }
    chunks
}

/// Transport of chunks to workers and of results back.
pub trait Carrier {
    /// Approximate number of workers.
    fn workers(&self) -> usize;

    /// Hands out the chunks of a job.
    ///
    /// # Errors
    /// There is no worker to take them.
    fn send(&mut self, job: &Job, chunks: &[Vec<Key>]) -> io::Result<()>;

    /// Results of another chunk. `None` if none arrives within about 0.1 s.
    ///
    /// # Errors
    /// No more results will arrive: no worker is left that gives the same results, a chunk was lost
    /// twice, or the scheduler is gone.
    fn receive(&mut self) -> io::Result<Option<Vec<Made>>>;
}

/// Backend of the workers behind a carrier.
#[derive(Debug)]
pub struct Workers<'a, C> {
    /// Transport to the workers.
    pub carrier: C,
    /// Set to stop.
    pub stop: &'a Arc<AtomicBool>,
    /// Cost of a chunk, seconds of CPU time. `None` derives it from the number of workers.
    pub chunk_s: Option<f64>,
    /// The last job, with the digest of its scenario. It is kept so that the reference runs are
    /// made only once for a campaign.
    last: Option<(String, Job)>,
}

impl<'a, C> Workers<'a, C> {
    /// Creates a backend with the workers behind `carrier`.
    pub fn new(carrier: C, stop: &'a Arc<AtomicBool>, chunk_s: Option<f64>) -> Workers<'a, C> {
        Workers { carrier, stop, chunk_s, last: None }
    }

    fn job(&mut self, scenario: &Scenario) -> io::Result<Job> {
        match &self.last {
            Some((digest, job)) if *digest == scenario.digest => Ok(job.clone()),
            _ => {
                let job = Job::handed_out(scenario).map_err(io::Error::other)?;
                self.last = Some((scenario.digest.clone(), job.clone()));
                Ok(job)
            }
        }
    }
}

impl<C: Carrier> Backend for Workers<'_, C> {
    fn make(&mut self, campaign: &Arc<Campaign>, todo: Vec<Run>, watch: &mut dyn Watch) -> io::Result<End> {
        let keys = campaign.keys();
        let mut waiting: BTreeMap<Key, Run> = todo.iter().map(|run| (run.key(&keys), *run)).collect();
        let chunks = chunks(campaign, todo, self.carrier.workers(), self.chunk_s);
        let keyed: Vec<Vec<Key>> =
            chunks.into_iter().map(|chunk| chunk.into_iter().map(|run| run.key(&keys)).collect()).collect();
        let job = self.job(&campaign.scenario)?;
        self.carrier.send(&job, &keyed)?;
        while !waiting.is_empty() {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(End::Stopped);
            }
            let Some(made) = self.carrier.receive()? else {
                watch.on_idle();
                continue;
            };
            let read = |(key, result): Made| {
                // Results that a lost worker had already sent may arrive again.
                let run = waiting.remove(&key)?;
                let result = result
                    .and_then(|line| Record::from_line(&line).map_err(|why| format!("the returned record {why}")));
                Some((run, result))
            };
            watch.on_runs(made.into_iter().filter_map(read).collect())?;
        }
        Ok(End::Complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Threads;
    use std::path::Path;

    fn campaign(text: &str, seeds: u64) -> Arc<Campaign> {
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        let scenario = Scenario::read(source, Path::new("."), "test").unwrap();
        Arc::new(Campaign { scenario, first_seed: 1, seeds })
    }

    const SHORT: &str = "duration = '2 s'\n[[flow]]\nstart = '0 s'\n[sweep]\n\"topology.hops\" = [1, 3, 2]\n";

    /// Carrier with a worker in this process. Jobs pass through JSON, and the last chunk arrives
    /// twice.
    #[derive(Default)]
    struct Here(Vec<Vec<Made>>);

    impl Carrier for Here {
        fn workers(&self) -> usize {
            2
        }

        fn send(&mut self, job: &Job, chunks: &[Vec<Key>]) -> io::Result<()> {
            let job: Job = serde_json::from_str(&serde_json::to_string(job)?)?;
            let worker = Worker::new(&job).map_err(io::Error::other)?;
            self.0 = chunks.iter().map(|chunk| worker.make(chunk.clone())).collect();
            let last = self.0.last().cloned();
            self.0.extend(last);
            Ok(())
        }

        fn receive(&mut self) -> io::Result<Option<Vec<Made>>> {
            Ok(self.0.pop())
        }
    }

    #[derive(Default)]
    struct Lines(BTreeMap<usize, Result<String, String>>);

    impl Watch for Lines {
        fn on_runs(&mut self, made: Vec<(Run, Result<Record, String>)>) -> io::Result<()> {
            for (run, result) in made {
                let before = self.0.insert(run.index, result.map(|record| record.json_line()));
                assert_eq!(before, None, "run {} came twice", run.index);
            }
            Ok(())
        }
    }

    #[test]
    fn workers_make_the_same_bytes_as_threads() {
        let campaign = campaign(SHORT, 2);
        let todo: Vec<Run> = campaign.all().collect();
        let stop = Arc::default();
        let (mut here, mut there) = (Lines::default(), Lines::default());
        let end = Threads::new(1, &stop).make(&campaign, todo.clone(), &mut here).unwrap();
        assert_eq!(end, Workers::new(Here::default(), &stop, None).make(&campaign, todo, &mut there).unwrap());
        assert_eq!((end, here.0.len()), (End::Complete, 6));
        assert_eq!(here.0, there.0);
    }

    #[test]
    fn a_worker_of_another_version_or_revision_is_refused() {
        let job = Job::of(&campaign(SHORT, 1).scenario).unwrap();
        assert!(job.check().is_ok());
        for other in [Job { version: "0.0.1".into(), ..job.clone() }, Job { model: job.model + 1, ..job.clone() }] {
            let why = Worker::new(&other).unwrap_err();
            let (version, model) = (format!("meshpace {}", other.version), format!("revision {}", other.model));
            assert!(why.contains(&version) && why.contains(&model), "{why}");
        }
    }

    #[test]
    fn a_worker_that_is_built_otherwise_is_refused() {
        let job = Job::handed_out(&campaign(SHORT, 1).scenario).unwrap();
        assert!(Worker::new(&job).is_ok());
        // The reference of a campaign whose results are others: what such a worker finds.
        let strange =
            Job::handed_out(&campaign(&SHORT.replace("[[flow]]", "[[flow]]\nsegment = 999"), 1).scenario).unwrap();
        let why = Worker::new(&Job { reference: strange.reference, ..job }).unwrap_err();
        assert!(why.contains("this build gives other results"), "{why}");
    }

    #[test]
    fn chunks_cost_about_the_same_and_the_longest_run_is_first() {
        // A run of 4 hours of simulated time next to many of 20 minutes: it is a chunk of its own.
        let text = "[[flow]]\n[sweep]\nduration = ['1200 s', '14400 s']\n";
        let campaign = campaign(text, 200);
        let todo: Vec<Run> = campaign.all().collect();
        let costs = campaign.costs();
        let chunks = chunks(&campaign, todo, 4, None);
        assert_eq!(chunks.iter().map(Vec::len).sum::<usize>(), 400);
        assert_eq!(chunks[0][0].point, 1, "the longest first");
        let cost = |chunk: &Vec<Run>| chunk.iter().map(|run| costs[run.point]).sum::<f64>();
        let total: f64 = chunks.iter().map(cost).sum();
        let size = (total / 32.0).clamp(SHORTEST_S, LONGEST_S);
        for chunk in &chunks {
            assert!(cost(chunk) <= size || chunk.len() == 1, "{} s in {} runs", cost(chunk), chunk.len());
        }
        assert!(chunks.len() as f64 <= 2.0 * total / size + 1.0, "{} chunks", chunks.len());
    }

    #[test]
    fn more_workers_get_more_chunks() {
        // Chunks of one worker cost about 30 s and of four about 8 s, which is between the least and the most.
        let campaign = campaign("[[flow]]\n[sweep]\nduration = ['1200 s']\n", 200);
        let count = |workers: usize| chunks(&campaign, campaign.all().collect(), workers, None).len();
        assert!((2 * count(1)..=6 * count(1)).contains(&count(4)), "{} and {} chunks", count(1), count(4));
    }
}

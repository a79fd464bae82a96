//! `meshpace reproduce`: published experiments, run again, with one report.

mod price;

use crate::output::{complain, results};
use crate::run::{describe, host, processors, progress, silence_panics, stop_on_interrupt};
use crate::{FAILED, INTERRUPTED, REFUSED};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use meshpace_lab::campaign::{Campaign, End, Run};
use meshpace_lab::record::directory::Manifest;
use meshpace_lab::record::store::{self, Key, Store};
use meshpace_lab::record::{Record, csv, parquet, write_whole};
use meshpace_lab::register::{Effort, Experiment, Register, Runs, consistency, replication};
use meshpace_report::{PARQUET, Provenance, TABLE};
use meshpace_scenario::{MAX_SEEDS, Point};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The arguments of `meshpace reproduce`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Experiments by id (AP05-F14), all of a paper (AP05), or `all` [default: all].
    ids: Vec<String>,
    /// How much is run: quick is minutes for everything, paper as much as the papers had.
    #[arg(long, value_enum, default_value_t = Quality::Quick)]
    quality: Quality,
    /// Seeds per point, instead of as many as the quality has.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: Option<u64>,
    /// Runs at a time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Where to write: the report, and a directory for each set of runs [default: report, or report-paper].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace records that are there already and are not those that would be made.
    #[arg(long)]
    force: bool,
    /// A directory with the register's files, instead of those that are part of the program.
    #[arg(long, value_name = "DIR")]
    register: Option<PathBuf>,
    /// Say what it would take, from short pieces of the runs, and run nothing else.
    #[arg(long)]
    estimate: bool,
    /// The estimate as one JSON object.
    #[arg(long, requires = "estimate")]
    json: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Quality {
    Quick,
    Paper,
}

impl Quality {
    fn effort(self) -> Effort {
        match self {
            Quality::Quick => Effort::Quick,
            Quality::Paper => Effort::Paper,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Quality::Quick => "quick",
            Quality::Paper => "paper",
        }
    }
}

/// The register in a directory, or the one that is part of the program.
///
/// # Errors
/// What is wrong with its files.
pub fn register(directory: Option<&Path>) -> Result<Register, String> {
    let Some(directory) = directory else { return Ok(Register::embedded()) };
    let register = Register::read(directory).map_err(|problems| problems.join("\n"))?;
    let problems = consistency::problems(&register);
    if problems.is_empty() { Ok(register) } else { Err(problems.join("\n")) }
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    match reproduce(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((status, message)) => {
            complain(&message);
            ExitCode::from(status)
        }
    }
}

type Failure = (u8, String);

fn reproduce(arguments: &Arguments) -> Result<(), Failure> {
    let refused = |message: String| (REFUSED, message);
    let register = register(arguments.register.as_deref()).map_err(refused)?;
    let chosen = choose(&register, &arguments.ids).map_err(refused)?;
    let mut plans: Vec<Runs> = Vec::new();
    for experiment in chosen {
        let Some(mut runs) = register.runs(experiment, arguments.quality.effort()).map_err(refused)? else { continue };
        if let Some(seeds) = arguments.seeds {
            runs.scenario.seeds = seeds;
            runs.until = None;
        }
        if !plans.iter().any(|other| other.id == runs.id) {
            plans.push(runs);
        }
    }
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    if arguments.estimate {
        return estimate(&plans, jobs, arguments.json);
    }
    let default = if arguments.quality == Quality::Quick { "report" } else { "report-paper" };
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(default));
    let stop = stop_on_interrupt();
    silence_panics();
    let total: usize = plans.iter().map(|runs| runs.scenario.points.len() * runs.scenario.seeds as usize).sum();
    let progress = progress(total as u64);
    let mut failed = 0;
    for runs in plans {
        let job = Job {
            directory: out.join(&runs.id),
            register: &register,
            quality: arguments.seeds.is_none().then(|| arguments.quality.name()),
            jobs,
            force: arguments.force,
            stop: &stop,
            progress: &progress,
        };
        failed += job.run(runs).inspect_err(|_| progress.finish_and_clear())?;
    }
    progress.finish_and_clear();
    let page = meshpace_report::write(&out, &register, None).map_err(|message| (FAILED, message))?;
    results(&format!("{}\n", page.display())).map_err(|error| (FAILED, error.to_string()))?;
    if failed > 0 { Err((FAILED, format!("{failed} runs failed"))) } else { Ok(()) }
}

/// What the plans would take.
fn estimate(plans: &[Runs], jobs: usize, as_json: bool) -> Result<(), Failure> {
    let progress = progress(plans.len() as u64);
    let priced = plans.iter().map(|runs| price::of(runs).inspect(|_| progress.inc(1)));
    let prices = priced.collect::<Result<Vec<_>, _>>();
    progress.finish_and_clear();
    let prices = prices.map_err(|why| (FAILED, why))?;
    let text = if as_json { format!("{}\n", price::json(&prices, jobs)) } else { price::table(prices, jobs) };
    results(&text).map_err(|error| (FAILED, error.to_string()))
}

fn choose<'a>(register: &'a Register, ids: &[String]) -> Result<Vec<&'a Experiment>, String> {
    let mut chosen: Vec<&Experiment> = Vec::new();
    let every = ["all".to_owned()];
    for id in if ids.is_empty() { &every[..] } else { ids } {
        let wanted = |experiment: &&Experiment| {
            id == "all"
                || experiment.published.id.eq_ignore_ascii_case(id)
                || experiment.paper().eq_ignore_ascii_case(id)
        };
        let found: Vec<&Experiment> = register.experiments.iter().filter(wanted).collect();
        if found.is_empty() {
            let known: Vec<&str> =
                register.experiments.iter().map(|experiment| experiment.published.id.as_str()).collect();
            let why = if register.missing.iter().any(|missing| missing.eq_ignore_ascii_case(id)) {
                "is not in the register yet"
            } else {
                "is no experiment"
            };
            return Err(format!("{id} {why}; this version has {}", known.join(", ")));
        }
        chosen.extend(found);
    }
    Ok(chosen)
}

/// Where runs go, and how.
struct Job<'a> {
    directory: PathBuf,
    register: &'a Register,
    quality: Option<&'static str>,
    jobs: usize,
    force: bool,
    stop: &'a Arc<AtomicBool>,
    progress: &'a ProgressBar,
}

impl Job<'_> {
    /// Makes the runs that are missing; returns how many failed.
    fn run(&self, runs: Runs) -> Result<usize, Failure> {
        let base = runs.scenario.points.len() * runs.scenario.seeds as usize;
        if self.is_complete(&runs) {
            self.progress.suspend(|| {
                complain(&format!(
                    "{}: the records in {} are complete; only the report is written anew",
                    runs.id,
                    self.shown()
                ));
            });
            self.progress.inc(base as u64);
            return Ok(0);
        }
        #[expect(clippy::disallowed_methods, reason = "wall time for the manifest, never for a record")]
        let begun = Instant::now();
        let mut manifest = self.manifest(&runs);
        let mut store = Store::open(&self.directory, &manifest, self.force).map_err(|error| self.broken(&error))?;
        let campaign = Arc::new(Campaign { first_seed: 1, seeds: runs.scenario.seeds, scenario: runs.scenario });
        let keys: Vec<String> = campaign
            .scenario
            .points
            .iter()
            .map(|point| store::key(&Value::Object(point.values.iter().cloned().collect())))
            .collect();
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
            match std::mem::replace(&mut is_first, false) {
                true => self.progress.inc((base - todo.len()) as u64),
                false => self.progress.inc_length(todo.len() as u64),
            }
            if todo.is_empty() {
                break;
            }
            failed = self.simulate(&campaign, todo, &keys, &mut store)?;
            if failed > 0 {
                break;
            }
            let Some((rule, level)) = &runs.until else { break };
            self.add_seeds(rule, *level, &runs.id, &keys, &mut seeds, &store);
        }
        manifest.failed_runs = failed;
        manifest.wall_time_s = begun.elapsed().as_secs_f64();
        let finish = || -> io::Result<()> {
            let in_order = || {
                let seeds = &seeds;
                keys.iter()
                    .enumerate()
                    .flat_map(move |(point, key)| (1..=seeds[point]).map(move |seed| (key.clone(), seed)))
            };
            let lines = in_order().filter_map(|key: Key| store.line(&key).map(str::to_owned));
            let records = lines.map(|line| serde_json::from_str(&line)).collect::<Result<Vec<Value>, _>>()?;
            let mut table = String::new();
            for record in &records {
                table.push_str(&csv::rows_of(record, table.is_empty())?);
            }
            write_whole(&self.directory, TABLE, &table)?;
            write_whole(&self.directory, PARQUET, parquet::file(&records).map_err(io::Error::other)?)?;
            store.finish(in_order(), &manifest)
        };
        finish().map_err(|error| self.broken(&error))?;
        Ok(failed)
    }

    fn broken(&self, error: &io::Error) -> Failure {
        let status = match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::WouldBlock => return (REFUSED, error.to_string()),
            _ => FAILED,
        };
        (status, format!("{}: {error}", self.shown()))
    }

    fn shown(&self) -> std::path::Display<'_> {
        self.directory.display()
    }

    /// Whether the records that would be made are there, with as many seeds or more.
    fn is_complete(&self, runs: &Runs) -> bool {
        !self.force
            && Provenance::read(&self.directory).is_ok_and(|made| {
                made.complete
                    && made.failed_runs == 0
                    && made.scenario_sha256 == runs.scenario.digest
                    && made.version == env!("CARGO_PKG_VERSION")
                    && made.model == meshpace_sim::MODEL_REVISION
                    && made.seeds >= runs.scenario.seeds
                    && self.directory.join(meshpace_lab::record::directory::RECORDS).is_file()
            })
    }

    fn manifest(&self, runs: &Runs) -> Manifest {
        Manifest {
            scenario: runs.scenario.name.clone(),
            scenario_sha256: runs.scenario.digest.clone(),
            scenario_text: runs.source.text.clone(),
            set: runs.source.sets.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            model: meshpace_sim::MODEL_REVISION,
            first_seed: 1,
            seeds: runs.scenario.seeds,
            points: runs.scenario.points.len(),
            failed_runs: 0,
            jobs: self.jobs,
            host: host(),
            wall_time_s: 0.0,
            experiment: Some(runs.id.clone()),
            quality: self.quality.map(str::to_owned),
            complete: false,
        }
    }

    fn simulate(
        &self,
        campaign: &Arc<Campaign>,
        todo: Vec<Run>,
        keys: &[String],
        store: &mut Store,
    ) -> Result<usize, Failure> {
        let end = campaign.each(
            self.jobs,
            self.stop,
            todo,
            |point: &Point, run: Run| meshpace_sim::run(&point.config, run.seed),
            |run, result| {
                match result {
                    Ok(outcome) => {
                        let record = Record::new(&campaign.scenario, campaign.point(run), run.seed, &outcome);
                        store.add((keys[run.point].clone(), run.seed), &record.json_line())?;
                    }
                    Err(why) => {
                        self.progress.suspend(|| complain(&format!("{} failed: {why}", describe(campaign, run))));
                    }
                }
                self.progress.inc(1);
                Ok(())
            },
            || self.progress.tick(),
        );
        match end.map_err(|error| self.broken(&error))? {
            End::Complete { failed } => Ok(failed),
            End::Stopped => {
                let kept = store.len();
                let message = format!(
                    "interrupted; {kept} runs are kept in {}, and the same command goes on from there",
                    self.shown()
                );
                Err((INTERRUPTED, message))
            }
        }
    }

    /// One more seed for each point whose interval is too wide.
    fn add_seeds(
        &self,
        rule: &meshpace_lab::register::data::Until,
        level: f64,
        id: &str,
        keys: &[String],
        seeds: &mut [u64],
        store: &Store,
    ) {
        let Some(metric) = self.register.find(id).and_then(|experiment| experiment.published.metric(&rule.metric))
        else {
            return;
        };
        for (key, seeds) in keys.iter().zip(seeds) {
            let line = |seed| store.line(&(key.clone(), seed)).and_then(|line| serde_json::from_str(line).ok());
            let records: Vec<Value> = (1..=*seeds).filter_map(line).collect();
            if !replication::is_enough(rule, &metric, level, &records) {
                *seeds += 1;
            }
        }
    }
}

//! `meshpace reproduce`: published experiments, run again, with one report.

mod price;

use crate::output::{complain, results};
use crate::runner::{self, Failure, Runner, processors, progress, silence_panics, stop_on_interrupt};
use crate::{FAILED, REFUSED};
use clap::{Args, ValueEnum};
use meshpace_lab::campaign::{Campaign, End, Run};
use meshpace_lab::record::directory::Manifest;
use meshpace_lab::record::store::Store;
use meshpace_lab::record::{csv, parquet, write_whole};
use meshpace_lab::register::{Effort, Experiment, Register, Runs, collection, consistency, replication, verdicts};
use meshpace_report::{PARQUET, TABLE};
use meshpace_scenario::nearest;
use meshpace_scenario::{MAX_SEEDS, Point};
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
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
    /// Make all runs anew, and replace the records that are there.
    #[arg(long)]
    force: bool,
    /// A file of verdicts (verdicts.json of an earlier report): exit status 1 if one of them has turned.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
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

fn reproduce(arguments: &Arguments) -> Result<(), Failure> {
    let refused = |message: String| (REFUSED, message);
    let register = register(arguments.register.as_deref()).map_err(refused)?;
    let chosen = choose(&register, &arguments.ids).map_err(refused)?;
    let expected = arguments.expect.as_deref().map_or(Ok(Vec::new()), expected).map_err(refused)?;
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
            force: arguments.force,
            runner: Runner { jobs, stop: &stop, progress: &progress },
        };
        failed += job.run(runs).inspect_err(|_| progress.finish_and_clear())?;
    }
    progress.finish_and_clear();
    let entries = conclude(&out, &register).map_err(|message| (FAILED, message))?;
    if failed > 0 {
        return Err((FAILED, format!("{failed} runs failed")));
    }
    let turned = verdicts::turned(&expected, &entries);
    match (&arguments.expect, turned.is_empty()) {
        (Some(file), false) => Err((
            FAILED,
            format!("{} verdicts are not those of {}:\n{}", turned.len(), file.display(), turned.join("\n")),
        )),
        _ => Ok(()),
    }
}

/// Writes the report and the verdicts, and says how many claims hold and where the report is.
fn conclude(out: &Path, register: &Register) -> Result<Vec<verdicts::Entry>, String> {
    let collections = collection::collect(out, register)?;
    let page = meshpace_report::write(out, &collections, register, None)?;
    let entries = verdicts::of(register, &collections);
    write_verdicts(out, &entries)?;
    eprint!("{}", verdicts::scoreboard(&entries));
    results(&format!("{}\n", page.display())).map_err(|error| error.to_string())?;
    Ok(entries)
}

/// Writes the verdicts beside the report.
///
/// # Errors
/// The file and why it cannot be written.
pub fn write_verdicts(directory: &Path, entries: &[verdicts::Entry]) -> Result<(), String> {
    write_whole(directory, verdicts::FILE, verdicts::text(entries))
        .map_err(|error| format!("{}: {error}", directory.join(verdicts::FILE).display()))
}

/// The verdicts in a file.
fn expected(file: &Path) -> Result<Vec<verdicts::Entry>, String> {
    let shown = |why: String| format!("--expect: {}: {why}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| shown(error.to_string()))?;
    verdicts::parse(&text).map_err(shown)
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
            let all = "`meshpace scenarios` lists what this version has";
            if register.missing.iter().any(|missing| missing.eq_ignore_ascii_case(id)) {
                return Err(format!("{id} is not in the register yet; {all}"));
            }
            let near = nearest(&id.to_ascii_uppercase(), known.iter().copied());
            let near = near.map(|near| format!("; did you mean {near}?")).unwrap_or_else(|| ";".to_owned());
            return Err(format!("{id} is no experiment{near} {all}"));
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
    force: bool,
    runner: Runner<'a>,
}

impl Job<'_> {
    /// Makes the runs that are missing; returns how many failed.
    fn run(&self, runs: Runs) -> Result<usize, Failure> {
        #[expect(clippy::disallowed_methods, reason = "wall time for the manifest, never for a record")]
        let begun = Instant::now();
        let base = runs.scenario.points.len() * runs.scenario.seeds as usize;
        let campaign = Arc::new(Campaign { first_seed: 1, seeds: runs.scenario.seeds, scenario: runs.scenario });
        let mut manifest = Manifest {
            experiment: Some(runs.id.clone()),
            quality: self.quality.map(str::to_owned),
            ..runner::manifest(&campaign, &runs.source, self.runner.jobs)
        };
        let mut store = runner::open(&self.directory, &manifest, self.force)?;
        let keys = runner::keys(&campaign);
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
                true => self.runner.progress.inc((base - todo.len()) as u64),
                false => self.runner.progress.inc_length(todo.len() as u64),
            }
            // Of a finished campaign every point has the seeds it needs.
            if todo.is_empty() && (runs.until.is_none() || store.is_finished()) {
                break;
            }
            failed = self.simulate(&campaign, todo, &keys, &mut store)?;
            if failed > 0 {
                break;
            }
            let Some((rule, level)) = &runs.until else { break };
            if !self.add_seeds(rule, *level, &runs.id, &keys, &mut seeds, &store) {
                break;
            }
        }
        if store.is_finished() {
            self.runner.progress.suspend(|| {
                let place = self.directory.display();
                complain(&format!("{}: the records in {place} are complete; only the report is written anew", runs.id));
            });
            return Ok(0);
        }
        manifest.failed_runs = failed;
        manifest.wall_time_s = begun.elapsed().as_secs_f64();
        self.finish(store, &keys, &manifest).map_err(|error| runner::broken(&error))?;
        Ok(failed)
    }

    /// Puts the records in place, and the same as tables beside them.
    fn finish(&self, store: Store, keys: &[String], manifest: &Manifest) -> io::Result<()> {
        let records = store.in_order(keys).map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
        let mut table = String::new();
        for record in &records {
            table.push_str(&csv::rows_of(record, table.is_empty())?);
        }
        write_whole(&self.directory, TABLE, &table)?;
        write_whole(&self.directory, PARQUET, parquet::file(&records).map_err(io::Error::other)?)?;
        store.finish(keys, manifest)
    }

    fn simulate(
        &self,
        campaign: &Arc<Campaign>,
        todo: Vec<Run>,
        keys: &[String],
        store: &mut Store,
    ) -> Result<usize, Failure> {
        let simulate = |point: &Point, run: Run| meshpace_sim::run(&point.config, run.seed);
        let end = self.runner.make(campaign, todo, simulate, |run, record| match record {
            Some(record) => store.add(runner::key(keys, run), &record.json_line()),
            None => Ok(()),
        });
        match end.map_err(|error| runner::broken(&error))? {
            End::Complete { failed } => Ok(failed),
            End::Stopped => Err(runner::interrupted(store.len(), &self.directory)),
        }
    }

    /// One more seed for each point whose interval is too wide; whether there is such a point.
    fn add_seeds(
        &self,
        rule: &meshpace_lab::register::data::Until,
        level: f64,
        id: &str,
        keys: &[String],
        seeds: &mut [u64],
        store: &Store,
    ) -> bool {
        let Some(metric) = self.register.find(id).and_then(|experiment| experiment.published.metric(&rule.metric))
        else {
            return false;
        };
        let mut is_wanting = false;
        for (key, seeds) in keys.iter().zip(seeds) {
            let line = |seed| store.line(&(key.clone(), seed)).and_then(|line| serde_json::from_str(line).ok());
            let records: Vec<Value> = (1..=*seeds).filter_map(line).collect();
            if !replication::is_enough(rule, &metric, level, &records) {
                *seeds += 1;
                is_wanting = true;
            }
        }
        is_wanting
    }
}

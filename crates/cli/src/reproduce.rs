//! `meshpace reproduce`: runs published experiments again, and writes one report about them.

mod price;

use crate::output::{Failure, end, is_quiet, results, tell};
use crate::progress::Progress;
use crate::runner::{self, Told, processors, silence_panics};
use crate::{FAILED, REFUSED};
use clap::{Args, ValueEnum};
use meshpace_command::interrupt::stop_on_interrupt;
use meshpace_lab::campaign::{self, Work};
use meshpace_lab::register::reference::Resolver;
use meshpace_lab::register::reproduction::Reproduction;
use meshpace_lab::register::{Account, Effort, Register, Runs, collection, consistency, verdicts};
use meshpace_scenario::MAX_SEEDS;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The arguments of `meshpace reproduce`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Experiments by id (AP05-F14), all experiments of a paper (AP05), or `all` [default: all].
    ids: Vec<String>,
    /// Choose how much is run: `quick` takes minutes for everything; `paper` runs as much as the
    /// papers did.
    #[arg(long, value_enum, default_value_t = Quality::Quick)]
    quality: Quality,
    /// Run each point with this number of seeds, instead of the number that the quality sets.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: Option<u64>,
    /// Also run the other readings of the papers. They are shown, but do not count for the
    /// verdicts. Paper quality always runs them.
    #[arg(long)]
    readings: bool,
    /// Use only the initial seeds. Otherwise, claims that cannot be told get more seeds: up to four
    /// times as many with paper quality, and with quick quality if the experiment says so.
    #[arg(long)]
    first_seeds: bool,
    /// Run this number of simulations at the same time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run the simulations on the workers of this Dask scheduler, such as tcp://host:8786:
    /// docs/clusters.md.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "estimate"])]
    dask: Option<String>,
    /// Write the report, and a directory of records for each set of runs, into this directory
    /// [default: report, or report-paper].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Repeat all runs, and replace existing records.
    #[arg(long)]
    force: bool,
    /// Compare with the verdicts in this file (verdicts.json of an earlier report). The exit status
    /// is 1 if one of them has changed.
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,
    /// Read the register's files from this directory instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    register: Option<PathBuf>,
    /// Estimate the time from short parts of the runs, and run nothing else.
    #[arg(long)]
    estimate: bool,
    /// Print the estimate as one JSON object.
    #[arg(long, requires = "estimate")]
    json: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Quality {
    Quick,
    Paper,
}

impl Quality {
    fn effort(self, readings: bool) -> Effort {
        match self {
            Quality::Quick if readings => Effort::QuickWithReadings,
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

/// Returns the register in a directory, or the register that is built into the program.
///
/// # Errors
/// Sentences that say what is wrong with the register's files.
pub fn register(directory: Option<&Path>) -> Result<Register, String> {
    let Some(directory) = directory else { return Ok(Register::embedded()) };
    let register = Register::read(directory).map_err(|problems| problems.join("\n"))?;
    let problems = consistency::problems(&register);
    if problems.is_empty() { Ok(register) } else { Err(problems.join("\n")) }
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    end(reproduce(arguments).map(|()| ExitCode::SUCCESS))
}

fn reproduce(arguments: &Arguments) -> Result<(), Failure> {
    let refused = |message: String| (REFUSED, message);
    let register = register(arguments.register.as_deref()).map_err(refused)?;
    let chosen = register.choose(&arguments.ids).map_err(refused)?;
    let expected = arguments.expect.as_deref().map_or(Ok(Vec::new()), expected).map_err(refused)?;
    let effort = arguments.quality.effort(arguments.readings);
    let mut plans = register.plans(&chosen, effort, arguments.seeds).map_err(refused)?;
    if arguments.first_seeds {
        plans.iter_mut().for_each(|runs| runs.times = 1);
    }
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    if arguments.estimate {
        return estimate(&plans, jobs, arguments.json);
    }
    let default = if arguments.quality == Quality::Quick { "report" } else { "report-paper" };
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(default));
    let stop = stop_on_interrupt();
    silence_panics();
    let mut all = Work::default();
    plans.iter().for_each(|runs| all += runs.work());
    let progress = Progress::new(all);
    let mut backend = runner::backend(arguments.dask.as_deref(), jobs, &stop, Arc::new(campaign::simulate))?;
    let mut failed = 0;
    for runs in plans {
        let reproduction = Reproduction {
            directory: out.join(&runs.id),
            register: &register,
            quality: arguments.seeds.is_none().then(|| arguments.quality.name()),
            force: arguments.force,
            jobs,
        };
        failed += reproduction.make(runs, &mut *backend, &mut Told(&progress)).map_err(|broken| {
            progress.finish();
            runner::broken(broken, Some(&reproduction.directory))
        })?;
    }
    progress.finish();
    let chosen: Vec<&str> = chosen.iter().map(|experiment| experiment.published.id.as_str()).collect();
    let entries = conclude(&out, &register, &chosen).map_err(|message| (FAILED, message))?;
    if failed > 0 {
        return Err((FAILED, format!("{failed} runs failed")));
    }
    let turned = verdicts::differences(&expected, &entries);
    match (&arguments.expect, turned.is_empty()) {
        (Some(file), false) => {
            Err((FAILED, format!("{} verdicts differ from {}:\n{}", turned.len(), file.display(), turned.join("\n"))))
        }
        _ => Ok(()),
    }
}

/// Writes the report and the verdicts. Prints how many claims hold, and where the report is.
fn conclude(out: &Path, register: &Register, chosen: &[&str]) -> Result<Vec<verdicts::Entry>, String> {
    let collections = collection::collect(out, register)?;
    let page = meshpace_report::write(out, &collections, register, None, None)?;
    let entries = verdicts::of(register, &collections);
    verdicts::write(out, &entries)?;
    if !is_quiet() {
        tell(&verdicts::scoreboard(&entries));
        if chosen.len() <= TOLD {
            let resolver = Resolver::new(register, &collections);
            for id in chosen {
                tell(&account(id, register, &entries, &resolver).unwrap_or_default());
            }
        }
    }
    match results(&format!("{}\n", page.display())) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error.to_string()),
        _ => {}
    }
    Ok(entries)
}

/// Largest number of experiments whose results are also printed. For more experiments, only the
/// page has them.
const TOLD: usize = 3;

/// Results of an experiment in sentences; `None` if it has no verdicts.
fn account(id: &str, register: &Register, entries: &[verdicts::Entry], resolver: &Resolver) -> Option<String> {
    let experiment = register.find(id)?;
    let own: Vec<&verdicts::Entry> = entries.iter().filter(|entry| entry.experiment == id).collect();
    let lines = (!own.is_empty()).then(|| Account::of(experiment, &own, resolver).lines())?;
    Some(format!("\n{id}: {}.\n{}\n", experiment.published.title, lines.join("\n")))
}

/// Reads the verdicts in a file.
fn expected(file: &Path) -> Result<Vec<verdicts::Entry>, String> {
    let shown = |why: String| format!("--expect: {}: {why}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| shown(error.to_string()))?;
    verdicts::parse(&text).map_err(shown)
}

/// Prints the estimated cost of the plans.
fn estimate(plans: &[Runs], jobs: usize, as_json: bool) -> Result<(), Failure> {
    let prices = plans.iter().map(price::of).collect::<Result<Vec<_>, _>>();
    let prices = prices.map_err(|why| (FAILED, why))?;
    let text = if as_json { format!("{}\n", price::json(&prices, jobs)) } else { price::table(prices, jobs) };
    match results(&text) {
        // It is no failure if the reader closes standard output early.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err((FAILED, format!("cannot write the results: {error}")))
        }
        _ => Ok(()),
    }
}

//! `meshpace compare`: two scenarios, two directories of records or two variants of one scenario against each other; or one value of
//! a swept key against all others.

mod rivals;

use crate::output::{alarm, complain, finish};
use crate::progress::Progress;
use crate::run::load;
use crate::runner::{self, Failure, Runner, processors};
use crate::{FAILED, INTERRUPTED, REFUSED, prospect};
use clap::{Args, ValueEnum};
use meshpace_lab::campaign::{Campaign, End, Run};
use meshpace_lab::compare::{Line, Rank, ranking, words};
use meshpace_lab::record::Record;
use meshpace_lab::record::directory::Archive;
use meshpace_lab::record::line;
use meshpace_lab::rivals::rivals;
use meshpace_lab::summary::starvation::{self, Tally};
use meshpace_scenario::{MAX_SEEDS, Point, Scenario};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The arguments of `meshpace compare`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A scenario, which is run, or a directory of records, which is read.
    a: PathBuf,
    /// What it is compared with; without it, --set names two variants of the first.
    b: Option<PathBuf>,
    /// With two scenarios: a key that is set in both. With one, given twice: the two variants.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// With one scenario or directory that sweeps this key: the value that every other value of it is compared with, point by
    /// point, such as flow.transport=quiet-train
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "b")]
    against: Option<String>,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Seeds per point [default: the scenario's sweep.seeds, but at least 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: Option<u64>,
    /// Runs at a time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// What to print: `md` for people, `json` one object per metric and line, `csv` one row per metric. The difference is the
    /// second less the first.
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
}

/// How it is printed.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One object per line.
    Json,
    /// One row per metric.
    Csv,
    /// For people.
    Md,
}

/// One side: what people call it, and its records.
struct Side {
    name: String,
    records: Vec<Value>,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    match compare(arguments) {
        Ok(text) => finish(&text),
        Err((status, message)) => {
            // What is wrong with a scenario has been told.
            if !message.is_empty() {
                complain(&message);
            }
            ExitCode::from(status)
        }
    }
}

fn compare(arguments: &Arguments) -> Result<String, Failure> {
    let refused = |message: String| (REFUSED, message);
    if let Some(given) = &arguments.against {
        return against(arguments, given);
    }
    let sides = match (&arguments.b, &arguments.set[..]) {
        (Some(b), sets) => {
            let names = [arguments.a.display().to_string(), b.display().to_string()];
            [(arguments.a.clone(), sets.to_vec(), names[0].clone()), (b.clone(), sets.to_vec(), names[1].clone())]
        }
        (None, [one, other]) => [one, other].map(|set| (arguments.a.clone(), vec![set.clone()], set.clone())),
        (None, _) => {
            let message = "give a second scenario or directory, or --set twice: the two variants of the first, such as \
                           --set flow.transport=newreno --set flow.transport=tcp-ap";
            return Err(refused(message.to_owned()));
        }
    };
    let stop = runner::stop_on_interrupt();
    runner::silence_panics();
    let mut read = Vec::new();
    for (place, sets, name) in &sides {
        read.push(Side { name: name.clone(), records: records(arguments, place, sets, &stop)? });
    }
    let [a, b] = &read[..] else { return Err(refused("two sides are compared".to_owned())) };
    warn_of_other_times(a, b);
    let lines = meshpace_lab::compare::compare(&a.records, &b.records).map_err(refused)?;
    if lines.is_empty() {
        return Err((FAILED, "no metric was measured on both sides".to_owned()));
    }
    let mut starved = Tally::default();
    for (name, side) in [("a", a), ("b", b)] {
        side.records.iter().for_each(|record| starved.add(name, record));
    }
    let before = first(&starved.sentences(), arguments.format);
    Ok(before
        + &match arguments.format {
            Format::Json => lines.iter().map(|line| format!("{}\n", json(line))).collect(),
            Format::Csv => csv(&lines),
            Format::Md => markdown(&lines, a, b),
        })
}

/// One value of a key that is swept against every other one.
fn against(arguments: &Arguments, given: &str) -> Result<String, Failure> {
    let (key, value) = given.split_once('=').ok_or_else(|| {
        (REFUSED, format!("--against {given}: give a key and a value, such as flow.transport=quiet-train"))
    })?;
    let stop = runner::stop_on_interrupt();
    runner::silence_panics();
    let records = records(arguments, &arguments.a, &arguments.set, &stop)?;
    let starved = Tally::of(&records).sentences();
    let rivals = rivals(&records, key, value).map_err(|why| (REFUSED, format!("{}: {why}", arguments.a.display())))?;
    let text = rivals::text(&rivals, given, arguments.format);
    Ok(first(&starved, arguments.format) + &text)
}

/// What is said of starved flows before anything else: in the text for people, beside what is for programs.
fn first(sentences: &[String], format: Format) -> String {
    if format != Format::Md {
        alarm(sentences);
        return String::new();
    }
    let line = |sentence: &String| format!("> {}\n>\n", starvation::coloured(sentence, console::colors_enabled()));
    let text: String = sentences.iter().map(line).collect();
    text.trim_end_matches(">\n").to_owned() + if sentences.is_empty() { "" } else { "\n" }
}

/// The records of a directory, or of a scenario with `sets`, which is run.
fn records(
    arguments: &Arguments,
    place: &Path,
    sets: &[String],
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Value>, Failure> {
    match place.is_dir() {
        true if !sets.is_empty() => Err((REFUSED, format!("{}: records cannot be changed by --set", place.display()))),
        true => stored(place).map_err(|message| (REFUSED, message)),
        false => made(arguments, place, sets, stop),
    }
}

/// The records of a directory.
fn stored(directory: &Path) -> Result<Vec<Value>, String> {
    let archive = Archive::read(directory)?;
    let archive = archive.ok_or_else(|| format!("{}: no run here is finished", directory.display()))?;
    Ok(archive.records)
}

/// The records of a scenario, which is run.
fn made(arguments: &Arguments, file: &Path, sets: &[String], stop: &Arc<AtomicBool>) -> Result<Vec<Value>, Failure> {
    let scenario = load(file, sets).map_err(|_| (REFUSED, String::new()))?;
    let seeds = arguments.seeds.unwrap_or(scenario.seeds.max(meshpace_lab::compare::LEAST as u64));
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    simulated(scenario, arguments.seed, seeds, jobs, file, stop)
}

/// The records of the scenario that `file` is or gives, which is run with `seeds` seeds from the first on.
fn simulated(
    scenario: Scenario,
    first_seed: u64,
    seeds: u64,
    jobs: usize,
    file: &Path,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Value>, Failure> {
    if first_seed.checked_add(seeds - 1).is_none() {
        return Err((REFUSED, format!("--seed {first_seed} leaves no room for {seeds} seeds")));
    }
    let campaign = Arc::new(Campaign { scenario, first_seed, seeds });
    if let Some(why) = prospect::too_much(&campaign, jobs) {
        return Err((
            REFUSED,
            format!("{}: {why}; run it by itself with --out, and compare the directories", file.display()),
        ));
    }
    let progress = Progress::new(campaign.work());
    let records = records_of(&campaign, &Runner { jobs, stop, progress: &progress }, file);
    progress.finish();
    records
}

/// The records of a campaign, which `runner` makes; `file` is what its scenario is from.
pub fn records_of(campaign: &Arc<Campaign>, runner: &Runner, file: &Path) -> Result<Vec<Value>, Failure> {
    let runs = (0..campaign.runs()).map(|index| campaign.run(index)).collect();
    let simulate = |point: &Point, run: Run| meshpace_sim::run(&point.config, run.seed);
    let mut records = Vec::new();
    let end = runner.make(campaign, runs, simulate, |made| {
        let read =
            |(run, record): (Run, Option<Record>)| Some((run.index, line::open(record?.json_line().trim_end()).ok()?));
        records.extend(made.into_iter().filter_map(read));
        Ok(())
    });
    records.sort_by_key(|(index, _)| *index);
    match end {
        Ok(End::Complete { failed: 0 }) => Ok(records.into_iter().map(|(_, record)| record).collect()),
        Ok(End::Complete { failed }) => Err((FAILED, format!("{}: {failed} runs failed", file.display()))),
        Ok(End::Stopped) => Err((INTERRUPTED, "interrupted".to_owned())),
        Err(error) => Err((FAILED, error.to_string())),
    }
}

/// Different lengths of the runs are a difference that was perhaps not meant.
fn warn_of_other_times(a: &Side, b: &Side) {
    let time = |side: &Side, field: &str| side.records.first().and_then(|record| record.get(field)?.as_f64());
    for (field, what) in [("duration_s", "run"), ("warmup_s", "start to measure after")] {
        if let (Some(one), Some(other)) = (time(a, field), time(b, field))
            && one != other
        {
            complain(&format!(
                "warning: the two {what} {one} s and {other} s: they differ in more than their protocols"
            ));
        }
    }
}

fn json(line: &Line) -> String {
    serde_json::to_string(line).unwrap_or_default()
}

/// The columns of a metric in CSV.
pub const COLUMNS: &str = "metric,a,b,difference,low,high,seeds,better,a_starved_runs,b_starved_runs";

/// A metric in these columns. A delay of which there is none is `inf`, above every number.
pub fn cells(line: &Line) -> String {
    let end = |which: usize| line.interval.map(|ends| ends[which].to_string()).unwrap_or_default();
    let better = line.better.map(|side| format!("{side:?}").to_lowercase()).unwrap_or_default();
    let difference = if line.difference.is_nan() { String::new() } else { line.difference.to_string() };
    let Line { metric, a, b, seeds, counts, .. } = line;
    let [a_starved, b_starved] = counts.map(|of| of.starved_runs);
    format!("{metric},{a},{b},{difference},{},{},{seeds},{better},{a_starved},{b_starved}", end(0), end(1))
}

fn csv(lines: &[Line]) -> String {
    let rows = lines.iter().map(|line| cells(line) + "\n");
    format!("{COLUMNS}\n{}", rows.collect::<String>())
}

fn markdown(lines: &[Line], a: &Side, b: &Side) -> String {
    let mut text = format!("# a: {}, b: {}\n\n", a.name, b.name);
    for line in lines.iter().filter(|line| line.is_shown) {
        text.push_str(&format!("- {}\n", words(line, ["a", "b"])));
    }
    let all: Vec<&Value> = a.records.iter().chain(&b.records).collect();
    let rankings = ranking(&all);
    if rankings.is_empty() {
        return text;
    }
    text.push_str("\n## Transports, the best first\n\n");
    text.push_str("`=` before one that is no worse for sure than the one before it; `✗` before one that starves a flow, which has no place.\n\n");
    text.push_str("| metric | ranking (mean, 95 % interval) |\n|---|---|\n");
    for (metric, ranks) in rankings {
        let (unit, scale) = metric.unit;
        let ranked = ranks.iter().enumerate().map(|(number, rank)| {
            let place = match rank {
                Rank { starved: (1.., _), .. } => "✗".to_owned(),
                Rank { ties: true, .. } => "=".to_owned(),
                _ => format!("{}.", number + 1),
            };
            format!("{place} {} {}", rank.transport, rank.mean.times(scale).told(|value| format!("{value:.3}")))
        });
        let ranked: Vec<String> = ranked.collect();
        let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
        text.push_str(&format!("| {}{unit} | {} |\n", metric.noun, ranked.join(", ")));
    }
    text
}

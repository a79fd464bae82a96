//! `meshpace compare`: compares scenarios, directories of records, or variants of one scenario; or
//! one value of a swept key with all others. It also tests whether the result holds under other
//! models.

mod print;
mod rivals;
mod robust;
mod sides;

use crate::output::{Failure, complain, end, finish_pieces, note};
use crate::progress::Progress;
use crate::runner::{self, Told, processors};
use crate::{FAILED, REFUSED};
use clap::{Args, ValueEnum};
use meshpace_command::interrupt::stop_on_interrupt;
use meshpace_lab::backend::Threads;
use meshpace_lab::campaign::Campaign;
use meshpace_lab::compare::{Line, compare_excerpts};
use meshpace_lab::record::Record;
use meshpace_lab::record::excerpt::Excerpt;
use meshpace_lab::record::tally::Tally;
use meshpace_lab::rivals::rivals;
use meshpace_lab::robust::{Asked, Robust};
use meshpace_lab::session::Session;
use meshpace_report::comparison::{self, Pair};
use meshpace_scenario::MAX_SEEDS;
use sides::{Side, Sides};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The arguments of `meshpace compare`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Scenario file (is run), or directory with records (is read).
    a: PathBuf,
    /// Scenarios or directories to compare with the first. Without them, the variants of the first
    /// are compared: the values of --set, or of a key that it sweeps.
    #[arg(value_name = "B")]
    others: Vec<PathBuf>,
    /// With one scenario: compare these values, such as flow.transport=newreno,cubic,tcp-ap.
    /// Several keys with several values are combined; a key with one value is set in all variants.
    /// If no key has several values, each --set is a variant of its own. With several scenarios, or
    /// with --by: set this key in all of them.
    #[arg(long, value_name = "KEY=VALUE[,...]")]
    set: Vec<String>,
    /// With one scenario or directory that sweeps several keys: compare the values of this key
    /// [default: the only swept key, or flow.transport].
    #[arg(long, value_name = "KEY", conflicts_with = "others")]
    by: Option<String>,
    /// With one scenario or directory that sweeps this key: compare every other value of the key
    /// with this one, point by point, such as flow.transport=quiet-train
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["others", "by", "robust", "report"])]
    against: Option<String>,
    /// With directories of records: include only the sweep points with these values, such as
    /// topology.hops=4 or flow.transport=newreno,tcp-ap. Conditions on several keys must all hold.
    #[arg(long = "where", value_name = "KEY=VALUE[,...]")]
    selected: Vec<String>,
    /// Repeat the comparison under other models, changing one choice at a time (MAC, routing and
    /// route repair, reception, RTS, carrier sense, windows, queues), and report which of them
    /// confirm the result: docs/robust.md. `auto` does this only in reports, and only if it is
    /// quick.
    #[arg(long, value_name = "WHEN", value_enum, num_args = 0..=1, require_equals = true, default_value_t = When::Auto, default_missing_value = "always")]
    robust: When,
    /// Write the results as an HTML page with plots.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Begin with this seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run each point with this number of seeds [default: the scenario's sweep.seeds, but at least
    /// 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: Option<u64>,
    /// Run this number of simulations at the same time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Choose the output: `md` for people, `json` with one object per metric and line, `csv` with
    /// one row per metric. The difference is the second minus the first.
    #[arg(long, value_enum, default_value_t = Format::Md)]
    format: Format,
}

/// Format of the output.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One object per line.
    Json,
    /// One row per metric.
    Csv,
    /// Markdown, for people.
    Md,
}

/// When other models are tried.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum When {
    /// Always, however long it takes.
    Always,
    /// In reports, if few frames have to be simulated.
    Auto,
    /// No other model is tried.
    Never,
}

/// Comparison of two variants.
struct Compared<'a> {
    names: [&'a str; 2],
    lines: Vec<Line>,
    robust: Option<&'a Robust>,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    end(compare(arguments))
}

fn compare(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(Err(message)) = arguments.report.as_deref().map(crate::run::picture::check) {
        return Err((REFUSED, message));
    }
    let stop = stop_on_interrupt();
    runner::silence_panics();
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    let machine = sides::Machine { arguments, jobs, stop: &stop };
    if let Some(given) = &arguments.against {
        return against(arguments, given, &machine);
    }
    let sides = machine.sides()?;
    sides.sides.iter().skip(1).for_each(|other| warn_of_other_times(&sides.sides[0], other));
    let lines = pairs(&sides.sides)?;
    let asked = robust::ask(&machine, &sides)?;
    let found: Option<&[Robust]> = match &asked {
        Asked::Answered(found) => Some(found),
        Asked::TooMuch { .. } | Asked::No => None,
    };
    let compared: Vec<Compared<'_>> = lines
        .into_iter()
        .enumerate()
        .map(|(number, lines)| Compared {
            names: [&sides.sides[0].name, &sides.sides[number + 1].name],
            lines,
            robust: found.and_then(|found| found.get(number)),
        })
        .collect();
    let mut starved = Tally::default();
    for side in &sides.sides {
        side.runs.iter().for_each(|run| run.count_in(&mut starved, &side.name));
    }
    if let Some(page) = &arguments.report {
        write_page(page, arguments, &sides, &compared, &asked).map_err(|why| (FAILED, why))?;
        note(&format!("the results are in {}", page.display()));
    }
    let before = std::iter::once(print::first(&starved.sentences(), arguments.format));
    Ok(match arguments.format {
        Format::Json => finish_pieces(before.chain(print::json(&compared, sides.is_named))),
        Format::Csv => finish_pieces(before.chain(print::csv(&compared, sides.is_named))),
        Format::Md => finish_pieces(before.chain([print::markdown(&compared, &sides)])),
    })
}

/// Compares each side except the first with the first side, metric by metric.
fn pairs(sides: &[Side]) -> Result<Vec<Vec<Line>>, Failure> {
    let Some((first, others)) = sides.split_first() else { return Ok(Vec::new()) };
    let compared = |other: &Side| {
        let lines = compare_excerpts(&first.all(), &other.all()).map_err(|why| (REFUSED, why))?;
        match lines.is_empty() {
            true => Err((FAILED, "no metric was measured on both sides".to_owned())),
            false => Ok(lines),
        }
    };
    others.iter().map(compared).collect()
}

fn write_page(
    page: &Path,
    arguments: &Arguments,
    sides: &Sides,
    compared: &[Compared<'_>],
    asked: &Asked,
) -> Result<(), String> {
    let variants: Vec<(&str, &[Excerpt])> =
        sides.sides.iter().map(|side| (side.name.as_str(), side.runs.as_slice())).collect();
    let pairs: Vec<Pair<'_>> = compared.iter().map(|pair| Pair { names: pair.names, lines: &pair.lines }).collect();
    let subject = comparison::Subject {
        title: &sides.title,
        command: &command(arguments),
        common: &sides.common,
        variants: &variants,
        pairs: &pairs,
        asked,
    };
    comparison::write(page, &subject)
}

/// Command that repeats the comparison.
fn command(arguments: &Arguments) -> String {
    let places = std::iter::once(&arguments.a).chain(&arguments.others).map(|place| place.display().to_string());
    let mut words: Vec<String> = ["meshpace", "compare"].map(str::to_owned).into_iter().chain(places).collect();
    let quoted = |text: &str| match text.chars().all(|c| c.is_ascii_alphanumeric() || "=.,_-+/".contains(c)) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    };
    arguments.set.iter().for_each(|set| words.extend(["--set".to_owned(), quoted(set)]));
    arguments.selected.iter().for_each(|condition| words.extend(["--where".to_owned(), quoted(condition)]));
    if let Some(by) = &arguments.by {
        words.extend(["--by".to_owned(), by.clone()]);
    }
    if arguments.seed != 1 {
        words.extend(["--seed".to_owned(), arguments.seed.to_string()]);
    }
    if let Some(seeds) = arguments.seeds {
        words.extend(["--seeds".to_owned(), seeds.to_string()]);
    }
    words.join(" ") + if arguments.robust == When::Always { " --robust" } else { "" }
}

/// Compares one value of a swept key with every other value.
fn against(arguments: &Arguments, given: &str, machine: &sides::Machine<'_>) -> Result<ExitCode, Failure> {
    let (key, value) = given.split_once('=').ok_or_else(|| {
        (REFUSED, format!("--against {given}: expected a key and a value, such as flow.transport=quiet-train"))
    })?;
    if let Some(set) = arguments.set.iter().find(|set| set.split_once('=').is_some_and(|(name, _)| name.trim() == key))
    {
        let way = "--against compares values that the scenario sweeps, and --set replaces them; remove one of the two";
        return Err((REFUSED, format!("--against {given}, --set {set}: {way}")));
    }
    let runs = machine.runs(&arguments.a, &arguments.set)?;
    let starved = Excerpt::tally(&runs).sentences();
    let rivals = rivals(&runs, key, value).map_err(|why| (REFUSED, format!("{}: {why}", arguments.a.display())))?;
    let before = std::iter::once(print::first(&starved, arguments.format));
    Ok(finish_pieces(before.chain(rivals::pieces(&rivals, given, arguments.format))))
}

/// Runs a campaign on `threads` and returns its records. `file` is the file of its scenario, for
/// messages.
pub fn records_of(
    campaign: &Arc<Campaign>,
    threads: &mut Threads<'_>,
    progress: &Progress,
    file: &Path,
) -> Result<Vec<Record>, Failure> {
    let mut session = Session::in_memory(Arc::clone(campaign));
    match session.make(campaign.all().collect(), threads, &mut Told(progress)) {
        Ok(0) => {
            let lines = session.lines().map_err(|error| runner::broken(error.into(), None))?;
            Ok(lines.iter().filter_map(|line| Record::from_line(line).ok()).collect())
        }
        Ok(failed) => Err((FAILED, format!("{}: {failed} runs failed", file.display()))),
        Err(broken) => Err(runner::broken(broken, None)),
    }
}

/// Warns if the runs of the two sides have different lengths or warm-ups, which may be unintended.
fn warn_of_other_times(a: &Side, b: &Side) {
    let (Some(a), Some(b)) = (a.runs.first(), b.runs.first()) else { return };
    let times = [("run", a.duration_s, b.duration_s), ("measure after", a.warmup_s, b.warmup_s)];
    for (what, one, other) in times.into_iter().filter(|(_, one, other)| one != other) {
        complain(&format!(
            "warning: the two sides {what} {one} s and {other} s, so they differ in more than what is compared"
        ));
    }
}

//! `meshpace run`: runs one scenario, or all points of its sweep.

pub mod picture;
pub mod recording;
mod sink;

use crate::captures::Captures;
use crate::output::{Failure, alarm, complain, end, failed, note, tell};
use crate::progress::Progress;
use crate::runner::{self, Told, processors};
use crate::{FAILED, REFUSED, prospect, words};
use clap::{ArgGroup, Args, ValueEnum};
use meshpace_command::interrupt::stop_on_interrupt;
use meshpace_lab::campaign::{self, Campaign, Run, Simulate};
use meshpace_lab::record::nodes;
use meshpace_lab::session::{Broken, Session};
use meshpace_lab::until::{self, Growing, Until};
use meshpace_lab::variants;
use meshpace_scenario::{MAX_SEEDS, Point, Refusal, Scenario, Source};
use recording::Recording;
use sink::Sink;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The arguments of `meshpace run`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("written").args(["out", "pcap", "record"]).multiple(true))]
pub struct Arguments {
    /// Scenario file (TOML); `-` reads standard input.
    file: PathBuf,
    /// Set a key of the scenario: topology.hops=4, flow.transport=newreno (every flow),
    /// flow.0.segment=512 (the first flow).
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Sweep a key over several values, in addition to the sweep in the scenario:
    /// topology.hops=2,4,6. Can be repeated for other keys.
    #[arg(long, value_name = "KEY=VALUE,...")]
    sweep: Vec<String>,
    /// Begin with this seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Run each point with this number of seeds: N, N+1, ... [default: the scenario's sweep.seeds,
    /// or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: Option<u64>,
    /// Add seeds to each point until half of the 95 % confidence interval of this quantity is at
    /// most this share of its mean, such as 'goodput 2 %'. Every point has at least 20 seeds, or
    /// --seeds if that is more. The output comes at the end.
    #[arg(long, value_name = "QUANTITY SHARE %", conflicts_with_all = ["pcap", "record"])]
    until: Option<String>,
    /// Stop adding seeds at this number per point.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS), default_value_t = until::MOST, requires = "until")]
    most: u64,
    /// Run this number of simulations at the same time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run the simulations on the workers of this Dask scheduler, such as tcp://host:8786:
    /// docs/clusters.md.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["jobs", "pcap", "record"])]
    dask: Option<String>,
    /// Choose the output: `table` for people (means with 95 % confidence intervals), `json` with
    /// one object per run and line, `csv` with one row per flow and run, `summary` with one JSON
    /// object per point (means with 95 % confidence intervals).
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write the records into this directory, each when its run ends. If interrupted, the same
    /// command continues there. Other seeds and points are added to the directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write the packets and frames of every node into this directory, for Wireshark. Each of
    /// several runs gets its own subdirectory.
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Record the events of the run, frame by frame, as a stream of lines for viewers and scripts
    /// (docs/record-stream.md). Only for a single run.
    #[arg(long, value_name = "FILE", conflicts_with = "pcap")]
    record: Option<PathBuf>,
    /// Add the losses of every node, and the share of time in which it sent, to each record:
    /// mac_drops, queue_drops, airtime_share. For `--format json` and `--out`.
    #[arg(long, conflicts_with_all = ["dask", "pcap", "record", "report"])]
    per_node: bool,
    /// Write the results as an HTML page with plots. Every plot is also written beside the page as
    /// SVG, and its numbers as CSV.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Start even if the estimate is longer than a day, or exceeds the memory of this machine.
    #[arg(long)]
    anyway: bool,
    /// Repeat all runs, and replace the records in the directory of --out, the captures in that of
    /// --pcap and the file of --record.
    #[arg(long, requires = "written")]
    force: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Table,
    Json,
    Csv,
    Summary,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    end(run(arguments))
}

fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let refused = |why: String| (REFUSED, why);
    let sets = sets(&arguments.set, &arguments.sweep).map_err(refused)?;
    let scenario = load_sweep(&arguments.file, &sets).map_err(|_| refused(String::new()))?;
    if scenario.points.lack_flows() {
        return Err(refused("the scenario has no flow; run its programs with `meshpace emulate`".to_owned()));
    }
    let until = arguments.until.as_ref().map(|text| Until::parse(text, arguments.seeds, arguments.most));
    let until = until.transpose().map_err(|why| refused(format!("--until: {why}")))?;
    let seeds = until.map_or_else(|| arguments.seeds.unwrap_or(scenario.seeds), |until| until.first());
    let most = until.map_or(seeds, |until| until.most());
    if arguments.seed.checked_add(most - 1).is_none() {
        return Err(refused(format!(
            "--seed {} is too large for {most} seeds: the last seed would exceed 2^64",
            arguments.seed
        )));
    }
    let campaign = Campaign { scenario, first_seed: arguments.seed, seeds };
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    if let Some(why) = prospect::too_much(&campaign, jobs).filter(|_| !arguments.anyway && arguments.dask.is_none()) {
        return Err(refused(format!("{why}; start it with --anyway")));
    }
    arguments.report.as_deref().map_or(Ok(()), picture::check).map_err(refused)?;
    let captures = arguments.pcap.as_deref().map(|directory| Captures::new(directory, &campaign, arguments.force));
    let captures = captures.transpose().map_err(|error| refused(format!("--pcap: {error}")))?;
    let recording = arguments.record.as_deref().map(|path| Recording::new(path, &campaign, arguments.force));
    let recording = recording.transpose().map_err(refused)?;
    execute(arguments, campaign, until, jobs, Watchers { captures, recording })
}

/// Observers of runs that write what they see into files.
struct Watchers {
    captures: Option<Captures>,
    recording: Option<Recording>,
}

impl Watchers {
    /// True if every run must be made, even if its record already exists.
    fn want_runs(&self) -> bool {
        self.captures.is_some() || self.recording.is_some()
    }

    /// Returns the first error of writing. Later calls return `None`.
    fn failure(&self) -> Option<String> {
        let captures = self.captures.as_ref().and_then(Captures::failure).map(|failure| failure.to_string());
        captures.or_else(|| self.recording.as_ref().and_then(Recording::failure))
    }
}

/// Returns the `--set` arguments, followed by the `--sweep` arguments in the form of `--set`.
///
/// # Errors
/// What is wrong with a `--sweep` argument.
pub fn sets(set: &[String], sweep: &[String]) -> Result<Vec<String>, String> {
    set.iter().cloned().map(Ok).chain(sweep.iter().map(|sweep| variants::sweep(sweep))).collect()
}

/// Reads the scenario in `file` with the settings `sets`. If it has errors, they have already been
/// printed when this returns.
pub fn load(file: &Path, sets: &[String]) -> Result<Scenario, ExitCode> {
    load_with(file, sets, Scenario::read)
}

/// Like [`load`], for a campaign: the combinations of values of a large sweep are not checked.
pub fn load_sweep(file: &Path, sets: &[String]) -> Result<Scenario, ExitCode> {
    load_with(file, sets, Scenario::read_sweep)
}

/// Reads a scenario. `read` gets the source, the directory to which relative file names refer, and
/// the scenario's name if it has no title.
fn load_with(
    file: &Path,
    sets: &[String],
    read: fn(Source, &Path, &str) -> Result<Scenario, Refusal>,
) -> Result<Scenario, ExitCode> {
    let from_stdin = file == Path::new("-");
    let bytes = if from_stdin {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        meshpace_scenario::read_file(file)
    };
    let name = if from_stdin { "<stdin>".to_owned() } else { file.display().to_string() };
    let text = bytes.and_then(|bytes| {
        let text = String::from_utf8(bytes);
        text.map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
            io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is not UTF-8 text"))
        })
    });
    let text = text.map_err(|error| {
        let way = match error.kind() {
            io::ErrorKind::NotFound => "; meshpace scenarios DIR lists the scenarios in a directory",
            io::ErrorKind::IsADirectory => "; name a scenario in it: meshpace scenarios DIR lists them",
            _ => "",
        };
        complain(&format!("{name}: {error}{way}"));
        ExitCode::from(REFUSED)
    })?;
    if is_of_records(&text) {
        complain(&format!(
            "{name}: this is a file of records, not a scenario; give its directory to meshpace report or meshpace compare"
        ));
        return Err(ExitCode::from(REFUSED));
    }
    let source = Source { name, text, sets: sets.to_vec() };
    let directory = if from_stdin { Path::new("") } else { file.parent().unwrap_or(Path::new("")) };
    let stem = file.file_stem().filter(|_| !from_stdin).map_or("stdin".into(), |stem| stem.to_string_lossy());
    match read(source, directory, &stem) {
        Ok(scenario) => {
            let named = |warning| note(&format!("warning: {}: {warning}", scenario.source.name));
            scenario.warnings.iter().for_each(named);
            Ok(scenario)
        }
        // The file is not a scenario at all. An error for each of its lines would be less helpful.
        Err(refusal) if is_no_toml(file, &refusal) => {
            complain(&format!(
                "{}: not a scenario (a TOML file); a scenario can name a map in topology.file and a list of links in radio.links",
                refusal.source.name
            ));
            Err(ExitCode::from(REFUSED))
        }
        Err(mut refusal) => {
            words::advise(&mut refusal);
            let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            tell(&format!("{}\n", refusal.render(color)));
            Err(ExitCode::from(REFUSED))
        }
    }
}

/// True if a refused file is not TOML: its name has another extension, and all problems say that
/// its content is not TOML.
fn is_no_toml(file: &Path, refusal: &Refusal) -> bool {
    let other = file.extension().is_some_and(|extension| !extension.eq_ignore_ascii_case("toml"));
    other && refusal.problems.iter().all(|problem| problem.message.starts_with("not TOML"))
}

/// True if a text is a record or a manifest. Both are JSON objects, whereas a scenario is TOML.
fn is_of_records(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    [first, text]
        .iter()
        .any(|text| serde_json::from_str::<serde_json::Value>(text).is_ok_and(|value| value.is_object()))
}

/// Makes the runs and prints their records. `campaign` has the seeds that every point gets; with
/// `until` a point may get more.
fn execute(
    arguments: &Arguments,
    campaign: Campaign,
    until: Option<Until>,
    jobs: usize,
    watchers: Watchers,
) -> Result<ExitCode, Failure> {
    let (manifest, work, out) = (campaign.manifest(jobs), campaign.work(), arguments.out.as_deref());
    let seeds = until.map_or(campaign.seeds, |until| until.most());
    let campaign = Arc::new(Campaign { seeds, ..campaign });
    let mut growing = until.map(|until| Growing::new(until, &campaign));
    let mut session = runner::open(&campaign, out, &manifest, arguments.force)?;
    if arguments.per_node {
        session.require_nodes();
    }
    let stop = stop_on_interrupt();
    let progress = Progress::new(work);
    runner::silence_panics();
    // A run whose record already exists is not repeated, unless captures or a recording are
    // written.
    let all: Vec<Run> =
        growing.as_ref().map_or_else(|| campaign.all().collect(), |growing| growing.runs(&campaign).collect());
    let (known, todo) = if watchers.want_runs() { (Vec::new(), all) } else { session.partition(all) };
    let lacking = session.lacking(&todo);
    if lacking > 0 {
        note(&format!("{lacking} existing records lack values that this command needs; their runs are repeated"));
    }
    progress.known(session.work(&known));
    let files = arguments.out.is_some() || arguments.report.is_some() || watchers.want_runs();
    let (watchers, watch) = (Arc::new(watchers), picture::Watch::default());
    let mut sink = Sink::new(arguments.format, Told(&progress), Arc::clone(&watchers), files);
    sink.shown = arguments.report.as_ref().map(|_| Vec::new());
    sink.holds = growing.is_some();
    let mut made = if sink.holds { Ok(()) } else { sink.put(&mut session, &known) }.map(|()| 0).map_err(Broken::from);
    if made.is_ok() && (!todo.is_empty() || growing.is_some()) {
        let simulate = simulate(arguments, &campaign, watchers, &watch);
        let mut backend = runner::backend(arguments.dask.as_deref(), jobs, &stop, simulate)?;
        made = match &mut growing {
            Some(growing) => growing.make(&mut session, &mut *backend, &mut sink),
            None => session.make(todo, &mut *backend, &mut sink),
        };
    }
    progress.finish();
    if let (Some(growing), Ok(_)) = (&growing, &made) {
        made = put_all(growing, &mut session, &mut sink).map_err(Broken::from).and(made);
    }
    sink.tell_silent();
    // The table itself begins with these sentences.
    if arguments.format != Format::Table {
        alarm(&sink.starved.sentences());
    }
    let failures = match made {
        Ok(failures) => failures,
        Err(Broken::Io(error)) => return Ok(failed(&error)),
        Err(stopped) => return Err(runner::broken(stopped, out)),
    };
    session.finish(jobs).map_err(|error| runner::broken(error.into(), out))?;
    if let Err(error) = sink.end() {
        return Ok(failed(&error));
    }
    if let (Some(page), Some(shown)) = (&arguments.report, &sink.shown) {
        picture::write(page, &campaign, &amount(arguments, &campaign), shown, &watch).map_err(|why| (FAILED, why))?;
        note(&format!("the plots are in {}", page.display()));
    }
    Ok(if failures > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// Returns the options that determine the number of seeds, for the command that creates a page
/// again.
fn amount(arguments: &Arguments, campaign: &Campaign) -> String {
    match &arguments.until {
        Some(rule) => format!("--until '{rule}' --most {}", arguments.most),
        None => format!("--seeds {}", campaign.seeds),
    }
}

/// Prints all runs of a campaign with `--until`, and reports the points that have not reached their
/// interval.
fn put_all(growing: &Growing, session: &mut Session, sink: &mut Sink<'_>) -> io::Result<()> {
    growing.told(session)?.iter().for_each(|sentence| complain(sentence));
    let numbered = |(index, run): (usize, Run)| Run { index, ..run };
    let runs: Vec<Run> = growing.runs(session.campaign()).enumerate().map(numbered).collect();
    sink.put(session, &runs)
}

/// Returns the function that makes each run, together with the observers of that run.
fn simulate(
    arguments: &Arguments,
    campaign: &Arc<Campaign>,
    watchers: Arc<Watchers>,
    watch: &picture::Watch,
) -> Arc<Simulate> {
    let per_node = arguments.per_node;
    let watching = arguments.report.as_ref().map(|_| (watch.clone(), Arc::clone(campaign)));
    Arc::new(move |point: &Point, run: Run| match (&watchers.captures, &watchers.recording, &watching) {
        (Some(captures), ..) => (captures.run(point, run), None),
        (_, Some(recording), _) => (recording.run(point, run), None),
        _ if per_node => {
            let (outcome, nodes) = nodes::run(&point.config, run.seed);
            (outcome, Some(nodes))
        }
        (.., Some((watch, campaign))) if picture::Watch::is_of(campaign, run) => (watch.run(point, run), None),
        _ => campaign::simulate(point, run),
    })
}

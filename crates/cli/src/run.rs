//! `meshpace run`: one scenario or its sweep.

use crate::captures::Captures;
use crate::output::{complain, failed, results};
use crate::{FAILED, INTERRUPTED, REFUSED, prospect};
use clap::{ArgGroup, Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use meshpace_lab::campaign::{Campaign, End, Run};
use meshpace_lab::record::directory::{Manifest, Writer};
use meshpace_lab::record::{Record, csv, table};
use meshpace_scenario::{MAX_SEEDS, Scenario, Source};
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The arguments of `meshpace run`.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("written").args(["out", "pcap"]).multiple(true))]
pub struct Arguments {
    /// The scenario, a TOML file; `-` reads standard input.
    file: PathBuf,
    /// Set a key of the scenario: topology.hops=4, flow.transport=newreno (every flow), flow.0.segment=512 (the first).
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The first seed.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Seeds per point: N, N+1, ... [default: the scenario's sweep.seeds, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: Option<u64>,
    /// Runs at a time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// What to print: `table` for people (means with 95 % intervals), `json` one object per run and line, `csv` one row
    /// per flow and run.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Write records.jsonl and manifest.json into this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write what every node's radio and transport sees into this directory, for Wireshark; several runs get one
    /// subdirectory each.
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Start even if the estimate says that it takes days, or more memory than there is.
    #[arg(long)]
    anyway: bool,
    /// Replace the records that are in the directory of --out and the captures in that of --pcap.
    #[arg(long, requires = "written")]
    force: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Table,
    Json,
    Csv,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let (scenario, source) = match load(&arguments.file, &arguments.set) {
        Ok(loaded) => loaded,
        Err(status) => return status,
    };
    let seeds = arguments.seeds.unwrap_or(scenario.seeds);
    if arguments.seed.checked_add(seeds - 1).is_none() {
        complain(&format!("--seed {} leaves no room for {seeds} seeds", arguments.seed));
        return ExitCode::from(REFUSED);
    }
    let campaign = Campaign { scenario, first_seed: arguments.seed, seeds };
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    if let Some(why) = prospect::too_much(&campaign, jobs).filter(|_| !arguments.anyway) {
        complain(&format!("{why}; --anyway starts it all the same"));
        return ExitCode::from(REFUSED);
    }
    let writer = match arguments.out.as_deref().map(|directory| Writer::create(directory, arguments.force)).transpose()
    {
        Ok(writer) => writer,
        Err(error) => {
            complain(&format!("--out: {error}"));
            return ExitCode::from(REFUSED);
        }
    };
    let captures = arguments.pcap.as_deref().map(|directory| Captures::new(directory, &campaign, arguments.force));
    match captures.transpose() {
        Ok(captures) => execute(arguments, campaign, &source, writer, captures),
        Err(error) => {
            complain(&format!("--pcap: {error}"));
            ExitCode::from(REFUSED)
        }
    }
}

/// Reads the scenario in `file` as `sets` change it; what is wrong with it has been told.
pub fn load(file: &Path, sets: &[String]) -> Result<(Scenario, Source), ExitCode> {
    let from_stdin = file == Path::new("-");
    let bytes = if from_stdin {
        let mut bytes = Vec::new();
        io::stdin().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let name = if from_stdin { "<stdin>".to_owned() } else { file.display().to_string() };
    let text = bytes.and_then(|bytes| {
        let text = String::from_utf8(bytes);
        text.map_err(|error| {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
            io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is no UTF-8 text"))
        })
    });
    let text = text.map_err(|error| {
        complain(&format!("{name}: {error}"));
        ExitCode::from(REFUSED)
    })?;
    let source = Source { name, text, sets: sets.to_vec() };
    let directory = if from_stdin { Path::new("") } else { file.parent().unwrap_or(Path::new("")) };
    let stem = file.file_stem().filter(|_| !from_stdin).map_or("stdin".into(), |stem| stem.to_string_lossy());
    match Scenario::read(source.clone(), directory, &stem) {
        Ok(scenario) => Ok((scenario, source)),
        Err(refusal) => {
            let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            eprintln!("{}", refusal.render(color));
            Err(ExitCode::from(REFUSED))
        }
    }
}

fn execute(
    arguments: &Arguments,
    campaign: Campaign,
    source: &Source,
    writer: Option<Writer>,
    captures: Option<Captures>,
) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "wall time for people and the manifest, never for a record")]
    let begun = Instant::now();
    let campaign = Arc::new(campaign);
    let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
    let stop = stop_on_interrupt();
    let progress = progress(campaign.runs() as u64);
    let mut sink = Sink { format: arguments.format, writer, table: Vec::new(), header: true };
    let captures = Arc::new(captures);
    let capturing = Arc::clone(&captures);
    let simulate = move |point: &meshpace_scenario::Point, run: Run| match &*capturing {
        Some(captures) => captures.run(point, run),
        None => meshpace_sim::run(&point.config, run.seed),
    };
    silence_panics();
    let end = campaign.execute(
        jobs,
        &stop,
        simulate,
        |run, result| {
            match result {
                Ok(outcome) => {
                    if let Some(failure) = captures.as_ref().as_ref().and_then(Captures::failure) {
                        return Err(io::Error::other(failure));
                    }
                    let record = Record::new(&campaign.scenario, campaign.point(run), run.seed, &outcome);
                    progress.suspend(|| sink.take(record))?;
                }
                Err(why) => progress.suspend(|| complain(&format!("{} failed: {why}", describe(&campaign, run)))),
            }
            progress.inc(1);
            Ok(())
        },
        || progress.tick(),
    );
    progress.finish_and_clear();
    match end {
        Ok(End::Stopped) => {
            complain("interrupted");
            // Dropped first: the process ends with threads still running, and its temporary file shall not stay.
            drop(sink);
            ExitCode::from(INTERRUPTED)
        }
        Ok(End::Complete { failed: failures }) => {
            let manifest = Manifest {
                scenario: campaign.scenario.name.clone(),
                scenario_sha256: campaign.scenario.digest.clone(),
                scenario_text: source.text.clone(),
                set: source.sets.clone(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                model: meshpace_sim::MODEL_REVISION,
                first_seed: campaign.first_seed,
                seeds: campaign.seeds,
                points: campaign.scenario.points.len(),
                failed_runs: failures,
                jobs,
                host: host(),
                wall_time_s: begun.elapsed().as_secs_f64(),
                experiment: None,
                quality: None,
                complete: true,
            };
            match sink.finish(&manifest) {
                Err(error) => failed(&error),
                Ok(()) if failures > 0 => ExitCode::from(FAILED),
                Ok(()) => ExitCode::SUCCESS,
            }
        }
        Err(error) => failed(&error),
    }
}

/// Where records go.
struct Sink {
    format: Format,
    writer: Option<Writer>,
    /// The records so far, when they are needed at the end.
    table: Vec<Record>,
    /// Whether a CSV header is still to be written.
    header: bool,
}

impl Sink {
    fn take(&mut self, record: Record) -> io::Result<()> {
        if let Some(writer) = &mut self.writer {
            writer.add(&record.json_line())?;
        }
        match self.format {
            Format::Json => results(&record.json_line()),
            Format::Csv => results(&csv::rows(&record, std::mem::take(&mut self.header))?),
            Format::Table => {
                self.table.push(record);
                Ok(())
            }
        }
    }

    fn finish(self, manifest: &Manifest) -> io::Result<()> {
        if let Some(writer) = self.writer {
            writer.finish(manifest)?;
        }
        results(&table::render(&self.table))
    }
}

/// A run in words.
pub fn describe(campaign: &Campaign, run: Run) -> String {
    let values = campaign.point(run).values.iter();
    let values: Vec<String> = values.map(|(key, value)| format!("{key} = {value}, ")).collect();
    format!("run with {}seed {}", values.concat(), run.seed)
}

/// A panic in a run is told in one line with its run; the default hook would print it a second time without.
pub fn silence_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::env::var_os("RUST_BACKTRACE").is_some() || std::thread::current().name() == Some("main") {
            usual(panic);
        }
    }));
}

/// A flag that Ctrl-C sets, so that the line being written is finished. A second Ctrl-C does not wait for that.
pub fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        complain(&format!("Ctrl-C will end this without ceremony: {error}"));
    }
    stop
}

/// Processors that runs can be spread over.
pub fn processors() -> u16 {
    std::thread::available_parallelism().map_or(1, |count| u16::try_from(count.get()).unwrap_or(u16::MAX))
}

/// A bar with the time left, on standard error if that is a terminal and there is more than one run.
pub fn progress(runs: u64) -> ProgressBar {
    let target = if runs > 1 && io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {elapsed} gone, {eta} left");
    ProgressBar::with_draw_target(Some(runs), target).with_style(style.expect("the template is right"))
}

/// Name of this machine, or of its system.
pub fn host() -> String {
    let name =
        std::fs::read_to_string("/proc/sys/kernel/hostname").or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = name.unwrap_or_default().trim().to_owned();
    if name.is_empty() { std::env::consts::OS.to_owned() } else { name }
}

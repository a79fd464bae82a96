//! `meshpace reproduce`: published experiments, run again, each with its report.

use crate::output::{complain, results};
use crate::run::{describe, host, processors, progress, silence_panics, stop_on_interrupt};
use crate::{FAILED, INTERRUPTED, REFUSED};
use clap::{Args, ValueEnum};
use meshpace_lab::campaign::{Campaign, End, Run};
use meshpace_lab::record::directory::{MANIFEST, Manifest, RECORDS, Writer};
use meshpace_lab::record::{Record, csv};
use meshpace_lab::register::{EXPERIMENTS, Experiment};
use meshpace_lab::report::{self, PAPER_SEEDS, Provenance, QUICK_SEEDS, TABLE, write_whole};
use meshpace_lab::scenario::{MAX_SEEDS, Point};
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
    /// How many seeds: quick 5, paper 20.
    #[arg(long, value_enum, default_value_t = Quality::Quick)]
    quality: Quality,
    /// Seeds per point, instead of --quality.
    #[arg(long, value_name = "N", conflicts_with = "quality", value_parser = clap::value_parser!(u64).range(1..=MAX_SEEDS))]
    seeds: Option<u64>,
    /// Runs at a time [default: the number of processors].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Where to write; one directory per experiment within it if there are several [default: report/ID].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Replace records that are there already and are not those that would be made.
    #[arg(long)]
    force: bool,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Quality {
    Quick,
    Paper,
}

/// What is run, where it goes, how.
struct Job<'a> {
    experiment: &'static Experiment,
    directory: PathBuf,
    seeds: u64,
    jobs: usize,
    force: bool,
    stop: &'a Arc<AtomicBool>,
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    let chosen = match choose(&arguments.ids) {
        Ok(chosen) => chosen,
        Err(message) => {
            complain(&message);
            return ExitCode::from(REFUSED);
        }
    };
    let stop = stop_on_interrupt();
    silence_panics();
    let seeds = arguments.seeds.unwrap_or(match arguments.quality {
        Quality::Quick => QUICK_SEEDS,
        Quality::Paper => PAPER_SEEDS,
    });
    for &experiment in &chosen {
        let directory = match &arguments.out {
            Some(out) if chosen.len() == 1 => out.clone(),
            out => out.as_deref().unwrap_or(Path::new("report")).join(experiment.id),
        };
        let jobs = usize::from(arguments.jobs.unwrap_or_else(processors));
        let job = Job { experiment, directory, seeds, jobs, force: arguments.force, stop: &stop };
        if let Err((status, message)) = job.reproduce() {
            complain(&message);
            return ExitCode::from(status);
        }
    }
    ExitCode::SUCCESS
}

fn choose(ids: &[String]) -> Result<Vec<&'static Experiment>, String> {
    let mut chosen: Vec<&'static Experiment> = Vec::new();
    let every = ["all".to_owned()];
    for id in if ids.is_empty() { &every[..] } else { ids } {
        let wanted = |experiment: &&Experiment| {
            id == "all" || experiment.is_called(id) || experiment.paper().eq_ignore_ascii_case(id)
        };
        let before = chosen.len();
        let known = EXPERIMENTS.iter().filter(wanted);
        let mut found = false;
        for experiment in known {
            found = true;
            if !chosen[..before].iter().any(|other| other.id == experiment.id) {
                chosen.push(experiment);
            }
        }
        if !found {
            let known: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
            return Err(format!("no experiment is called {id}; this version has {}", known.join(", ")));
        }
    }
    Ok(chosen)
}

/// What a directory holds already.
enum Found {
    /// No records.
    Nothing,
    /// Exactly the records that would be made.
    Complete,
    /// Something else, in words.
    Other(String),
}

impl Job<'_> {
    fn reproduce(&self) -> Result<(), (u8, String)> {
        let id = self.experiment.id;
        let refused = |message| (REFUSED, message);
        let failed = |message| (FAILED, message);
        let scenario = self.experiment.read().map_err(|refusal| refused(refusal.render(false)))?;
        match self.found(&scenario.digest) {
            Found::Complete if !self.force => {
                complain(&format!(
                    "{id}: the records in {} are complete; only the report is written anew",
                    self.shown()
                ));
            }
            Found::Other(what) if !self.force => {
                return Err(refused(format!(
                    "{} holds {what}; --force replaces it, --out writes elsewhere",
                    self.shown()
                )));
            }
            _ => {
                let campaign = Campaign { scenario, first_seed: 1, seeds: self.seeds };
                self.simulate(Arc::new(campaign))?;
            }
        }
        let page = report::write(&self.directory).map_err(failed)?;
        results(&format!("{}\n", page.display())).map_err(|error| failed(error.to_string()))
    }

    fn shown(&self) -> std::path::Display<'_> {
        self.directory.display()
    }

    fn found(&self, digest: &str) -> Found {
        let there = |name: &str| self.directory.join(name).symlink_metadata().is_ok();
        if !there(MANIFEST) {
            return if there(RECORDS) { Found::Other("records without a manifest".into()) } else { Found::Nothing };
        }
        match Provenance::read(&self.directory) {
            Err(why) => Found::Other(format!("a manifest that cannot be read ({why})")),
            Ok(made) if made.failed_runs > 0 => Found::Other("records of a campaign with failed runs".into()),
            Ok(made) if made.scenario_sha256 != digest => Found::Other(format!("records of \"{}\"", made.scenario)),
            Ok(made) if made.version != env!("CARGO_PKG_VERSION") => {
                Found::Other(format!("records of version {}", made.version))
            }
            Ok(made) if (made.first_seed, made.seeds) != (1, self.seeds) => {
                Found::Other(format!("records of {} seeds from {}", made.seeds, made.first_seed))
            }
            Ok(_) if !there(RECORDS) => Found::Other("a manifest without records".into()),
            Ok(_) => Found::Complete,
        }
    }

    fn simulate(&self, campaign: Arc<Campaign>) -> Result<(), (u8, String)> {
        let broken = |error: io::Error| (FAILED, format!("{}: {error}", self.shown()));
        #[expect(clippy::disallowed_methods, reason = "wall time for the manifest, never for a record")]
        let begun = Instant::now();
        let mut writer = Writer::create(&self.directory, self.force).map_err(broken)?;
        let progress = progress(campaign.runs() as u64);
        let mut table = String::new();
        let end = campaign.execute(
            self.jobs,
            self.stop,
            |point: &Point, run: Run| meshpace_sim::run(&point.config, run.seed),
            |run, result| {
                match result {
                    Ok(outcome) => {
                        let record = Record::new(&campaign.scenario, campaign.point(run), run.seed, &outcome);
                        writer.add(&record.json_line())?;
                        table.push_str(&csv::rows(&record, table.is_empty())?);
                    }
                    Err(why) => progress.suspend(|| complain(&format!("{} failed: {why}", describe(&campaign, run)))),
                }
                progress.inc(1);
                Ok(())
            },
            || progress.tick(),
        );
        progress.finish_and_clear();
        let failures = match end.map_err(broken)? {
            End::Complete { failed } => failed,
            // Dropping the writer here takes its temporary file away; nothing else has been written.
            End::Stopped => return Err((INTERRUPTED, "interrupted; nothing has been written".into())),
        };
        let source = self.experiment.source();
        let manifest = Manifest {
            scenario: campaign.scenario.name.clone(),
            scenario_sha256: campaign.scenario.digest.clone(),
            scenario_text: source.text,
            set: source.sets,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            first_seed: campaign.first_seed,
            seeds: campaign.seeds,
            points: campaign.scenario.points.len(),
            failed_runs: failures,
            jobs: self.jobs,
            host: host(),
            wall_time_s: begun.elapsed().as_secs_f64(),
        };
        write_whole(&self.directory, TABLE, &table).map_err(broken)?;
        writer.finish(&manifest).map_err(broken)?;
        if failures > 0 { Err((FAILED, format!("{failures} runs failed"))) } else { Ok(()) }
    }
}

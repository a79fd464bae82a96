//! `meshpace dev bench`: measures the speed of the simulator on named workloads, and compares it
//! with ns-2 and ns-3 if those are installed.
//!
//! Every measured run is a separate process. The measure is its user and system CPU time as the
//! operating system accounts for it. Runs of two simulators alternate (A B A B), so that a drift in
//! the speed of the machine favours neither.

mod mesh_file;
mod ns2;
mod ns3;
mod outcome;
mod pairs;

use crate::output::{complain, failed, results};
use crate::{FAILED, REFUSED};
use clap::{Args, ValueEnum};
use meshpace_scenario::{Point, Scenario, Source};
use outcome::Outcome;
use pairs::{Own, Rival, median};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The arguments of `meshpace dev bench`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Workloads to run [default: chain-7, grid-25, random-120]; `all` takes some minutes.
    names: Vec<String>,
    /// Measure each workload this often, each time beside another simulator if possible [default:
    /// 5; 1 beside ns-3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pairs: Option<u16>,
    /// Run beside this simulator only [default: all that are installed]
    #[arg(long, value_name = "SIMULATOR")]
    beside: Option<Other>,
    /// Run without the other simulators.
    #[arg(long, conflicts_with = "beside")]
    alone: bool,
    /// Let ns-3 simulate the whole time of the workload instead of a part of it.
    #[arg(long, conflicts_with = "alone")]
    full: bool,
    /// Set a key of every workload, such as routing.protocol=static. The other simulators are then
    /// left out.
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "beside")]
    set: Vec<String>,
    /// Print one JSON object per workload and line.
    #[arg(long)]
    json: bool,
    /// Print the names of the workloads.
    #[arg(long)]
    list: bool,
    /// Make one run of one workload, and print its record. This is the run that is measured.
    #[arg(long, hide = true, conflicts_with_all = ["json", "list"])]
    once: bool,
}

/// Another simulator.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Other {
    /// ns-2.35
    #[value(name = "ns-2")]
    Ns2,
    /// ns-3.44
    #[value(name = "ns-3")]
    Ns3,
}

/// Workload of the benchmark.
struct Workload {
    name: &'static str,
    text: &'static str,
    /// Settings with which other simulators do the same work; `None` if they cannot do it.
    others: Option<Others>,
}

/// Settings of the same work in other simulators.
struct Others {
    /// Window of the flows, segments.
    window: u32,
    /// Simulated time of ns-3 in seconds, unless `--full` is given. It takes ns-3 10 to 30 s of CPU
    /// time.
    ns3_s: f64,
}

macro_rules! workload {
    ($name:literal, $others:expr) => {
        Workload {
            name: $name,
            text: include_str!(concat!("../../../../scenarios/bench/", $name, ".toml")),
            others: $others,
        }
    };
}

/// Workloads, whose scenarios are in `scenarios/bench`.
const WORKLOADS: [Workload; 10] = [
    workload!("chain-7", Some(Others { window: 3, ns3_s: 60.0 })),
    workload!("grid-25", Some(Others { window: 64, ns3_s: 40.0 })),
    workload!("random-120", Some(Others { window: 64, ns3_s: 20.0 })),
    workload!("chain-1", Some(Others { window: 3, ns3_s: 60.0 })),
    workload!("random-1000", None),
    workload!("random-3000", None),
    workload!("random-10000", None),
    workload!("mobile-50", None),
    workload!("mobile-500", None),
    workload!("olsr-200", None),
];
/// Number of workloads that are run by default, from the start of the list.
const USUAL: usize = 3;
/// Default number of measured runs of each workload.
const PAIRS: u16 = 5;
/// Default number of measured runs beside ns-3, which takes much longer.
const NS3_PAIRS: u16 = 1;

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    if arguments.list {
        let names: String = WORKLOADS.iter().map(|workload| format!("{}\n", workload.name)).collect();
        return crate::output::finish(&names);
    }
    let chosen = match choose(&arguments.names) {
        Ok(chosen) => chosen,
        Err(message) => {
            complain(&message);
            return ExitCode::from(REFUSED);
        }
    };
    // The workloads themselves are valid, but `--set` may not be applicable to one of them.
    let refusal = |workload: &&Workload| read(workload, &arguments.set).err();
    if !arguments.set.is_empty()
        && let Some(error) = chosen.iter().find_map(refusal)
    {
        complain(&error.to_string());
        return ExitCode::from(REFUSED);
    }
    let mut there = There::default();
    if !arguments.once && arguments.set.is_empty() && chosen.iter().any(|workload| workload.others.is_some()) {
        match look(arguments) {
            Ok(found) => there = found,
            Err(message) => {
                complain(&message);
                return ExitCode::from(REFUSED);
            }
        }
    }
    for workload in chosen {
        let done = if arguments.once { once(workload, &arguments.set) } else { measure(workload, arguments, &there) };
        match done {
            Ok(text) => {
                if let Err(error) = results(&text) {
                    return failed(&error);
                }
            }
            Err(error) => {
                complain(&format!("{}: {error}", workload.name));
                return ExitCode::from(FAILED);
            }
        }
    }
    ExitCode::SUCCESS
}

fn choose(names: &[String]) -> Result<Vec<&'static Workload>, String> {
    match names {
        [] => return Ok(WORKLOADS.iter().take(USUAL).collect()),
        [all] if all == "all" => return Ok(WORKLOADS.iter().collect()),
        _ => {}
    }
    let find = |name: &String| {
        WORKLOADS.iter().find(|workload| workload.name == name).ok_or_else(|| {
            let known: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
            format!("there is no workload {name}; expected {}, or all", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

fn read(workload: &Workload, sets: &[String]) -> io::Result<Point> {
    let source = Source { name: workload.name.to_owned(), text: workload.text.to_owned(), sets: sets.to_vec() };
    let scenario = Scenario::read(source, Path::new(""), workload.name);
    let scenario = scenario.map_err(|refusal| io::Error::other(refusal.render(false)))?;
    let point = scenario.points.first().ok_or_else(|| io::Error::other("no point"))?;
    let drawn = point.drawn(1).map_err(|why| io::Error::other(why.to_string()))?;
    Ok(drawn.into_owned())
}

/// Makes one run in this process, and returns a line with its results.
fn once(workload: &Workload, sets: &[String]) -> io::Result<String> {
    let outcome = meshpace_sim::run(&read(workload, sets)?.config, 1);
    let line = json!({
        "frames": outcome.frames,
        "broadcasts": outcome.broadcasts,
        "sensed": outcome.sensed,
        "fingerprint": format!("{:016x}", outcome.fingerprint),
        "goodput_bps": outcome.aggregate_goodput_bps,
        "peak_kib": peak_kib().unwrap_or(0),
    });
    Ok(format!("{line}\n"))
}

/// Peak memory of this process, KiB; `None` if the system does not report it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}

/// The other simulators that are installed.
#[derive(Default)]
struct There {
    ns2: bool,
    /// Library of ns-3, and the program compiled against it.
    ns3: Option<(ns3::Library, PathBuf)>,
    /// Lines for people about the simulators that are missing.
    missing: String,
}

/// Looks for the other simulators. It is an error if a simulator that `--beside` names is not
/// usable. Otherwise a missing simulator is left out, and the output mentions that.
fn look(arguments: &Arguments) -> Result<There, String> {
    let mut there = There::default();
    let wanted = |other| !arguments.alone && arguments.beside.is_none_or(|only| only == other);
    if wanted(Other::Ns2) {
        there.ns2 = ns2::installed();
        if !there.ns2 {
            let why = "ns-2 is not installed (apt-get install ns2)";
            if arguments.beside.is_some() {
                return Err(why.to_owned());
            }
            let _ = writeln!(there.missing, "  {why}: no comparison");
        }
    }
    if wanted(Other::Ns3) {
        let found = match ns3::find() {
            Ok(Some(library)) => ns3::compile(&library).map(|program| (library, program)),
            Ok(None) => Err(format!("ns-3 is not installed ({})", ns3::REMEDY)),
            Err(why) => Err(format!("ns-3 cannot be used: {why}")),
        };
        match found {
            Ok(found) => there.ns3 = Some(found),
            Err(why) if arguments.beside.is_some() => return Err(why),
            Err(why) => {
                let _ = writeln!(there.missing, "  {why}: no comparison");
            }
        }
    }
    Ok(there)
}

fn measure(workload: &Workload, arguments: &Arguments, there: &There) -> io::Result<String> {
    let point = read(workload, &arguments.set)?;
    let simulated_s = point.config.duration.as_secs_f64();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["dev", "bench", "--once", workload.name]);
    command.args(arguments.set.iter().flat_map(|set| ["--set", set.as_str()]));
    let mut own = Own { command, simulated_s, last: Value::Null };
    let said = |line: &str| {
        if !arguments.json {
            let _ = writeln!(io::stderr(), "{} {line}", workload.name);
        }
    };
    let (mut beside_ns2, mut beside_ns3) = (None, None);
    if let Some(others) = &workload.others {
        if there.ns2 {
            let (command, files) = ns2::command(&point, others.window)?;
            let mut rival = Rival { name: "ns-2", command, simulated_s, _files: files };
            beside_ns2 = Some(pairs::run(&mut own, Some(&mut rival), arguments.pairs.unwrap_or(PAIRS), said)?);
        }
        if let Some((library, program)) = &there.ns3 {
            let part_s = if arguments.full { simulated_s } else { others.ns3_s };
            let (command, files) = ns3::command(program, &point, others.window, part_s)?;
            let mut rival = Rival { name: "ns-3", command, simulated_s: part_s, _files: files };
            let series = pairs::run(&mut own, Some(&mut rival), arguments.pairs.unwrap_or(NS3_PAIRS), said)?;
            beside_ns3 = Some((series, part_s, library.slowdown()));
        }
    }
    let mut ours: Vec<f64> = Vec::new();
    ours.extend(beside_ns2.iter().flat_map(|series| &series.ours));
    ours.extend(beside_ns3.iter().flat_map(|(series, ..)| &series.ours));
    if ours.is_empty() {
        ours = pairs::run(&mut own, None, arguments.pairs.unwrap_or(PAIRS), said)?.ours;
    }
    let config = &point.config;
    let (nodes, flows) = (config.positions.len(), config.flows.len());
    let mut outcome = Outcome::new(workload.name, nodes, flows, simulated_s, median(&ours), &own.last);
    if let Some(series) = beside_ns2 {
        outcome.beside_ns2(&series);
    }
    if let Some((series, part_s, slowdown)) = beside_ns3 {
        outcome.beside_ns3(&series, part_s, slowdown);
    }
    if arguments.json {
        return Ok(outcome.json());
    }
    let mut text = outcome.text();
    if workload.others.is_some() {
        text.push_str(&there.missing);
    }
    Ok(text)
}

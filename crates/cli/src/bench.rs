//! `meshpace bench`: how fast the simulator is on named workloads, beside ns-2 where that is installed.
//!
//! Every measured run is a process of its own, and what is counted is its user + system CPU time as the operating system
//! accounts for it. Runs of the two simulators alternate (A B A B), so that a machine whose speed drifts favours neither.

use crate::output::{complain, failed, results};
use crate::{FAILED, REFUSED};
use clap::Args;
use meshpace_lab::scenario::{Point, Scenario, Source};
use nix::sys::resource::{UsageWho, getrusage};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

/// The arguments of `meshpace bench`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Workloads to run [default: chain-7, grid-25, random-120]; `all` takes some minutes.
    names: Vec<String>,
    /// Measured runs of each, each beside one of ns-2 where that is possible.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pairs: u16,
    /// Leave ns-2 out.
    #[arg(long)]
    alone: bool,
    /// Print one JSON object per workload and line.
    #[arg(long)]
    json: bool,
    /// Print the names of the workloads.
    #[arg(long)]
    list: bool,
    /// Make one run of one workload and print its record: what is measured.
    #[arg(long, hide = true, conflicts_with_all = ["json", "list"])]
    once: bool,
}

/// A workload.
struct Workload {
    name: &'static str,
    text: &'static str,
    /// The window of its flows in segments, if ns-2 can do the same work.
    ns2_window: Option<u32>,
}

macro_rules! workload {
    ($name:literal, $ns2_window:expr) => {
        Workload {
            name: $name,
            text: include_str!(concat!("../../../scenarios/bench/", $name, ".toml")),
            ns2_window: $ns2_window,
        }
    };
}

/// The scenarios of `scenarios/bench`.
const WORKLOADS: [Workload; 10] = [
    workload!("chain-7", Some(3)),
    workload!("grid-25", Some(64)),
    workload!("random-120", Some(64)),
    workload!("chain-1", Some(3)),
    workload!("random-1000", None),
    workload!("random-3000", None),
    workload!("random-10000", None),
    workload!("mobile-50", None),
    workload!("mobile-500", None),
    workload!("olsr-200", None),
];
/// Those that are run unless told otherwise.
const USUAL: usize = 3;
/// The script that does the same work in ns-2.
const NS2_SCRIPT: &str = include_str!("../../../validation/ns2/mesh.tcl");

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
    for workload in chosen {
        let done = if arguments.once { once(workload) } else { measure(workload, arguments) };
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
            format!("no workload is called {name}; there are {}, or all", known.join(", "))
        })
    };
    names.iter().map(find).collect()
}

fn read(workload: &Workload) -> io::Result<Point> {
    let source = Source { name: workload.name.to_owned(), text: workload.text.to_owned(), sets: Vec::new() };
    let scenario = Scenario::read(source, Path::new(""), workload.name);
    let scenario = scenario.map_err(|refusal| io::Error::other(refusal.render(false)))?;
    let point = scenario.points.first().ok_or_else(|| io::Error::other("no point"))?;
    let drawn = point.drawn(1).map_err(|why| io::Error::other(why.to_string()))?;
    Ok(drawn.into_owned())
}

/// One run in this process: a line with what came of it.
fn once(workload: &Workload) -> io::Result<String> {
    let outcome = meshpace_sim::run(&read(workload)?.config, 1);
    let line = json!({
        "frames": outcome.frames,
        "fingerprint": format!("{:016x}", outcome.fingerprint),
        "goodput_bps": outcome.aggregate_goodput_bps,
        "peak_kib": peak_kib().unwrap_or(0),
    });
    Ok(format!("{line}\n"))
}

/// The most memory this process ever had, KiB; none where the system does not tell.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok())
}

/// Runs `command` to its end; its CPU seconds and what it printed.
fn cpu_seconds(command: &mut Command) -> io::Result<(f64, String)> {
    let used = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
        Ok::<f64, io::Error>(seconds(usage.user_time()) + seconds(usage.system_time()))
    };
    let before = used()?;
    let output = command.stderr(Stdio::null()).output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("{command:?} ended with {}", output.status)));
    }
    Ok((used()? - before, String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

fn installed(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// The same work in ns-2: the command, and the files it needs while it runs.
fn ns2(workload: &Workload, point: &Point) -> io::Result<Option<(Command, tempfile::TempDir)>> {
    let Some(window) = workload.ns2_window.filter(|_| installed("ns")) else { return Ok(None) };
    let directory = tempfile::tempdir()?;
    let mesh = directory.path().join("mesh.txt");
    let script = directory.path().join("mesh.tcl");
    let mut text = String::new();
    for place in &point.config.positions {
        let _ = writeln!(text, "node {} {}", place.x, place.y);
    }
    for flow in &point.config.flows {
        let _ = writeln!(text, "flow {} {}", flow.from.0, flow.to.0);
    }
    std::fs::write(&mesh, text)?;
    std::fs::write(&script, NS2_SCRIPT)?;
    let mut command = Command::new("ns");
    command.arg(&script).arg(format!("mesh={}", mesh.display())).arg(format!("window={window}"));
    command.arg(format!("warmup={}", point.config.warmup.as_secs_f64()));
    command.arg(format!("duration={}", point.config.duration.as_secs_f64()));
    Ok(Some((command, directory)))
}

fn measure(workload: &Workload, arguments: &Arguments) -> io::Result<String> {
    let point = read(workload)?;
    let simulated_s = point.config.duration.as_secs_f64();
    let mut ours = Command::new(std::env::current_exe()?);
    ours.args(["bench", "--once", workload.name]);
    let mut theirs = if arguments.alone { None } else { ns2(workload, &point)? };
    let (mut mine, mut other, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let (mut last, mut ns2_kbps) = (Value::Null, None);
    for pair in 1..=arguments.pairs {
        let (seconds, line) = cpu_seconds(&mut ours)?;
        let record: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
        if !last.is_null() && last["fingerprint"] != record["fingerprint"] {
            return Err(io::Error::other("two runs of the same scenario differ"));
        }
        last = record;
        mine.push(seconds);
        if let Some((command, _)) = &mut theirs {
            let (seconds, line) = cpu_seconds(command)?;
            other.push(seconds);
            ratios.push(seconds / mine[mine.len() - 1]);
            let kbps = line.split_whitespace().find_map(|word| word.strip_prefix("goodput_kbps="));
            ns2_kbps = kbps.and_then(|kbps| kbps.parse::<f64>().ok());
        }
        if !arguments.json {
            let beside = other.last().zip(ratios.last());
            let beside = beside.map(|(ns2, ratio)| format!(", ns-2 {ns2:.3} s, ratio {ratio:.2}"));
            let _ = writeln!(
                io::stderr(),
                "{} {pair}: {:.3} s CPU{}",
                workload.name,
                mine[mine.len() - 1],
                beside.unwrap_or_default()
            );
        }
    }
    let cpu_s = median(&mine);
    let frames = last["frames"].as_f64().unwrap_or(f64::NAN);
    let goodput_bps = last["goodput_bps"].as_f64().unwrap_or(f64::NAN);
    let mut record = json!({
        "workload": workload.name,
        "nodes": point.config.positions.len(),
        "flows": point.config.flows.len(),
        "simulated_s": simulated_s,
        "frames": last["frames"],
        "cpu_s": cpu_s,
        "frames_per_cpu_s": frames / cpu_s,
        "simulated_s_per_cpu_s": simulated_s / cpu_s,
        "peak_kib": last["peak_kib"],
        "goodput_bps": goodput_bps,
        "fingerprint": last["fingerprint"],
    });
    if !ratios.is_empty() {
        record["ns2_cpu_s"] = json!(median(&other));
        record["ns2_goodput_bps"] = json!(ns2_kbps.map(|kbps| kbps * 1e3));
        record["ns2_ratios"] = json!(ratios);
        record["ns2_ratio"] = json!(median(&ratios));
    }
    if arguments.json {
        return Ok(format!("{record}\n"));
    }
    let mut text = format!(
        "{}: {} nodes, {} flows, {simulated_s} simulated s, {frames} frames, {:.1} kbit/s, fingerprint {}\n  \
         {cpu_s:.3} s CPU, {:.2} million frames/s, {:.1} simulated s per CPU s, {:.2} us per frame, {:.1} MiB\n",
        workload.name,
        point.config.positions.len(),
        point.config.flows.len(),
        goodput_bps / 1e3,
        last["fingerprint"].as_str().unwrap_or("?"),
        frames / cpu_s / 1e6,
        simulated_s / cpu_s,
        cpu_s * 1e6 / frames,
        last["peak_kib"].as_f64().unwrap_or(f64::NAN) / 1024.0,
    );
    if !ratios.is_empty() {
        let _ = writeln!(
            text,
            "  ns-2: {:.3} s CPU, {:.1} kbit/s; ratio of CPU times, pair by pair: median {:.2}",
            median(&other),
            ns2_kbps.unwrap_or(f64::NAN),
            median(&ratios)
        );
    } else if workload.ns2_window.is_some() && !arguments.alone {
        text.push_str("  ns-2 is not installed (apt-get install ns2): no comparison\n");
    }
    Ok(text)
}

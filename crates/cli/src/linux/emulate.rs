//! `meshpace emulate`: runs real programs over the mesh of a scenario.

mod flows;
mod junit;
mod record;
mod recording;

use crate::linux::{link, shell, top};
use crate::output::{complain, note, tell};
use crate::{FAILED, INTERRUPTED, REFUSED, run};
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use meshpace_command::interrupt::stop_on_interrupt;
use meshpace_command::quantities::seconds;
use meshpace_core::Duration;
use meshpace_emulator::emulation::{Ended, ProgramReport};
use meshpace_emulator::node::Setup;
use meshpace_emulator::plan::Planned;
use meshpace_emulator::sysctl::sysctl_file;
use meshpace_emulator::verdict::Budget;
use meshpace_emulator::{Emulation, Failure, Mode, Observer, Options, Spec, run_dir};
use meshpace_lab::record::make_directory;
use meshpace_scenario::{Point, Scenario};
use record::Place;
use recording::Recording;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The arguments of `meshpace emulate`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(group = ArgGroup::new("written").args(["out", "pcap", "record"]).multiple(true))]
pub struct Arguments {
    #[command(subcommand)]
    under_way: Option<UnderWay>,
    /// Scenario file (TOML); `-` reads standard input. Its flows run only with --with-flows.
    #[arg(required_unless_present = "clean")]
    file: Option<PathBuf>,
    /// Run a command in a node, such as 'n0: iperf3 -s'. Can be repeated: the commands start in
    /// this order, 0.5 s apart, after the scenario's `[[program]]` tables. The emulation ends when
    /// the last one ends, with its exit status.
    #[arg(long, value_name = "NODE: COMMAND")]
    exec: Vec<String>,
    /// Also run the scenario's flows. They use our transports in user space and start before all
    /// programs.
    #[arg(long)]
    with_flows: bool,
    /// Set a key of the scenario, as in `meshpace run`.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Seed of the random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Choose the routing. `ours`: the mesh routes as in the scenario, and programs see one subnet.
    /// `kernel`: the kernels of the nodes route.
    #[arg(long, value_enum, default_value_t = Routes::Ours)]
    mode: Routes,
    /// With --mode kernel: install no routes, because a routing daemon finds them.
    #[arg(long)]
    no_routes: bool,
    /// Set the MTU: longest IP packet in bytes.
    #[arg(long, default_value_t = 1500, value_parser = clap::value_parser!(u16).range(576..))]
    mtu: u16,
    /// Set a kernel parameter in every node, such as net.ipv4.tcp_sack=0
    #[arg(long, value_name = "NAME=VALUE")]
    sysctl: Vec<String>,
    /// Cut or restore a link at a time of the mesh, such as '10 s: n3 n4 down'
    #[arg(long, value_name = "TIME: NODE NODE up|down")]
    link: Vec<String>,
    /// Write the standard output and the standard error of each program into two files in this
    /// directory.
    #[arg(long, value_name = "DIR")]
    log: Option<PathBuf>,
    /// Write a record of the traffic in the mesh into this directory (records.jsonl and
    /// manifest.json), as `meshpace run` does.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write every IP packet that a node sends or receives into this directory (nK-ip.pcapng), for
    /// Wireshark.
    #[arg(long, value_name = "DIR")]
    pcap: Option<PathBuf>,
    /// Record the events in the mesh, frame by frame, as a stream of lines (docs/record-stream.md).
    /// `meshpace view FILE` can play it while it is written.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Replace the record in the directory of --out, the captures in that of --pcap and the file of
    /// --record.
    #[arg(long, requires = "written")]
    force: bool,
    /// Write a test report in JUnit's format, with one case for each program (passed if its exit
    /// status is 0) and one for the verdict on the timing.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Run the mesh N times slower than real time, if it is too large for this machine. The timers
    /// of the programs and of the kernel are not slowed down.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    slowdown: u64,
    /// Allow this percentage of the frames to be later than their own time on the air.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    budget: f64,
    /// End with status 1 as soon as more frames are late than --budget allows.
    #[arg(long)]
    hard: bool,
    /// Do not ask for real-time priority.
    #[arg(long)]
    no_realtime_priority: bool,
    /// Do not use /dev/net/tun. Nodes are then joined by veth pairs and packet sockets, which is
    /// also done if the device cannot be opened.
    #[arg(long)]
    no_tun: bool,
    /// Remove what killed emulations left behind, and do nothing else.
    #[arg(long, exclusive = true)]
    clean: bool,
    /// For tests: deliver one frame in N late by this number of milliseconds.
    #[arg(long, value_name = "MS/N", hide = true, value_parser = injected)]
    inject_lateness: Option<(u64, Duration)>,
}

/// What can be done with an emulation that runs.
#[derive(Subcommand, Debug)]
enum UnderWay {
    /// Run a shell or a command in a node of a running emulation.
    Shell(shell::Arguments),
    /// Show a running emulation: streams and their paths, queues, losses, lateness.
    Top(top::Arguments),
    /// Cut or restore a link of a running emulation.
    Link(link::Arguments),
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Routes {
    /// The mesh routes.
    Ours,
    /// The kernels of the nodes route.
    Kernel,
}

fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err("expected 0 to 100 percent".to_owned()),
    }
}

fn injected(text: &str) -> Result<(u64, Duration), String> {
    let parsed = text.split_once('/').and_then(|(ms, every)| Some((ms.parse().ok()?, every.parse().ok()?)));
    parsed.map(|(ms, every)| (every, Duration::from_millis(ms))).ok_or_else(|| "expected MS/N".to_owned())
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    match &arguments.under_way {
        Some(UnderWay::Shell(arguments)) => return shell::main(arguments),
        Some(UnderWay::Top(arguments)) => return top::main(arguments),
        Some(UnderWay::Link(arguments)) => return link::main(arguments),
        None => {}
    }
    if arguments.clean {
        return clean();
    }
    let file = arguments.file.clone().unwrap_or_default();
    let read =
        run::load(&file, &arguments.set).and_then(|scenario| Ok((options(arguments, &file, &scenario)?, scenario)));
    let (options, scenario) = match read {
        Ok(read) => read,
        Err(status) => return status,
    };
    let open = |directory: &Path| Place::new(directory, &scenario, arguments.seed, arguments.force);
    let place = match arguments.out.as_deref().map(open).transpose() {
        Ok(place) => place,
        Err(error) => return refuse(format!("--out: {error}")),
    };
    let is_taken = |path: &&Path| !arguments.force && path.symlink_metadata().is_ok();
    if let Some(path) = arguments.record.as_deref().filter(is_taken) {
        return refuse(run::recording::is_there(path));
    }
    for (what, directory) in [("--log", &arguments.log), ("--pcap", &arguments.pcap)] {
        if let Some(Err(error)) = directory.as_deref().map(make_directory) {
            return refuse(format!("{what}: {error}"));
        }
    }
    let stop = stop_on_interrupt();
    let aloud: &mut dyn FnMut(&str) = &mut |message| complain(message);
    let config = options.config.clone();
    let observer = || -> Result<Box<dyn Observer>, String> {
        let Some(path) = &arguments.record else { return Ok(Box::new(())) };
        let file = run::recording::create(path, arguments.force)?;
        let recording = Recording::new(file, &scenario.name, arguments.seed, &config);
        Ok(Box::new(recording.map_err(|error| format!("--record: {}: {error}", path.display()))?))
    };
    match Emulation::run(options, observer, &stop, aloud) {
        Ok(emulation) => {
            let line = record::line(&scenario, arguments.seed, &emulation);
            let warmup = scenario.points[0].config.warmup;
            if place.is_some() && record::warmup(&scenario, &emulation) < warmup {
                note(&format!(
                    "--out: the emulation ended within the scenario's warm-up of {} s, so the record covers the whole emulation; a shorter warm-up, such as --set 'warmup=1 s', excludes its start",
                    warmup.as_secs_f64()
                ));
            }
            let seed = arguments.seed;
            let record = place.map(|place| place.finish(seed, emulation.elapsed, &line)).transpose();
            let report =
                arguments.junit.as_deref().map(|file| std::fs::write(file, junit::report(&scenario, &emulation)));
            let failures = [("--out", record.err()), ("--junit", report.transpose().err())];
            let failed = failures.iter().any(|(_, error)| error.is_some());
            for (what, error) in failures.iter().filter_map(|(what, error)| Some((what, error.as_ref()?))) {
                complain(&format!("{what}: {error}"));
            }
            conclude(&emulation, arguments);
            if failed { ExitCode::from(FAILED) } else { status(&emulation) }
        }
        Err(failure) => {
            complain(&failure.to_string());
            ExitCode::from(match failure {
                Failure::Refused(_) => REFUSED,
                Failure::Failed(_) => FAILED,
            })
        }
    }
}

fn clean() -> ExitCode {
    match run_dir::clean(&run_dir::base()) {
        Ok(removed) if removed.is_empty() => complain("nothing to remove"),
        Ok(removed) => {
            for run_dir::Removed { token, programs } in removed {
                complain(&format!("removed run {token}, {programs} program(s)"));
            }
        }
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::from(FAILED);
        }
    }
    ExitCode::SUCCESS
}

fn refuse(message: String) -> ExitCode {
    complain(&message);
    ExitCode::from(REFUSED)
}

fn options(arguments: &Arguments, file: &Path, scenario: &Scenario) -> Result<Options, ExitCode> {
    let point = &scenario.points[0];
    // Points that differ only in their transports have the same mesh, so such a sweep is allowed.
    if let Some(other) = scenario.points.iter().find(|other| mesh(other) != mesh(point)) {
        let values =
            |point: &Point| point.values.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>();
        let (one, other) = (values(point).join(" "), values(other).join(" "));
        return Err(refuse(format!(
            "{}: the sweep has several meshes, such as {one} and {other}; an emulation needs a single one",
            file.display()
        )));
    }
    let point = point.drawn(arguments.seed).map_err(|error| refuse(error.to_string()))?;
    let nodes = point.config.positions.len();
    let all = |what: &str, texts: &[String], parse: &dyn Fn(&str) -> Result<Spec, String>| {
        let parsed: Result<Vec<Spec>, String> = texts.iter().map(|text| parse(text)).collect();
        parsed.map_err(|error| refuse(format!("{what}: {error}")))
    };
    let of_scenario =
        point.programs.iter().map(|program| Spec { node: program.node, command: program.command.clone() });
    let mut programs = Vec::new();
    if arguments.with_flows {
        let this = std::env::current_exe().map_err(|error| refuse(format!("--with-flows: {error}")))?;
        programs = flows::programs(&point, &this, arguments.slowdown).map_err(refuse)?;
    }
    programs.extend(of_scenario);
    programs.extend(all("--exec", &arguments.exec, &|text| Spec::parse(text, nodes))?);
    let plan: Result<Vec<Planned>, String> =
        arguments.link.iter().map(|text| Planned::parse(text, nodes, seconds)).collect();
    let mut plan = plan.map_err(|error| refuse(format!("--link: {error}")))?;
    plan.sort_by_key(|planned| planned.at);
    let sysctls: Result<Vec<(String, String)>, ExitCode> = arguments.sysctl.iter().map(|text| sysctl(text)).collect();
    let mode = match arguments.mode {
        Routes::Ours => Mode::Ours,
        Routes::Kernel => Mode::Kernel,
    };
    Ok(Options {
        config: point.config.clone(),
        seed: arguments.seed,
        setup: Setup { mode, mtu: arguments.mtu, sysctls: sysctls?, without_tun: arguments.no_tun },
        installs_routes: !arguments.no_routes,
        programs,
        log: arguments.log.clone(),
        pcap: arguments.pcap.clone().map(|directory| (directory, arguments.force)),
        slowdown: arguments.slowdown,
        wants_priority: !arguments.no_realtime_priority,
        budget: Budget { late: arguments.budget / 100.0 },
        hard: arguments.hard,
        plan,
        inject: arguments.inject_lateness,
        base: run_dir::base(),
    })
}

/// Returns the part of a point that the emulation depends on.
fn mesh(point: &Point) -> impl PartialEq + use<'_> {
    let config = &point.config;
    (config.duration, &config.positions, &config.mobility, &config.firewall, &config.mesh)
}

fn sysctl(text: &str) -> Result<(String, String), ExitCode> {
    let parts = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    parts.filter(|(name, _)| sysctl_file(name).is_some()).ok_or_else(|| {
        refuse(format!(
            "--sysctl: `{text}`: expected a parameter of the network and a value, such as net.ipv4.tcp_sack=0"
        ))
    })
}

/// Prints a summary for people. Its last line is the verdict about the timing.
fn conclude(emulation: &Emulation, arguments: &Arguments) {
    let Emulation { lateness, losses, .. } = emulation;
    let span = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
    let line = |text: String| tell(&format!("{text}\n"));
    line(format!(
        "{:.1} s of mesh time, {} frames on the air, {} packets delivered; lost: {} in queues, {} on links, {} in routing",
        emulation.duration.as_secs_f64(),
        emulation.frames,
        lateness.deliveries,
        losses.queue,
        losses.link,
        losses.routing
    ));
    if arguments.slowdown > 1 {
        line(format!(
            "the mesh ran {} times slower than real time; the timers of the kernel and of programs did not, so to them the mesh is slow",
            arguments.slowdown
        ));
    }
    for program in emulation.programs.iter().filter(|program| program.status.is_some()) {
        line(waiting(program));
    }
    if lateness.deliveries > 0 {
        line(format!(
            "late: p50 {}, p99 {}, max {}; {:.2} % of the frames later than a slot, {:.2} % later than their air time{}",
            span(lateness.p50_s),
            span(lateness.p99_s),
            span(lateness.max_s),
            lateness.later_than_slot * 100.0,
            lateness.later_than_air_time * 100.0,
            if emulation.had_priority { "" } else { "; without real-time priority" }
        ));
    }
    line(format!("real time: {}", emulation.verdict));
}

fn waiting(program: &ProgramReport) -> String {
    format!(
        "{}: `{}` waited for a processor {:.2} % of its {:.1} s, {:.3} ms at a time",
        program.spec.node,
        program.spec.command,
        program.waiting().share * 100.0,
        program.lived_s,
        program.waiting().mean_s * 1e3
    )
}

fn status(emulation: &Emulation) -> ExitCode {
    match emulation.ended {
        Ended::Interrupted => ExitCode::from(INTERRUPTED),
        Ended::Budget => ExitCode::from(FAILED),
        Ended::LastProgram | Ended::Duration => {
            let last = emulation.programs.last();
            ExitCode::from(last.map_or(0, |program| program.status.unwrap_or(FAILED)))
        }
    }
}

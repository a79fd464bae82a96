//! An emulation from the creation of its namespaces to its verdict.

use crate::address;
use crate::capture::Capture;
use crate::control::{self, Line};
use crate::device::{self, Hub};
use crate::lateness::Summary;
use crate::medium::{Medium, Mode};
use crate::node::{self, Node, Setup};
use crate::observer::Observer;
use crate::plan::Planned;
use crate::program::{self, Place, Program, Spec, exit_code};
use crate::radio_words;
use crate::realtime::{RealTime, Report, Request, Settings};
use crate::run_dir::{self, RunDir};
use crate::starvation::{Accounts, Share};
use crate::state::Losses;
use crate::traffic::Traffic;
use crate::verdict::{Budget, Verdict, Waiting};
use meshpace_core::{Duration, NodeId, Time};
use meshpace_live::Clock;
use meshpace_live::poll::Poller;
use meshpace_mesh::RoutingConfig;
use meshpace_mesh::mac::Timing;
use meshpace_mesh::radio::{Channel, Neighbours};
use meshpace_mesh::routing::StaticRoutes;
use rustix::process::Signal;
use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};

/// Time between the starts of two programs, in the mesh's time.
const BETWEEN_STARTS: Duration = Duration::from_millis(500);
/// Interval at which the processor accounts of the programs are read.
const ACCOUNT_INTERVAL: Duration = Duration::from_millis(500);
/// Time that programs have for their exit after the signal to end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest wait before all conditions are checked again.
const LONGEST_WAIT: std::time::Duration = std::time::Duration::from_millis(50);

/// Settings of an emulation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Scenario: positions, movement, radio, MAC, routing.
    pub config: meshpace_sim::Config,
    /// Seed of the random streams.
    pub seed: u64,
    /// Settings of the nodes.
    pub setup: Setup,
    /// Only with kernel routes: true if the shortest paths are installed as routes. Routing daemons
    /// find their own.
    pub installs_routes: bool,
    /// Programs in the order of their start.
    pub programs: Vec<Spec>,
    /// Directory for copies of the programs' output.
    pub log: Option<PathBuf>,
    /// Directory for captures of the packets that the nodes send and receive. The second value is
    /// true if existing files are replaced.
    pub pcap: Option<(PathBuf, bool)>,
    /// Factor by which the mesh runs slower than real time.
    pub slowdown: u64,
    /// True if real-time priority is requested.
    pub wants_priority: bool,
    /// Limits within which a run is still valid.
    pub budget: Budget,
    /// True if the emulation ends as soon as the budget is used up.
    pub hard: bool,
    /// Planned changes of links.
    pub plan: Vec<Planned>,
    /// For tests: of every so many frames (the first value) one is delivered late by the second
    /// value.
    pub inject: Option<(u64, Duration)>,
    /// Directory of the runs, in which other processes find them: [`run_dir::base`].
    pub base: PathBuf,
}

/// Reason why there is no result.
#[derive(Debug)]
pub enum Failure {
    /// The request is invalid, or cannot be carried out on this machine. Nothing was started.
    Refused(String),
    /// The emulation failed while it ran.
    Failed(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(why) | Failure::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Failure {}

/// A result, or the reason why there is none.
pub type Result<T> = std::result::Result<T, Failure>;

/// Reason why an emulation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The last program has ended.
    LastProgram,
    /// The scenario's duration is over.
    Duration,
    /// The budget for late frames is used up.
    Budget,
    /// A user or another process ended it.
    Interrupted,
}

/// Result of a program.
#[derive(Clone, Debug)]
pub struct ProgramReport {
    /// Specification of the program.
    pub spec: Spec,
    /// Exit status as a shell reports it; `None` if the program was never started.
    pub status: Option<u8>,
    /// True if the emulation had to end the program.
    pub was_ended: bool,
    /// Processor time and waiting time of the program.
    pub share: Share,
    /// Lifetime of the program in seconds of the machine's clock.
    pub lived_s: f64,
}

impl ProgramReport {
    /// Time for which the program waited for a processor while it was ready to run.
    pub fn waiting(&self) -> Waiting {
        let share = if self.lived_s > 0.0 { self.share.waited as f64 / 1e9 / self.lived_s } else { 0.0 };
        Waiting { share, mean_s: self.share.mean_wait_s() }
    }
}

/// Result of an emulation.
#[derive(Debug)]
pub struct Emulation {
    /// Reason why it ended.
    pub ended: Ended,
    /// Verdict on the timing.
    pub verdict: Verdict,
    /// Lateness of the frames.
    pub lateness: Summary,
    /// Results of the programs.
    pub programs: Vec<ProgramReport>,
    /// Length in the mesh's time.
    pub duration: Duration,
    /// Length by the machine's clock.
    pub elapsed: Duration,
    /// Traffic that crossed the mesh.
    pub traffic: Traffic,
    /// Packets lost in the mesh.
    pub losses: Losses,
    /// Frames put on the air.
    pub frames: u64,
    /// True if the mesh ran with real-time priority.
    pub had_priority: bool,
}

impl Emulation {
    /// Runs an emulation to its end.
    ///
    /// `observer` creates an observer of the events in the mesh. It is called after everything else
    /// has been created, so that a request that is refused earlier has changed nothing. It may
    /// itself refuse, with a sentence for users. `stop` ends the emulation early. `tell` receives
    /// messages for users during the run.
    pub fn run(
        options: Options,
        observer: impl FnOnce() -> std::result::Result<Box<dyn Observer>, String>,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Emulation> {
        check(&options)?;
        for removed in run_dir::clean(&options.base).map_err(refused)? {
            let run_dir::Removed { token, programs } = removed;
            tell(&format!("removed what the killed run {token} left behind, with {programs} program(s)"));
        }
        if let Some(log) = &options.log {
            fs::create_dir_all(log).map_err(|error| Failure::Refused(format!("{}: {error}", log.display())))?;
        }
        let capture = options.pcap.as_ref().map(|(directory, replace)| {
            Capture::new(directory, options.config.positions.len(), *replace).map_err(refused)
        });
        let mut stage = Stage::new(&options, observer, capture.transpose()?, tell)?;
        let report = stage.play(&options, stop, tell);
        // Clean up whatever happened.
        stage.clear();
        let (ended, report) = report?;
        stage.judge(&options, ended, report, tell)
    }
}

fn refused(error: io::Error) -> Failure {
    Failure::Refused(error.to_string())
}

fn failed(error: io::Error) -> Failure {
    Failure::Failed(error.to_string())
}

fn check(options: &Options) -> Result<()> {
    let nodes = options.config.positions.len();
    if nodes > address::MAX_NODES {
        return Err(Failure::Refused(format!(
            "{nodes} nodes are too many: there are addresses for {}",
            address::MAX_NODES
        )));
    }
    for spec in &options.programs {
        spec.check().map_err(Failure::Refused)?;
    }
    if options.setup.mode == Mode::Kernel && options.config.mesh.routing != RoutingConfig::Static {
        let why = "--mode kernel needs routing.protocol = \"static\" in the scenario (--set routing.protocol=static)";
        return Err(Failure::Refused(why.to_owned()));
    }
    Ok(())
}

/// Everything that exists while programs run.
struct Stage {
    directory: Option<RunDir>,
    nodes: Vec<meshpace_live::testbed::Namespace>,
    line: Line,
    mesh: Option<JoinHandle<io::Result<Report>>>,
    programs: Vec<(Program, Time)>,
    ends: Vec<Option<(u8, Time)>>,
    ended: (std::sync::mpsc::Sender<program::Ended>, Receiver<program::Ended>),
    accounts: Accounts,
    was_ended: Vec<bool>,
}

impl Stage {
    fn new(
        options: &Options,
        observer: impl FnOnce() -> std::result::Result<Box<dyn Observer>, String>,
        capture: Option<Capture>,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Stage> {
        let directory = RunDir::create(&options.base).map_err(refused)?;
        let count = options.config.positions.len();
        let all = || (0..count).map(|node| NodeId(node as u16));
        let closed = device::tun_is_open().err();
        if let Some(error) = &closed {
            tell(&format!("/dev/net/tun: {error}; using veth pairs and packet sockets instead"));
        }
        let hub = (options.setup.without_tun || closed.is_some()).then(Hub::new).transpose();
        let hub = hub.map_err(refused)?;
        let made: io::Result<Vec<Node>> = all().map(|node| Node::new(node, &options.setup, hub.as_ref())).collect();
        let made = made.map_err(refused)?;
        if options.setup.mode == Mode::Kernel && options.installs_routes {
            let links =
                Neighbours::new(&Channel::new(&options.config.mesh.radio), &options.config.positions).adjacency();
            let routes = StaticRoutes::new(&links, all());
            node::install_routes(&made, |from, to| routes.next_hop(from, to)).map_err(refused)?;
        }
        fs::write(directory.path().join("hosts"), address::hosts(count)).map_err(refused)?;
        let me = std::process::id();
        let places: String = all()
            .zip(&made)
            .map(|(node, made)| format!("{node} /proc/{me}/fd/{}\n", made.namespace.as_fd().as_raw_fd()))
            .collect();
        fs::write(directory.path().join("nodes"), places).map_err(refused)?;
        let (nodes, devices): (Vec<_>, Vec<_>) = made.into_iter().map(|node| (node.namespace, node.device)).unzip();
        let poller = Poller::new().map_err(refused)?;
        let (requests, asked) = channel();
        let line = Line { requests, waker: poller.waker() };
        control::listen(directory.path(), count, line.clone()).map_err(refused)?;
        let settings = Settings {
            slowdown: options.slowdown,
            duration: options.config.duration,
            wants_priority: options.wants_priority,
            hard: options.hard.then_some(options.budget.late),
            plan: options.plan.clone(),
            inject: options.inject,
        };
        let (config, mode, seed) = (options.config.clone(), options.setup.mode, options.seed);
        let observer = observer().map_err(Failure::Refused)?;
        // The mesh is created on its own thread and never leaves that thread.
        let run = move || {
            let medium = Medium::new(&config, mode, seed, observer);
            RealTime::new(medium, devices, poller, settings, asked)?.run(capture)
        };
        let mesh = thread::Builder::new().name("mesh".to_owned()).spawn(run).map_err(refused)?;
        Ok(Stage {
            directory: Some(directory),
            nodes,
            line,
            mesh: Some(mesh),
            programs: Vec::new(),
            ends: Vec::new(),
            ended: channel(),
            accounts: Accounts::default(),
            was_ended: Vec::new(),
        })
    }

    /// Starts the programs and waits for the end.
    fn play(&mut self, options: &Options, stop: &AtomicBool, tell: &mut dyn FnMut(&str)) -> Result<(Ended, Report)> {
        let begin = Clock.now();
        let start_of = |number: usize| begin + BETWEEN_STARTS * (number as u64 * options.slowdown.max(1));
        let mut next_accounts = begin + ACCOUNT_INTERVAL;
        let ended = loop {
            let now = Clock.now();
            if self.programs.len() < options.programs.len() && start_of(self.programs.len()) <= now {
                self.start(options)?;
                continue;
            }
            if now >= next_accounts {
                self.read_accounts();
                next_accounts = now + ACCOUNT_INTERVAL;
            }
            if stop.load(Ordering::Relaxed) {
                break Ended::Interrupted;
            }
            if self.mesh.as_ref().is_none_or(JoinHandle::is_finished) {
                break Ended::Duration;
            }
            match self.ended.1.recv_timeout(LONGEST_WAIT) {
                Ok(end) => {
                    self.note(end, tell, options);
                    let all = options.programs.len();
                    if all > 0 && self.ends.len() == all && self.ends[all - 1].is_some() {
                        break Ended::LastProgram;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break Ended::Interrupted,
            }
        };
        self.read_accounts();
        self.end_programs();
        self.line.send(Request::Stop);
        let Some(mesh) = self.mesh.take() else {
            return Err(Failure::Failed("the thread of the mesh has ended".to_owned()));
        };
        let report =
            mesh.join().map_err(|_| Failure::Failed("the thread of the mesh failed".to_owned()))?.map_err(failed)?;
        let ended = if report.gave_up { Ended::Budget } else { ended };
        Ok((ended, report))
    }

    fn start(&mut self, options: &Options) -> Result<()> {
        let number = self.programs.len();
        let spec = &options.programs[number];
        let directory = self.directory.as_ref().expect("there while it plays");
        let network = self.nodes[spec.node.index()].as_fd().try_clone_to_owned().map_err(failed)?;
        let hosts = directory.path().join("hosts");
        let radio = radio_words::of(&options.config.mesh);
        let place = Place { network: network.into(), hosts: &hosts, token: directory.token(), radio: &radio };
        let program = Program::start(number, spec, place, options.log.as_deref(), self.ended.0.clone())
            .map_err(|error| Failure::Failed(format!("{}: `{}`: {error}", spec.node, spec.command)))?;
        self.programs.push((program, Clock.now()));
        self.ends.push(None);
        self.was_ended.push(false);
        Ok(())
    }

    fn note(&mut self, end: program::Ended, tell: &mut dyn FnMut(&str), options: &Options) {
        let code = exit_code(end.status);
        self.ends[end.number] = Some((code, Clock.now()));
        let spec = &options.programs[end.number];
        if code != 0 && !self.was_ended[end.number] {
            tell(&format!("{}: `{}` ended with status {code}", spec.node, spec.command));
        }
    }

    fn read_accounts(&mut self) {
        let leaders: Vec<_> = self.programs.iter().map(|(program, _)| program.pid).collect();
        self.accounts.read(&leaders);
    }

    /// Ends all programs that are still running, with the processes that they have started.
    fn end_programs(&mut self) {
        for signal in [Signal::TERM, Signal::KILL] {
            for (number, (program, _)) in self.programs.iter().enumerate() {
                self.was_ended[number] |= self.ends[number].is_none();
                program.signal(signal);
            }
            let deadline = Clock.now() + EXIT_TIMEOUT;
            while self.ends.iter().any(Option::is_none) && Clock.now() < deadline {
                if let Ok(end) = self.ended.1.recv_timeout(LONGEST_WAIT) {
                    self.ends[end.number] = Some((exit_code(end.status), Clock.now()));
                }
            }
        }
    }

    fn clear(&mut self) {
        self.end_programs();
        self.line.send(Request::Stop);
        if let Some(mesh) = self.mesh.take() {
            let _ = mesh.join();
        }
        self.directory = None;
    }

    fn judge(self, options: &Options, ended: Ended, report: Report, tell: &mut dyn FnMut(&str)) -> Result<Emulation> {
        let now = Clock.now();
        let programs: Vec<ProgramReport> = options
            .programs
            .iter()
            .enumerate()
            .map(|(number, spec)| {
                let end = self.ends.get(number).copied().flatten();
                let begun = self.programs.get(number).map(|(_, begun)| *begun);
                let lived = begun.map(|begun| end.map_or(now, |(_, at)| at).since(begun));
                ProgramReport {
                    spec: spec.clone(),
                    status: end.map(|(code, _)| code),
                    was_ended: self.was_ended.get(number).copied().unwrap_or(false),
                    share: self.accounts.of(number),
                    lived_s: lived.unwrap_or(Duration::ZERO).as_secs_f64(),
                }
            })
            .collect();
        for (node, why) in &report.gone {
            tell(&format!("{node}: its device disappeared ({why}); the other nodes continued without it"));
        }
        if let Some(why) = &report.no_priority {
            tell(&format!("no real-time priority: {why} (CAP_SYS_NICE)"));
        }
        if let Some(why) = report.capture_failed {
            return Err(Failure::Failed(format!("the captures: {why}")));
        }
        if let Some(why) = report.observer_failed {
            return Err(Failure::Failed(format!("the recording: {why}")));
        }
        let lateness = report.lateness.summary();
        let mesh = Timing::new(&options.config.mesh.mac, &options.config.mesh.radio);
        let frame = mesh.data_air(u32::from(options.setup.mtu) + mesh.rules.data_overhead, false);
        let frame_s = frame.as_secs_f64() * options.slowdown as f64;
        let verdict = Verdict::judge(&lateness, programs.iter().map(ProgramReport::waiting), frame_s, &options.budget);
        Ok(Emulation {
            ended,
            verdict,
            lateness,
            programs,
            duration: report.ended.since(Time::ZERO),
            elapsed: report.elapsed,
            traffic: report.traffic,
            losses: report.losses,
            frames: report.frames,
            had_priority: options.wants_priority && report.no_priority.is_none(),
        })
    }
}

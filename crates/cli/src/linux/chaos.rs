//! `meshpace dev chaos`: runs the whole live stack in virtual time. Each seed is one run, over a
//! wire with faults, over the simulator's radio, or against hostile peers.

mod kept;

use crate::output::{complain, finish, is_quiet};
use crate::{FAILED, REFUSED};
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kept::Kept;
use meshpace_command::interrupt::stop_on_interrupt;
use meshpace_emulator::chaos as mesh;
use meshpace_live::chaos::{self, Run, Tally, Trail, hostile};
use std::fmt::Write;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Number of seeds per thread in a batch. Counts are merged after each batch.
const BATCH: u64 = 32;

/// Stack size of a thread, bytes.
const STACK: usize = 8 << 20;

/// The arguments of `meshpace dev chaos`.
#[derive(Args, Debug)]
pub struct Arguments {
    /// Run only this seed, and print everything that goes wrong in it
    #[arg(long, value_name = "N", conflicts_with_all = ["seeds", "from", "keep"])]
    seed: Option<u64>,
    /// Use the simulator's radio (a chain of 802.11) instead of the wire
    #[arg(long)]
    radio: bool,
    /// Test one port against hostile peers that have the keys
    #[arg(long, conflicts_with = "radio")]
    hostile: bool,
    /// With --seed: also print every datagram
    #[arg(long, requires = "seed")]
    packets: bool,
    /// Run this number of seeds; with --continue, this many more
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    seeds: u64,
    /// Begin with this seed; with --continue, with the seed after the last one
    #[arg(long, value_name = "N", default_value_t = 0)]
    from: u64,
    /// Keep the counts in this directory, and continue where the last run ended
    #[arg(long = "continue", value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Stop after this number of minutes
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
    /// Continue when a seed breaks an invariant
    #[arg(long)]
    all: bool,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    jobs: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Kind of all runs of one invocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Two machines and a wire with faults.
    Wire,
    /// Two machines over the simulator's radio.
    Radio,
    /// One port and hostile peers.
    Hostile,
}

impl Kind {
    /// Option that selects this kind, with a space before it; empty for the default kind.
    fn option(self) -> &'static str {
        match self {
            Kind::Wire => "",
            Kind::Radio => " --radio",
            Kind::Hostile => " --hostile",
        }
    }

    /// Makes the run of a seed.
    fn run(self, seed: u64, trail: Trail) -> Run {
        match self {
            Kind::Wire => chaos::run(seed, trail),
            Kind::Radio => mesh::run(seed, trail),
            Kind::Hostile => hostile::run(seed, trail),
        }
    }
}

impl Arguments {
    fn kind(&self) -> Kind {
        match (self.radio, self.hostile) {
            (true, _) => Kind::Radio,
            (false, true) => Kind::Hostile,
            (false, false) => Kind::Wire,
        }
    }
}

/// Runs the command.
pub fn main(arguments: &Arguments) -> ExitCode {
    // The default message of a panic is suppressed. A panic in a run is reported as a broken
    // invariant.
    std::panic::set_hook(Box::new(|_| {}));
    match arguments.seed {
        Some(seed) => one(seed, arguments),
        None => many(arguments),
    }
}

fn one(seed: u64, arguments: &Arguments) -> ExitCode {
    let (kind, Arguments { packets, json, .. }) = (arguments.kind(), arguments);
    let run = kind.run(seed, if *packets { Trail::Packets } else { Trail::Faults });
    let broken = run.broken.is_some();
    let told = finish(&if *json { format!("{}\n", kept::run_json(&run, kind)) } else { trail(&run) });
    if broken { ExitCode::from(FAILED) } else { told }
}

/// Describes a run in text.
fn trail(run: &Run) -> String {
    let mut text = run.trail.iter().fold(String::new(), |text, line| text + line + "\n");
    let seconds = run.virtual_time.as_secs_f64();
    let faults: u32 = run.faults.iter().chain(&run.attacks).sum();
    let what = if run.attacks.is_empty() { "faults" } else { "attacks" };
    let _ = writeln!(
        text,
        "seed {} ({:?}): {seconds:.1} s of virtual time, {} packets ({} lost), {faults} {what}, {} streams, {} bytes and {} datagrams read, {} ends failed",
        run.seed, run.mood, run.packets, run.lost, run.streams, run.bytes, run.datagrams, run.failures
    );
    match &run.broken {
        None => text.push_str("no invariant is broken\n"),
        Some(broken) => {
            let _ = writeln!(text, "broken: {}: {}", broken.invariant, broken.detail);
        }
    }
    text
}

fn many(arguments: &Arguments) -> ExitCode {
    let mut kept = match Kept::open(arguments.keep.as_deref(), arguments.from, arguments.kind()) {
        Ok(kept) => kept,
        Err(error) => {
            complain(&error);
            return ExitCode::from(REFUSED);
        }
    };
    let first = kept.next;
    let last = first.saturating_add(arguments.seeds);
    let stop = stop_on_interrupt();
    #[expect(clippy::disallowed_methods, reason = "`--minutes` is of the user's time")]
    let began = std::time::Instant::now();
    let late = |minutes: f64| began.elapsed().as_secs_f64() > 60.0 * minutes;
    let jobs = match arguments.jobs {
        0 => thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    let bar = progress(last - first);
    while kept.next < last
        && !stop.load(Ordering::Relaxed)
        && !arguments.minutes.is_some_and(late)
        && (arguments.all || kept.tally.broken == 0)
    {
        let end = last.min(kept.next + BATCH * jobs as u64);
        let Some(tally) = batch(kept.next, end, arguments.kind(), jobs) else {
            complain("a thread could not be had");
            return ExitCode::from(FAILED);
        };
        kept.tally.merge(tally);
        bar.set_position(end - first);
        bar.set_message(format!("{:.1} h of virtual time", kept.tally.virtual_ms as f64 / 3.6e6));
        kept.next = end;
        if let Err(error) = kept.write() {
            complain(&error);
            return ExitCode::from(FAILED);
        }
    }
    bar.finish_and_clear();
    let text = if arguments.json { format!("{}\n", kept.json()) } else { table(&kept) };
    let told = finish(&text);
    if kept.tally.broken > 0 { ExitCode::from(FAILED) } else { told }
}

fn progress(seeds: u64) -> ProgressBar {
    let shown = std::io::stderr().is_terminal() && !is_quiet();
    let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} seeds, {msg}, {elapsed} elapsed, {eta} left");
    ProgressBar::with_draw_target(Some(seeds), target).with_style(style.expect("the template is right"))
}

/// Runs the seeds from `from` up to but not including `to` on `jobs` threads. `None` if a thread
/// cannot be started.
fn batch(from: u64, to: u64, kind: Kind, jobs: usize) -> Option<Tally> {
    let next = AtomicU64::new(from);
    let work = || {
        let mut tally = Tally::default();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= to {
                return tally;
            }
            tally.add(&kind.run(seed, Trail::Nothing));
        }
    };
    thread::scope(|scope| {
        let start = |_| thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work).ok();
        let threads: Vec<_> = (0..jobs).map(start).collect();
        let mut all = Tally::default();
        for thread in threads {
            all.merge(thread?.join().ok()?);
        }
        Some(all)
    })
}

/// Formats the counts for people.
fn table(kept: &Kept) -> String {
    let tally = &kept.tally;
    let seeds = tally.runs;
    let is_hostile = kept.kind == Kind::Hostile;
    let (what, counts) = if is_hostile { ("attacks", &tally.attacks) } else { ("faults", &tally.faults) };
    let all: u64 = counts.values().sum();
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<22}{value}");
    };
    line("seeds", format!("{seeds} (up to {})", kept.next));
    line("virtual time", format!("{:.1} h", tally.virtual_ms as f64 / 3.6e6));
    line("packets", format!("{} ({} lost)", tally.packets, tally.lost));
    line(
        "streams",
        format!(
            "{} ({} ends failed, as they may), {:.1} MB read; {} datagrams",
            tally.streams,
            tally.failures,
            tally.bytes as f64 / 1e6,
            tally.datagrams
        ),
    );
    let medians = (tally.times.median() as f64 / 1e3, tally.sent.median(), tally.suffered.median());
    line("median of a run", format!("{:.0} s, {} packets, {} {what}", medians.0, medians.1, medians.2));
    if !is_hostile {
        line("longest wait", format!("{:.1} s after the last fault", tally.waits.greatest() as f64 / 1e3));
    }
    line(what, all.to_string());
    for (name, count) in counts {
        line(&format!("  {name}"), count.to_string());
    }
    if !is_hostile {
        let missing = tally.missing();
        line(
            "met at no moment",
            format!("{} of {} pairs of moment and fault", missing.len(), missing.len() + tally.hits.len()),
        );
    }
    for found in &tally.found {
        line("broken", format!("seed {}: {}: {}", found.seed, found.broken.invariant, found.broken.detail));
        line("  again", kept.again(found.seed));
    }
    if tally.broken == 0 {
        line("broken invariants", "none".to_owned());
    } else {
        line("broken invariants", format!("in {} of {seeds} seeds", tally.broken));
    }
    text
}

//! Random runs of the session layer, judged by what `docs/wire.md`, `docs/wire-opening.md`,
//! `docs/wire-encryption.md`, `docs/wire-bbr.md`, `docs/wire-api.md` and `docs/wire-memory.md`
//! promise.
//!
//! This is a second generator beside `chaos`. It was written from these pages alone, so that the
//! two generators do not have the same blind spots. A seed makes a plan (`plan`), and `world` runs
//! it in virtual time. `codec` is a second reader and writer of the format. `monitor` checks every
//! datagram, and `checks` the run as a whole. `docs/chaos-pages.md` says how to run it.

mod application;
mod checks;
mod codec;
mod hostile;
mod memory;
mod monitor;
mod plan;
mod planted;
mod strangers;
mod wire;
mod world;

use crate::failure::Reason;
use application::End;
use plan::{Plan, plans};
use proptest::strategy::ValueTree;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::{LISTENER, World};

/// Number of seeds of the run that is part of all tests.
const SEEDS: u64 = 200;

/// Number of simpler plans that are tried for a seed that breaks a check.
const SIMPLER: usize = 150;

/// Counts of events in runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    datagrams: u64,
    /// Bytes of encrypted content that the reader of `codec` has decrypted.
    opened: u64,
    /// Number of path challenges that have left.
    asked: u64,
    /// Number of times that a connection has followed its peer to another address.
    moves: u64,
    /// Number of ends that noticed a peer which broke the protocol.
    deceived: u64,
    /// Number of ends for which everything was written and read.
    well: u64,
    /// Number of ends that got an error.
    failed: u64,
}

impl Tally {
    fn of(world: &World<'_>) -> Tally {
        let count = |is_one: &dyn Fn(&End) -> bool| {
            let ends = world.ended.iter().flatten().flatten();
            ends.filter(|end| end.end.as_ref().is_some_and(is_one)).count() as u64
        };
        Tally {
            datagrams: world.monitor.datagrams,
            opened: world.monitor.opened,
            asked: world.monitor.asked.len() as u64,
            moves: world.ports[LISTENER].endpoint.counters().read().moves,
            deceived: count(&|end| matches!(end, End::Failed(reason, _) if *reason == Reason::Protocol)),
            well: count(&|end| *end == End::Well),
            failed: count(&|end| matches!(end, End::Failed(..))),
        }
    }

    fn add(&mut self, other: Tally) {
        self.datagrams += other.datagrams;
        self.opened += other.opened;
        self.asked += other.asked;
        self.moves += other.moves;
        self.deceived += other.deceived;
        self.well += other.well;
        self.failed += other.failed;
    }
}

/// Result of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Report {
    /// Promises of the pages that were broken, and how.
    broken: Vec<String>,
    digest: u64,
    tally: Tally,
}

fn run(plan: &Plan) -> Report {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut world = World::new(plan, checks::ALL);
        world.run();
        let mut broken = std::mem::take(&mut world.broken);
        broken.append(&mut world.monitor.broken);
        Report { broken, digest: world.digest, tally: Tally::of(&world) }
    }));
    result.unwrap_or_else(|_| Report { broken: vec!["\"nothing panics\"".into()], ..Report::default() })
}

/// Runs a seed. If the run breaks a check, the error contains the simplest plan found that breaks
/// one too.
fn judge(seed: u64) -> Result<Report, String> {
    let mut tree = plans(seed);
    let report = run(&tree.current());
    if report.broken.is_empty() {
        return Ok(report);
    }
    let (mut simplest, mut broken) = (tree.current(), report.broken.clone());
    let mut is_going = tree.simplify();
    for _ in 0..SIMPLER {
        if !is_going {
            break;
        }
        let report = run(&tree.current());
        is_going = if report.broken.is_empty() {
            tree.complicate()
        } else {
            (simplest, broken) = (tree.current(), report.broken);
            tree.simplify()
        };
    }
    let all = |broken: &[String]| {
        let by_sentence = broken.iter().map(|what| (what.split("\": ").next(), what));
        by_sentence.collect::<BTreeMap<_, _>>().into_values().cloned().collect::<Vec<_>>().join("\n  ")
    };
    Err(format!(
        "seed {seed} breaks\n  {}\nthe simplest plan found is\n{simplest:#?}\nand breaks\n  {}\n\
         again: MESHPACE_SCHEDULE={seed} cargo test -p meshpace-session --lib from_pages::random -- --nocapture",
        all(&report.broken),
        all(&broken),
    ))
}

/// Number of seeds that are run twice.
const EQUAL: u64 = 100;

/// Number of seeds that are run twice with `MESHPACE_SLOW=1`.
const SLOW_EQUAL: u64 = 10_000;

/// Number in the environment variable `name`. `None` if the variable is missing or is no number.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_runs_keep_what_the_pages_promise() {
    let seeds = match (number("MESHPACE_SCHEDULE"), number("MESHPACE_SCHEDULES")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => {
            let first = number("MESHPACE_FIRST").unwrap_or(0);
            first..first + count.unwrap_or(SEEDS)
        }
    };
    let (mut tally, mut failed) = (Tally::default(), Vec::new());
    for seed in seeds.clone() {
        match judge(seed) {
            Ok(report) => tally.add(report.tally),
            Err(message) => {
                eprintln!("{message}");
                failed.push(seed);
            }
        }
        if seed % 10_000 == 9999 {
            eprintln!("{} seeds, {} of them broke a check", seed + 1 - seeds.start, failed.len());
        }
    }
    eprintln!("{} seeds: {tally:?}", seeds.clone().count());
    assert!(failed.is_empty(), "{} seeds break a check: {failed:?}", failed.len());
    // The runs meet what the checks are for.
    let Tally { datagrams, opened, asked, moves, deceived, well, failed } = tally;
    let least = [datagrams, opened, asked, moves, deceived, well, failed].into_iter().min();
    assert!(seeds.count() < 100 || least > Some(0), "nothing of a kind happened: {tally:?}");
}

/// The hash of a report covers every datagram of the run, and the time at which it left.
#[test]
fn equal_inputs_give_equal_datagrams() {
    let seeds = if number("MESHPACE_SLOW") == Some(1) { SLOW_EQUAL } else { EQUAL };
    for seed in 0..seeds {
        assert_eq!(run(&plans(seed).current()), run(&plans(seed).current()), "seed {seed}");
    }
}

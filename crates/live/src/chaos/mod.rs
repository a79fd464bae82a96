//! The whole live stack in virtual time over a hostile wire, one run per seed: sessions of TPA over UDP with their cookies, keys and limits, and
//! sessions of a tunnel with their streams and carriers, each as it ships.
//!
//! A run (`world`) is drawn from its seed (`plan`): two machines (`side`), each with a port (`tpa::session::port`) and applications that know every byte
//! (`stream`, `tunnel`), a wire, and faults, aimed at moments of the protocol (`planner`, `faults`). Somebody who has the keys looks at every
//! datagram (`watch`). A network may be in place of the wire (`network`). In other runs the peers are hostile (`hostile`). `docs/chaos.md` says what is checked. For `meshpace dev chaos` and tests: no part of the library's interface.

pub mod faults;
mod flow;
pub mod hostile;
mod network;
pub mod plan;
mod planner;
mod seat;
mod side;
mod stream;
mod tally;
#[cfg(test)]
mod tests;
mod tunnel;
mod watch;
mod wire;
mod world;

pub use network::{Network, Networks, Passed};
pub use tally::{Found, Spread, Tally};

use faults::{Fault, Moment, Mood};
use meshpace_core::Duration;
use plan::Plan;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An invariant that a run has broken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// What was to be true.
    pub invariant: String,
    /// When, and what was found instead.
    pub detail: String,
}

/// What became of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// What it was drawn from.
    pub seed: u64,
    /// What it was allowed to do.
    pub mood: Mood,
    /// How long it took in its world.
    pub virtual_time: Duration,
    /// Datagrams that its two ends have sent, and those of them that were lost.
    pub packets: u64,
    /// Those of them that were lost.
    pub lost: u64,
    /// Streams that were begun.
    pub streams: u64,
    /// Bytes that applications have read.
    pub bytes: u64,
    /// Datagrams of flows that have arrived.
    pub datagrams: u64,
    /// Ends of streams that have failed with an error.
    pub failures: u64,
    /// Faults, by [`Fault`].
    pub faults: Vec<u32>,
    /// Actions of hostile peers, by [`hostile::attack::Attack`]; empty where no peer is hostile.
    pub attacks: Vec<u32>,
    /// Datagrams at each moment, by [`Moment`].
    pub moments: Vec<u32>,
    /// Which faults came at which moments.
    pub hits: Vec<(Moment, Fault)>,
    /// The longest that nothing moved after the last fault although somebody waited.
    pub longest_wait: Duration,
    /// What was broken, if anything.
    pub broken: Option<Broken>,
    /// Faults and failures in their order, if asked for.
    pub trail: Vec<String>,
}

impl Run {
    fn empty(seed: u64, mood: Mood) -> Run {
        Run {
            seed,
            mood,
            virtual_time: Duration::ZERO,
            packets: 0,
            lost: 0,
            streams: 0,
            bytes: 0,
            datagrams: 0,
            failures: 0,
            faults: vec![0; Fault::ALL.len()],
            attacks: Vec::new(),
            moments: vec![0; Moment::ALL.len()],
            hits: Vec::new(),
            longest_wait: Duration::ZERO,
            broken: None,
            trail: Vec::new(),
        }
    }

    fn hit(&mut self, moment: Moment, fault: Fault) {
        self.faults[fault as usize] += 1;
        self.hits.push((moment, fault));
    }
}

/// How much of a run is told.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Trail {
    /// What became of it.
    Nothing,
    /// Every fault and every failure.
    Faults,
    /// Every datagram that leaves, too.
    Packets,
}

/// The run of a seed over the wire. A panic of what it runs is an invariant that is broken.
pub fn run(seed: u64, trail: Trail) -> Run {
    run_plan(Plan::of(seed), None, trail)
}

/// The run of a seed over a network in place of the wire: the same plan, but for what the ends are told of the path.
pub fn run_over(networks: Networks<'_>, seed: u64, trail: Trail) -> Run {
    let mut plan = Plan::of(seed);
    let network = networks(&plan);
    plan.tell_path(network.hops(), network.rate());
    run_plan(plan, Some(network), trail)
}

fn run_plan(plan: Plan, network: Option<Box<dyn Network>>, trail: Trail) -> Run {
    guarded(Run::empty(plan.seed, plan.mood), || world::World::new(plan, network, trail).run())
}

/// What `run` returns; `empty` with a broken invariant if it panics.
fn guarded(empty: Run, run: impl FnOnce() -> Run) -> Run {
    let caught = catch_unwind(AssertUnwindSafe(run));
    caught.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
        Run { broken: Some(Broken { invariant: "nothing panics".to_owned(), detail: text }), ..empty }
    })
}

//! Random tests of the whole live stack in virtual time over a hostile wire, one run per seed. The
//! stack is used as it ships: sessions of TPA over UDP with their cookies, keys and limits, and
//! sessions of a tunnel with their streams and carriers.
//!
//! Everything in a run (`world`) is derived from its seed (`plan`). A run has two machines
//! (`side`), a wire, and faults. Each machine has a port (`meshpace_session::port`) and applications
//! that know every byte (`stream`, `tunnel`). Faults are scheduled for certain situations of the
//! protocol, which are called moments (`planner`, `faults`).
//!
//! An observer that has the keys examines every datagram (`watch`). A network may replace the wire
//! (`network`). In other runs the peers are hostile (`hostile`). `docs/chaos.md` says what is
//! checked. The module serves `meshpace dev chaos` and tests; it is not part of the library's
//! interface.

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

/// An invariant that a run has violated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The condition that should have held.
    pub invariant: String,
    /// Time of the violation, and what was found instead.
    pub detail: String,
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// Seed from which the run was derived.
    pub seed: u64,
    /// Kinds of faults that the run was allowed to have.
    pub mood: Mood,
    /// Duration of the run in virtual time.
    pub virtual_time: Duration,
    /// Number of datagrams that the two ends have sent.
    pub packets: u64,
    /// Number of those datagrams that were lost.
    pub lost: u64,
    /// Number of streams that were opened.
    pub streams: u64,
    /// Number of bytes that applications have read.
    pub bytes: u64,
    /// Number of datagrams of tunnel flows that have arrived.
    pub datagrams: u64,
    /// Number of stream ends that have failed with an error.
    pub failures: u64,
    /// Number of faults, by [`Fault`].
    pub faults: Vec<u32>,
    /// Number of actions of hostile peers, by [`hostile::attack::Attack`]. Empty if no peer is
    /// hostile.
    pub attacks: Vec<u32>,
    /// Number of datagrams, by [`Moment`].
    pub moments: Vec<u32>,
    /// Faults with the moments at which they occurred.
    pub hits: Vec<(Moment, Fault)>,
    /// Longest time after the last fault in which nothing progressed although an application was
    /// waiting.
    pub longest_wait: Duration,
    /// The first invariant that was violated; `None` if all hold.
    pub broken: Option<Broken>,
    /// Faults and failures in order, if they were requested.
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

/// Amount of detail that is recorded about a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Trail {
    /// Only the result.
    Nothing,
    /// Also every fault and every failure.
    Faults,
    /// Also every datagram that is sent.
    Packets,
}

/// Runs a seed over the wire. A panic of the tested code counts as a violated invariant.
pub fn run(seed: u64, trail: Trail) -> Run {
    run_plan(Plan::of(seed), None, trail)
}

/// Runs a seed over a network instead of the wire. The plan is the same, except that the ends are
/// told the path of the network.
pub fn run_over(networks: Networks<'_>, seed: u64, trail: Trail) -> Run {
    let mut plan = Plan::of(seed);
    let network = networks(&plan);
    plan.tell_path(network.hops(), network.rate());
    run_plan(plan, Some(network), trail)
}

fn run_plan(plan: Plan, network: Option<Box<dyn Network>>, trail: Trail) -> Run {
    guarded(Run::empty(plan.seed, plan.mood), || world::World::new(plan, network, trail).run())
}

/// Returns the result of `run`. If `run` panics, returns `empty` with a violated invariant.
fn guarded(empty: Run, run: impl FnOnce() -> Run) -> Run {
    let caught = catch_unwind(AssertUnwindSafe(run));
    caught.unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default();
        Run { broken: Some(Broken { invariant: "nothing panics".to_owned(), detail: text }), ..empty }
    })
}

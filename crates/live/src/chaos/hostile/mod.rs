//! Runs with hostile peers. The peers have the keys of their connections, make an honest handshake,
//! and then send whatever their keys allow.
//!
//! Each run is derived from its seed (`plan`). One port is under attack. It listens, also for
//! honest clients, or it has opened connections to hostile ends. 1 to 6 hostile peers (`peer`) act
//! by a random schedule (`attack`, `segments`). They can read only their own connections (`spy`).
//! `world` makes the run, and `invariants` checks what has to hold after every event.

pub mod attack;
mod held;
mod invariants;
mod machine;
mod peer;
mod placed;
mod plan;
mod segments;
mod spy;
#[cfg(test)]
mod tests;
mod traffic;
mod world;

use super::faults::Mood;
use super::{Run, Trail, guarded};
use plan::Plan;

/// Runs a seed with hostile peers. A panic of the tested code counts as a violated invariant.
pub fn run(seed: u64, trail: Trail) -> Run {
    guarded(Run::empty(seed, Mood::Hostile), || world::World::new(Plan::of(seed), trail).run())
}

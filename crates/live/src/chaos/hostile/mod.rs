//! Hostile peers: they have the keys of their connections, run the honest handshake, and then send whatever their keys allow.
//!
//! A run is drawn from its seed (`plan`): one port under attack, which listens to honest clients as well or has opened connections to
//! hostile far ends, and 1 to 6 hostile peers (`peer`) that act by a random schedule (`attack`, `segments`). They read their own
//! connections (`spy`), and nothing else. `world` runs it and `invariants` says what must be true after every event.

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

/// The run of a seed with hostile peers. A panic of what it runs is an invariant that is broken.
pub fn run(seed: u64, trail: Trail) -> Run {
    guarded(Run::empty(seed, Mood::Hostile), || world::World::new(Plan::of(seed), trail).run())
}

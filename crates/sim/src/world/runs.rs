//! Whole runs. Nothing here is generic, so that the engine of simulated packets is compiled in this crate: once for nobody
//! who watches, and once for anybody.

use super::{Measurement, World};
use crate::config::Config;
use crate::outcome::Outcome;
use crate::packet::SimPacket;
use crate::probe::Probe;
use meshpace_core::{Duration, Time};

/// The world of a run that any probe watches.
pub type Watched<'a, 'p> = World<'a, &'p mut dyn Probe<SimPacket>>;

/// Runs `config` with `seed`.
pub fn run(config: &Config, seed: u64) -> Outcome {
    whole(config, World::new(config, seed, ()))
}

/// Runs `config` with `seed`, watched by `probe`.
pub fn run_with(config: &Config, seed: u64, probe: &mut dyn Probe<SimPacket>) -> Outcome {
    whole(config, World::new(config, seed, probe))
}

/// Runs `config` with `seed`, watched by `probe`, and shows the world to `sample` at time zero, before anything has happened,
/// then `every` so long, more than zero, and at the end. A probe that `sample` uses, too, is a `&RefCell` of one.
pub fn run_sampled(
    config: &Config,
    seed: u64,
    probe: &mut dyn Probe<SimPacket>,
    every: Duration,
    sample: &mut dyn FnMut(Time, &mut Watched<'_, '_>),
) -> Outcome {
    let mut world: Watched<'_, '_> = World::new(config, seed, probe);
    let mut measurement = Measurement::new(config);
    let mut at = Time::ZERO;
    sample(at, &mut world);
    while !measurement.is_over(at) {
        at = (at + every).min(Time(config.duration.0));
        measurement.advance(&mut world, at);
        sample(at, &mut world);
    }
    measurement.outcome(&world)
}

/// Runs a world to the end of its scenario.
fn whole<O: Probe<SimPacket>>(config: &Config, mut world: World<'_, O>) -> Outcome {
    let mut measurement = Measurement::new(config);
    measurement.advance(&mut world, Time(config.duration.0));
    measurement.outcome(&world)
}

//! Whole runs. The functions are not generic, so that the engine for simulated packets is compiled
//! in this crate: once without a probe, and once for any probe.

use super::{Measurement, World};
use crate::config::Config;
use crate::outcome::Outcome;
use crate::packet::SimPacket;
use crate::probe::Probe;
use meshpace_core::{Duration, Time};

/// World of a run that is observed by any probe.
pub type ProbedWorld<'a, 'p> = World<'a, &'p mut dyn Probe<SimPacket>>;

/// Runs `config` with `seed`.
pub fn run(config: &Config, seed: u64) -> Outcome {
    whole(config, World::new(config, seed, ()))
}

/// Runs `config` with `seed`, observed by `probe`.
pub fn run_with(config: &Config, seed: u64, probe: &mut dyn Probe<SimPacket>) -> Outcome {
    whole(config, World::new(config, seed, probe))
}

/// Runs `config` with `seed`, observed by `probe`. Passes the world to `sample` at time zero,
/// before any event, then after every `every` (more than zero), and at the end. A probe that
/// `sample` also uses must be a `&RefCell` of a probe.
pub fn run_sampled(
    config: &Config,
    seed: u64,
    probe: &mut dyn Probe<SimPacket>,
    every: Duration,
    sample: &mut dyn FnMut(Time, &mut ProbedWorld<'_, '_>),
) -> Outcome {
    let mut world: ProbedWorld<'_, '_> = World::new(config, seed, probe);
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

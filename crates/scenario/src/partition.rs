//! Refuses scenarios whose moving nodes leave a flow without a path for too long.
//!
//! The results of such a flow depend on where its nodes are, and not on its protocols. The check
//! applies to scenarios that write `topology.allow_partition = false` or
//! `topology.longest_partition`.

use super::Point;
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::radio::Channel;
use meshpace_mesh::radio::connectivity::components;
use meshpace_sim::Mobility;
use meshpace_sim::mobility::Motion;

/// Time between two checks of the mesh.
const STEP: Duration = Duration::from_secs(1);
/// Largest number of node positions that are checked when a scenario is read. Seeds beyond that are
/// not checked.
const MOST: u64 = 2_000_000;

/// Advice for a scenario that is refused.
pub const HELP: &str =
    "use more nodes or a smaller area, raise topology.longest_partition, or set topology.allow_partition = true";

/// Message about a flow of `point` that has no path for longer than `limit`, with the first such
/// seed; seeds are checked from 1 on. `None` if there is no such flow or if nodes do not move.
pub fn fault(point: &Point, channel: &Channel, limit: Duration, seeds: u64) -> Option<String> {
    let config = &point.config;
    let each = config.positions.len() as u64 * (config.duration.0 / STEP.0 + 1);
    (1..=seeds.min(MOST / each.max(1))).find_map(|seed| {
        let drawn = point.drawn(seed).ok()?;
        let found = longest(&drawn.config, channel, seed);
        let worst = found.into_iter().filter(|found| found.time > limit).max_by_key(|found| found.time)?;
        Some(format!(
            "topology: with seed {seed} flow {} (node {} to node {}) has no path of links for {} s from {} s on, longer than {} s",
            worst.flow,
            worst.ends.0.0,
            worst.ends.1.0,
            worst.time.as_secs_f64(),
            worst.since.since(Time::ZERO).as_secs_f64(),
            limit.as_secs_f64(),
        ))
    })
}

/// Longest time that one flow is without a path.
struct Longest {
    flow: usize,
    ends: (NodeId, NodeId),
    since: Time,
    time: Duration,
}

/// Longest time without a path of every flow within the measured interval. The mesh is checked once
/// a second.
fn longest(config: &meshpace_sim::Config, channel: &Channel, seed: u64) -> Vec<Longest> {
    if config.mobility == Mobility::Still {
        return Vec::new();
    }
    let Some(mut motion) = Motion::new(&config.positions, &config.mobility, seed) else { return Vec::new() };
    let (mut now, end) = (Time(config.warmup.0), Time(config.duration.0));
    let of = |(flow, of): (usize, &meshpace_sim::Flow)| Longest {
        flow,
        ends: (of.from, of.to),
        since: now,
        time: Duration::ZERO,
    };
    let mut found: Vec<Longest> = config.flows.iter().enumerate().map(of).collect();
    let mut begun: Vec<Option<Time>> = vec![None; found.len()];
    while now < end {
        let components = components(&motion.positions(now), channel, None);
        let next = Time(end.0.min((now + STEP).0));
        for (found, begun) in found.iter_mut().zip(&mut begun) {
            let is_apart = components[found.ends.0.index()] != components[found.ends.1.index()];
            *begun = is_apart.then(|| begun.unwrap_or(now));
            if let Some(since) = begun.filter(|since| next.since(*since) > found.time) {
                (found.since, found.time) = (since, next.since(since));
            }
        }
        now = next;
    }
    found
}

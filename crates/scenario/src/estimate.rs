//! Estimate of the cost of a run before it starts: time and memory, from nodes, load and duration.
//!
//! The constants come from the workloads in `scenarios/bench` (`docs/performance.md`). In every
//! patch of the mesh where only one station can send at a time, about a thousand frames are sent
//! per second. Each frame has a fixed cost and a cost for every node that senses it. The estimate
//! is used to refuse campaigns that are too long or too large for the machine, and to start long
//! runs first. The estimate can be wrong by a factor of a few.

use crate::Point;
use meshpace_mesh::config::{Position, RoutingConfig};
use meshpace_mesh::radio::Channel;
use meshpace_sim::Mobility;
use std::collections::BTreeMap;

/// Frames per second in a patch that one transmission occupies, at the rates of 802.11b.
const FRAMES_PER_PATCH: f64 = 1_300.0;
/// CPU seconds per frame, and per frame and node that senses it.
const FRAME_S: f64 = 0.4e-6;
const SENSED_S: f64 = 0.05e-6;
/// Frames per second of 802.11n, and CPU seconds per frame. An aggregate is one frame and carries
/// up to 64 packets. The workloads HT-F2, F3 and F5 have 5,250 to 7,600 frames per second of 0.5 to
/// 5.9 us each.
const HT_FRAMES_PER_PATCH: f64 = 7_000.0;
const HT_FRAME_S: f64 = 2e-6;
/// CPU seconds that movement adds per frame and node that senses it, because neighbour tables are
/// computed again.
const MOVING_S: f64 = 0.3e-6;
/// CPU seconds of OLSR per simulated second, divided by the number of nodes to the power 2.5. Every
/// node keeps a map of all nodes and computes its routes again. Measured with 25, 100 and 196
/// nodes: 0.3, 5.5 and 34 ms per second.
const MAP_S: f64 = 6e-8;
/// Bytes per node, per pair of nodes that sense each other, per flow, and per entry of a map of all
/// nodes.
const NODE_BYTES: f64 = 4_000.0;
const PAIR_BYTES: f64 = 40.0;
const FLOW_BYTES: f64 = 40_000.0;
const MAP_BYTES: f64 = 150.0;
/// Bytes of the program itself.
const PROGRAM_BYTES: f64 = 8e6;
/// Largest number of nodes for which pairs are counted one by one.
const COUNTED: usize = 200;
/// AODV: bytes per flow and node, since nearly every node learns of every node that requests a
/// route. Two errors of this estimate have opposite signs: more nodes send requests than there are
/// flows, and not every node receives each request.
const ROUTE_BYTES: f64 = 35.0;
/// Static routes: bytes per destination and node.
const TREE_BYTES: f64 = 4.0;

/// Cost of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// CPU time, s.
    pub cpu_s: f64,
    /// Largest memory, bytes.
    pub bytes: f64,
}

impl Estimate {
    /// Cost of one run of `point`.
    pub fn of(point: &Point) -> Estimate {
        let config = &point.config;
        let nodes = config.positions.len() as f64;
        let pairs = pairs(&config.positions, &Channel::new(&config.mesh.radio));
        let sensed = pairs / nodes.max(1.0);
        let duration_s = config.duration.as_secs_f64();
        // There are at most as many active patches as flows.
        let flows = config.flows.len() as f64;
        let patches = (nodes / (1.0 + sensed)).clamp(1.0, flows.max(1.0));
        let moves = config.mobility != Mobility::Still;
        let is_map = matches!(config.mesh.routing, RoutingConfig::Olsr(_));
        let (frames, frame_s) = match config.mesh.mac.ht {
            Some(_) => (HT_FRAMES_PER_PATCH, HT_FRAME_S),
            None => (FRAMES_PER_PATCH, FRAME_S),
        };
        let frame_s = frame_s + sensed * (SENSED_S + if moves { MOVING_S } else { 0.0 });
        let map = if is_map { nodes * nodes } else { 0.0 };
        let routes = if matches!(config.mesh.routing, RoutingConfig::Aodv(_)) { nodes * flows.min(nodes) } else { 0.0 };
        let trees = if config.mesh.routing == RoutingConfig::Static { 2.0 * flows * nodes } else { 0.0 };
        // A run that finds its own warm-up is simulated twice; the first time only finds the
        // warm-up.
        let times = if point.finds_warmup { 2.0 } else { 1.0 };
        Estimate {
            cpu_s: times * duration_s * (frames * patches * frame_s + map * nodes.sqrt() * MAP_S),
            bytes: PROGRAM_BYTES
                + nodes * NODE_BYTES
                + pairs * PAIR_BYTES
                + flows * FLOW_BYTES
                + map * MAP_BYTES
                + routes * ROUTE_BYTES
                + trees * TREE_BYTES,
        }
    }
}

/// Approximate number of ordered pairs of nodes that sense each other. In a large mesh, pairs are
/// counted by the cells of a grid, so that the mesh does not have to be built to find that it is
/// too large.
pub(crate) fn pairs(positions: &[Position], channel: &Channel) -> f64 {
    let width = channel.reach().max(1e-3);
    if positions.len() <= COUNTED {
        let near = |a: &Position, b: &Position| (a.x - b.x).powi(2) + (a.y - b.y).powi(2) <= width * width;
        let around = |a: &Position| positions.iter().filter(|b| near(a, b)).count() as f64 - 1.0;
        return positions.iter().map(around).sum();
    }
    let mut cells: BTreeMap<(i64, i64), f64> = BTreeMap::new();
    for place in positions {
        *cells.entry(((place.x / width).floor() as i64, (place.y / width).floor() as i64)).or_default() += 1.0;
    }
    let around = |&(x, y): &(i64, i64)| -> f64 {
        let near = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (x + dx, y + dy)));
        near.filter_map(|cell| cells.get(&cell)).sum()
    };
    // Share of the nine cells' area that is within the reach of a node.
    let share = std::f64::consts::PI / 9.0;
    cells.iter().map(|(cell, count)| count * (share * around(cell)).max(count - 1.0).max(0.0).min(around(cell))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, Source};
    use std::path::Path;

    fn point(text: &str) -> Point {
        let source = Source { name: "test".to_owned(), text: text.to_owned(), sets: Vec::new() };
        Scenario::read(source, Path::new(""), "test").unwrap().points.into_vec().remove(0)
    }

    fn random(nodes: u32, side_m: u32, duration_s: u32) -> Estimate {
        Estimate::of(&point(&format!(
            "duration = \"{duration_s} s\"\n[topology]\nkind = \"random\"\nnodes = {nodes}\nwidth = \"{side_m} m\"\n\
             height = \"{side_m} m\"\nallow_partition = true\n\
             flows = {{ count = {}, min_hops = 2, max_hops = 6 }}\n[routing]\nprotocol = \"aodv\"\n[[flow]]\n",
            nodes / 12
        )))
    }

    #[test]
    fn pairs_are_about_as_many_as_there_are() {
        use meshpace_mesh::radio::Neighbours;
        let point = point(
            "[topology]\nkind = \"random\"\nnodes = 800\nwidth = \"4000 m\"\nheight = \"4000 m\"\nallow_partition = true\n\
             flows = { count = 3 }\n[[flow]]\n",
        );
        let config = &point.config;
        let channel = Channel::new(&config.mesh.radio);
        let tables = Neighbours::new(&channel, &config.positions);
        let exact: usize = (0..800).map(|node| tables.of(meshpace_core::NodeId(node)).len()).sum();
        let ratio = pairs(&config.positions, &channel) / exact as f64;
        assert!((0.6..1.7).contains(&ratio), "{ratio}");
    }

    #[test]
    fn cost_is_linear_in_time_and_at_constant_density_in_nodes() {
        let (short, long) = (random(500, 3200, 100), random(500, 3200, 1000));
        assert!((long.cpu_s / short.cpu_s - 10.0).abs() < 1e-6);
        assert_eq!(long.bytes, short.bytes, "memory does not grow with simulated time");
        let larger = random(2000, 6400, 100);
        assert!((2.5..8.0).contains(&(larger.cpu_s / short.cpu_s)), "{}", larger.cpu_s / short.cpu_s);
    }

    #[test]
    fn memory_is_within_a_factor_of_two_of_what_was_measured() {
        // The peaks of the processes, docs/performance.md.
        let bench = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bench/");
        for (name, megabytes) in
            [("random-120", 7.2), ("random-1000", 21.0), ("random-3000", 71.0), ("random-10000", 255.0)]
        {
            let point = point(&std::fs::read_to_string(format!("{bench}{name}.toml")).unwrap());
            let ratio = Estimate::of(&point).bytes / 1e6 / megabytes;
            assert!((0.5..2.0).contains(&ratio), "{name}: {ratio}");
        }
    }

    #[test]
    fn maps_of_olsr_and_aggregates_cost_what_was_measured_within_a_factor_of_eight() {
        // CPU seconds per simulated second of a grid with OLSR and one flow, and of HT-F2 and F5.
        let grid = |side: u32| {
            Estimate::of(&point(&format!(
                "duration = \"100 s\"\n[topology]\nkind = \"grid\"\nrows = {side}\ncolumns = {side}\n[routing]\nprotocol = \"olsr\"\n\
                 [[flow]]\nfrom = 0\nto = 3\n"
            )))
        };
        for (side, measured) in [(5, 0.3e-3), (10, 5.5e-3), (14, 34e-3)] {
            let ratio = grid(side).cpu_s / 100.0 / measured;
            assert!((0.125..=8.0).contains(&ratio), "{side}: {ratio}");
        }
        let ht = point(
            "duration = \"100 s\"\n[topology]\nkind = \"chain\"\nhops = 2\nspacing = \"10 m\"\n[radio]\nrate = \"MCS 7\"\n[mac]\n\
             profile = \"ht\"\n[[flow]]\n",
        );
        let ratio = Estimate::of(&ht).cpu_s / 100.0 / 2.7e-3;
        assert!((0.125..=8.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_crowd_costs_the_square() {
        let (few, many) = (random(1000, 400, 10), random(4000, 400, 10));
        assert!(many.bytes - PROGRAM_BYTES > 8.0 * (few.bytes - PROGRAM_BYTES), "{few:?} {many:?}");
    }
}

//! Draws positions of nodes and ends of flows for each seed.
//!
//! Positions and ends have separate random streams. They are derived from the run's seed or, with
//! `placement = N`, from N, so that several runs can share a placement. A placement is rejected and
//! drawn again if it is not connected or has no suitable ends for its flows. The number of attempts
//! is bounded.

use super::super::MAX_SECONDS;
use super::super::reader::Reader;
use super::{MAX_NODES, Topology, area, at};
use meshpace_core::rng::Purpose;
use meshpace_core::{Duration, NodeId, Parameter, Rng, Time, parameter};
use meshpace_mesh::config::Position;
use meshpace_mesh::radio::connectivity::components;
use meshpace_mesh::radio::{Channel, Neighbours};
use meshpace_mesh::routing::HopCount;
use meshpace_settings::value::Kind;
use meshpace_sim::Mobility;
use meshpace_sim::mobility::{Motion, Waypoint};
use std::fmt;

/// Attempts when a scenario is read. A placement that is found less often would delay every run.
const TRIES_FOR_READING: u32 = 1_000;
/// Attempts for a run.
const TRIES_FOR_RUN: u32 = 100_000;
/// Pairs of nodes that are tried for one flow on one placement.
const TRIES_FOR_PAIR: u32 = 1_000;
/// Numbers of the streams of [`Purpose::Topology`].
const PLACES: u64 = 0;
const PAIRS: u64 = 1;

/// Parts of a scenario that are drawn by the seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Draw {
    /// Seed that replaces the run's seed; `None` if the run's seed is used.
    placement: Option<u64>,
    places: Places,
    pairs: Option<Pairs>,
    /// Determines which nodes are connected.
    channel: Channel,
}

#[derive(Clone, PartialEq, Debug)]
enum Places {
    /// The scenario gives the positions.
    Given,
    Uniform {
        nodes: u64,
        width: f64,
        height: f64,
        connected: bool,
    },
    Waypoint {
        nodes: u64,
        waypoint: Waypoint,
    },
}

/// Draw of the ends of flows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pairs {
    /// `count` pairs of nodes. All nodes are different, and the nodes of each pair are `min_hops`
    /// to `max_hops` hops apart.
    Random { count: u64, min_hops: u64, max_hops: u64 },
    /// LLAP-GRID10: `per_side` different nodes of each side of a grid, each paired with any node of
    /// the opposite side.
    Sides { rows: u64, columns: u64, per_side: u64 },
}

/// Result of a draw.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Drawn {
    /// Positions at time zero; `None` if they were not drawn.
    pub positions: Option<Vec<Position>>,
    /// Ends of all flows; `None` if they were not drawn.
    pub ends: Option<Vec<(u64, u64)>>,
}

/// Error: no suitable placement was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unplaced {
    tries: u32,
}

impl fmt::Display for Unplaced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "none of {} random placements was connected and had nodes for the ends of its flows", self.tries)
    }
}

impl std::error::Error for Unplaced {}

impl Draw {
    /// Creates a draw of the ends of flows. The positions of the nodes are given.
    pub fn of_pairs(pairs: Pairs, placement: Option<u64>, channel: &Channel) -> Draw {
        Draw { placement, places: Places::Given, pairs: Some(pairs), channel: channel.clone() }
    }

    /// Result of the draw for `seed`.
    ///
    /// # Errors
    /// If no suitable placement was found.
    pub fn of(&self, seed: u64) -> Result<Drawn, Unplaced> {
        self.draw(seed, TRIES_FOR_RUN)
    }

    /// Ends of flows for seed 1; empty if they cannot be drawn.
    pub fn ends_for_reading(&self) -> Vec<(u64, u64)> {
        self.draw(1, TRIES_FOR_READING).ok().and_then(|drawn| drawn.ends).unwrap_or_default()
    }

    fn draw(&self, seed: u64, tries: u32) -> Result<Drawn, Unplaced> {
        let seed = self.placement.unwrap_or(seed);
        let mut places = Rng::stream(seed, Purpose::Topology, PLACES);
        let mut ends = Rng::stream(seed, Purpose::Topology, PAIRS);
        for _ in 0..tries {
            let positions = match self.places {
                Places::Given => None,
                Places::Uniform { nodes, width, height, connected } => {
                    let mut place = |_| {
                        let x = places.uniform_in(0.0, width);
                        at(x, places.uniform_in(0.0, height))
                    };
                    let positions: Vec<Position> = (0..nodes).map(&mut place).collect();
                    if connected && components(&positions, &self.channel, None).iter().any(|&component| component != 0)
                    {
                        continue;
                    }
                    Some(positions)
                }
                Places::Waypoint { nodes, waypoint } => {
                    let nowhere = vec![at(0.0, 0.0); nodes as usize];
                    let motion = Motion::new(&nowhere, &Mobility::Waypoint(waypoint), seed);
                    motion.map(|mut motion| motion.positions(Time::ZERO))
                }
            };
            match self
                .pairs
                .map(|pairs| draw_pairs(pairs, positions.as_deref().unwrap_or(&[]), &self.channel, &mut ends))
            {
                None => return Ok(Drawn { positions, ends: None }),
                Some(Some(ends)) => return Ok(Drawn { positions, ends: Some(ends) }),
                Some(None) => {}
            }
        }
        Err(Unplaced { tries })
    }
}

fn draw_pairs(pairs: Pairs, positions: &[Position], channel: &Channel, rng: &mut Rng) -> Option<Vec<(u64, u64)>> {
    match pairs {
        Pairs::Sides { rows, columns, per_side } => {
            let node = |row: u64, column: u64| row * columns + column;
            let mut ends = Vec::new();
            // West to east, east to west, south to north, north to south.
            for (side, length) in [(0, rows), (1, rows), (2, columns), (3, columns)] {
                let place = |end: u64, along: u64| match side {
                    0 => node(along, end * (columns - 1)),
                    1 => node(along, (1 - end) * (columns - 1)),
                    2 => node(end * (rows - 1), along),
                    _ => node((1 - end) * (rows - 1), along),
                };
                let mut sources: Vec<u64> = (0..length).collect();
                for _ in 0..per_side {
                    let source = sources.swap_remove(rng.below(sources.len() as u64) as usize);
                    ends.push((place(0, source), place(1, rng.below(length))));
                }
            }
            Some(ends)
        }
        Pairs::Random { count, min_hops, max_hops } => {
            let nodes = positions.len() as u64;
            let any_distance = min_hops <= 1 && max_hops >= nodes;
            let adjacency = if any_distance { Vec::new() } else { Neighbours::new(channel, positions).adjacency() };
            // A pair whose distance is too large for `max_hops` hops on a straight line needs no
            // search.
            let farthest = max_hops as f64 * channel.link_reach() * 1.001;
            let mut count_hops = HopCount::default();
            let mut used = vec![false; positions.len()];
            let mut ends = Vec::new();
            for _ in 0..count {
                let pair = (0..TRIES_FOR_PAIR).find_map(|_| {
                    let (from, to) = (rng.below(nodes), rng.below(nodes));
                    if from == to || used[from as usize] || used[to as usize] {
                        return None;
                    }
                    let fits = any_distance || {
                        positions[from as usize].distance(positions[to as usize]) <= farthest
                            && count_hops
                                .between(&adjacency, NodeId(from as u16), NodeId(to as u16), max_hops)
                                .is_some_and(|hops| hops >= min_hops)
                    };
                    fits.then_some((from, to))
                })?;
                used[pair.0 as usize] = true;
                used[pair.1 as usize] = true;
                ends.push(pair);
            }
            Some(ends)
        }
    }
}

static PLACEMENT: Parameter = parameter!(placement: Option<u64> = None => whole("a placement", 0, i64::MAX as u64).or("the run's seed"),
    Basic, "random, waypoint, grid: seed of places and flows, instead of the run's seed");
static NODES: Parameter =
    parameter!(nodes: Option<u64> = None => whole("nodes", 2, MAX_NODES), Basic, "random, waypoint: number of nodes");
// These limits let the slowest node cross the largest area within the longest run.
static MIN_SPEED: Parameter =
    parameter!(min_speed: f64 = 1.0 => SPEED.above(0.0).to(1e4), Basic, "waypoint: lowest speed", "TPA");
static MAX_SPEED: Parameter =
    parameter!(max_speed: f64 = 9.0 => SPEED.above(0.0).to(1e4), Basic, "waypoint: highest speed", "TPA");
static PAUSE: Parameter = parameter!(pause: Duration = Duration::from_secs(20) => TIME.to(MAX_SECONDS), Basic,
    "time for which a node pauses", "Johnson and Maltz, 1996");

/// Reads `placement = N`.
pub fn placement(keys: &mut Reader<'_>) -> Option<u64> {
    keys.standalone(&PLACEMENT)
}

fn number_of_nodes(keys: &mut Reader<'_>) -> Option<u64> {
    let nodes = keys.standalone(&NODES);
    if keys.get("nodes").is_none() {
        keys.report_invalid("nodes", "is missing", "expected a number such as nodes = 50");
    }
    nodes
}

/// Reads `flows = { count = 10, min_hops = 2, max_hops = 6 }`. If nodes move, numbers of hops have
/// no meaning, and their keys are unknown.
fn random_flows(keys: &mut Reader<'_>, nodes: u64, with_hops: bool) -> Option<Pairs> {
    let value = keys.get("flows")?;
    if !matches!(value.kind, Kind::Table(_)) {
        keys.report_invalid(
            "flows",
            format!("expected a table, found {}", value.describe()),
            "expected { count = 10 }",
        );
        return None;
    }
    let mut table = keys.table("flows");
    let most = (nodes / 2).min(u64::from(u16::MAX));
    let count = table.integer("count", 1..=most, "flows whose ends are all different nodes");
    if table.get("count").is_none() {
        table.report_invalid("count", "is missing", "expected the number of flows");
    }
    let (mut min_hops, mut max_hops) = (1, nodes);
    if with_hops {
        min_hops = table.integer("min_hops", 1..=nodes - 1, "hops").unwrap_or(min_hops);
        max_hops = table.integer("max_hops", 1..=nodes - 1, "hops").unwrap_or(max_hops);
        if max_hops < min_hops {
            let message = format!("{max_hops} is below min_hops, {min_hops}");
            table.report_conflict(&["max_hops", "min_hops"], message, "expected at least min_hops");
        }
    }
    table.finish("the flows of this topology");
    Some(Pairs::Random { count: count?, min_hops, max_hops })
}

/// Nodes at uniformly distributed positions in a rectangle, drawn until they are connected.
pub fn random(keys: &mut Reader<'_>, allow_partition: bool, channel: &Channel) -> Topology {
    let before = keys.problems().count();
    let nodes = number_of_nodes(keys);
    let area = area(keys);
    let placement = placement(keys);
    let pairs = random_flows(keys, nodes.unwrap_or(MAX_NODES), true);
    let (Some(nodes), Some((width, height))) = (nodes, area) else { return Topology::default() };
    if keys.problems().count() > before {
        return Topology::default();
    }
    let places = Places::Uniform { nodes, width, height, connected: !allow_partition };
    let why = format!("{nodes} nodes in {width} m x {height} m are almost never connected");
    topology(keys, Draw { placement, places, pairs, channel: channel.clone() }, &why)
}

/// Random waypoint movement in a rectangle. It begins in the stationary distribution.
pub fn waypoint(keys: &mut Reader<'_>, channel: &Channel) -> Topology {
    let before = keys.problems().count();
    let nodes = number_of_nodes(keys);
    let area = area(keys);
    let placement = placement(keys);
    let pairs = random_flows(keys, nodes.unwrap_or(MAX_NODES), false);
    let (min_speed, max_speed): (f64, f64) = (keys.standalone(&MIN_SPEED), keys.standalone(&MAX_SPEED));
    if max_speed < min_speed {
        let message = format!("{max_speed} m/s is below min_speed, {min_speed} m/s");
        keys.report_conflict(&["max_speed", "min_speed"], message, "expected at least min_speed");
    }
    let pause = keys.standalone(&PAUSE);
    let (Some(nodes), Some((width, height))) = (nodes, area) else { return Topology::default() };
    if keys.problems().count() > before {
        return Topology::default();
    }
    let waypoint = Waypoint { width, height, min_speed, max_speed, pause, seed: placement };
    let places = Places::Waypoint { nodes, waypoint };
    let drawn = topology(
        keys,
        Draw { placement, places, pairs, channel: channel.clone() },
        "no nodes were found for the ends of its flows",
    );
    Topology { mobility: Mobility::Waypoint(waypoint), ..drawn }
}

fn topology(keys: &Reader<'_>, draw: Draw, why: &str) -> Topology {
    match draw.draw(1, TRIES_FOR_READING) {
        Ok(drawn) => Topology {
            positions: drawn.positions.unwrap_or_default(),
            makes_flows: drawn.ends.is_some(),
            default_ends: drawn.ends.unwrap_or_default(),
            draw: Some(draw),
            ..Topology::default()
        },
        Err(unplaced) => {
            let expected = "expected more nodes, a smaller area, nearer ends, or topology.allow_partition = true";
            keys.report_invalid("nodes", format!("{why}: {unplaced}"), expected);
            Topology::default()
        }
    }
}

//! `[topology]`: positions and movement of the nodes.

mod draw;
mod map;
mod motion;
mod moves;
mod nodes;
mod shapes;

pub use draw::{Draw, Unplaced};
pub use shapes::usual_spacing;

use super::files::Load;
use super::reader::Reader;
use meshpace_core::{Duration, NodeId, Parameter, parameter};
use meshpace_mesh::config::Position;
use meshpace_mesh::radio::Channel;
use meshpace_settings::diagnostic::Problem;
use meshpace_settings::value::{Kind, Origin, Value};
use meshpace_sim::Mobility;
use std::path::PathBuf;

/// Names of the nodes in the map `name`, by node number. Empty if the map has no names or cannot be
/// read.
pub fn node_names(name: &str, bytes: &[u8]) -> Vec<String> {
    map::read(name, bytes).map(|map| map.names).unwrap_or_default()
}

/// Number of hops of a chain for which no number is written.
pub const DEFAULT_HOPS: u64 = 7;
/// Largest absolute value of a coordinate, metres.
const MAX_COORDINATE: f64 = 1e7;
const MAX_NODES: u64 = NodeId::MAX_NODES as u64;

/// Positions of the nodes, and ends of the flows that name none.
#[derive(Default, Debug)]
pub struct Topology {
    /// Positions by node number. If they are drawn, they are those of seed 1.
    pub positions: Vec<Position>,
    /// Ends of the flows, by number. A chain has one entry, which applies to every flow.
    pub default_ends: Vec<(u64, u64)>,
    /// True if `topology.flows` determines the number of flows, which is then the number of default
    /// ends.
    pub makes_flows: bool,
    /// Pairs of nodes that the topology defines as neighbours. `None` if the topology defines only
    /// positions, and the radio alone determines the neighbours.
    pub links: Option<Vec<(u64, u64)>>,
    /// True if a node drops frames from nodes that the topology does not define as its neighbours.
    pub firewall: bool,
    /// Movement of the nodes.
    pub mobility: Mobility,
    /// Draw of positions or of ends of flows for each seed.
    pub draw: Option<Draw>,
    /// True if flows are allowed whose ends no path connects.
    pub allow_partition: bool,
    /// Longest time for which a flow between moving nodes may be without a path. `None` if the
    /// scenario does not request the check.
    pub longest_partition: Option<Duration>,
    /// The `--set` argument that changed the topology.
    pub set_by: Option<Origin>,
    /// Files that were read, with their contents, for the digest.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

static ALLOW_PARTITION: Parameter = parameter!(allow_partition: bool = false => FLAG, Basic,
    "whether the ends of a flow may be without a path, for a time or always");
static LONGEST_PARTITION: Parameter = parameter!(longest_partition: Duration = Duration::from_secs(10) => TIME.above(0.0), Expert,
    "with moving nodes: longest time for which a flow may have no path; checked if this key or allow_partition = false is set");
static WIDTH: Parameter = parameter!(width: Option<f64> = None => LENGTH.above(0.0).to(1e6), Basic, "random, waypoint: size of the area from west to east");
static HEIGHT: Parameter = parameter!(height: Option<f64> = None => LENGTH.above(0.0).to(1e6), Basic, "random, waypoint: size of the area from south to north");

#[derive(Clone, Copy, PartialEq, Eq)]
enum TopologyKind {
    Chain,
    Cross,
    TpaCross,
    Parallel,
    Asymmetric,
    Grid,
    Nodes,
    Random,
    Roaming,
    Waypoint,
}

impl Topology {
    /// Reads `[topology]`. The files that it names come from `load`, and `channel` determines which
    /// nodes are connected. `spacing` is the distance of neighbours, in metres, if the scenario has
    /// none.
    pub fn read(reader: &mut Reader<'_>, load: Load<'_>, channel: &Channel, spacing: f64) -> Topology {
        let before = reader.problems().count();
        let set_by = reader.get("topology").and_then(Value::set_by);
        let mut keys = reader.table("topology");
        let kinds = [
            ("chain", TopologyKind::Chain),
            ("cross", TopologyKind::Cross),
            ("tpa-cross", TopologyKind::TpaCross),
            ("parallel", TopologyKind::Parallel),
            ("asymmetric", TopologyKind::Asymmetric),
            ("grid", TopologyKind::Grid),
            ("random", TopologyKind::Random),
            ("nodes", TopologyKind::Nodes),
            ("roaming", TopologyKind::Roaming),
            ("waypoint", TopologyKind::Waypoint),
        ];
        let given = keys.get("kind").is_some();
        let kind = match keys.choice("kind", &kinds, &[]) {
            Some(kind) => kind,
            // The kind is wrong, so the keys that belong to it are unknown and are not reported.
            None if given => return Topology::default(),
            None => TopologyKind::Chain,
        };
        let allow_partition: bool = keys.standalone(&ALLOW_PARTITION);
        let longest_partition: Duration = keys.standalone(&LONGEST_PARTITION);
        let is_asked = keys.get("allow_partition").is_some() || keys.get("longest_partition").is_some();
        let longest_partition = (is_asked && !allow_partition).then_some(longest_partition);
        kinds.iter().filter(|(_, one)| *one == kind).for_each(|(name, _)| keys.set_kind(name));
        let firewall = keys.flag("firewall");
        let mut topology = match kind {
            TopologyKind::Chain => shapes::chain(&mut keys, spacing),
            TopologyKind::Cross => shapes::cross(&mut keys, spacing),
            TopologyKind::TpaCross => shapes::tpa_cross(),
            TopologyKind::Parallel => shapes::parallel(&mut keys, spacing),
            TopologyKind::Asymmetric => shapes::asymmetric(&mut keys, spacing),
            TopologyKind::Grid => shapes::grid(&mut keys, channel, spacing),
            TopologyKind::Nodes => nodes::read(&mut keys, load),
            TopologyKind::Random => draw::random(&mut keys, allow_partition, channel),
            TopologyKind::Roaming => moves::roaming(&mut keys),
            TopologyKind::Waypoint => draw::waypoint(&mut keys, channel),
        };
        topology.allow_partition = allow_partition;
        topology.longest_partition = longest_partition;
        topology.set_by = set_by;
        if !matches!(kind, TopologyKind::Random | TopologyKind::Roaming | TopologyKind::Waypoint) {
            topology.mobility = match (keys.text("motion"), keys.get("moves")) {
                (None, _) => moves::read(&mut keys, topology.positions.len()),
                (Some(_), Some(_)) => {
                    keys.report_conflict(&["motion", "moves"], "two movements", "expected either motion or moves");
                    Mobility::Still
                }
                (Some(name), None) => motion::read(&keys, name, load, &mut topology),
            };
        }
        refuse_shared_places(&keys, &topology.positions);
        // Without the firewall, the crossing chains of the TPA testbed would not be chains.
        topology.firewall = firewall.unwrap_or(kind == TopologyKind::TpaCross);
        if topology.firewall {
            refuse_pointless_firewall(&keys, &topology);
        }
        keys.finish(match kind {
            TopologyKind::Chain => "a chain",
            TopologyKind::Cross => "a cross",
            TopologyKind::TpaCross => "the cross of the TPA testbed",
            TopologyKind::Parallel => "parallel chains",
            TopologyKind::Asymmetric => "asymmetric chains",
            TopologyKind::Grid => "a grid",
            TopologyKind::Nodes => "a topology of nodes",
            TopologyKind::Random => "a random topology",
            TopologyKind::Roaming => "the roaming node's topology",
            TopologyKind::Waypoint => "a random waypoint topology",
        });
        if reader.problems().count() > before {
            // A topology without nodes suppresses further errors about flows, which would only
            // repeat this one.
            return Topology::default();
        }
        topology
    }

    /// Links that the firewall leaves; `None` if there is no firewall.
    pub fn accepted_links(&self) -> Option<Vec<(NodeId, NodeId)>> {
        let links = self.links.as_ref().filter(|_| self.firewall)?;
        Some(links.iter().map(|&(a, b)| (NodeId(a as u16), NodeId(b as u16))).collect())
    }
}

fn at(x: f64, y: f64) -> Position {
    Position { x, y }
}

/// Reads `width` and `height` of an area; both are required.
fn area(keys: &mut Reader<'_>) -> Option<(f64, f64)> {
    let mut side = |parameter: &'static Parameter| {
        let length: Option<f64> = keys.standalone(parameter);
        if keys.value(parameter.key).is_none() {
            keys.report_invalid(
                parameter.key,
                "is missing",
                format!("expected a length such as {} = \"1000 m\"", parameter.key),
            );
        }
        length
    };
    let (width, height) = (side(&WIDTH), side(&HEIGHT));
    Some((width?, height?))
}

fn refuse_pointless_firewall(keys: &Reader<'_>, topology: &Topology) {
    if topology.mobility != Mobility::Still {
        let message = "a firewall needs nodes that do not move";
        keys.report_invalid("firewall", message, "expected no firewall where nodes move");
    } else if topology.links.is_none() && !topology.positions.is_empty() {
        let message = "this topology does not define neighbours";
        keys.report_invalid("firewall", message, "expected a chain, a cross, a grid or a map with links");
    }
}

fn refuse_shared_places(keys: &Reader<'_>, positions: &[Position]) {
    let mut order: Vec<usize> = (0..positions.len()).collect();
    // The addition of zero turns -0 into 0, so that both are the same position.
    let place = |i: usize| (positions[i].x + 0.0, positions[i].y + 0.0);
    order.sort_by(|&a, &b| {
        let (a, b) = (place(a), place(b));
        a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    for pair in order.windows(2) {
        if place(pair[0]) == place(pair[1]) {
            let (first, second) = (pair[0].min(pair[1]), pair[0].max(pair[1]));
            let (x, y) = place(first);
            let message = format!("nodes {first} and {second} are both at ({x} m, {y} m)");
            let origin = match keys.value("positions").map(|value| &value.kind) {
                Some(Kind::Array(items)) => items.get(second).map(|item| item.origin.clone()),
                _ => None,
            };
            keys.problems().add(Problem {
                message: format!("topology: two nodes are at the same place: {message}"),
                origin: origin.or_else(|| keys.origin(if keys.value("file").is_some() { "file" } else { "motion" })),
                expected: "expected a different place for every node".to_owned(),
                help: None,
                point: None,
            });
        }
    }
}

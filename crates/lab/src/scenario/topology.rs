//! `[topology]`: where the nodes are.

use super::diagnostic::Problem;
use super::quantity::LENGTH;
use super::reader::{Reader, Sign, quantity_of};
use super::value::{Kind, Origin, Value};
use meshpace_core::NodeId;
use meshpace_mesh::config::Position;
use std::path::{Path, PathBuf};

/// Hops of a chain that does not say.
pub const DEFAULT_HOPS: u64 = 7;
/// The largest distance from the origin, metres.
const MAX_COORDINATE: f64 = 1e7;
const MAX_NODES: u64 = NodeId::MAX_NODES as u64;

/// Where the nodes are and between which of them the flows run that do not say.
#[derive(Default, Debug)]
pub struct Topology {
    /// By node number.
    pub positions: Vec<Position>,
    /// The ends of flow 0, 1, ...; a chain has the same for every flow.
    pub default_ends: Vec<(u64, u64)>,
    /// Whether flows may have ends that no path connects.
    pub allow_partition: bool,
    /// The `--set` argument that changed the topology.
    pub set_by: Option<Origin>,
    /// The files that were read, with their contents, for the digest.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

#[derive(Clone, Copy)]
enum TopologyKind {
    Chain,
    Cross,
    Parallel,
    Grid,
    Nodes,
}

impl Topology {
    /// Reads `[topology]`; relative file names are taken from `directory`.
    pub fn read(reader: &mut Reader<'_>, directory: &Path) -> Topology {
        let before = reader.problems().count();
        let set_by = reader.get("topology").and_then(Value::set_by);
        let mut keys = reader.table("topology");
        let kinds = [
            ("chain", TopologyKind::Chain),
            ("cross", TopologyKind::Cross),
            ("parallel", TopologyKind::Parallel),
            ("grid", TopologyKind::Grid),
            ("nodes", TopologyKind::Nodes),
        ];
        let given = keys.get("kind").is_some();
        let kind = match keys.choice("kind", &kinds, &["random", "roaming", "waypoint"]) {
            Some(kind) => kind,
            // Which other keys belong here is unknown: reporting them would be noise.
            None if given => return Topology::default(),
            None => TopologyKind::Chain,
        };
        let allow_partition = keys.flag("allow_partition").unwrap_or(false);
        let mut topology = match kind {
            TopologyKind::Chain => chain(&mut keys),
            TopologyKind::Cross => cross(&mut keys),
            TopologyKind::Parallel => parallel(&mut keys),
            TopologyKind::Grid => grid(&mut keys),
            TopologyKind::Nodes => nodes(&mut keys, directory),
        };
        topology.allow_partition = allow_partition;
        topology.set_by = set_by;
        refuse_shared_places(&keys, &topology.positions);
        keys.finish(match kind {
            TopologyKind::Chain => "a chain",
            TopologyKind::Cross => "a cross",
            TopologyKind::Parallel => "parallel chains",
            TopologyKind::Grid => "a grid",
            TopologyKind::Nodes => "a topology of nodes",
        });
        if reader.problems().count() > before {
            // Without nodes nothing more is said about flows: it would only be noise.
            return Topology::default();
        }
        topology
    }
}

fn spacing(keys: &mut Reader<'_>) -> f64 {
    keys.quantity("spacing", &LENGTH, Sign::Positive, 1e5).unwrap_or(200.0)
}

fn at(x: f64, y: f64) -> Position {
    Position { x, y }
}

/// Nodes 0..=hops at (spacing * i, 0).
fn chain(keys: &mut Reader<'_>) -> Topology {
    let hops = keys.whole("hops", 1..=MAX_NODES - 1, "hops").unwrap_or(DEFAULT_HOPS);
    let spacing = spacing(keys);
    let positions = (0..=hops).map(|i| at(spacing * i as f64, 0.0)).collect();
    Topology { positions, default_ends: vec![(0, hops)], ..Topology::default() }
}

/// CROSS9: nodes 0..4 west to east; 5, 6, (2), 7, 8 south to north.
fn cross(keys: &mut Reader<'_>) -> Topology {
    let d = spacing(keys);
    let horizontal = (0..5).map(|i| at(d * f64::from(i), 2.0 * d));
    let vertical = [0.0, 1.0, 3.0, 4.0].map(|i| at(2.0 * d, d * i));
    let positions = horizontal.chain(vertical).collect();
    Topology { positions, default_ends: vec![(0, 4), (5, 8)], ..Topology::default() }
}

/// Two chains, the first with nodes 0..=hops, the second north of it with the next numbers (PAR4 with 4 hops).
fn parallel(keys: &mut Reader<'_>) -> Topology {
    let hops = keys.whole("hops", 1..=MAX_NODES / 2 - 1, "hops").unwrap_or(4);
    let spacing = spacing(keys);
    let separation = keys.quantity("separation", &LENGTH, Sign::Positive, 1e5).unwrap_or(400.0);
    let row = |y: f64| (0..=hops).map(move |i| at(spacing * i as f64, y));
    let positions = row(0.0).chain(row(separation)).collect();
    Topology { positions, default_ends: vec![(0, hops), (hops + 1, 2 * hops + 1)], ..Topology::default() }
}

/// Row by row from the south, each from west to east: node = row * columns + column.
fn grid(keys: &mut Reader<'_>) -> Topology {
    let rows = keys.whole("rows", 1..=MAX_NODES, "rows").unwrap_or(5);
    let columns = keys.whole("columns", 1..=MAX_NODES, "columns").unwrap_or(5);
    let spacing = spacing(keys);
    if rows * columns > MAX_NODES {
        let message = format!("{rows} rows of {columns} nodes are more than {MAX_NODES} nodes");
        keys.wrong("rows", message, format!("expected at most {MAX_NODES} nodes in all"));
        return Topology::default();
    }
    let place = |i| at(spacing * (i % columns) as f64, spacing * (i / columns) as f64);
    Topology { positions: (0..rows * columns).map(place).collect(), ..Topology::default() }
}

/// `positions = [["0 m", "0 m"], ...]` or `file = "map.csv"`.
fn nodes(keys: &mut Reader<'_>, directory: &Path) -> Topology {
    let inline = keys.get("positions");
    let file = keys.text("file");
    let mut topology = Topology::default();
    match (inline, file) {
        (Some(value), None) => topology.positions = inline_positions(keys, value),
        (None, Some(name)) => {
            let path = directory.join(name);
            match std::fs::read(&path) {
                Ok(bytes) => {
                    match csv_positions(&bytes) {
                        Ok(positions) => topology.positions = positions,
                        Err((line, why)) => keys.wrong("file", format!("{name}:{line}: {why}"), "read from here"),
                    }
                    topology.files.push((PathBuf::from(name), bytes));
                }
                Err(error) => keys.wrong("file", format!("{}: {error}", path.display()), "expected a CSV file"),
            }
        }
        _ => keys.wrong(
            if inline.is_some() { "positions" } else { "kind" },
            "expected either positions or file",
            "nodes need positions = [[\"0 m\", \"0 m\"], ...] or file = \"map.csv\"",
        ),
    }
    if topology.positions.len() as u64 > MAX_NODES {
        let key = if inline.is_some() { "positions" } else { "file" };
        keys.wrong(key, format!("more than {MAX_NODES} nodes"), format!("expected at most {MAX_NODES} nodes"));
        topology.positions.clear();
    }
    topology
}

fn inline_positions(keys: &Reader<'_>, value: &Value) -> Vec<Position> {
    let Kind::Array(items) = &value.kind else {
        keys.wrong(
            "positions",
            "expected a list",
            "expected a list such as [[\"0 m\", \"0 m\"], [\"200 m\", \"0 m\"]]",
        );
        return Vec::new();
    };
    if items.is_empty() {
        keys.wrong("positions", "expected at least one node", "expected at least one position");
    }
    let mut positions = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let place = match &item.kind {
            Kind::Array(pair) if pair.len() == 2 => {
                let mut metres = [0.0; 2];
                for (metres, coordinate) in metres.iter_mut().zip(pair) {
                    match quantity_of(coordinate, &LENGTH, Sign::Any, MAX_COORDINATE) {
                        Ok(number) => *metres = number,
                        Err(expected) => wrong_position(keys, number, &coordinate.origin, &expected),
                    }
                }
                at(metres[0], metres[1])
            }
            _ => {
                wrong_position(keys, number, &item.origin, "a pair such as [\"200 m\", \"0 m\"]");
                continue;
            }
        };
        positions.push(place);
    }
    positions
}

fn wrong_position(keys: &Reader<'_>, number: usize, origin: &Origin, expected: &str) {
    keys.problems().add(Problem {
        message: format!("topology.positions: node {number}: expected {expected}"),
        origin: Some(origin.clone()),
        expected: format!("expected {expected}"),
        help: None,
        point: None,
    });
}

/// Positions of a CSV file whose header has the columns `x_m` and `y_m`; an error comes with its line.
fn csv_positions(bytes: &[u8]) -> Result<Vec<Position>, (u64, String)> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let header = reader.headers().map_err(|error| (1, error.to_string()))?.clone();
    let column = |name| header.iter().position(|title| title == name);
    let (Some(x), Some(y)) = (column("x_m"), column("y_m")) else {
        return Err((1, "expected a header with the columns x_m and y_m (metres)".to_owned()));
    };
    let mut positions = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| (error.position().map_or(0, |at| at.line()), error.to_string()))?;
        let line = record.position().map_or(0, |at| at.line());
        let metres = |column: usize| match record[column].parse::<f64>() {
            Ok(number) if number.abs() <= MAX_COORDINATE => Ok(number),
            _ => Err((line, format!("expected a number of metres, found \"{}\"", &record[column]))),
        };
        positions.push(at(metres(x)?, metres(y)?));
    }
    if positions.is_empty() { Err((1, "no nodes in it".to_owned())) } else { Ok(positions) }
}

fn refuse_shared_places(keys: &Reader<'_>, positions: &[Position]) {
    let mut order: Vec<usize> = (0..positions.len()).collect();
    // Adding zero makes -0 and 0 the same place.
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
                message: format!("topology: two nodes at one place: {message}"),
                origin: origin.or_else(|| keys.origin("file")),
                expected: "expected a place of its own for every node".to_owned(),
                help: None,
                point: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_has_a_header_and_names_its_bad_line() {
        let good = b"node,x_m,y_m\n0,0,0\n1,200,-1.5\n";
        assert_eq!(csv_positions(good).unwrap(), [at(0.0, 0.0), at(200.0, -1.5)]);
        assert_eq!(csv_positions(b"x,y\n0,0\n").unwrap_err().0, 1);
        assert_eq!(csv_positions(b"x_m,y_m\n0,0\n5,NaN\n").unwrap_err().0, 3);
        assert_eq!(csv_positions(b"x_m,y_m\n").unwrap_err().0, 1);
    }
}

//! Nodes that move by a script: `moves = [...]`, and the roaming node of the TPA testbed.

use super::super::MAX_SECONDS;
use super::super::reader::{Reader, Sign, parse_quantity};
use super::{MAX_COORDINATE, Topology, at};
use meshpace_core::{Duration, NodeId, Parameter, Time, parameter};
use meshpace_mesh::config::Position;
use meshpace_settings::quantity::{LENGTH, TIME};
use meshpace_settings::value::{Kind, Value};
use meshpace_sim::Mobility;
use meshpace_sim::mobility::Move;

/// Reads `moves = [{ node = 3, start = "40 s", end = "60 s", to = ["350 m", "50 m"] }, ...]`. The
/// moves of each node must be in the order of time.
pub fn read(keys: &mut Reader<'_>, nodes: usize) -> Mobility {
    let Some(value) = keys.get("moves") else { return Mobility::Still };
    let Kind::Array(items) = &value.kind else {
        let example = "[{ node = 3, start = \"40 s\", end = \"60 s\", to = [\"350 m\", \"50 m\"] }]";
        keys.report_invalid("moves", "expected a list", format!("expected a list such as {example}"));
        return Mobility::Still;
    };
    let mut moves: Vec<Move> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let path = format!("{}.{number}", keys.path("moves"));
        let Kind::Table(table) = &item.kind else {
            let message = format!("{path}: expected a table, found {}", item.describe());
            keys.problems().at(&item.origin, message, "expected { node, start, end, to }");
            continue;
        };
        let mut leg = Reader::new(table, Some(&item.origin), path, keys.problems());
        if let Some(next) = one(&mut leg, nodes) {
            let earlier = moves.iter().rev().find(|earlier| earlier.node == next.node);
            if let Some(earlier) = earlier.filter(|earlier| next.start < earlier.end) {
                let message =
                    format!("goes back in time: node {} is moving until {} s", next.node.0, earlier.end.as_secs_f64());
                leg.report_invalid("start", message, "expected the moves of a node in the order of time");
            }
            moves.push(next);
        }
        leg.finish("a move");
    }
    if moves.is_empty() { Mobility::Still } else { Mobility::Scripted(moves) }
}

fn one(leg: &mut Reader<'_>, nodes: usize) -> Option<Move> {
    for key in ["node", "start", "end", "to"] {
        if leg.get(key).is_none() {
            leg.report_invalid(key, "is missing", "expected { node, start, end, to }");
        }
    }
    let node = leg.integer("node", 0..=(nodes as u64).saturating_sub(1), "a node");
    let mut time = |key| leg.quantity(key, &TIME, Sign::NotNegative, MAX_SECONDS).map(Duration::from_secs_f64);
    let (start, end) = (time("start"), time("end"));
    let to = leg.get("to").and_then(|value| {
        let place = place_of(value);
        if let Err(expected) = &place {
            leg.report_invalid("to", format!("expected {expected}"), format!("expected {expected}"));
        }
        place.ok()
    });
    let (start, end) = (start?, end?);
    if end <= start {
        let message = format!("goes back in time: the move starts at {} s", start.as_secs_f64());
        leg.report_conflict(&["end", "start"], message, "expected a time after the start");
        return None;
    }
    Some(Move { node: NodeId(node? as u16), start: Time::ZERO + start, end: Time::ZERO + end, to: to? })
}

fn place_of(value: &Value) -> Result<Position, String> {
    match &value.kind {
        Kind::Array(pair) if pair.len() == 2 => {
            let metres = |coordinate| parse_quantity(coordinate, &LENGTH, Sign::Any, MAX_COORDINATE);
            Ok(at(metres(&pair[0])?, metres(&pair[1])?))
        }
        _ => Err("a pair such as [\"200 m\", \"0 m\"]".to_owned()),
    }
}

static PAUSE: Parameter = parameter!(pause: Duration = Duration::from_secs(40) => TIME.above(0.0).to(MAX_SECONDS), Basic,
    "time for which a node pauses", "TPA");
static TRAVEL: Parameter = parameter!(travel: Duration = Duration::from_secs(20) => TIME.above(0.0).to(MAX_SECONDS), Expert,
    "roaming: duration of each move", "TPA");

/// TPA-ROAM: N1, N2 and N3 (nodes 0, 1 and 2) are in a row. N4 (node 3) stays near each of them in
/// turn, at P1, P2, P3, P2, P1. Each stay takes `pause`, and each move `travel`. The connection
/// runs from N4 to N1.
pub fn roaming(keys: &mut Reader<'_>) -> Topology {
    let (pause, travel): (Duration, Duration) = (keys.standalone(&PAUSE), keys.standalone(&TRAVEL));
    let (p1, p2, p3) = (at(100.0, 50.0), at(350.0, 50.0), at(580.0, 50.0));
    let positions = vec![at(0.0, 0.0), at(200.0, 0.0), at(400.0, 0.0), p1];
    let moves = [p2, p3, p2, p1].into_iter().zip(0u64..).map(|(to, before)| {
        let start = Time::ZERO + pause * (before + 1) + travel * before;
        Move { node: NodeId(3), start, end: start + travel, to }
    });
    let mobility = Mobility::Scripted(moves.collect());
    Topology { positions, default_ends: vec![(3, 0)], mobility, ..Topology::default() }
}

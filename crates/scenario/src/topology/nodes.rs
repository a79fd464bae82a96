//! Nodes at positions that the scenario or a map gives.

use super::super::files::Load;
use super::super::reader::{Reader, Sign, parse_quantity};
use super::{MAX_COORDINATE, MAX_NODES, Topology, at, map};
use meshpace_mesh::config::Position;
use meshpace_settings::diagnostic::Problem;
use meshpace_settings::quantity::LENGTH;
use meshpace_settings::value::{Kind, Origin, Value};
use std::path::PathBuf;

/// Reads `positions = [["0 m", "0 m"], ...]` or `file = "map.csv"`. With neither, the topology has
/// no nodes yet, and `motion` must give the initial positions.
pub fn read(keys: &mut Reader<'_>, load: Load<'_>) -> Topology {
    let inline = keys.get("positions");
    let file = keys.text("file");
    let mut topology = Topology::default();
    match (inline, file) {
        (Some(value), None) => topology.positions = inline_positions(keys, value),
        (None, Some(name)) => match load(name) {
            Ok(bytes) => {
                match map::read(name, &bytes) {
                    Ok(map) => (topology.positions, topology.links) = (map.positions, map.links),
                    Err((place, why)) => {
                        keys.report_invalid("file", format!("{name}:{place}: {why}"), "read from here")
                    }
                }
                topology.files.push((PathBuf::from(name), bytes));
            }
            Err(why) => keys.report_invalid("file", why, "expected a CSV, GraphML or JSON file"),
        },
        (None, None) if keys.value("motion").is_some() => {}
        _ => keys.report_invalid(
            if inline.is_some() { "positions" } else { "kind" },
            "expected either positions or file",
            "nodes need positions = [[\"0 m\", \"0 m\"], ...], file = \"map.csv\" or motion = \"trace.txt\"",
        ),
    }
    if topology.positions.len() as u64 > MAX_NODES {
        let key = if inline.is_some() { "positions" } else { "file" };
        keys.report_invalid(key, format!("more than {MAX_NODES} nodes"), format!("expected at most {MAX_NODES} nodes"));
        topology.positions.clear();
    }
    topology
}

fn inline_positions(keys: &Reader<'_>, value: &Value) -> Vec<Position> {
    let Kind::Array(items) = &value.kind else {
        keys.report_invalid(
            "positions",
            "expected a list",
            "expected a list such as [[\"0 m\", \"0 m\"], [\"200 m\", \"0 m\"]]",
        );
        return Vec::new();
    };
    if items.is_empty() {
        keys.report_invalid("positions", "expected at least one node", "expected at least one position");
    }
    let mut positions = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let place = match &item.kind {
            Kind::Array(pair) if pair.len() == 2 => {
                let mut metres = [0.0; 2];
                for (metres, coordinate) in metres.iter_mut().zip(pair) {
                    match parse_quantity(coordinate, &LENGTH, Sign::Any, MAX_COORDINATE) {
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

//! Movement from traces of other programs: ns-2 (the output of `setdest` and of compatible
//! programs) and BonnMotion.
//!
//! *ns-2*: `$node_(3) set X_ 83.4` is the initial position of a node. `$ns_ at 2.0 "$node_(3)
//! setdest 90.4 44.9 1.37"` means that at 2 s the node starts to move to that position, in metres,
//! at that speed, in m/s. The node starts at its current position, even in the middle of a
//! movement; a speed of 0 stops it. Lines that do not begin with a position or a movement of
//! `$node_(N)` are ignored: heights (`Z_`), distances (`$god_`), and traffic in the same script.
//!
//! *BonnMotion* (N. Aschenbruck et al., "BonnMotion: a mobility scenario generation and analysis
//! tool", SIMUTools 2010): one line per node, with times in seconds and positions in metres, "t x y
//! t x y". The node moves straight and at constant speed from one position to the next.
//!
//! After its last movement a node stays where it is.

use super::super::MAX_SECONDS;
use super::super::files::Load;
use super::super::reader::Reader;
use super::map::Wrong;
use super::{MAX_COORDINATE, MAX_NODES, Topology, at};
use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::config::Position;
use meshpace_sim::Mobility;
use meshpace_sim::mobility::Move;
use std::path::PathBuf;

/// Largest distance between the initial positions of a node in a map and in a trace, metres. Both
/// are rounded.
const SAME_M: f64 = 1e-3;

/// Reads `motion = "FILE"`. Returns the moves, and sets the initial positions if `topology` has
/// none.
pub fn read(keys: &Reader<'_>, name: &str, load: Load<'_>, topology: &mut Topology) -> Mobility {
    let bytes = match load(name) {
        Ok(bytes) => bytes,
        Err(why) => {
            keys.report_invalid("motion", why, "expected a trace of ns-2 (setdest) or of BonnMotion");
            return Mobility::Still;
        }
    };
    let moves = match trace(&bytes, &topology.positions) {
        Ok(trace) => {
            topology.positions = trace.positions;
            trace.moves
        }
        Err((line, why)) => {
            keys.report_invalid("motion", format!("{name}:{line}: {why}"), "read from here");
            Vec::new()
        }
    };
    topology.files.push((PathBuf::from(name), bytes));
    if moves.is_empty() { Mobility::Still } else { Mobility::Scripted(moves) }
}

/// Movement of all nodes.
struct Trace {
    /// Positions by node number, at time zero.
    positions: Vec<Position>,
    /// Moves by node. The moves of one node are ordered by time and do not overlap.
    moves: Vec<Move>,
}

/// Parses the trace in a file. `places` are the initial positions of the nodes; if there are none,
/// the trace must contain them.
fn trace(bytes: &[u8], places: &[Position]) -> Result<Trace, Wrong> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return Err(wrong(1, "the file is compressed; unpack it with gunzip first"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| wrong(1, format!("not text: {error}")))?;
    let text = text.trim_start_matches('\u{feff}');
    if text.lines().next().is_some_and(|line| line.trim_start().starts_with("#3D")) {
        return Err(wrong(1, "it has three dimensions: expected a line \"t x y t x y\" for each node"));
    }
    let lines: Vec<(usize, &str)> = text
        .lines()
        .zip(1..)
        .map(|(line, number)| (number, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .collect();
    if lines.is_empty() {
        return Err(wrong(1, "the file has no movement"));
    }
    let is_ns2 = lines.iter().any(|(_, line)| line.contains("$node_("));
    let (starts, moves) = if is_ns2 { ns2(&lines, places)? } else { bonnmotion(&lines)? };
    let positions = agreed(&starts, places)?;
    let moves = moves.into_iter().flatten().collect();
    Ok(Trace { positions, moves })
}

fn wrong(line: usize, why: impl Into<String>) -> Wrong {
    (line.to_string(), why.into())
}

/// Initial position of a node and its line; `None` if the trace does not contain it.
type Start = Option<(usize, Position)>;

/// Initial positions and moves, by node.
type Found = (Vec<Start>, Vec<Vec<Move>>);

/// Initial positions of all nodes, after a check that trace and map agree.
fn agreed(starts: &[Start], places: &[Position]) -> Result<Vec<Position>, Wrong> {
    if places.is_empty() {
        let start = |(node, start): (usize, &Start)| {
            start
                .map(|(_, place)| place)
                .ok_or_else(|| wrong(1, format!("it does not give the first place of node {node}")))
        };
        return starts.iter().enumerate().map(start).collect();
    }
    for (node, (line, start)) in starts.iter().enumerate().filter_map(|(node, start)| Some((node, (*start)?))) {
        match places.get(node) {
            None => {
                let last = places.len() - 1;
                return Err(wrong(line, format!("there is no node {node}: the topology has nodes 0 to {last}")));
            }
            Some(place) if place.distance(start) > SAME_M => {
                let Position { x, y } = place;
                let why =
                    format!("node {node} begins at ({}, {}) here, and at ({x}, {y}) in the topology", start.x, start.y);
                return Err(wrong(line, why));
            }
            Some(_) => {}
        }
    }
    Ok(places.to_vec())
}

/// Parses a number between `least` and `most`.
fn number(line: usize, what: &str, text: &str, (least, most): (f64, f64)) -> Result<f64, Wrong> {
    match text.parse::<f64>() {
        Ok(number) if number >= least && number <= most => Ok(number),
        _ => Err(wrong(line, format!("expected {what}, found \"{text}\""))),
    }
}

const COORDINATE: (f64, f64) = (-MAX_COORDINATE, MAX_COORDINATE);
const SECONDS: (f64, f64) = (0.0, MAX_SECONDS);

fn coordinate(line: usize, text: &str) -> Result<f64, Wrong> {
    number(line, "a coordinate in metres", text, COORDINATE)
}

fn time(line: usize, text: &str) -> Result<Time, Wrong> {
    Ok(Time::ZERO + Duration::from_secs_f64(number(line, "a time in seconds", text, SECONDS)?))
}

/// One `setdest` command.
struct Order {
    line: usize,
    at: Time,
    node: usize,
    to: Position,
    speed: f64,
}

/// True if a line of an ns-2 script sets an attribute of a node or moves it. Other lines belong to
/// traffic or to the output of the script.
fn is_of_movement(words: &[&str]) -> bool {
    let (node, verb) = match words {
        [_, "at", _, node, verb, ..] | [node, verb, ..] => (node, verb),
        _ => return false,
    };
    node.starts_with("$node_(") && ["set", "setdest"].contains(verb)
}

fn ns2(lines: &[(usize, &str)], places: &[Position]) -> Result<Found, Wrong> {
    let expected = "expected $node_(N) set X_ METRES, or $ns_ at SECONDS \"$node_(N) setdest X Y SPEED\"";
    let mut halves: Vec<(usize, [Option<f64>; 2])> = Vec::new();
    let mut orders = Vec::new();
    for &(line, text) in lines {
        let text = text.replace('"', " ");
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            _ if !is_of_movement(&words) => {}
            [_, "set", "Z_", _] => {}
            [node, "set", axis @ ("X_" | "Y_"), value] => {
                let (node, value) = (node_of(line, node)?, coordinate(line, value)?);
                if halves.len() <= node {
                    halves.resize(node + 1, (line, [None; 2]));
                }
                halves[node].0 = line;
                halves[node].1[usize::from(*axis == "Y_")] = Some(value);
            }
            [simulator, "at", when, node, "setdest", x, y, speed] if simulator.starts_with('$') => orders.push(Order {
                line,
                at: time(line, when)?,
                node: node_of(line, node)?,
                to: at(coordinate(line, x)?, coordinate(line, y)?),
                speed: number(line, "a speed in m/s", speed, (0.0, MAX_COORDINATE))?,
            }),
            _ => return Err(wrong(line, format!("this says nothing of movement that is understood: {expected}"))),
        }
    }
    let mut starts: Vec<Start> = Vec::new();
    for (node, (line, half)) in halves.into_iter().enumerate() {
        starts.push(match half {
            [Some(x), Some(y)] => Some((line, at(x, y))),
            [None, None] => None,
            _ => return Err(wrong(line, format!("node {node} has X_ or Y_ and not the other"))),
        });
    }
    // Commands with the same time are executed in the order of the file.
    orders.sort_by_key(|order| order.at);
    let nodes = orders.iter().map(|order| order.node + 1).max().unwrap_or(0).max(starts.len());
    let mut moves: Vec<Vec<Move>> = vec![Vec::new(); nodes];
    starts.resize(nodes, None);
    for order in &orders {
        let node = order.node;
        let start = starts[node].map(|(_, place)| place).or_else(|| places.get(node).copied());
        let Some(start) = start else {
            return Err(wrong(
                order.line,
                match places.len() {
                    0 => format!("where node {node} begins is not said: expected $node_({node}) set X_ and Y_"),
                    there => format!("there is no node {node}: the topology has nodes 0 to {}", there - 1),
                },
            ));
        };
        obey(&mut moves[node], start, order);
    }
    Ok((starts, moves))
}

/// Parses the node of "$node_(3)".
fn node_of(line: usize, word: &str) -> Result<usize, Wrong> {
    let inside = word.strip_prefix('$').and_then(|word| word.split_once('(')?.1.strip_suffix(')'));
    match inside.and_then(|number| number.parse::<usize>().ok()) {
        Some(node) if (node as u64) < MAX_NODES => Ok(node),
        Some(node) => Err(wrong(line, format!("node {node}: at most {MAX_NODES} nodes can be simulated"))),
        None => Err(wrong(line, format!("expected a node such as $node_(3), found \"{word}\""))),
    }
}

/// Executes a command: the node, which began at `start` and has made `moves`, leaves for another
/// position.
fn obey(moves: &mut Vec<Move>, start: Position, order: &Order) {
    let before = moves.len().checked_sub(2).map_or(start, |last| moves[last].to);
    let mut here = moves.last().map_or(start, |last| last.to);
    if let Some(last) = moves.last_mut().filter(|last| order.at < last.end) {
        let share = order.at.since(last.start).0 as f64 / last.end.since(last.start).0 as f64;
        here = at(before.x + share * (last.to.x - before.x), before.y + share * (last.to.y - before.y));
        (last.end, last.to) = (order.at, here);
        if last.start == last.end {
            moves.pop();
        }
    }
    let distance = here.distance(order.to);
    if order.speed > 0.0 && distance > 0.0 {
        let takes = Duration::from_secs_f64(distance / order.speed).max(Duration(1));
        let end = order.at.saturating_add(takes);
        moves.push(Move { node: NodeId(order.node as u16), start: order.at, end, to: order.to });
    }
}

fn bonnmotion(lines: &[(usize, &str)]) -> Result<Found, Wrong> {
    if lines.len() as u64 > MAX_NODES {
        return Err(wrong(lines[MAX_NODES as usize].0, format!("more than {MAX_NODES} nodes, a line for each")));
    }
    let (mut starts, mut moves) = (Vec::new(), Vec::new());
    for (node, &(line, text)) in lines.iter().enumerate() {
        let words: Vec<&str> = text.split_whitespace().collect();
        if !words.len().is_multiple_of(3) {
            let count = words.len();
            let why = format!("{count} numbers, which are no times and places \"t x y t x y\" of node {node}");
            return Err(wrong(line, format!("{why}; or the lines of ns-2, which begin with $")));
        }
        let mut legs: Vec<Move> = Vec::new();
        let mut here: Option<(Time, Position)> = None;
        for triple in words.chunks(3) {
            let (when, to) = (time(line, triple[0])?, at(coordinate(line, triple[1])?, coordinate(line, triple[2])?));
            match here {
                None => starts.push(Some((line, to))),
                Some((before, place)) if when < before || when == before && place != to => {
                    let [before, when] = [before, when].map(Time::as_secs_f64);
                    return Err(wrong(
                        line,
                        format!("node {node} goes back in time, or jumps: from {before} s to {when} s"),
                    ));
                }
                Some((before, place)) if place != to => {
                    legs.push(Move { node: NodeId(node as u16), start: before, end: when, to });
                }
                Some(_) => {}
            }
            here = Some((when, to));
        }
        moves.push(legs);
    }
    Ok((starts, moves))
}

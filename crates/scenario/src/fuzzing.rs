//! Bodies of fuzz targets: functions of the bytes of a user's files that panic if an invariant does
//! not hold.
//!
//! The module is compiled only for fuzzers and for the tests of this crate. Fuzzers set `--cfg
//! fuzzing`, as `cargo fuzz` does; the targets are in `fuzz/`. The tests run each body on the
//! inputs in `fuzz/corpus` and on mutations of them.

use super::files::Load;
use super::{Scenario, Source};
use meshpace_core::{NodeId, Time};
use meshpace_settings::value::{Kind, Origin, Table, Value};
use meshpace_sim::Mobility;
use meshpace_sim::mobility::Motion;

/// Separator between the parts of an input: the form feed.
const NEXT: char = '\x0c';
/// Largest number of nodes, rows or hops that an input may request. Larger inputs take more time
/// and test nothing else.
const LARGEST: i64 = 64;
/// Largest number of points of a sweep.
const POINTS: usize = 16;

/// Reads a scenario. Form feeds separate its text from arguments of `--set` and from the files that
/// it names. A part with a line break is a file, and its first line is the file's name.
///
/// # Panics
///
/// If a scenario that is accepted is not valid, or if the errors of a refused one do not point at
/// existing places.
pub fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut parts = text.split(NEXT);
    let text = parts.next().unwrap_or_default();
    let (files, sets): (Vec<&str>, Vec<&str>) = parts.partition(|part| part.contains('\n'));
    let is_small_set = |set: &&str| {
        !set.contains("sweep") && set.split(|letter: char| !letter.is_ascii_digit()).all(|digits| digits.len() < 3)
    };
    if !is_small(text) || !sets.iter().all(is_small_set) {
        return;
    }
    let sets = sets.into_iter().map(str::to_owned).collect();
    let load = |name: &str| {
        let found = files.iter().filter_map(|file| file.split_once('\n')).find(|(known, _)| *known == name);
        found.map(|(_, content)| content.as_bytes().to_vec()).ok_or_else(|| format!("{name}: not there"))
    };
    read(text, sets, &load);
}

/// True if the scenario can be read quickly.
fn is_small(text: &str) -> bool {
    let (document, _) = toml::de::DeTable::parse_recoverable(text);
    let root = Table::from_toml(document.get_ref(), &Origin::File);
    let points = |sweep: &Value| match &sweep.kind {
        Kind::Table(table) => table.entries.iter().fold(1usize, |points, axis| match &axis.value.kind {
            Kind::Array(values) => points.saturating_mul(values.len()),
            _ => points,
        }),
        _ => 1,
    };
    let tables = |value: &Value| match &value.kind {
        Kind::Array(tables) => tables.iter().map(points).fold(0, usize::saturating_add),
        _ => points(value),
    };
    root.entries.iter().all(|entry| match entry.key.as_str() {
        "sweep" => tables(&entry.value) <= POINTS && largest(&entry.value) <= 10_000,
        "topology" => largest(&entry.value) <= LARGEST,
        _ => largest(&entry.value) <= 100_000,
    })
}

/// Largest whole number in a value.
fn largest(value: &Value) -> i64 {
    match &value.kind {
        Kind::Integer(number) => *number,
        Kind::Array(values) => values.iter().map(largest).max().unwrap_or_default(),
        Kind::Table(table) => table.entries.iter().map(|entry| largest(&entry.value)).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Scenarios that name one file, one for each kind of file.
const WITH_FILES: [&str; 7] = [
    "[topology]\nkind = 'nodes'\nfile = 'f.csv'",
    "[topology]\nkind = 'nodes'\nfile = 'f.graphml'",
    "[topology]\nkind = 'nodes'\nfile = 'f.json'",
    "[topology]\nkind = 'nodes'\nmotion = 'f.txt'",
    "[topology]\nkind = 'nodes'\npositions = [['0 m', '0 m'], ['200 m', '0 m'], ['400 m', '0 m']]\nmotion = 'f.txt'",
    "[radio]\nlinks = 'f.csv'\n[topology]\nkind = 'chain'\nhops = 3",
    "[topology]\nkind = 'chain'\nhops = 3\n[[flow]]\ntraffic = 'trace'\ntrace = 'f.csv'",
];

/// Reads a scenario that names one file. The first byte of the input selects the kind of file: a
/// map (CSV, GraphML, JSON), a trace of movement (ns-2, BonnMotion, with a map or without), a list
/// of links, or a trace of writes.
///
/// # Panics
///
/// If a scenario that is accepted is not valid or did not keep the content of the file, or if the
/// errors of a refused one do not point at existing places.
pub fn files(data: &[u8]) {
    let Some((which, content)) = data.split_first() else { return };
    let named = WITH_FILES[usize::from(*which) % WITH_FILES.len()];
    // Nodes that move need a routing protocol. Nodes without a path are no error here.
    let flow = if named.contains("[[flow]]") { "" } else { "[[flow]]\nfrom = 0\nto = 1" };
    let text = format!("[routing]\nprotocol = 'aodv'\n{named}\n{flow}\n");
    let text = text.replace("[topology]\n", "[topology]\nallow_partition = true\n");
    if !is_short(content) {
        return;
    }
    let load = |_: &str| Ok(content.to_vec());
    let Some(scenario) = read(&text, Vec::new(), &load) else { return };
    assert_eq!(scenario.files, [(scenario.files[0].0.clone(), content.to_vec())]);
}

/// True if no opening parenthesis is followed by five digits, as in `$node_(10000)`. A trace with
/// such a node number takes long to read.
fn is_short(content: &[u8]) -> bool {
    !content.windows(6).any(|digits| digits[0] == b'(' && digits[1..].iter().all(u8::is_ascii_digit))
}

/// Reads a scenario and checks the invariants that hold for every input.
fn read(text: &str, sets: Vec<String>, load: Load<'_>) -> Option<Scenario> {
    let source = Source { name: "fuzz.toml".to_owned(), text: text.to_owned(), sets };
    let refusal = match Scenario::read_with(source, load, "fuzz") {
        Ok(scenario) => {
            assert!(!scenario.points.is_empty() && scenario.seeds > 0 && scenario.digest.len() == 64);
            scenario.points.iter().for_each(point);
            return Some(scenario);
        }
        Err(refusal) => refusal,
    };
    assert!(!refusal.problems.is_empty());
    for problem in &refusal.problems {
        match &problem.origin {
            Some(Origin::File(span)) => assert!(text.get(span.clone()).is_some(), "{span:?}: {}", problem.message),
            Some(Origin::Set(number)) => assert!(*number < refusal.source.sets.len()),
            None => {}
        }
    }
    assert!(!refusal.render(false).is_empty());
    None
}

fn point(point: &super::Point) {
    let config = &point.config;
    let nodes = config.positions.len();
    assert!(config.warmup < config.duration);
    assert!(config.positions.iter().all(|place| place.x.is_finite() && place.y.is_finite()));
    assert_eq!((point.transports.len(), point.names.len()), (config.flows.len(), config.flows.len()));
    let is_there = |node: NodeId| node.index() < nodes;
    assert!(config.flows.iter().all(|flow| is_there(flow.from) && is_there(flow.to) && flow.from != flow.to));
    assert!(config.firewall.iter().flatten().all(|(one, other)| is_there(*one) && is_there(*other)));
    for trace in &config.traces {
        assert!(!trace.is_empty() && trace.is_sorted_by_key(|write| write.after));
    }
    if let Mobility::Scripted(moves) = &config.mobility {
        let mut until = vec![Time::ZERO; nodes];
        for leg in moves {
            assert!(until[leg.node.index()] <= leg.start && leg.start < leg.end, "{leg:?}");
            until[leg.node.index()] = leg.end;
        }
    }
    if let Some(mut motion) = Motion::new(&config.positions, &config.mobility, 1) {
        for node in (0..nodes).map(|node| NodeId(node as u16)) {
            let place = motion.position(node, Time::ZERO + config.duration);
            assert!(place.x.is_finite() && place.y.is_finite(), "{place:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use meshpace_testing::fuzz::drive;

    #[test]
    fn any_scenario_is_read_or_refused_where_it_is_wrong() {
        drive("scenario", super::scenario);
    }

    #[test]
    fn any_map_or_trace_is_read_or_refused() {
        drive("files", super::files);
    }
}

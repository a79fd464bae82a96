//! Fixes the behaviour of runs: compares the fingerprints of short runs with
//! `validation/fingerprints.txt`. The runs are those of every scenario file, and of every named
//! transport over a chain and a cross.
//!
//! After an intended change of the model, raise `meshpace_sim::MODEL_REVISION` and give the reason:
//!
//! ```sh
//! ./check --write "AODV keeps a packet of a broken route"
//! ```
//!
//! This writes the table and every other generated file. With `MESHPACE_RECORD` set to the reason,
//! this test alone writes the table. New and changed scenarios are recorded in the same way,
//! without a new revision and without a reason.

mod table;

use meshpace_core::{Duration, Time};
use meshpace_scenario::{Point, Scenario, Source};
use meshpace_sim::MODEL_REVISION;
use meshpace_testing::{Class, generated, skipped};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use table::{Ran, Table, digest};

/// Path of the table.
const TABLE: &str = "validation/fingerprints.txt";
/// Largest number of points of a sweep.
const POINTS: usize = 12;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A run to be carried out.
struct Todo {
    name: String,
    source: u64,
    point: Point,
}

/// Every scenario file below `directory`, in the order of names.
fn files(directory: &Path, into: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            files(&path, into);
        } else if name.ends_with(".toml") && !name.ends_with(".published.toml") && name != "register.toml" {
            into.push(path);
        }
    }
}

fn read(text: &str, directory: &Path, name: &str) -> Scenario {
    let source = Source { name: name.to_owned(), text: text.to_owned(), sets: Vec::new() };
    Scenario::read(source, directory, name).unwrap_or_else(|refusal| panic!("{}", refusal.render(false)))
}

/// The points of a sweep that differ in their transports or in the layers below, the first of each
/// kind, and the last point.
fn chosen(points: &[Point]) -> Vec<&Point> {
    let mut chosen: Vec<&Point> = Vec::new();
    for point in points {
        let is_known = |known: &&Point| known.transports == point.transports && known.config.mesh == point.config.mesh;
        if chosen.len() < POINTS && !chosen.iter().any(is_known) {
            chosen.push(point);
        }
    }
    if let Some(last) = points.last().filter(|last| !chosen.iter().any(|known| known.values == last.values)) {
        chosen.push(last);
    }
    chosen
}

/// Shortens a point: it ends 3 s after the last start that is within 8 s of the first. Large
/// networks get less time.
fn cut(point: &Point) -> Point {
    let mut point = point.clone();
    let config = &mut point.config;
    let starts = || config.flows.iter().map(|flow| flow.start);
    let first = starts().min().unwrap_or(Time::ZERO);
    let soon = first + Duration::from_secs(8);
    let last = starts().filter(|start| *start <= soon).max().unwrap_or(first);
    let (from, milliseconds) = match config.positions.len() {
        0..200 => (last, 3000),
        200..2000 => (first, 800),
        _ => (first, 100),
    };
    let end = Duration::from_nanos((from + Duration::from_millis(milliseconds)).0);
    config.duration = config.duration.min(end);
    config.warmup = Duration::ZERO;
    (config.series, config.batches) = (None, None);
    config.watch.clear();
    point
}

fn todo(text: &str, directory: &Path, name: &str, into: &mut Vec<Todo>) {
    for point in chosen(&read(text, directory, name).points.into_vec()) {
        let values: Vec<String> = point.values.iter().map(|(key, value)| format!(" {key}={value}")).collect();
        into.push(Todo {
            name: name.to_owned() + &values.concat(),
            source: digest(text.as_bytes()),
            point: cut(point),
        });
    }
}

/// All runs.
fn everything() -> Vec<Todo> {
    let mut all = Vec::new();
    let (root, mut paths) = (root(), Vec::new());
    files(&root.join("scenarios"), &mut paths);
    for path in paths {
        let name = path.strip_prefix(root.join("scenarios")).unwrap().with_extension("");
        let text = std::fs::read_to_string(&path).unwrap();
        todo(&text, path.parent().unwrap(), &name.to_string_lossy(), &mut all);
    }
    let named = meshpace_transport::names::table().iter().map(|entry| entry.name);
    for name in named.chain(["newreno+sack"]) {
        let traffic = match meshpace_transport::names::lookup(name).unwrap() {
            meshpace_transport::Config::Udp(_) => "traffic = 'cbr'\nrate = '200 kbit/s'",
            _ => "traffic = 'ftp'",
        };
        let flow = |from, to| format!("[[flow]]\nfrom = {from}\nto = {to}\ntransport = '{name}'\n{traffic}\n");
        let head = |kind| format!("duration = '5 s'\n[routing]\nprotocol = 'aodv'\n[topology]\nkind = '{kind}'\n");
        let chain = head("chain") + "hops = 5\n" + &flow(0, 5);
        let cross = head("cross") + &flow(0, 4) + &flow(5, 8);
        todo(&chain, &root, &format!("transport {name} chain"), &mut all);
        todo(&cross, &root, &format!("transport {name} cross"), &mut all);
    }
    all
}

/// Carries out the runs on all processors. The results are in the order of `todo`.
fn run(todo: &[Todo]) -> Vec<Ran> {
    let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(one) = todo.get(next.fetch_add(1, Ordering::Relaxed)) {
            let point = one.point.drawn(1).unwrap();
            let outcome = meshpace_sim::run(&point.config, 1);
            assert!(outcome.frames > 0, "{}: nothing was sent, so nothing is pinned", one.name);
            let ran = Ran { name: one.name.clone(), source: one.source, fingerprint: outcome.fingerprint };
            results.lock().unwrap().push(ran);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap();
    let places: std::collections::BTreeMap<&str, usize> =
        todo.iter().enumerate().map(|(place, one)| (one.name.as_str(), place)).collect();
    assert_eq!(places.len(), todo.len(), "two runs have one name");
    results.sort_by_key(|ran| places[ran.name.as_str()]);
    results
}

/// Reason for writing the table again; `None` if it is only compared.
fn reason() -> Option<String> {
    std::env::var("MESHPACE_RECORD").ok().or(generated::is_written().then(String::new))
}

#[test]
fn generated_table_of_fingerprints() {
    let path = root().join(TABLE);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let table = Table::parse(&text).unwrap_or_else(|line| panic!("{TABLE}: no row: {line}"));
    let ran = run(&everything());
    if let Some(reason) = reason() {
        let new =
            table.recorded(&ran, MODEL_REVISION, &reason).unwrap_or_else(|refusal| panic!("not recorded: {refusal}"));
        std::fs::write(&path, new.text()).unwrap();
        return;
    }
    let complaints = table.complaints(&ran, MODEL_REVISION);
    let how = "If this is meant: raise meshpace_sim::MODEL_REVISION, then ./check --write \"REASON\". Scenarios that are new \
               or changed need the second only, without a reason.";
    assert!(complaints.is_empty(), "{TABLE}: {} complaints\n{}\n{how}", complaints.len(), complaints.join("\n"));
}

/// Tests that the present table can have been recorded from every state of it that was ever
/// committed.
#[test]
fn no_earlier_table_was_rewritten() {
    if reason().is_some() {
        // The other test writes the table and checks the same.
        return;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root()).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(commits) = git(&["log", "-n", "50", "--format=%H", "--", TABLE]) else {
        return skipped(Class::Rights, "no repository here: only the digest within the table was looked at");
    };
    let table = Table::parse(&std::fs::read_to_string(root().join(TABLE)).unwrap()).unwrap();
    for commit in commits.lines() {
        let Some(earlier) = git(&["show", &format!("{commit}:{TABLE}")]) else { continue };
        let found = table.rewritten(&Table::parse(&earlier).unwrap_or_else(|line| panic!("{commit}: no row: {line}")));
        assert!(found.is_empty(), "{TABLE} was rewritten since {commit}, not recorded:\n{}", found.join("\n"));
    }
}

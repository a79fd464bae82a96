//! The committed WebAssembly makes the runs of the native simulator, bit by bit, and stays small. Skipped without Node.

use meshpace_core::Time;
use meshpace_scenario::{Scenario, Source};
use meshpace_sim::{MODEL_REVISION, World};
use meshpace_testing::has;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Advice about a page that is behind the crates.
const BUILD: &str = "build it anew: cd web && npm ci && npm run build";
/// The most bytes of the module, packed as a web server does.
const MOST_BYTES: usize = 1_000_000;
/// Of the published experiments: each paper, each transport, both radio models, moving nodes.
const REGISTERED: [&str; 10] =
    ["ap05/F10", "ap05/F18", "ap05/X5", "ap10/F13", "ap10/F23", "dcc/F10", "llap/F12", "tpa/F10", "tpa/T7", "qt/F1"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The examples and the chosen experiments, as paths.
fn scenarios() -> Vec<PathBuf> {
    let examples = std::fs::read_dir(root().join("scenarios/examples")).unwrap();
    let mut paths: Vec<PathBuf> = examples.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    assert!(paths.len() >= 12, "{paths:?}");
    paths.extend(REGISTERED.map(|name| root().join("scenarios").join(name).with_extension("toml")));
    paths.sort();
    paths
}

/// Other files beside a scenario: maps and traces that it may name.
fn beside(path: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    let others =
        entries.filter(|other| other.is_file() && other.extension().is_none_or(|extension| extension != "toml"));
    let named = others
        .filter_map(|other| Some((other.file_name()?.to_str()?.to_owned(), std::fs::read_to_string(&other).ok()?)));
    named.collect()
}

#[test]
fn the_page_has_the_revision_of_the_crates() {
    let text = std::fs::read_to_string(root().join("web/dist/revision.json")).unwrap();
    let revision: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(revision["model"], MODEL_REVISION, "web/dist is of another revision of the model; {BUILD}");
}

#[test]
fn webassembly_and_native_give_the_same_fingerprints() {
    if !has("node", "nodejs") {
        return;
    }
    let (mut todo, mut expected) = (Vec::new(), Vec::new());
    for path in scenarios() {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.display().to_string();
        let source = Source { name: name.clone(), text: text.clone(), sets: Vec::new() };
        let scenario = Scenario::read(source, path.parent().unwrap(), "test").unwrap();
        // The first and the last point.
        for point in std::collections::BTreeSet::from([0, scenario.points.len() - 1]) {
            let drawn = scenario.points[point].drawn(1).unwrap();
            let start = drawn.config.flows.iter().map(|flow| flow.start).min().unwrap();
            let until = Time((start.0 + 2_500_000_000).min(drawn.config.duration.0));
            // Without probe, in one go.
            let mut world = World::new(&drawn.config, 1, ());
            world.advance(until);
            assert!(world.engine().frames() > 0, "{name}: nothing was sent");
            expected.push((format!("{name}, point {point}"), format!("{:016x}", world.engine().fingerprint())));
            todo.push(json!({
                "name": name, "text": text, "files": beside(&path), "point": point, "seed": 1, "until": until.as_secs_f64(),
            }));
        }
    }
    let script = root().join("web/tests/fingerprints.mjs");
    let mut node = Command::new("node");
    let mut node = node.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    node.stdin.take().unwrap().write_all(Value::from(todo).to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", output.status);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let bytes: usize = lines.next().unwrap().parse().unwrap();
    assert!(bytes < MOST_BYTES, "meshpace.wasm is {bytes} bytes in gzip");
    let differ: Vec<_> = expected.iter().zip(lines).filter(|((_, native), wasm)| native != wasm).collect();
    assert!(differ.is_empty(), "{BUILD}, if the crates have changed: {differ:?}");
    assert_eq!(text.lines().count(), expected.len() + 1);
}

//! Tests of dependencies: each is declared once, with one set of features, and no crate is used in
//! two versions without a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that are used in several versions, with the crates that require them.
const SEVERAL: [(&str, &str); 9] = [
    ("chacha20", "snow has 0.9; rand of the tests' proptest has 0.10"),
    ("cpufeatures", "sha2 and chacha20 0.9 have 0.2, chacha20 0.10 has 0.3"),
    ("getrandom", "ring has 0.2, ahash of parquet 0.3"),
    ("syn", "pcap-file derives with 1; most macros have 2, serde's 3"),
    ("thiserror", "pcap-file has 1"),
    ("thiserror-impl", "pcap-file has 1"),
    ("toml", "cbindgen of the tests has 0.9"),
    ("toml_datetime", "cbindgen of the tests"),
    ("winnow", "cbindgen of the tests"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> toml::Table {
    fs::read_to_string(path).unwrap().parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The dependencies of a manifest, of every kind and for every target.
fn declared(manifest: &toml::Table) -> Vec<(&String, &toml::Value)> {
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(toml::Table::values).filter_map(toml::Value::as_table);
    let tables = std::iter::once(manifest).chain(targets);
    let tables = tables.flat_map(|table| kinds.iter().filter_map(|&kind| table.get(kind)?.as_table()));
    tables.flat_map(toml::Table::iter).collect()
}

#[test]
fn a_dependency_is_declared_once_with_one_set_of_features() {
    let root = root();
    let crates = fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for directory in crates.chain([root.join("examples")]) {
        let manifest = read(&directory.join("Cargo.toml"));
        for (name, value) in declared(&manifest) {
            let is_workspace = value.get("workspace").and_then(toml::Value::as_bool) == Some(true);
            let has_features = value.get("features").is_some() || value.get("default-features").is_some();
            // A crate that enables a feature of itself for its tests names its own folder.
            let is_itself = value.get("path").and_then(toml::Value::as_str) == Some(".");
            assert!(
                is_itself || is_workspace && !has_features,
                "{}: {name}: version and features belong to [workspace.dependencies] of Cargo.toml",
                directory.display()
            );
        }
    }
}

#[test]
fn no_crate_is_there_twice_without_a_reason() {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--workspace", "--duplicates", "--edges", "normal,build,dev", "--prefix", "none"]);
    let output = tree.args(["--format", "{p}"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            versions.entry(name).or_default().insert(version);
        }
    }
    let several: BTreeSet<&str> = versions.iter().filter(|(_, all)| all.len() > 1).map(|(name, _)| *name).collect();
    let known: BTreeSet<&str> = SEVERAL.iter().map(|(name, _)| *name).collect();
    let new: Vec<_> = several.difference(&known).map(|name| (name, &versions[name])).collect();
    assert!(new.is_empty(), "several versions, and no reason here: {new:?}");
    let gone: Vec<_> = known.difference(&several).collect();
    assert!(gone.is_empty(), "these have one version now: {gone:?}");
}

/// Packages of a build, each with its sets of features. A package that is built both for macros and
/// for the program may have two sets.
fn packages(of: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let mut tree = Command::new(env!("CARGO"));
    tree.args(["tree", "--locked", "--edges", "normal,build", "--prefix", "none", "--format", "{p}|{f}"]).args(of);
    let output = tree.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut packages: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        // A line is "serde v1.0.229|default,derive,std", with " (*)" if it has been printed before.
        if let Some((package, features)) = line.trim_end_matches(" (*)").split_once('|') {
            packages.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
    }
    packages
}

#[test]
fn the_python_package_shares_what_the_command_compiles() {
    // `cargo build --bin meshpace` gives packages all features that the whole workspace requests.
    let (command, python) = (packages(&["--workspace"]), packages(&["--package", "meshpace-python"]));
    let both = python.iter().filter_map(|(package, features)| Some((package, features, command.get(package)?)));
    let apart: Vec<_> = both.clone().filter(|(_, python, command)| !python.is_subset(command)).collect();
    assert!(both.count() > 100, "they have most packages in common");
    assert!(apart.is_empty(), "compiled twice, for other features (package, Python's, the command's): {apart:#?}");
}

#[test]
fn the_small_program_has_none_of_the_crates_that_it_is_too_small_for() {
    let router = packages(&["--package", "meshpace-router"]);
    let names: BTreeSet<&str> = router.keys().filter_map(|package| package.split(' ').next()).collect();
    assert!(names.contains("netlink-packet-core") && names.len() > 50, "{names:?}");
    // The first crate knows every message of rtnetlink and made the program 475 kB larger. The
    // others serve the results of the simulator.
    let large: Vec<_> = ["netlink-packet-route", "parquet", "serde_derive", "maud", "schemars"]
        .into_iter()
        .filter(|name| names.contains(name))
        .collect();
    assert!(large.is_empty(), "meshpace-router has {large:?}");
}

//! Tests that dependencies come from crates.io and the npm registry only, each pinned by a
//! checksum. No dependency may have any version, and none may come from a repository.
//!
//! `cargo deny check bans sources` checks the workspace by `deny.toml`, if it is installed. This
//! test needs no other program. It reads every lock file and every manifest of the repository,
//! including those outside the workspace.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";
const NPM: &str = "https://registry.npmjs.org/";

/// Folders with files that are built or downloaded.
const NOT_OURS: [&str; 4] = ["target", "node_modules", ".git", "dist"];

/// Finds the files called `name` anywhere below `folder`.
fn find(folder: &Path, name: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, its_name) = (entry.path(), entry.file_name());
        let is_folder = entry.file_type().unwrap().is_dir();
        if is_folder && !NOT_OURS.iter().any(|not| its_name == *not) {
            find(&path, name, found);
        } else if !is_folder && its_name == name {
            found.push(path);
        }
    }
}

/// Faults that `judge` finds in all files called `name`. There must be at least `least` files.
fn judged(name: &str, least: usize, judge: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let mut files = Vec::new();
    find(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), name, &mut files);
    assert!(files.len() >= least, "only {} files named {name} were found", files.len());
    let told = |file: &PathBuf| {
        let problems = judge(&fs::read_to_string(file).unwrap());
        problems.into_iter().map(|problem| format!("{}: {problem}", file.display())).collect::<Vec<_>>()
    };
    files.iter().flat_map(told).collect()
}

/// Packages of a `Cargo.lock` that do not come from crates.io, or have no checksum.
fn of_cargo_lock(text: &str) -> Vec<String> {
    let lock: toml::Table = text.parse().unwrap();
    let word = |package: &toml::Value, key: &str| package.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let packages = lock.get("package").and_then(toml::Value::as_array).unwrap();
    packages
        .iter()
        .filter_map(|package| {
            let (name, source) = (word(package, "name").unwrap(), word(package, "source")?);
            let is_fine = source == CRATES_IO && word(package, "checksum").is_some_and(|sum| sum.len() == 64);
            (!is_fine).then(|| format!("{name} comes from {source}, or has no sum"))
        })
        .collect()
}

/// Dependencies of a `Cargo.toml` that name a repository, another registry, or any version.
fn of_manifest(text: &str) -> Vec<String> {
    let manifest: toml::Table = text.parse().unwrap();
    let mut problems = Vec::new();
    // Dependencies can be declared at the top, for the workspace, and for single targets.
    let workspace = manifest.get("workspace").and_then(toml::Value::as_table);
    let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::values);
    let tables = [Some(&manifest), workspace].into_iter().flatten().chain(targets.filter_map(toml::Value::as_table));
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    let tables = tables.flat_map(|table| kinds.iter().filter_map(|kind| table.get(*kind)?.as_table()));
    for (name, value) in tables.flat_map(toml::Table::iter) {
        let has = |key: &str| value.get(key).is_some();
        let version = value.as_str().or_else(|| value.get("version")?.as_str());
        if has("git") || has("registry") || has("registry-index") {
            problems.push(format!("{name} comes from elsewhere than crates.io"));
        } else if version.is_some_and(|version| version.contains('*')) {
            problems.push(format!("{name} may have any version"));
        } else if version.is_none() && !has("path") && !has("workspace") {
            problems.push(format!("{name} names no version"));
        }
    }
    if manifest.contains_key("patch") || manifest.contains_key("replace") {
        problems.push("something is put in the place of what crates.io has".to_owned());
    }
    problems
}

/// Packages of a `package-lock.json` that do not come from npm's registry, or have no checksum.
fn of_npm_lock(text: &str) -> Vec<String> {
    let lock: Value = serde_json::from_str(text).unwrap();
    let packages = lock["packages"].as_object().unwrap().iter().filter(|(name, _)| !name.is_empty());
    packages
        .filter_map(|(name, package)| {
            // A package without an address comes from the registry.
            let is_of_npm = package.get("resolved").is_none_or(|from| from.as_str().unwrap().starts_with(NPM));
            let has_sum = package["integrity"].as_str().is_some_and(|sum| sum.starts_with("sha512-"));
            (!(is_of_npm && has_sum)).then(|| format!("{name} comes from elsewhere than npm, or has no sum"))
        })
        .collect()
}

#[test]
fn everything_comes_from_the_registries_and_is_pinned() {
    let mut problems = judged("Cargo.lock", 3, of_cargo_lock);
    problems.extend(judged("Cargo.toml", 17, of_manifest));
    problems.extend(judged("package-lock.json", 1, of_npm_lock));
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn what_comes_from_elsewhere_is_refused() {
    let sum = "0".repeat(64);
    let locked = |source: &str, sum: &str| {
        format!("[[package]]\nname = 'own'\n[[package]]\nname = 'other'\nsource = '{source}'\nchecksum = '{sum}'\n")
    };
    assert_eq!(of_cargo_lock(&locked(CRATES_IO, &sum)).len(), 0);
    assert_eq!(of_cargo_lock(&locked("git+https://example.org/other#1", &sum)).len(), 1);
    assert_eq!(of_cargo_lock(&locked("registry+https://example.org/index", &sum)).len(), 1);
    assert_eq!(of_cargo_lock(&locked(CRATES_IO, "")).len(), 1);

    let fine = "[dependencies]\na = '1'\nb = { version = '2' }\nc = { path = 'c' }\nd = { workspace = true }\n";
    assert_eq!(of_manifest(fine).len(), 0);
    for dependency in ["'*'", "'1.*'", "{ git = 'https://example.org' }", "{ registry = 'other', version = '1' }", "{}"]
    {
        for table in ["dependencies", "dev-dependencies", "workspace.dependencies", "target.'cfg(unix)'.dependencies"] {
            assert_eq!(of_manifest(&format!("[{table}]\na = {dependency}\n")).len(), 1, "{table}: {dependency}");
        }
    }
    assert_eq!(of_manifest("[patch.crates-io]\na = { path = 'a' }\n").len(), 1);

    let npm = |package: &str| of_npm_lock(&format!("{{\"packages\": {{\"\": {{}}, \"a\": {package}}}}}"));
    assert_eq!(npm("{\"integrity\": \"sha512-x\"}").len(), 0);
    assert_eq!(npm("{\"integrity\": \"sha512-x\", \"resolved\": \"https://registry.npmjs.org/a.tgz\"}").len(), 0);
    assert_eq!(npm("{\"integrity\": \"sha512-x\", \"resolved\": \"https://example.org/a.tgz\"}").len(), 1);
    assert_eq!(npm("{\"resolved\": \"https://registry.npmjs.org/a.tgz\"}").len(), 1);
    assert_eq!(npm("{\"integrity\": \"sha1-x\"}").len(), 1);
}

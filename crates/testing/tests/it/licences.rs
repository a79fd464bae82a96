//! Tests that all linked packages have licences that `deny.toml` allows, and that packages contain
//! the texts of the project's licences.
//!
//! `cargo deny check` uses the same file and also checks advisories. This test needs no other
//! program.

use serde_json::Value;
use spdx::{Expression, LicenseReq};
use std::path::Path;
use std::process::Command;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The strings of an array.
fn texts(value: Option<&toml::Value>) -> Vec<String> {
    value.and_then(toml::Value::as_array).unwrap().iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

/// Licences allowed for all packages, and further ones allowed for single packages.
struct Policy {
    all: Vec<String>,
    exceptions: Vec<(String, Vec<String>)>,
}

impl Policy {
    fn read(text: &str) -> Policy {
        let file: toml::Table = text.parse().unwrap();
        let licences = &file["licenses"];
        let exceptions = licences["exceptions"].as_array().unwrap().iter();
        let read = |one: &toml::Value| (one["crate"].as_str().unwrap().to_owned(), texts(one.get("allow")));
        Policy { all: texts(licences.get("allow")), exceptions: exceptions.map(read).collect() }
    }

    fn allows(&self, package: &str, licence: &str) -> bool {
        // Manifests of old packages separate alternatives by a slash.
        let expression = Expression::parse(&licence.replace('/', " OR ")).unwrap();
        let more = self.exceptions.iter().filter(|(name, _)| name == package).flat_map(|(_, more)| more);
        let allowed: Vec<&String> = self.all.iter().chain(more).collect();
        expression.evaluate(|required: &LicenseReq| allowed.iter().any(|one| **one == required.to_string()))
    }
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    let policy = Policy::read(&std::fs::read_to_string(root().join("deny.toml")).unwrap());
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1", "--all-features"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages: Vec<&Value> =
        metadata["packages"].as_array().unwrap().iter().filter(|package| !package["source"].is_null()).collect();
    assert!(packages.len() > 100, "only {} packages were found", packages.len());
    let refused: Vec<String> = packages
        .iter()
        .filter_map(|package| {
            let name = package["name"].as_str().unwrap();
            let licence = package["license"].as_str().unwrap_or("none stated");
            let is_fine = licence != "none stated" && policy.allows(name, licence);
            (!is_fine).then(|| format!("{name} {}: {licence}", package["version"].as_str().unwrap()))
        })
        .collect();
    assert!(refused.is_empty(), "deny.toml allows none of these:\n{}", refused.join("\n"));
}

#[test]
fn a_licence_that_asks_for_more_is_refused() {
    let text = "[licenses]\nallow = ['MIT', 'Apache-2.0']\nexceptions = [{ crate = 'tool', allow = ['MPL-2.0'] }]\n";
    let policy = Policy::read(text);
    assert!(policy.allows("any", "MIT OR GPL-3.0-or-later") && policy.allows("any", "MIT/Apache-2.0"));
    assert!(!policy.allows("any", "GPL-3.0-or-later") && !policy.allows("any", "MIT AND MPL-2.0"));
    assert!(policy.allows("tool", "MIT AND MPL-2.0") && !policy.allows("any", "MPL-2.0"));
}

#[test]
fn every_package_that_is_given_away_has_the_licence_texts() {
    let root = root();
    let read =
        |file: &Path| std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut packages = 0;
    for entry in std::fs::read_dir(root.join("crates")).unwrap() {
        let place = entry.unwrap().path();
        let manifest = read(&place.join("Cargo.toml"));
        // Python's package is made of a crate that is not published.
        if manifest.lines().any(|line| line == "publish = false") && !place.join("pyproject.toml").exists() {
            continue;
        }
        packages += 1;
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(read(&place.join(name)) == read(&root.join(name)), "{}: {name} is another text", place.display());
        }
    }
    assert!(packages > 5, "{packages}");
}

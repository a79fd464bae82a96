//! The plan of the house, `ARCHITECTURE.md`: which crate knows which, and that no two modules of the mesh or of the transports know
//! each other.
//!
//! What is a cycle: within one folder, a module (a file, or a folder with all that is in it) that uses another which, perhaps by way of
//! more of them, uses the first. What a module re-exports belongs to where it is defined, and tests do not count.

#[path = "house/modules.rs"]
mod modules;

use modules::Crate;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Which crates each crate may know.
const KNOWS: [(&str, &[&str]); 5] = [
    ("core", &[]),
    ("transport", &["core"]),
    ("mesh", &["core"]),
    ("sim", &["core", "transport", "mesh"]),
    ("testing", &[]),
];
/// Crates that run in a program of somebody else: no simulator in them.
const WITHOUT_SIMULATOR: [&str; 2] = ["live", "capi"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The crates of the workspace among the dependencies of `name`, those for its tests and its build not counted.
fn dependencies(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
    let lines =
        text.lines().skip_while(|line| *line != "[dependencies]").skip(1).take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.strip_prefix("meshpace-")?.split([' ', '=', '.']).next()?.to_owned())).collect()
}

/// Everything that `name` knows, directly or not.
fn known(name: &str, into: &mut BTreeSet<String>) {
    for other in dependencies(name) {
        if into.insert(other.clone()) {
            known(&other, into);
        }
    }
}

#[test]
fn crates_know_only_what_is_below_them() {
    for (name, allowed) in KNOWS {
        let allowed: BTreeSet<String> = allowed.iter().map(|&other| other.to_owned()).collect();
        let more: Vec<_> = dependencies(name).difference(&allowed).cloned().collect();
        assert!(more.is_empty(), "crates/{name} may not depend on {more:?}");
    }
    for name in WITHOUT_SIMULATOR {
        let mut all = BTreeSet::new();
        known(name, &mut all);
        assert!(all.contains("transport"), "{name}: {all:?}: the question is put wrongly");
        assert!(!all.contains("sim") && !all.contains("mesh"), "a simulator in crates/{name}: {all:?}");
    }
}

/// Prints every cycle; those of crates that are said to have none fail.
#[test]
fn modules_do_not_know_each_other() {
    let mut found = 0;
    for name in ["mesh", "transport"] {
        let cycles = Crate::read(&crates().join(name).join("src")).cycles();
        for cycle in &cycles {
            println!("crates/{name}: {cycle}");
        }
        found += cycles.len();
    }
    println!("{found} cycles of modules");
}

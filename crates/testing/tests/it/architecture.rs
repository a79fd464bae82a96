//! What `ARCHITECTURE.md` says about dependencies: which crate may use which, and that no two modules of the mesh or of the transports use
//! each other.
//!
//! What is a cycle: within one folder, a module (a file, or a folder with all that is in it) that uses another which, perhaps by way of
//! more of them, uses the first. What a module re-exports belongs to where it is defined, and tests do not count.

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

#[test]
fn modules_do_not_know_each_other() {
    for name in ["mesh", "transport"] {
        let all = Crate::read(&crates().join(name).join("src"));
        assert!(all.uses().len() > 100, "crates/{name}: only {} uses were found", all.uses().len());
        let cycles = all.cycles();
        assert!(cycles.is_empty(), "crates/{name}: {}", cycles.join("\n"));
    }
}

#[test]
fn a_cycle_between_files_is_found() {
    let source = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| fs::write(source.path().join(file), text).unwrap();
    fs::create_dir(source.path().join("radio")).unwrap();
    write("lib.rs", "pub mod radio;");
    write("radio/mod.rs", "pub mod channel;\npub mod table;\npub use table::Entry;");
    write("radio/channel.rs", "use super::Entry;");
    write("radio/table.rs", "pub struct Entry;");
    assert!(Crate::read(source.path()).cycles().is_empty());
    write("radio/table.rs", "use crate::radio::channel::Channel;\npub struct Entry;");
    let found = Crate::read(source.path()).cycles();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("in radio: channel, table: "), "{found:?}");
}

/// Source files under `directory`, in Rust, C and Python, those of the tests not counted.
fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "tests" && name != "target") {
            sources(&path, into);
        } else if path.extension().is_some_and(|kind| ["rs", "c", "h", "py", "pyi"].iter().any(|one| kind == *one)) {
            into.push(path);
        }
    }
}

/// TCP in place of TPA does not encrypt. Whoever is to have it has to use the dialer: the tunnel, the libraries for C and Python and the
/// command do not, with keys or without.
#[test]
fn nobody_falls_back_to_tcp_unasked() {
    let mut files = Vec::new();
    for entry in fs::read_dir(crates()).unwrap().map(Result::unwrap) {
        if entry.file_name() != "testing" {
            sources(&entry.path(), &mut files);
        }
    }
    let names_it = |file: &&PathBuf| fs::read_to_string(file).unwrap().contains("Dialer");
    let found: Vec<PathBuf> = files.iter().filter(names_it).map(|file| file.canonicalize().unwrap()).collect();
    assert_eq!(
        found,
        [crates().join("live/src/fallback.rs").canonicalize().unwrap()],
        "who else opens TCP in place of TPA?"
    );
}

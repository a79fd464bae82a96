//! Tests the dependencies that `ARCHITECTURE.md` describes: which crate may use which, and that no
//! two modules of a crate use each other.
//!
//! A cycle is found within one folder. There a module is a file, or a folder with everything in it.
//! It is in a cycle if it uses another module which uses the first, directly or through further
//! modules. A re-exported item belongs to the module that defines it. Tests do not count.

mod modules;

use modules::Crate;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates on which each crate may depend.
const KNOWS: [(&str, &[&str]); 8] = [
    ("core", &[]),
    ("transport", &["core"]),
    ("session", &["core", "transport"]),
    ("mesh", &["core"]),
    ("sim", &["core", "transport", "mesh"]),
    ("settings", &["core"]),
    ("command", &["core", "settings"]),
    ("testing", &[]),
];
/// Crates that run in other people's programs or on a router. They contain neither the simulator
/// nor the parser of scenarios.
const WITHOUT_SIMULATOR: [&str; 5] = ["session", "live", "capi", "tunnel", "router"];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Crates of the workspace on which `name` depends, without the dependencies of its tests and its
/// build.
fn dependencies(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap();
    let lines =
        text.lines().skip_while(|line| *line != "[dependencies]").skip(1).take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.strip_prefix("meshpace-")?.split([' ', '=', '.']).next()?.to_owned())).collect()
}

/// Adds all crates on which `name` depends, directly or not.
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
        let is_free = ["sim", "mesh", "scenario"].iter().all(|part| !all.contains(*part));
        assert!(is_free, "a simulator in crates/{name}: {all:?}");
    }
}

#[test]
fn modules_do_not_know_each_other() {
    let (mut faults, mut uses) = (Vec::new(), 0);
    for entry in fs::read_dir(crates()).unwrap().map(Result::unwrap) {
        let source = entry.path().join("src");
        if !source.exists() {
            continue;
        }
        let name = entry.file_name().into_string().unwrap();
        let all = Crate::read(&source);
        uses += all.uses().len();
        faults.extend(all.cycles().iter().map(|circle| format!("crates/{name}: {circle}")));
    }
    assert!(uses > 1000, "only {uses} uses were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Folders of a session that contain tests. They run two ends against each other.
const TESTS: [&str; 2] = ["schedules", "from_pages"];

/// Tests the layers of TPA over UDP on sockets: the runtime does not use the interface for
/// applications. The session below them is a crate of its own.
#[test]
fn the_runtime_of_sessions_does_not_use_the_interface() {
    let tpa = Crate::read(&crates().join("live/src"));
    let (order, mut seen) = (["runtime", "api"], 0);
    let layer = |module: &[String]| match module {
        [first, second, ..] if first == "tpa" => order.iter().position(|name| name == second),
        _ => None,
    };
    for (from, to) in tpa.uses() {
        if let (Some(a), Some(b)) = (layer(&from), layer(&to)) {
            assert!(b <= a, "{} uses {}", from.join("::"), to.join("::"));
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} uses were found");
}

/// Words that stand for sockets, clocks, threads, files, the environment, system calls and sources
/// of randomness.
const OUTSIDE_A_SESSION: [&str; 18] = [
    "UdpSocket",
    "TcpStream",
    "TcpListener",
    "Clock",
    "Instant",
    "SystemTime",
    "thread",
    "Condvar",
    "rustix",
    "nix::",
    "libc",
    "std::fs",
    "std::env",
    "std::process",
    "std::time",
    "getrandom",
    "ring::rand",
    "SystemRandom",
];

/// A session gets time, datagrams and random bytes from the program that runs it.
#[test]
fn sessions_know_no_sockets_no_clocks_no_threads_and_no_randomness() {
    let mut files = Vec::new();
    sources(&crates().join("session/src"), &mut files);
    let files: Vec<_> = files
        .iter()
        .filter(|file| !file.components().any(|part| TESTS.iter().any(|test| part.as_os_str() == *test)))
        .collect();
    assert!(files.len() > 20, "{files:?}");
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        for word in OUTSIDE_A_SESSION {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let found = code.filter(|line| line.contains(word)).collect::<Vec<_>>();
            assert!(found.is_empty(), "{}: {found:?}", file.display());
        }
    }
    // Among its dependencies, `ring` has random numbers of the system, which the words above forbid.
    let manifest = fs::read_to_string(crates().join("session/Cargo.toml")).unwrap();
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let names: Vec<_> = lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["curve25519-dalek", "meshpace-core", "meshpace-transport", "ring", "siphasher", "snow"]);
}

/// Largest number of fields of a structure. A structure with more should be divided.
const MOST_FIELDS: usize = 15;
/// Structures with more fields, with the reason.
const LARGE: [(&str, &str); 2] = [
    ("Options", "a list of what can be set, which programs fill in by name"),
    ("Settings", "what can be set for a session, which programs fill in by name"),
];

#[test]
fn structures_of_tpa_over_udp_are_small() {
    let mut files = Vec::new();
    sources(&crates().join("live/src/tpa"), &mut files);
    sources(&crates().join("session/src"), &mut files);
    let mut seen = 0;
    // The world of a test is one structure, whatever its size.
    let is_test = |file: &PathBuf| file.components().any(|part| TESTS.iter().any(|test| part.as_os_str() == *test));
    for file in files.into_iter().filter(|file| !is_test(file)) {
        let text = fs::read_to_string(&file).unwrap();
        let mut lines = text.lines();
        while let Some(head) = lines.by_ref().find(|line| line.contains("struct ") && line.ends_with('{')) {
            let body = lines.by_ref().take_while(|line| line.trim() != "}").map(str::trim);
            let fields = body.filter(|line| !line.starts_with("//") && line.contains(": ")).count();
            let is_known = LARGE.iter().any(|(name, _)| head.ends_with(&format!("struct {name} {{")));
            assert_eq!(fields > MOST_FIELDS, is_known, "{}: {head} has {fields} fields", file.display());
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} structures were found");
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

/// Source files under `directory` in Rust, C and Python, without those of tests.
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

/// TCP in place of TPA does not encrypt. Only a program that uses the dialer gets it. The tunnel,
/// the libraries for C and Python and the command do not use it, whether with keys or without.
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

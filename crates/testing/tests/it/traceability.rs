//! Tests that `docs/traceability.md` and the two pages beside it point to code and tests that
//! exist, and cover every file of a protocol.

use crate::pointers::{Pointers, has_item, missing_test, pointers, read, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Folders and files of the algorithms, below `crates/`.
const PROTOCOLS: [&str; 9] = [
    "transport/src/pacing",
    "transport/src/tcp",
    "transport/src/tpa",
    "transport/src/train",
    "transport/src/ranges.rs",
    "transport/src/udp.rs",
    "mesh/src",
    "sim/src/traffic.rs",
    "sim/src/mobility.rs",
];

/// Files among these that contain no algorithm: lists of modules, and definitions of configuration
/// and packets.
const NO_ALGORITHM: [&str; 12] = [
    "mesh/src/body.rs",
    "mesh/src/config.rs",
    "mesh/src/lib.rs",
    "mesh/src/mac/config.rs",
    "mesh/src/packet.rs",
    "mesh/src/position.rs",
    "mesh/src/radio/config.rs",
    "mesh/src/routing/aodv/config.rs",
    "mesh/src/routing/config.rs",
    "mesh/src/routing/olsr/config.rs",
    "transport/src/pacing/custom.rs",
    "transport/src/tcp/window/setting.rs",
];

struct Row {
    line: usize,
    code: Pointers,
    tests: Pointers,
}

fn rows(page: &str) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let line_number = index + 1;
        if !line.starts_with('|') || line.starts_with("|---") || line.starts_with("| Source |") {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [_, _, code, tests] = cells[..] else { return Err(format!("line {line_number}: not four cells")) };
        let read = |cell| pointers(cell).map_err(|error| format!("line {line_number}: {error}"));
        rows.push(Row { line: line_number, code: read(code)?, tests: read(tests)? });
    }
    Ok(rows)
}

/// Fault of a row, if it has one.
fn fault(root: &Path, row: &Row) -> Option<String> {
    for (file, items) in &row.code {
        let Ok(text) = fs::read_to_string(root.join("crates").join(file)) else {
            return Some(format!("line {}: there is no crates/{file}", row.line));
        };
        if let Some(item) = items.iter().find(|item| !has_item(&text, item)) {
            return Some(format!("line {}: crates/{file} has no {item}", row.line));
        }
    }
    row.tests
        .iter()
        .find_map(|(file, names)| missing_test(root, file, names))
        .map(|fault| format!("line {}: {fault}", row.line))
}

/// Every Rust file at or below `path`, named from `crates/`.
fn files(crates: &Path, path: &str, found: &mut BTreeSet<String>) {
    let here = crates.join(path);
    if here.is_file() {
        if path.ends_with(".rs") {
            found.insert(path.to_owned());
        }
        return;
    }
    let entries = fs::read_dir(&here).unwrap_or_else(|error| panic!("{path}: {error}"));
    for entry in entries {
        let name = entry.unwrap().file_name();
        files(crates, &format!("{path}/{}", name.to_str().unwrap()), found);
    }
}

/// The pages, each with its rows.
fn pages() -> Vec<(&'static str, Vec<Row>)> {
    let pages = ["docs/traceability.md", "docs/traceability-tcp.md", "docs/traceability-transports.md"];
    pages.map(|page| (page, rows(&read(&root().join(page))).unwrap_or_else(|error| panic!("{page}: {error}")))).into()
}

#[test]
fn every_row_points_at_code_and_tests_that_are_there() {
    let pages = pages();
    let count: usize = pages.iter().map(|(_, rows)| rows.len()).sum();
    assert!(count > 100, "only {count} rows were understood");
    for (page, rows) in &pages {
        let faults: Vec<String> = rows.iter().filter_map(|row| fault(&root(), row)).collect();
        assert!(!rows.is_empty() && faults.is_empty(), "{page}:\n{}", faults.join("\n"));
    }
}

#[test]
fn what_is_built_has_a_test() {
    for (page, rows) in pages() {
        for row in rows {
            assert_eq!(row.code.is_empty(), row.tests.is_empty(), "{page}, line {}", row.line);
        }
    }
}

#[test]
fn every_file_of_a_protocol_is_in_a_row() {
    let crates = root().join("crates");
    let mut all = BTreeSet::new();
    for path in PROTOCOLS {
        files(&crates, path, &mut all);
    }
    assert!(all.len() > 60, "only {} files were found", all.len());
    let named: BTreeSet<String> =
        pages().into_iter().flat_map(|(_, rows)| rows).flat_map(|row| row.code).map(|(file, _)| file).collect();
    let missed: Vec<&String> = all
        .iter()
        .filter(|file| {
            !named.contains(*file) && !NO_ALGORITHM.contains(&file.as_str()) && !is_list_of_modules(&crates, file)
        })
        .collect();
    assert!(missed.is_empty(), "docs/traceability.md and its two neighbours have no row for {missed:?}");
}

/// True if a `mod.rs` contains no functions.
fn is_list_of_modules(crates: &Path, file: &str) -> bool {
    file.ends_with("/mod.rs") && !read(&crates.join(file)).contains("fn ")
}

#[test]
fn a_row_that_points_nowhere_is_found() {
    let good = "`transport/src/pacing/dcc.rs` `step` | `transport/tests/it/ns2.rs` `one_lost`";
    let verdict = |cells: &str| rows(&format!("| a | b | {cells} |")).map(|rows| fault(&root(), &rows[0]));
    assert_eq!(verdict(good), Ok(None));
    assert_eq!(verdict("not yet | not yet: why"), Ok(None));
    for (bad, named) in [
        (good.replace("dcc.rs", "ddc.rs"), "no crates/transport/src/pacing/ddc.rs"),
        (good.replace("step", "ste"), "no ste"),
        (good.replace("one_lost", "one_los"), "no test one_los"),
        // The function exists but is not a test.
        (good.replace("one_lost", "compare"), "no test compare"),
        (good.replace("tests/it/ns2.rs` `one_lost", "src/pacing/dcc.rs` `step"), "no test step"),
    ] {
        let fault = verdict(&bad).unwrap().unwrap_or_else(|| panic!("{bad} was believed"));
        assert!(fault.contains(named), "{fault}");
    }
    for bad in
        [" | not yet", "somewhere | not yet", "`step` | not yet", "`transport/src/udp.rs` | not yet", "a | b | c"]
    {
        assert!(verdict(bad).is_err(), "{bad} was understood");
    }
}

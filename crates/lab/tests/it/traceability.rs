//! `docs/traceability.md` and the two pages beside it point at code and tests that exist, and misses no file of a protocol.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Where the algorithms are, below `crates/`.
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

/// Files below those that hold no algorithm: lists of modules, and what configuration and packets look like.
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

/// A cell of the columns "Code" and "Test": files, each with what it is to hold.
type Pointers = Vec<(String, Vec<String>)>;

struct Row {
    line: usize,
    code: Pointers,
    tests: Pointers,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pointers of a cell; none in one that says "not yet".
fn pointers(cell: &str) -> Result<Pointers, String> {
    if cell.starts_with("not yet") {
        return Ok(Vec::new());
    }
    let mut found = Pointers::new();
    for (index, part) in cell.split('`').enumerate() {
        if index % 2 == 0 {
            if part.chars().any(|c| c != ' ' && c != ',') {
                return Err(format!("\"{part}\" is not in backticks"));
            }
        } else if part.ends_with(".rs") || part.ends_with(".md") {
            found.push((part.to_owned(), Vec::new()));
        } else {
            let Some((_, items)) = found.last_mut() else { return Err(format!("`{part}` stands behind no file")) };
            items.push(part.to_owned());
        }
    }
    match found.iter().find(|(_, items)| items.is_empty()) {
        Some((file, _)) => Err(format!("{file}: nothing of it is named")),
        None if found.is_empty() => Err("an empty cell".to_owned()),
        None => Ok(found),
    }
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

/// Whether `item` stands in the code of `text`, comments apart.
fn has_item(text: &str, item: &str) -> bool {
    text.lines().any(|line| !line.trim_start().starts_with("//") && has_word(line, item))
}

/// Whether `word` stands in `text` with no letter, digit or underscore beside it.
fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word)
        .any(|(at, _)| !inside(text[..at].chars().next_back()) && !inside(text[at + word.len()..].chars().next()))
}

/// Whether `text` has a test function `name`, or a macro that makes tests of names, one of them `name`.
fn has_test(text: &str, name: &str) -> bool {
    let by_macro = || {
        text.contains("fn $name()")
            && text.lines().any(|line| line.starts_with("    ") && line.split_whitespace().any(|word| word == name))
    };
    let after_attribute = |rest: &str| {
        rest.lines().find(|line| line.trim_start().starts_with("fn ")).is_some_and(|line| has_word(line, name))
    };
    text.match_indices("#[test]").any(|(at, _)| after_attribute(&text[at..])) || by_macro()
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
    for (file, names) in &row.tests {
        let below = if file.starts_with("validation/") { root.to_owned() } else { root.join("crates") };
        let Ok(text) = fs::read_to_string(below.join(file)) else {
            return Some(format!("line {}: there is no {file}", row.line));
        };
        let is_there = |name: &String| {
            if file.ends_with(".md") {
                text.lines().any(|line| line == format!("## {name}"))
            } else {
                has_test(&text, name)
            }
        };
        if let Some(name) = names.iter().find(|name| !is_there(name)) {
            return Some(format!("line {}: {file} has no test {name}", row.line));
        }
    }
    None
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

/// Whether a `mod.rs` defines nothing that does anything.
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
        // A function that is no test.
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

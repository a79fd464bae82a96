//! Tests that tests which end early report a skip. A test that returns without a report looks like
//! a test that passed.
//!
//! The sources are searched. In the body of a test, each `return` of the test itself has to follow
//! a call that reports: of `skipped`, or of a function in the tests of the same package that calls
//! it, directly or not. Returns of closures and functions inside a test are nested more deeply than
//! the body and its conditions and are not examined.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Functions of `meshpace_testing` that report a skip.
const REPORTING: [&str; 3] = ["skipped", "has", "is_slow_run"];
/// Tests whose early return is not a skip, with the reason.
const KNOWN: [(&str, &str); 4] = [
    ("the_listener_of_the_other_test", "the process that another test starts; alone it has nothing to do"),
    ("the_exit_of_the_other_tests", "the process that other tests start; alone it has nothing to do"),
    ("generated_table_of_fingerprints", "it has written the table"),
    ("no_earlier_table_was_rewritten", "the test that writes the table looks at the same"),
];

/// A function: its name, its lines without the indentation of its head, and whether it is a test.
struct Function {
    name: String,
    body: Vec<String>,
    is_test: bool,
}

/// The functions of a file, including those inside modules.
fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let head = ["pub ", "pub(crate) ", "pub(super) "].iter().fold(code, |rest, word| rest.trim_start_matches(word));
        let Some(rest) = head.strip_prefix("fn ") else { continue };
        let indent = line.len() - code.len();
        let name: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        let end = format!("{}}}", " ".repeat(indent));
        let body = lines[at + 1..].iter().take_while(|line| **line != end);
        let body = body.map(|line| line.get(indent..).unwrap_or_default().to_owned()).collect();
        let is_test = lines[..at]
            .iter()
            .rev()
            .take_while(|line| line.trim_start().starts_with("#["))
            .any(|line| line.trim() == "#[test]");
        found.push(Function { name, body, is_test });
    }
    found
}

/// True if `text` calls a function of `names`.
fn calls(text: &str, names: &BTreeSet<String>) -> bool {
    text.match_indices('(').any(|(at, _)| {
        let word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let begin = text[..at].rfind(|letter| !word(letter)).map_or(0, |before| before + 1);
        names.contains(&text[begin..at])
    })
}

/// Names of all functions that report a skip.
fn reporting(functions: &[Function]) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = REPORTING.map(str::to_owned).into();
    loop {
        let is_new =
            |one: &&Function| !one.is_test && !names.contains(&one.name) && calls(&one.body.join("\n"), &names);
        let more: Vec<String> = functions.iter().filter(is_new).map(|one| one.name.clone()).collect();
        if more.is_empty() {
            return names;
        }
        names.extend(more);
    }
}

/// Lines of a test that return from it, up to two conditions deep, without a report in the lines
/// before.
fn silent<'a>(test: &'a Function, names: &BTreeSet<String>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (at, line) in test.body.iter().enumerate() {
        let depth = line.len() - line.trim_start().len();
        let is_return = line.trim_start().starts_with("return") || line.ends_with("else { return };");
        // The condition and its block are searched in five lines, so that a call that is spread
        // over several lines is found.
        let near = test.body[at.saturating_sub(4)..=at].join("\n");
        if is_return && depth <= 12 && !is_in_closure(&test.body[..at], depth) && !calls(&near, names) {
            found.push(line.trim());
        }
    }
    found
}

/// True if a line with the indentation `depth`, after the lines `before`, is inside a closure or a
/// function.
fn is_in_closure(before: &[String], depth: usize) -> bool {
    let mut depth = depth;
    for line in before.iter().rev().filter(|line| !line.trim().is_empty()) {
        let own = line.len() - line.trim_start().len();
        if own < depth {
            depth = own;
            let opens = line.trim_start();
            if opens.ends_with("| {") || opens.starts_with("fn ") || opens.contains("| match ") {
                return true;
            }
        }
    }
    false
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, into);
        // The example below returns without a report.
        } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("skips.rs") {
            into.push(path);
        }
    }
}

#[test]
fn no_test_ends_early_without_a_word() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut all, mut tests, mut faults): (BTreeMap<String, Vec<Function>>, usize, Vec<String>) = Default::default();
    for entry in fs::read_dir(&crates).unwrap().map(Result::unwrap) {
        let mut files = Vec::new();
        for part in ["src", "tests"].map(|part| entry.path().join(part)).iter().filter(|part| part.is_dir()) {
            sources(part, &mut files);
        }
        let package = entry.file_name().into_string().unwrap();
        let own = files.iter().flat_map(|file| functions(&fs::read_to_string(file).unwrap())).collect();
        all.insert(package, own);
    }
    for (package, functions) in &all {
        let names = reporting(functions);
        for test in functions.iter().filter(|one| one.is_test && !KNOWN.iter().any(|(name, _)| *name == one.name)) {
            tests += 1;
            faults.extend(silent(test, &names).iter().map(|line| format!("{package}: {}: {line}", test.name)));
        }
    }
    assert!(tests > 1500, "only {tests} tests were found");
    assert!(faults.is_empty(), "these return without meshpace_testing::skipped:\n{}", faults.join("\n"));
}

#[test]
fn a_silent_return_is_found_and_a_reported_one_is_not() {
    let text = "
fn world() -> Option<u8> {
    skipped(Class::Rights, \"no\");
    None
}

#[test]
fn silent() {
    if !cfg!(feature = \"kernel\") {
        // A reason.
        return;
    }
}

mod inner {
    #[test]
    fn told() {
        let Some(world) = world() else { return };
        if !has(\"nc\", \"netcat\") {
            return;
        }
        let ends = std::thread::spawn(move || {
            if world == 0 {
                return;
            }
        });
    }
}
";
    let all = functions(text);
    let names = reporting(&all);
    assert!(names.contains("world") && all.len() == 3, "{names:?}");
    assert_eq!(silent(&all[1], &names), ["return;"]);
    assert_eq!(silent(&all[2], &names), Vec::<&str>::new());
}

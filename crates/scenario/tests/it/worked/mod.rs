//! Checks of the worked examples in the pages: they are the code that is compiled, one file and one
//! line.

use meshpace_scenario::{Scenario, Source};
use std::path::{Path, PathBuf};

pub fn read(path: &str) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The only block of the page in this language.
pub fn block(page: &str, language: &str) -> String {
    let page = read(page);
    let opening = format!("\n```{language}\n");
    assert_eq!(page.matches(&opening).count(), 1, "blocks of {language}");
    let (_, rest) = page.split_once(&opening).unwrap();
    let (block, _) = rest.split_once("\n```\n").expect("the block ends");
    format!("{block}\n")
}

/// The files of a diff: names, and lines with their signs.
fn changes(diff: &str) -> Vec<(&str, Vec<&str>)> {
    let mut files = Vec::new();
    for line in diff.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            files.push((name, Vec::new()));
        } else if !line.starts_with("--- ") && !line.starts_with("@@ ") {
            files.last_mut().expect("a line before the first file").1.push(line);
        }
    }
    files
}

pub fn scenario(text: String) -> Result<Scenario, String> {
    let source = Source { name: "page.toml".to_owned(), text, sets: Vec::new() };
    Scenario::read(source, Path::new("."), "page").map_err(|refusal| refusal.to_string())
}

/// Compares the diff of `page` with the sources. No other source may mention the rule called
/// `name`.
pub fn is_one_new_file_and_one_line(page: &str, name: &str) {
    let diff = block(page, "diff");
    let files = changes(&diff);
    let [(new, lines), (list, hunk)] = &files[..] else { panic!("{} files", files.len()) };
    assert!(diff.starts_with("--- /dev/null\n"), "the first file is new");
    let text: String =
        lines.iter().map(|line| format!("{}\n", line.strip_prefix('+').expect("an added line"))).collect();
    assert_eq!(text, read(new), "{new}");
    let added: Vec<&&str> = hunk.iter().filter(|line| !line.starts_with(' ')).collect();
    let [line] = added[..] else { panic!("{added:?}") };
    assert!(line.starts_with('+'), "{line}");
    assert_eq!(missing(&read(list), hunk), None, "{list}");
    // No other source mentions the rule, so it would be gone without the line.
    let module = Path::new(new).file_stem().unwrap().to_str().unwrap();
    assert_eq!(mentions(&format!("{module}::")), 1, "{module}");
    assert_eq!(mentions(&format!("\"{name}\"")), 1, "{name}");
}

/// Compares the diff of `page` with the one file that it changes: the added lines are there, in
/// their places, and the removed ones are not. No other source may mention `word`.
pub fn is_one_file(page: &str, word: &str) {
    let diff = block(page, "diff");
    let files = changes(&diff);
    let [(file, _)] = &files[..] else { panic!("{} files", files.len()) };
    let text = read(file);
    for hunk in diff.split("\n@@ ").skip(1) {
        let lines: Vec<&str> = hunk.lines().skip(1).collect();
        assert_eq!(missing(&text, &lines), None, "{file}");
        for removed in lines.iter().filter(|line| line.starts_with('-')) {
            assert!(!text.contains(&removed[1..]), "{file} still contains {removed}");
        }
    }
    assert_eq!(mentions(word), 1, "{word}");
}

/// The first line of a hunk that `text` does not contain. The lines of the hunk, without those that
/// it removes, have to be in `text` in this order. Other lines may be between them, so that a rule
/// or a parameter can be added at any place.
fn missing<'a>(text: &str, hunk: &[&'a str]) -> Option<&'a str> {
    let mut there = text.lines();
    let mut after = hunk.iter().filter(|line| !line.starts_with('-')).map(|line| &line[1..]);
    after.find(|line| !there.any(|other| other == *line))
}

/// Number of source files of all crates that contain `word`.
fn mentions(word: &str) -> usize {
    let crates = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    crates.filter(|source| source.is_dir()).map(|source| mentions_below(&source, word)).sum()
}

/// Number of Rust files below `directory` that contain `word`.
fn mentions_below(directory: &Path, word: &str) -> usize {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                return mentions_below(&path, word);
            }
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            usize::from(is_source && std::fs::read_to_string(&path).unwrap().contains(word))
        })
        .sum()
}

#[test]
fn a_hunk_holds_wherever_other_lines_are_added_and_not_without_its_own() {
    let hunk = [" list {", "-old,", "+ours,", " }"];
    for text in ["list {\nours,\n}\n", "list {\nfirst,\nours,\nlast,\n}\n", "head\nlist {\nours,\nlast,\n}\ntail\n"] {
        assert_eq!(missing(text, &hunk), None, "{text}");
    }
    for text in ["list {\n}\n", "list {\n// ours,\n}\n", "ours,\nlist {\n}\n"] {
        assert_eq!(missing(text, &hunk), Some("ours,"), "{text}");
    }
}

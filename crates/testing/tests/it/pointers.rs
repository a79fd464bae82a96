//! Parser for cells of tables that point to files, and to items and tests in them.

use std::fs;
use std::path::{Path, PathBuf};

/// A cell of the columns "Code" and "Test": files, each with the names that it must contain.
pub(crate) type Pointers = Vec<(String, Vec<String>)>;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The pointers of a cell. The list is empty for a cell that begins with "not yet".
pub(crate) fn pointers(cell: &str) -> Result<Pointers, String> {
    if cell.starts_with("not yet") {
        return Ok(Vec::new());
    }
    let mut found = Pointers::new();
    for (index, part) in cell.split('`').enumerate() {
        if index % 2 == 0 {
            if part.chars().any(|c| c != ' ' && c != ',') {
                return Err(format!("\"{part}\" is not in backticks"));
            }
        } else if [".rs", ".md", ".py"].iter().any(|end| part.ends_with(end)) {
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

/// True if `item` occurs in the code of `text`, comments excluded.
pub(crate) fn has_item(text: &str, item: &str) -> bool {
    text.lines().any(|line| !line.trim_start().starts_with("//") && has_word(line, item))
}

/// True if `word` occurs in `text` as a whole word, without a letter, digit or underscore next to
/// it.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word)
        .any(|(at, _)| !inside(text[..at].chars().next_back()) && !inside(text[at + word.len()..].chars().next()))
}

/// True if `text` contains a test function `name`, or a macro that creates tests from names which
/// include `name`.
pub(crate) fn has_test(text: &str, name: &str) -> bool {
    let by_macro = || {
        text.contains("fn $name()")
            && text.lines().any(|line| line.starts_with("    ") && line.split_whitespace().any(|word| word == name))
    };
    let after_attribute = |rest: &str| {
        rest.lines().find(|line| line.trim_start().starts_with("fn ")).is_some_and(|line| has_word(line, name))
    };
    text.match_indices("#[test]").any(|(at, _)| after_attribute(&text[at..])) || by_macro()
}

/// Fault of a pointer to tests, if it has one. The names are headings of a page of `validation/`,
/// functions of Python tests, or Rust tests.
pub(crate) fn missing_test(root: &Path, file: &str, names: &[String]) -> Option<String> {
    let below = if file.starts_with("validation/") { root.to_owned() } else { root.join("crates") };
    let Ok(text) = fs::read_to_string(below.join(file)) else { return Some(format!("there is no {file}")) };
    let is_there = |name: &String| match file.rsplit_once('.') {
        Some((_, "md")) => text.lines().any(|line| line == format!("## {name}")),
        Some((_, "py")) => text.lines().any(|line| line.starts_with(&format!("def {name}("))),
        _ => has_test(&text, name),
    };
    let missing = names.iter().find(|name| !is_there(name))?;
    Some(format!("{file} has no test {missing}"))
}

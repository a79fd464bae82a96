//! Files of the repository that the program generates: pages, tables, a header. For each of them a
//! test named `generated_...` creates the text and passes it to [`hold`]. `./check --write` runs
//! these tests with `MESHPACE_WRITE=1`, which makes them write the files.

use std::path::{Path, PathBuf};

/// Environment variable that makes the tests of generated files write them.
pub const WRITE: &str = "MESHPACE_WRITE";

/// True if generated files are written instead of compared.
pub fn is_written() -> bool {
    std::env::var_os(WRITE).is_some()
}

/// Root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares the file at `path`, relative to the root of the repository, with `made`, or writes it.
///
/// # Panics
///
/// If the file differs. The message contains the first line that differs.
#[track_caller]
pub fn hold(path: &str, made: &str) {
    let file = root().join(path);
    if is_written() {
        std::fs::write(&file, made).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    if let Some((number, before, now)) = first_difference(&there, made) {
        panic!("{path}:{number} is out of date; ./check --write writes it anew\n  there: {before}\n  now:   {now}");
    }
}

/// Number of the first line in which two texts differ, and the line in each; `None` if they are equal.
fn first_difference<'a>(one: &'a str, other: &'a str) -> Option<(usize, &'a str, &'a str)> {
    if one == other {
        return None;
    }
    let (mut ones, mut others) = (one.split('\n'), other.split('\n'));
    for number in 1.. {
        match (ones.next(), others.next()) {
            (None, None) => break,
            (one, other) if one == other => {}
            (one, other) => return Some((number, one.unwrap_or("(the end)"), other.unwrap_or("(the end)"))),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "b", "c")));
        assert_eq!(first_difference("a\n", "a"), Some((2, "", "(the end)")));
        assert_eq!(first_difference("", "a\n"), Some((1, "", "a")));
    }
}

//! Shared code of the tests of refusals.

/// The line of `text` marked with `#!` is wrong. The `message` must name it, the file `mesh.toml`,
/// the key, and each of `words`, and no other mistake.
#[track_caller]
pub fn assert_names_the_place(message: &str, text: &str, key: &str, words: &[&str]) {
    let line = 1 + text.lines().position(|line| line.contains("#!")).expect("the text marks its wrong line");
    for part in [&format!("mesh.toml:{line}:"), &format!("error: {key}")] {
        assert!(message.contains(part.as_str()), "no {part:?} in:\n{message}");
    }
    for word in words {
        assert!(message.contains(word), "no {word:?} in:\n{message}");
    }
    let errors = message.matches("error: ").count();
    assert_eq!(errors, 1, "one mistake, but {errors} errors:\n{message}");
}

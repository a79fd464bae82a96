//! Tests where the workspace has `unsafe`: the number of blocks by file, and the reason why the
//! file may contain them. Everywhere else the compiler forbids it.

use std::fs;
use std::path::{Path, PathBuf};

/// Files with `unsafe`: the number of blocks, the reason, and the tools that check them. Each block
/// itself explains why it is sound.
const KNOWN: [(&str, usize, &str); 9] = [
    ("capi/src/address.rs", 3, "reads and writes addresses where C says; Miri runs all of it, validation/miri"),
    ("capi/src/memory.rs", 2, "reads and writes values where C says; Miri runs all of it, validation/miri"),
    ("capi/src/at_exit.rs", 1, "registers a handler with atexit; a program in C ends with it"),
    ("capi/src/fault.rs", 1, "writes errno; valgrind runs it"),
    (
        "capi/src/lib.rs",
        9,
        "C's functions: the pointers of C, on which they call the two files for addresses and values; valgrind runs them",
    ),
    ("capi/src/ready.rs", 4, "eventfd and its descriptor; valgrind runs them"),
    ("emulator/src/sys.rs", 8, "system calls without a safe wrapper, on structures that live for the call"),
    (
        "live/src/process.rs",
        6,
        "pthread_atfork, and the place of a lock that each process has for itself; a program in C forks with it",
    ),
    ("live/src/sys.rs", 5, "system calls without a safe wrapper, on structures that live for the call"),
];

/// The Rust files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Lines that open a block of `unsafe`, with whether a comment above contains SAFETY.
fn blocks(text: &str) -> Vec<(usize, bool)> {
    let lines: Vec<&str> = text.lines().collect();
    let code = |line: &str| !line.trim_start().starts_with("//");
    let opens = |line: &str| code(line) && line.contains("unsafe {");
    let is_explained = |number: usize| {
        // The block may begin in the second line of a statement, and its comment may have any
        // number of lines.
        let above = lines[..number].iter().rev();
        let mut above = above.skip_while(|line| code(line) && !line.trim_end().ends_with([';', '{', '}']));
        above.by_ref().take_while(|line| !code(line)).any(|line| line.contains("SAFETY: "))
    };
    let numbered = lines.iter().enumerate().filter(|(_, line)| opens(line));
    numbered.map(|(number, _)| (number + 1, is_explained(number))).collect()
}

#[test]
fn every_block_is_known_and_says_why_it_is_sound() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    for one in fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path().join("src")) {
        if one.is_dir() {
            files(&one, &mut all);
        }
    }
    assert!(all.len() > 300, "only {} files were found", all.len());
    let mut found = Vec::new();
    for path in all {
        let blocks = blocks(&fs::read_to_string(&path).unwrap());
        for (line, is_explained) in &blocks {
            assert!(
                is_explained,
                "{}:{line}: a comment that begins with SAFETY has to say why it is sound",
                path.display()
            );
        }
        if !blocks.is_empty() {
            found.push((path.strip_prefix(&crates).unwrap().display().to_string(), blocks.len()));
        }
    }
    found.sort();
    let mut known: Vec<_> = KNOWN.iter().map(|(file, count, _)| ((*file).to_owned(), *count)).collect();
    known.sort();
    assert_eq!(found, known, "what is here besides, or no more, belongs into KNOWN with a reason");
}

#[test]
fn a_block_without_a_reason_is_seen() {
    let text = "// SAFETY: it is.\nunsafe { a() };\nlet b =\n    unsafe { b() };\n// unsafe { c() }\nlet d = 1;\n// SAFETY: so\n// it is.\nlet e =\n    unsafe { e() };\n";
    assert_eq!(blocks(text), [(2, true), (4, false), (10, true)]);
}

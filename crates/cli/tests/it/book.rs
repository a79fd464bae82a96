//! Tests of the book. Its pages exist, its links have targets, no page is too long, and every
//! command of *Start*, the tutorials and the showcases does what the page says.
//!
//! A block of `sh` is run, in the order of its page, in a directory of its own for each page. A
//! block of `text` after it is the expected output. Each of its lines must be among the printed
//! lines, word for word. Numbers may differ by a fifth or, if both have an interval, by both
//! intervals together. `sh,slow` is run by `./check slow` only. `sh,manual` needs another machine,
//! rights or the network, and is not run.

use meshpace_testing::is_slow_run;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// `view` would wait for a browser. In its place the page that it would serve is written into a
/// directory, which also reads the scenario.
const STAND_IN: &str = r#"case "$1 $*" in
  "view "*"--export"*) ;;
  "view "*) exec "$MESHPACE" "$@" --export "$(mktemp -d -p "$PAGES")";;
esac
exec "$MESHPACE" "$@""#;

/// Largest number of words of a page. A longer page should be split.
const MOST_WORDS: usize = 2500;
/// Pages that a program generates. They may be as long as their content requires.
const GENERATED: [&str; 5] =
    ["docs/keys.md", "docs/records.md", "docs/commands.md", "docs/findings.md", "validation/results.md"];

/// Page with a table in which readers look up a row, and which nobody reads as a whole.
const LOOKED_UP: [&str; 1] = ["docs/promises.md"];

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// Returns `path` without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{} leads out", path.display()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Returns the targets of the links in `text`: the part between `](` and `)`. Code is skipped.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        // Pieces with an even index are outside of backquotes.
        for piece in line.split('`').step_by(2).filter(|_| !is_code) {
            found.extend(piece.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
        }
        // If the words of a link are code, a piece begins with `](`.
        if !is_code {
            found.extend(line.split("`](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
        }
    }
    found.sort();
    found.dedup();
    found
}

/// Returns the pages of the book in their order, as paths from the root.
fn pages() -> Vec<PathBuf> {
    let summary = fs::read_to_string(root().join("book/SUMMARY.md")).unwrap();
    let mut pages = Vec::new();
    for line in summary.lines() {
        let Some((_, rest)) = line.split_once("](") else { continue };
        pages.push(plain(&Path::new("book").join(rest.split_once(')').unwrap().0)));
    }
    pages
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = heading.chars().filter(|&letter| letter.is_alphanumeric() || " -_".contains(letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

#[test]
fn every_page_is_there_once_and_every_page_of_the_docs_is_in_the_book() {
    let pages = pages();
    let all: BTreeSet<&PathBuf> = pages.iter().collect();
    assert_eq!(all.len(), pages.len(), "each once");
    let missing: Vec<_> = pages.iter().filter(|page| !root().join(page).is_file()).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let mut outside = Vec::new();
    for folder in ["docs", "book", "book/tutorials", "book/showcases"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let page = Path::new(folder).join(entry.unwrap().file_name());
            let is_page = page.extension().is_some_and(|extension| extension == "md");
            if is_page && !all.contains(&page) && !page.ends_with("SUMMARY.md") {
                outside.push(page);
            }
        }
    }
    assert!(outside.is_empty(), "no line of book/SUMMARY.md has {outside:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in pages().into_iter().chain(["book/SUMMARY.md", "README.md", "CONTRIBUTING.md"].map(PathBuf::from)) {
        let text = fs::read_to_string(root().join(&page)).unwrap();
        for link in links(&text) {
            if link.contains("://") {
                continue;
            }
            count += 1;
            let (path, to) = link.split_once('#').map_or((&*link, None), |(path, to)| (path, Some(to)));
            let target = if path.is_empty() { page.clone() } else { plain(&page.parent().unwrap().join(path)) };
            if !root().join(&target).exists() {
                wrong.push(format!("{}: {link}", page.display()));
            } else if let Some(to) = to.filter(|_| target.extension().is_some_and(|extension| extension == "md")) {
                let there = fs::read_to_string(root().join(&target)).unwrap();
                if !there.lines().any(|line| line.starts_with('#') && anchor(line) == to) {
                    wrong.push(format!("{}: {link}: no such heading", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 200, "only {count} links were found");
}

#[test]
fn no_page_is_longer_than_a_reader_has_patience() {
    let words = |page: &PathBuf| fs::read_to_string(root().join(page)).unwrap().split_whitespace().count();
    let long: Vec<String> = pages()
        .iter()
        .filter(|page| !GENERATED.iter().chain(&LOOKED_UP).any(|name| page.ends_with(name)) && words(page) > MOST_WORDS)
        .map(|page| format!("{}: {} words", page.display(), words(page)))
        .collect();
    assert!(long.is_empty(), "more than {MOST_WORDS} words: cut or split\n{}", long.join("\n"));
}

/// Pages about TCP-AP that name its readings one by one, or that contain no comparison.
const NAME_READINGS: [&str; 9] = [
    "book/validation.md",
    "docs/findings.md",
    "docs/kernel-emulated.md",
    "docs/kernel.md",
    "docs/keys.md",
    "docs/quiet-trains.md",
    "docs/tcp-ap.md",
    "docs/traceability-tcp.md",
    "validation/results.md",
];

#[test]
fn every_page_with_tcp_ap_says_which_one_it_is() {
    let says = |page: &PathBuf| {
        let text = fs::read_to_string(root().join(page)).unwrap();
        !text.contains("TCP-AP") || text.contains("tcp-ap.md")
    };
    let silent: Vec<PathBuf> = pages().into_iter().filter(|page| !says(page)).collect();
    let left: Vec<&PathBuf> =
        silent.iter().filter(|page| !NAME_READINGS.iter().any(|name| page.ends_with(name))).collect();
    assert!(left.is_empty(), "which TCP-AP? link docs/tcp-ap.md in {left:?}");
}

#[test]
fn the_boxes_of_validation_are_rows_of_its_points() {
    let read = |page: &str| fs::read_to_string(root().join(page)).unwrap();
    let (boxes, points) = (read("book/validation.md"), read("validation/results.md"));
    // Returns the anchor to which a row links, and the text of the row after the link.
    let row = |line: &str| -> Option<(String, String)> {
        let (_, rest) = line.split_once("](")?;
        let (link, rest) = rest.split_once(") |")?;
        Some((link.split_once('#')?.1.to_owned(), rest.trim().to_owned()))
    };
    let points: Vec<(String, String)> = points.lines().filter_map(row).collect();
    let mut count = 0;
    for (anchor, cells) in boxes.lines().filter_map(row) {
        let there = points.iter().find(|(name, _)| *name == anchor).unwrap_or_else(|| panic!("no row {anchor}"));
        assert_eq!(cells, there.1, "book/validation.md: {anchor}");
        count += 1;
    }
    assert!(count > 15, "only {count} rows were found");
}

/// Block of commands, and the lines that it is expected to print.
struct Block {
    line: usize,
    kind: String,
    code: String,
    said: Vec<String>,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = page.lines().enumerate();
    // True if a block of `text` at this place would belong to the last block of commands.
    let mut is_behind = false;
    while let Some((at, line)) = lines.next() {
        if let Some(kind) = line.strip_prefix("```") {
            let code: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
            if kind == "sh" || kind.starts_with("sh,") {
                let kind = kind.strip_prefix("sh").unwrap().trim_start_matches(',').to_owned();
                blocks.push(Block { line: at + 1, kind, code: code.join("\n"), said: Vec::new() });
                is_behind = true;
            } else {
                if kind == "text" && is_behind {
                    blocks.last_mut().unwrap().said = code.into_iter().map(str::to_owned).collect();
                }
                is_behind = false;
            }
        } else if !line.is_empty() {
            is_behind = false;
        }
    }
    blocks
}

/// Splits a word into the signs around its number, and the number.
fn number(word: &str) -> Option<(String, f64)> {
    let is_part = |letter: char| letter.is_ascii_digit() || letter == '.';
    let from = word.find(|letter: char| letter.is_ascii_digit())?;
    let to = word.rfind(is_part)? + 1;
    let value = word[from..to].trim_end_matches('.');
    // A word with several numbers is compared as text.
    let rest = format!("{}#{}", &word[..from], &word[from + value.len()..]);
    Some((rest, value.parse().ok()?))
}

/// True if a printed line agrees with a line of the page.
fn is_said(page: &str, printed: &str) -> bool {
    let words =
        |line: &str| -> Vec<String> { line.replace('±', " ± ").split_whitespace().map(str::to_owned).collect() };
    let (page, printed) = (words(page), words(printed));
    // Returns the half width of the interval after a number.
    let half = |words: &[String], at: usize| {
        let is_half = words.get(at + 1).is_some_and(|word| word == "±");
        words.get(at + 2).filter(|_| is_half).and_then(|word| number(word)).map(|(_, value)| value)
    };
    page.len() == printed.len()
        && (0..page.len()).all(|at| {
            let is_half = at > 0 && page[at - 1] == "±";
            match (number(&page[at]), number(&printed[at])) {
                _ if page[at] == printed[at] => true,
                (Some((a, x)), Some((b, y))) if a == b => {
                    let room = match (half(&page, at), half(&printed, at)) {
                        (Some(one), Some(other)) => one + other,
                        // The interval of a few runs varies strongly by chance.
                        _ if is_half => 0.6 * x.max(y),
                        _ => 0.2 * x.max(y),
                    };
                    (x - y).abs() <= room
                }
                _ => false,
            }
        })
}

#[test]
fn a_line_is_compared_by_its_words_and_loosely_by_its_numbers() {
    assert!(is_said("faster by 85.0 ± 22.9 kbit/s (10 of 10)", "faster by 99.0 ± 12.0 kbit/s  (10 of 10)"));
    assert!(is_said("newreno 119.5 ±21.4", "newreno  110.5 ±20.0"));
    assert!(!is_said("faster by 85.0 ± 5.0 kbit/s", "faster by 99.0 ± 5.0 kbit/s"), "outside of both intervals");
    assert!(!is_said("RTT 318.7", "RTT 250.1"), "more than a fifth");
    assert!(is_said("RTT 318.7", "RTT 300.1"));
    assert!(!is_said("tcp-ap is faster by 85.0", "newreno is faster by 85.0"), "other words");
    assert!(!is_said("85.0 kbit/s", "85.0"));
}

#[test]
fn blocks_are_found_with_what_they_print() {
    let page = "```sh\na\n```\n\n```text\nb\n```\n\n```sh,slow\nc\n```\n\nwords\n\n```text\nnot of c\n```\n";
    let found: Vec<_> =
        blocks(page).into_iter().map(|block| (block.line, block.kind, block.code, block.said)).collect();
    let none: Vec<String> = Vec::new();
    assert_eq!(found[0], (1, String::new(), "a".to_owned(), vec!["b".to_owned()]));
    assert_eq!(found[1], (9, "slow".to_owned(), "c".to_owned(), none));
}

/// Runs the blocks of `page`. Returns the number of blocks that were run, and the deviations from
/// the page.
fn run(page: &Path, is_slow: bool) -> (usize, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let [bin, work, exported] = ["bin", "work", "exported"].map(|name| directory.path().join(name));
    for path in [&bin, &work, &exported] {
        fs::create_dir(path).unwrap();
    }
    fs::write(bin.join("meshpace"), format!("#!/bin/bash\n{STAND_IN}\n")).unwrap();
    fs::set_permissions(bin.join("meshpace"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink(root().join("scenarios"), work.join("scenarios")).unwrap();
    let (mut count, mut wrong) = (0, Vec::new());
    for block in blocks(&fs::read_to_string(root().join(page)).unwrap()) {
        match &*block.kind {
            "" => {}
            "slow" if is_slow => {}
            "slow" | "manual" => continue,
            other => panic!("{}:{}: sh,{other}: no such kind", page.display(), block.line),
        }
        count += 1;
        let output = Command::new("bash")
            .args(["-e", "-o", "pipefail", "-c", &block.code])
            .current_dir(&work)
            .env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()))
            .env("MESHPACE", assert_cmd::cargo::cargo_bin("meshpace"))
            .env("PAGES", &exported)
            .output()
            .unwrap();
        let place = format!("{}:{}", page.display(), block.line);
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            wrong.push(format!("{place}: {}\n{}", block.code, String::from_utf8_lossy(&output.stderr)));
        }
        for line in block.said.iter().filter(|line| !line.is_empty()) {
            if !printed.lines().any(|printed| is_said(line, printed)) {
                wrong.push(format!("{place}: not printed: {line}\n{printed}"));
            }
        }
    }
    (count, wrong)
}

#[test]
fn every_command_does_what_its_page_says() {
    let is_slow = is_slow_run("commands of the book that take long");
    let pages: Vec<PathBuf> =
        pages().into_iter().filter(|page| page.ends_with("docs/start.md") || page.starts_with("book")).collect();
    let (mut count, mut wrong) = (0, Vec::new());
    // The pages are tested in parallel, because a short command mostly waits.
    std::thread::scope(|scope| {
        let threads: Vec<_> = pages.iter().map(|page| scope.spawn(move || run(page, is_slow))).collect();
        for thread in threads {
            let (run, faults) = thread.join().unwrap();
            count += run;
            wrong.extend(faults);
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 15, "only {count} blocks were run");
}

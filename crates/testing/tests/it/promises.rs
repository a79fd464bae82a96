//! Tests that `docs/promises.md` quotes sentences that the pages contain, and names tests that
//! exist. For a page that has to be covered completely, it tests that no sentence is missing.

use crate::pointers::{Pointers, missing_test, pointers, read, root};

/// The page with the promises.
const PAGE: &str = "docs/promises.md";

/// The pages that it quotes.
const PAGES: [&str; 11] = [
    "SECURITY.md",
    "docs/wire.md",
    "docs/wire-opening.md",
    "docs/wire-encryption.md",
    "docs/wire-path-size.md",
    "docs/wire-bbr.md",
    "docs/wire-api.md",
    "docs/wire-memory.md",
    "docs/wire-sockets.md",
    "docs/wire-speed.md",
    "docs/tunnel-session.md",
];

/// Parts of pages in which every sentence needs a row: the heading of the part, or `None` for the
/// whole page.
const WHOLE: [(&str, Option<&str>); 2] = [("SECURITY.md", None), ("docs/wire-api.md", Some("## What goes wrong"))];

/// A promise of a page, with its tests.
struct Row {
    line: usize,
    page: String,
    quote: String,
    tests: Pointers,
}

/// Text in the form in which quotes are compared: links are replaced by their labels, cells of a
/// table follow each other, and white space is a single space.
fn plain(text: &str) -> String {
    let mut words = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find('[') {
        let (before, after) = rest.split_at(begin);
        words.push_str(before);
        match after.split_once("](").and_then(|(label, rest)| Some((label, rest.split_once(')')?.1))) {
            Some((label, behind)) if !label[1..].contains('[') => {
                words.push_str(&label[1..]);
                rest = behind;
            }
            _ => {
                words.push('[');
                rest = &after[1..];
            }
        }
    }
    words.push_str(rest);
    words.replace('|', " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Paragraphs, list items and table rows of a page as [`plain`] text; only those below `heading`,
/// if it is given.
fn blocks(text: &str, heading: Option<&str>) -> Vec<String> {
    let mut blocks: Vec<String> = vec![String::new()];
    let mut inside = heading.is_none();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        if line.starts_with('#') && !in_code {
            inside = heading.is_none_or(|heading| line == heading);
            blocks.push(String::new());
            continue;
        }
        if !inside || in_code || line.starts_with("```") {
            continue;
        }
        if line.starts_with("|---") {
            // The line above is the head of a table.
            blocks.pop();
        }
        if line.is_empty() || line.starts_with("- ") || line.starts_with('|') {
            blocks.push(String::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push_str(line);
            block.push('\n');
        }
    }
    blocks
        .iter()
        .map(|block| plain(block))
        .filter(|block| !block.is_empty() && block.contains(char::is_alphabetic))
        .collect()
}

/// The sentences of a block. A row of a table is one sentence.
fn sentences(block: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut begin = 0;
    for (at, _) in block.match_indices(". ") {
        if block[at + 2..].starts_with(|c: char| c.is_uppercase() || c == '[') {
            found.push(&block[begin..=at]);
            begin = at + 2;
        }
    }
    found.push(&block[begin..]);
    found
}

/// True if `block` contains `quote`. The character "…" in a quote stands for omitted text.
fn is_quoted(block: &str, quote: &str) -> bool {
    let mut rest = block;
    quote.split('…').all(|part| match rest.split_once(part.trim()) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

/// Rows of the page with the promises. A heading `## PAGE` names the page of the rows below it.
fn rows(text: &str) -> Result<Vec<Row>, String> {
    let (mut rows, mut page) = (Vec::new(), None);
    for (index, line) in text.lines().enumerate() {
        let line_number = index + 1;
        if let Some(heading) = line.strip_prefix("## ") {
            page = Some(heading.trim_matches('`').to_owned());
        }
        if !line.starts_with('|') || line.starts_with("|---") || line.starts_with("| Promise |") {
            continue;
        }
        let at = |fault: &str| format!("line {line_number}: {fault}");
        let (quote, tests) = line
            .trim_matches('|')
            .rsplit_once(" | ")
            .map(|(quote, tests)| (quote.trim(), tests.trim()))
            .ok_or_else(|| at("not two cells"))?;
        let tests =
            if tests.starts_with("none: ") { Pointers::new() } else { pointers(tests).map_err(|error| at(&error))? };
        let page = page.clone().ok_or_else(|| at("there is no heading above"))?;
        rows.push(Row { line: line_number, page, quote: quote.to_owned(), tests });
    }
    Ok(rows)
}

/// Faults of the rows, given the text of each page.
fn faults(rows: &[Row], text_of: impl Fn(&str) -> String) -> Vec<String> {
    let mut faults = Vec::new();
    for row in rows {
        let mut fault = |what: String| faults.push(format!("line {}: {what}", row.line));
        if !PAGES.contains(&row.page.as_str()) {
            fault(format!("{} is none of the pages", row.page));
        } else if !blocks(&text_of(&row.page), None).iter().any(|block| is_quoted(block, &row.quote)) {
            fault(format!("{} does not say \"{}\"", row.page, row.quote));
        }
        for (file, names) in &row.tests {
            if let Some(missing) = missing_test(&root(), file, names) {
                fault(missing);
            }
        }
    }
    for (page, heading) in WHOLE {
        let quotes: Vec<&str> = rows.iter().filter(|row| row.page == page).map(|row| row.quote.as_str()).collect();
        for block in blocks(&text_of(page), heading) {
            for sentence in sentences(&block) {
                let is_covered = quotes.iter().any(|quote| quote.contains(sentence) || is_quoted(sentence, quote));
                if !is_covered {
                    faults.push(format!("{page}: no row for \"{sentence}\""));
                }
            }
        }
    }
    faults
}

#[test]
fn every_promise_stands_in_its_page_and_has_tests_that_are_there() {
    let rows = rows(&read(&root().join(PAGE))).unwrap_or_else(|error| panic!("{PAGE}: {error}"));
    for page in PAGES {
        assert!(rows.iter().any(|row| row.page == page), "{PAGE}: no rows for {page}");
    }
    let faults = faults(&rows, |page| read(&root().join(page)));
    assert!(faults.is_empty(), "{PAGE}:\n{}", faults.join("\n"));
}

#[test]
fn a_promise_that_is_gone_or_has_no_test_is_found() {
    let text = |page: &str| match page {
        "SECURITY.md" => "# Security\n\nNothing [crashes](a.md). Never\nmore is sent.\n\n- this too\n".to_owned(),
        "docs/wire-api.md" => {
            "Some.\n\n## What goes wrong\n\n| | Answer |\n|---|---|\n| no route | ENETUNREACH |\n".to_owned()
        }
        _ => String::new(),
    };
    let test = "`testing/tests/it/promises.rs` `every_promise_stands_in_its_page_and_has_tests_that_are_there`";
    let whole = [
        "## `SECURITY.md`".to_owned(),
        "| Nothing crashes. | none: words |".to_owned(),
        format!("| Never … is sent | {test} |"),
        format!("| this too | {test} |"),
        "## `docs/wire-api.md`".to_owned(),
        format!("| no route ENETUNREACH | {test} |"),
    ];
    let verdict = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = whole.to_vec();
        change(&mut lines);
        rows(&lines.join("\n")).map(|rows| faults(&rows, text))
    };
    assert_eq!(verdict(&|_| {}), Ok(Vec::new()));
    let one = |faults: Result<Vec<String>, String>, named: &str| {
        let faults = faults.unwrap();
        assert!(faults.len() == 1 && faults[0].contains(named), "{named}: {faults:?}");
    };
    one(
        verdict(&|lines| {
            lines.remove(3);
        }),
        "no row for \"- this too\"",
    );
    one(
        verdict(&|lines| {
            lines.remove(5);
        }),
        "no row for \"no route ENETUNREACH\"",
    );
    one(verdict(&|lines| lines.push("| nothing else | none: no |".to_owned())), "does not say \"nothing else\"");
    one(
        verdict(&|lines| lines[5] = lines[5].replace("has_tests", "has_test")),
        "has no test every_promise_stands_in_its_page_and_has_test_",
    );
    one(verdict(&|lines| lines.push("## `README.md`\n| x | none: no |".to_owned())), "README.md is none of the pages");
    assert!(verdict(&|lines| lines[2] = "| Never | somewhere |".to_owned()).is_err());
    assert!(
        verdict(&|lines| {
            lines.remove(0);
        })
        .is_err()
    );
}

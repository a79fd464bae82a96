//! Tests the numbers of the pages. Tables of simulated results are computed again and compared to
//! the last digit. Tables that were measured in real time must name date and command.
//!
//! `validation/tables.toml` lists for each table its page, the command that computes it, and the
//! source of each cell. `./check` computes the tables that are marked as a sample, `./check slow`
//! all of them, and `./check --write` writes the cells that differ.

mod pages;
mod runs;
mod spec;

use meshpace_testing::generated::{hold, is_written, root};
use meshpace_testing::{Class, is_slow_run, skipped};
use pages::Page;
use runs::Computed;
use spec::{Measured, Tables};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

fn tables() -> Tables {
    Tables::parse(&std::fs::read_to_string(root().join("validation/tables.toml")).unwrap())
}

/// Every page that may contain tables of results.
fn pages() -> BTreeMap<String, Page> {
    let mut names: Vec<String> = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/notes", "book", "book/tutorials", "book/showcases"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.extension().is_some_and(|extension| extension == "md") {
                names.push(format!("{folder}/{}", entry.file_name().unwrap().to_str().unwrap()));
            }
        }
    }
    names.sort();
    let read = |name: String| {
        let text = std::fs::read_to_string(root().join(&name)).unwrap();
        (name, Page::read(&text))
    };
    names.into_iter().map(read).collect()
}

#[test]
fn generated_tables_of_simulated_results() {
    let tables = tables();
    let is_complete = is_written() || is_slow_run("tables of simulated results that are no part of the sample");
    let mut pages = pages();
    let mut computed: BTreeMap<&str, Computed> = BTreeMap::new();
    let (mut seen, mut changed) = (0, BTreeSet::new());
    for table in tables.simulated.iter().filter(|table| is_complete || table.sample) {
        let results = computed.entry(&table.command).or_insert_with(|| Computed::of(&table.command));
        let page = pages.get_mut(&table.page).unwrap_or_else(|| panic!("{}: no such page", table.page));
        let cells = page.table(&table.header).unwrap_or_else(|why| panic!("{}: {why}", table.page));
        let before = cells.clone();
        seen +=
            runs::fill(table, results, cells).unwrap_or_else(|why| panic!("{}: {}: {why}", table.page, table.header));
        if *cells != before {
            changed.insert(table.page.clone());
        }
    }
    assert!(seen > 30, "only {seen} cells were computed");
    // All pages that differ are listed before the first of them ends the test.
    println!("computed {seen} cells; these pages differ: {changed:?}");
    let stale: Vec<&String> = changed.iter().collect();
    assert!(
        is_written() || stale.is_empty(),
        "tables of {stale:?} are not what their commands print now\n{}",
        differences(&pages, &stale)
    );
    for name in &changed {
        hold(name, &pages[name].text());
    }
}

/// Lines in which the pages differ from the files.
fn differences(pages: &BTreeMap<String, Page>, names: &[&String]) -> String {
    let mut text = String::new();
    for name in names {
        let there = std::fs::read_to_string(root().join(name)).unwrap();
        for (number, (before, now)) in there.lines().zip(pages[*name].text().lines()).enumerate() {
            if before != now {
                text += &format!("{name}:{}\n  there: {before}\n  now:   {now}\n", number + 1);
            }
        }
    }
    text + "./check --write writes them anew"
}

#[test]
fn every_table_of_simulated_results_names_its_command() {
    let (tables, mut pages) = (tables(), pages());
    for table in &tables.simulated {
        let page = pages.get_mut(&table.page).unwrap_or_else(|| panic!("{}: no such page", table.page));
        assert!(page.has(&table.command), "{}: the command of a table is not there: {}", table.page, table.command);
        page.table(&table.header).unwrap_or_else(|why| panic!("{}: {why}", table.page));
    }
    for measured in &tables.measured {
        let page = pages.get_mut(&measured.page).unwrap_or_else(|| panic!("{}: no such page", measured.page));
        page.table(&measured.header).unwrap_or_else(|why| panic!("{}: {why}", measured.page));
        let note = measured.note();
        assert!(page.has(&note), "{}: below the table {} there should stand:\n{note}", measured.page, measured.header);
    }
    for named in &tables.named {
        let page = pages.get(&named.page).unwrap_or_else(|| panic!("{}: no such page", named.page));
        let (page_name, header, command) = (&named.page, &named.header, &named.command);
        assert!(page.section_has(header, command), "{page_name}: the section of {header} does not name {command}");
    }
    let plain = |(page, header): (&'_ str, &'_ str)| (page.to_owned(), header.split(" #").next().unwrap().to_owned());
    let listed: BTreeSet<(String, String)> = tables.listed().map(plain).collect();
    for other in &tables.others {
        assert!(other.from.len() > 10 && pages.contains_key(&other.page), "{}: where from?", other.page);
    }
    for (name, page) in pages.iter().filter(|(name, _)| !tables.others.iter().any(|other| other.page == **name)) {
        for header in page.headers_of_results() {
            assert!(
                listed.contains(&(name.clone(), header.to_owned())),
                "{name}: validation/tables.toml does not say where the numbers of this table are from: {header}"
            );
        }
    }
    // Every listed table must exist.
    for (page, header) in &listed {
        let is_there = pages.get(page).is_some_and(|page| page.headers().any(|other| other == header));
        assert!(is_there, "{page} has no table {header}");
    }
}

/// Subject of the last commit since `commit` that changed `code`; `None` if there is none.
fn change_since(commit: &str, code: &[String]) -> Result<Option<String>, String> {
    let root = root();
    let git = |arguments: &[&str]| Command::new("git").arg("-C").arg(&root).args(arguments).output();
    let mut arguments = vec!["log", "--format=%h %ad %s", "--date=short", "-n", "1"];
    let range = format!("{commit}..HEAD");
    arguments.extend([range.as_str(), "--"]);
    arguments.extend(code.iter().map(String::as_str));
    let output = git(&arguments).map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned))
}

/// Tables that were measured in real time cannot be measured again here. `./check slow` lists those
/// whose code has changed since.
#[test]
fn tables_that_are_older_than_what_they_measured_are_listed() {
    if !root().join(".git").exists() {
        return skipped(Class::Rights, "no repository here, so the age of measured tables is not known");
    }
    let mut old = Vec::new();
    for Measured { page, header, commit, date, code, .. } in &tables().measured {
        for path in code {
            assert!(root().join(path).exists(), "{page}: {path} is not there");
        }
        match change_since(commit, code) {
            Ok(None) => {}
            Ok(Some(last)) => old.push(format!("{page}: {header} ({date}, {commit}); since then: {last}")),
            Err(why) => panic!("{page}: {header}: {why}"),
        }
    }
    if is_slow_run("the list of measured tables that are older than their code") {
        println!("measured before the last change of what they measure: {} tables\n{}", old.len(), old.join("\n"));
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
        let lines: String = old.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(target.join("stale-measurements.txt"), lines).unwrap();
    }
}

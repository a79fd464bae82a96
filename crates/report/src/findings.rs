//! Page docs/findings.md: the results of the published experiments in words. The text is
//! `findings.md` beside this file. Numbers in it are references to records. Its tables and lists
//! are calculated from the verdicts.

use meshpace_lab::register::collection::Collection;
use meshpace_lab::register::data::Cause;
use meshpace_lab::register::reference::Resolver;
use meshpace_lab::register::verdicts::Entry;
use meshpace_lab::register::{Experiment, PAPERS, Register, STUDIES, Verdict};
use std::fmt::Write;

/// Text of the page. A comment marks each place of a calculated table or list.
pub const TEXT: &str = include_str!("findings.md");

/// Tags of the papers. Studies of this project have their own pages.
fn papers() -> impl Iterator<Item = &'static str> + Clone {
    PAPERS.into_iter().filter(|paper| !STUDIES.contains(paper))
}

fn is_of(entry: &Entry, paper: &str) -> bool {
    entry.experiment.split('-').next() == Some(paper)
}

/// Generates the page.
pub fn page(register: &Register, collections: &[Collection], entries: &[Entry]) -> String {
    filled(&Resolver::new(register, collections).text("", TEXT), register, entries)
}

/// Replaces the comments of a text by the tables and lists that are calculated from the entries.
fn filled(text: &str, register: &Register, entries: &[Entry]) -> String {
    let mut page =
        text.replace("<!-- verdicts -->\n", &verdicts(entries)).replace("<!-- causes -->\n", &causes(entries));
    for paper in papers() {
        page = page.replace(&format!("<!-- claims {paper} -->\n"), &claims(register, entries, paper));
    }
    page
}

/// Table with the number of claims for each verdict, by paper.
fn verdicts(entries: &[Entry]) -> String {
    let mut text =
        "| Claims and published numbers | All | Reproduced | In shape | Differ | Cannot be told | Cannot be judged |\n|---|---|---|---|---|---|---|\n"
            .to_owned();
    let mut row = |title: &str, own: &dyn Fn(&Entry) -> bool| {
        let count =
            |verdict: Verdict| entries.iter().filter(|entry| own(entry) && entry.verdict == verdict.words()).count();
        let counts = Verdict::ALL.map(count);
        let all: usize = counts.iter().sum();
        let [reproduced, shape, differs, untold, unjudged] = counts;
        let _ = writeln!(text, "| {title} | {all} | {reproduced} | {shape} | {differs} | {untold} | {unjudged} |");
    };
    for paper in papers() {
        row(paper, &|entry| is_of(entry, paper));
    }
    row("all", &|entry| papers().any(|paper| is_of(entry, paper)));
    text
}

/// Table with the causes of differing claims, by paper.
fn causes(entries: &[Entry]) -> String {
    let titles: Vec<&str> = papers().collect();
    let mut text = format!("| Cause | {} | All |\n|---|{}---|\n", titles.join(" | "), "---|".repeat(titles.len()));
    let differs =
        |entry: &&Entry| entry.verdict == Verdict::Differs.words() && papers().any(|paper| is_of(entry, paper));
    let mut row = |title: String, own: &dyn Fn(&Entry) -> bool| {
        let found: Vec<&Entry> = entries.iter().filter(differs).filter(|entry| own(entry)).collect();
        let counts = papers().map(|paper| found.iter().filter(|entry| is_of(entry, paper)).count().to_string());
        let _ = writeln!(text, "| {title} | {} | {} |", counts.collect::<Vec<_>>().join(" | "), found.len());
    };
    for cause in Cause::ALL {
        let meaning = cause.meaning();
        row(format!("{}: {}", cause.words(), meaning.trim_end_matches('.')), &|entry| entry.cause == Some(cause));
    }
    row("all".to_owned(), &|_| true);
    text
}

/// List of the verdicts on each claim of a paper.
fn claims(register: &Register, entries: &[Entry], paper: &str) -> String {
    let mut text = String::new();
    for experiment in register.experiments.iter().filter(|experiment| experiment.paper() == paper) {
        let own: Vec<&Entry> = entries.iter().filter(|entry| entry.experiment == experiment.published.id).collect();
        if !own.is_empty() {
            one(&mut text, experiment, &own);
        }
    }
    text
}

fn one(text: &mut String, experiment: &Experiment, own: &[&Entry]) {
    let published = &experiment.published;
    let id = &published.id;
    let _ = write!(text, "\n**[{id}](report/index.html#{id})** {}.", published.title);
    match own.iter().find(|entry| !entry.command.is_empty()) {
        Some(entry) => {
            let _ = writeln!(text, " `{}`\n", entry.command);
        }
        None => text.push_str("\n\n"),
    }
    // Entries without evidence are published numbers; a claim has evidence in words. The text of
    // the claim is not used, because it may have changed since.
    let is_number = |entry: &&&Entry| entry.evidence.is_empty();
    for entry in own.iter().filter(|entry| published.unjudged.is_some() || !is_number(entry)) {
        let why = entry.cause.map(|cause| format!(" ({})", cause.words())).unwrap_or_default();
        let evidence = if entry.evidence.is_empty() { String::new() } else { format!(" {}.", entry.evidence) };
        let _ = writeln!(text, "- {} *{}*{why}.{evidence}", sentence(&entry.claim), capital(&entry.verdict));
    }
    let numbers: Vec<&&Entry> = own.iter().filter(is_number).filter(|_| published.unjudged.is_none()).collect();
    if !numbers.is_empty() {
        let count = |verdict: Verdict| numbers.iter().filter(|entry| entry.verdict == verdict.words()).count();
        let told: Vec<String> = Verdict::ALL
            .into_iter()
            .filter(|verdict| count(*verdict) > 0)
            .map(|verdict| format!("{} {}", count(verdict), verdict.words()))
            .collect();
        let _ = writeln!(text, "- Of {} published numbers: {}.", numbers.len(), told.join(", "));
    }
}

fn sentence(claim: &str) -> String {
    if claim.ends_with('.') { claim.to_owned() } else { format!("{claim}.") }
}

fn capital(words: &str) -> String {
    let mut chars = words.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use meshpace_lab::register::consistency::strange_references;
    use meshpace_lab::register::reference::references;
    use meshpace_lab::register::verdicts::parse;

    fn file(name: &str) -> String {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn every_number_of_the_text_is_one_of_an_experiment() {
        let all = references(TEXT).unwrap();
        assert!(all.iter().all(|reference| reference.experiment.is_some()), "{all:?}");
        let strange = strange_references(&Register::embedded(), [TEXT].into_iter());
        assert!(strange.is_empty(), "{}", strange.join("\n"));
    }

    /// `meshpace report DIR --page docs/report/index.html --findings docs/findings.md` makes both
    /// pages.
    #[test]
    fn the_committed_page_counts_the_committed_verdicts() {
        let entries = parse(&file("report/verdicts.json")).unwrap();
        let (page, register) = (file("findings.md"), Register::embedded());
        let mut parts = vec![verdicts(&entries), causes(&entries)];
        parts.extend(papers().map(|paper| claims(&register, &entries, paper)));
        for part in parts {
            assert!(page.contains(&part), "docs/findings.md does not have:\n{part}");
        }
        assert!(!page.contains("<!--"));
        let differ = || entries.iter().filter(|entry| entry.verdict == Verdict::Differs.words());
        let open = differ().filter(|entry| entry.cause.is_none_or(|cause| cause == Cause::Open)).count();
        assert!(10 * open <= differ().count(), "{open} of {} without a cause", differ().count());
    }
}

//! `verdicts.json`: the verdict of every claim and every published number, for programs; and the comparison of two such
//! lists.

use super::collection::Collection;
use super::data::{Cause, Number, Published};
use super::judge::{cells, judge, measured};
use super::library::{Experiment, PAPERS, Register};
use super::observations::Observations;
use super::{Verdict, labels};
use crate::record::table::listing;
use crate::record::write_whole;
use meshpace_sim::MODEL_REVISION;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The file, beside the report.
pub const FILE: &str = "verdicts.json";

/// One verdict.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// The experiment's id.
    pub experiment: String,
    /// The statement, or the row, quantity and place of a published number.
    pub claim: String,
    /// The published number, or smallest and largest; null where a claim gives none.
    #[serde(default)]
    pub published: Value,
    /// Ours; null where several numbers decide.
    #[serde(default)]
    pub measured: Value,
    /// The ends of our interval.
    #[serde(default)]
    pub interval: Value,
    /// Unit of the three.
    #[serde(default)]
    pub unit: String,
    /// The verdict in words.
    pub verdict: String,
    /// Why it is not better; null for what is reproduced.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// Command that makes the records again.
    #[serde(default)]
    pub command: String,
    /// The numbers that decided, in words.
    #[serde(default)]
    pub evidence: String,
    /// The revision of the model that made the records, [`meshpace_sim::MODEL_REVISION`]; 0 in files written before revision 10.
    #[serde(default)]
    pub model: u32,
}

/// The verdicts on everything in `collections`.
pub fn of(register: &Register, collections: &[Collection]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for experiment in &register.experiments {
        let owner = register.owner(experiment).ok().flatten().map(|owner| owner.published.id.clone());
        match collections.iter().find(|collection| owner.is_some() && collection.runs == owner) {
            Some(collection) => judged(experiment, collection, register.directory.as_deref(), &mut entries),
            None if experiment.published.unjudged.is_some() && collections.len() > 1 => {
                entries.push(unjudged(experiment));
            }
            None => {}
        }
    }
    entries
}

fn unjudged(experiment: &Experiment) -> Entry {
    let published = &experiment.published;
    Entry {
        experiment: published.id.clone(),
        claim: published.title.clone(),
        published: Value::Null,
        measured: Value::Null,
        interval: Value::Null,
        unit: String::new(),
        verdict: Verdict::CannotBeJudged.words().to_owned(),
        cause: Some(published.cause.unwrap_or(Cause::Open)),
        command: String::new(),
        evidence: published.unjudged.clone().unwrap_or_default(),
        model: MODEL_REVISION,
    }
}

/// Why something is not reproduced: its own cause, or the experiment's. None for what is, and for what cannot be told.
pub fn cause_of(published: &Published, verdict: Verdict, own: Option<Cause>) -> Option<Cause> {
    let is_known = matches!(verdict, Verdict::Reproduced | Verdict::CannotBeTold);
    (!is_known).then(|| own.or(published.cause).unwrap_or(Cause::Open))
}

fn judged(experiment: &Experiment, collection: &Collection, register: Option<&Path>, entries: &mut Vec<Entry>) {
    let published = &experiment.published;
    let observations = Observations::new(published, Arc::clone(&collection.records));
    let cause = |verdict: Verdict, own: Option<Cause>| cause_of(published, verdict, own);
    let command = collection.made.command(&published.id, register);
    for claim in &published.claims {
        let judgement = judge(claim, &observations).own;
        let ours = measured(claim, &observations);
        entries.push(Entry {
            experiment: published.id.clone(),
            claim: claim.text.clone(),
            published: claim.check.published().map_or(Value::Null, range),
            measured: ours.as_ref().map_or(Value::Null, |ours| json!(ours.value)),
            interval: ours.as_ref().map_or(Value::Null, |ours| json!([ours.low, ours.high])),
            unit: ours.map(|ours| ours.unit).unwrap_or_default(),
            verdict: judgement.verdict.words().to_owned(),
            cause: cause(judgement.verdict, claim.cause),
            command: command.clone(),
            evidence: judgement.evidence,
            model: MODEL_REVISION,
        });
    }
    for cell in cells(&observations, 0).into_iter().filter(|cell| cell.counts) {
        let metric = published.metric(&cell.metric);
        let title = metric.as_ref().map_or(cell.metric.as_str(), |metric| metric.title.as_str());
        let label = published
            .curve(&cell.curve)
            .map_or_else(|| labels::label(&cell.curve).into(), |_| published.label(&cell.curve));
        let place = if cell.x.text.is_empty() { String::new() } else { format!(" at {}", cell.x.text) };
        let (mean, half) = (cell.ours.mean, cell.ours.half_width);
        entries.push(Entry {
            experiment: published.id.clone(),
            claim: format!("{label}: {title}{place}"),
            published: match cell.published {
                Number::Mean(mean) => json!(mean),
                Number::Interval([mean, half]) => json!([mean - half, mean + half]),
            },
            measured: json!(mean),
            interval: if half.is_finite() { json!([mean - half, mean + half]) } else { Value::Null },
            unit: metric.map(|metric| metric.unit).unwrap_or_default(),
            verdict: cell.verdict.words().to_owned(),
            cause: cause(cell.verdict, None),
            command: command.clone(),
            evidence: String::new(),
            model: MODEL_REVISION,
        });
    }
}

fn range([low, high]: [f64; 2]) -> Value {
    if low == high { json!(low) } else { json!([low, high]) }
}

/// The file's text: one entry per line, so that a change shows where it is.
pub fn text(entries: &[Entry]) -> String {
    let lines: Vec<String> = entries.iter().filter_map(|entry| serde_json::to_string(entry).ok()).collect();
    if lines.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) }
}

/// Writes the file into `directory`, beside the report.
///
/// # Errors
/// The file and why it cannot be written.
pub fn write(directory: &Path, entries: &[Entry]) -> Result<(), String> {
    write_whole(directory, FILE, text(entries)).map_err(|error| format!("{}: {error}", directory.join(FILE).display()))
}

/// The entries in the text of such a file.
///
/// # Errors
/// The fault of the text.
pub fn parse(text: &str) -> Result<Vec<Entry>, String> {
    serde_json::from_str(text).map_err(|error| format!("this is no list of verdicts: {error}"))
}

/// Differences from `expected`, among the experiments that `found` has, one sentence each.
pub fn turned(expected: &[Entry], found: &[Entry]) -> Vec<String> {
    let named = |entries: &[Entry]| -> BTreeMap<(String, String), String> {
        entries.iter().map(|entry| ((entry.experiment.clone(), entry.claim.clone()), entry.verdict.clone())).collect()
    };
    let ids: std::collections::BTreeSet<&str> = found.iter().map(|entry| entry.experiment.as_str()).collect();
    let (expected, there) = (named(expected), named(found));
    let mut told = Vec::new();
    for ((id, claim), verdict) in expected.iter().filter(|((id, _), _)| ids.contains(id.as_str())) {
        match there.get(&(id.clone(), claim.clone())) {
            Some(now) if now == verdict => {}
            Some(now) => told.push(format!("{id}: \"{claim}\": {verdict} was expected, {now} came out")),
            None => told.push(format!("{id}: \"{claim}\": {verdict} was expected, and the register has no such claim")),
        }
    }
    for ((id, claim), verdict) in there.iter().filter(|(key, _)| !expected.contains_key(*key)) {
        told.push(format!("{id}: \"{claim}\": nothing was expected, {verdict} came out"));
    }
    told
}

/// Counts of the claims that hold, paper by paper, and the causes of the others.
pub fn scoreboard(entries: &[Entry]) -> String {
    let count = |paper: &str, verdict: Verdict| {
        let of_paper =
            entries.iter().filter(|entry| paper.is_empty() || entry.experiment.split('-').next() == Some(paper));
        of_paper.filter(|entry| entry.verdict == verdict.words()).count()
    };
    let row = |title: &str, paper: &str| {
        let counts = Verdict::ALL.map(|verdict| count(paper, verdict));
        let [reproduced, shape, differs, untold, unjudged] = counts.map(|count| count.to_string());
        [title.to_owned(), counts.iter().sum::<usize>().to_string(), reproduced, shape, differs, untold, unjudged]
    };
    let mut papers: Vec<&str> = PAPERS.to_vec();
    for entry in entries {
        let paper = entry.experiment.split('-').next().unwrap_or_default();
        if !papers.contains(&paper) {
            papers.push(paper);
        }
    }
    papers.retain(|paper| entries.iter().any(|entry| entry.experiment.split('-').next() == Some(*paper)));
    let mut rows: Vec<[String; 7]> = papers.iter().map(|paper| row(paper, paper)).collect();
    if papers.len() > 1 {
        rows.push(row("all", ""));
    }
    let header = ["paper", "claims", "reproduced", "in shape", "differs", "cannot be told", "cannot be judged"];
    let mut text = listing(header, rows.into_iter());
    let mut causes: BTreeMap<&str, usize> = BTreeMap::new();
    for cause in entries.iter().filter_map(|entry| entry.cause) {
        *causes.entry(cause.words()).or_default() += 1;
    }
    if !causes.is_empty() {
        let mut causes: Vec<(&str, usize)> = causes.into_iter().collect();
        causes.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let told: Vec<String> = causes.into_iter().map(|(cause, count)| format!("{cause} {count}")).collect();
        text.push_str(&format!("causes of what was not reproduced exactly: {}\n", told.join(", ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(id: &str, claim: &str, verdict: Verdict) -> Entry {
        let cause = (verdict != Verdict::Reproduced).then_some(Cause::Routing);
        Entry { verdict: verdict.words().to_owned(), cause, claim: claim.to_owned(), ..unjudged_of(id) }
    }

    fn unjudged_of(id: &str) -> Entry {
        serde_json::from_value(json!({"experiment": id, "claim": "", "verdict": ""})).unwrap()
    }

    #[test]
    fn what_turned_is_told_in_either_direction_and_only_of_what_was_run() {
        let before = [entry("AP05-F1", "a", Verdict::Reproduced), entry("AP05-F2", "b", Verdict::Differs)];
        assert!(turned(&before, &before).is_empty());
        assert!(turned(&before, &before[..1]).is_empty(), "F2 was not run");
        let after = [entry("AP05-F1", "a", Verdict::InShape), entry("AP05-F2", "c", Verdict::Differs)];
        let told = turned(&before, &after);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("AP05-F1") && told[0].contains("reproduced in shape came out"), "{told:?}");
        assert_eq!(parse(&text(&after)), Ok(after.to_vec()));
    }

    #[test]
    fn the_scoreboard_counts_papers_and_causes() {
        let entries = [
            entry("AP05-F1", "a", Verdict::Reproduced),
            entry("AP05-F1", "b", Verdict::Differs),
            entry("TPA-F9", "c", Verdict::InShape),
        ];
        let text = scoreboard(&entries);
        let numbers = |paper: &str| -> Vec<&str> {
            let line = text.lines().find(|line| line.trim_start().starts_with(paper)).unwrap();
            line.split_whitespace().skip(1).collect()
        };
        assert_eq!(numbers("AP05"), ["2", "1", "0", "1", "0", "0"]);
        assert_eq!(numbers("all"), ["3", "1", "1", "1", "0", "0"]);
        assert!(text.contains("causes of what was not reproduced exactly: routing 2"), "{text}");
    }
}

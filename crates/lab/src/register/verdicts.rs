//! The file `verdicts.json`, for other programs: whether each published claim and each published
//! number was reproduced. Also the comparison of two such lists.

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

/// Name of the file, which is written beside the report.
pub const FILE: &str = "verdicts.json";

/// One verdict.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Id of the experiment.
    pub experiment: String,
    /// Text of the claim. For a published number: curve, metric and position on the horizontal
    /// axis. For an experiment that cannot be judged: its title.
    pub claim: String,
    /// Published number, or the two ends of its range or interval. Null if a claim gives no number.
    #[serde(default)]
    pub published: Value,
    /// Number that the simulator gives. Null if no single number decides.
    #[serde(default)]
    pub measured: Value,
    /// Ends of the 95 % confidence interval of `measured`. Null if there is no interval.
    #[serde(default)]
    pub interval: Value,
    /// Unit of `published`, `measured` and `interval`.
    #[serde(default)]
    pub unit: String,
    /// Verdict in words.
    pub verdict: String,
    /// Cause why it is not reproduced exactly. Null for what is reproduced and for what cannot be
    /// told.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// Command that makes the records again.
    #[serde(default)]
    pub command: String,
    /// Numbers that decided, in words. Empty for a published number. For an experiment that cannot
    /// be judged it is the reason.
    #[serde(default)]
    pub evidence: String,
    /// [`meshpace_sim::MODEL_REVISION`] of the program that wrote the entry; 0 in files written
    /// before revision 10.
    #[serde(default)]
    pub model: u32,
}

/// Verdicts on the experiments in `collections`. If there are several collections, experiments of
/// the same papers that cannot be judged are listed too.
pub fn of(register: &Register, collections: &[Collection]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let papers: Vec<&str> = collections.iter().filter_map(|own| own.runs.as_deref()?.split('-').next()).collect();
    for experiment in &register.experiments {
        // One set of runs may serve to judge several experiments.
        let owner = register.owner(experiment).ok().flatten().map(|owner| owner.published.id.clone());
        match collections.iter().find(|collection| owner.is_some() && collection.runs == owner) {
            Some(collection) => judged(experiment, collection, register.directory.as_deref(), &mut entries),
            None => {
                let is_told = collections.len() > 1 && papers.contains(&experiment.paper());
                if experiment.published.unjudged.is_some() && is_told {
                    entries.push(unjudged_entry(experiment));
                }
            }
        }
    }
    entries
}

fn unjudged_entry(experiment: &Experiment) -> Entry {
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

/// Cause why a claim is not reproduced: `own`, the cause of the claim; otherwise the cause of the
/// experiment; otherwise open. `None` for what is reproduced and for what cannot be told.
pub fn cause_of(published: &Published, verdict: Verdict, own: Option<Cause>) -> Option<Cause> {
    let needs_none = matches!(verdict, Verdict::Reproduced | Verdict::CannotBeTold);
    (!needs_none).then(|| own.or(published.cause).unwrap_or(Cause::Open))
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
        let at_x = if cell.x.text.is_empty() { String::new() } else { format!(" at {}", cell.x.text) };
        let (mean, half_width) = (cell.ours.mean, cell.ours.half_width);
        entries.push(Entry {
            experiment: published.id.clone(),
            claim: format!("{label}: {title}{at_x}"),
            published: match cell.published {
                Number::Mean(mean) => json!(mean),
                Number::Interval([mean, half]) => json!([mean - half, mean + half]),
            },
            measured: json!(mean),
            interval: if half_width.is_finite() { json!([mean - half_width, mean + half_width]) } else { Value::Null },
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

/// Text of the file. It has one entry per line, so that a line-by-line comparison names the entry
/// that changed.
pub fn text(entries: &[Entry]) -> String {
    let lines: Vec<String> = entries.iter().filter_map(|entry| serde_json::to_string(entry).ok()).collect();
    if lines.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) }
}

/// Writes the file into `directory`, beside the report.
///
/// # Errors
/// Names the file and the reason why it cannot be written.
pub fn write(directory: &Path, entries: &[Entry]) -> Result<(), String> {
    write_whole(directory, FILE, text(entries)).map_err(|error| format!("{}: {error}", directory.join(FILE).display()))
}

/// Reads the entries from the text of such a file.
///
/// # Errors
/// The text is not a JSON list of verdicts.
pub fn parse(text: &str) -> Result<Vec<Entry>, String> {
    serde_json::from_str(text).map_err(|error| format!("not a list of verdicts: {error}"))
}

/// Differences of `found` from `expected`, one sentence each. Experiments without any verdict in
/// `found` are left out.
pub fn differences(expected: &[Entry], found: &[Entry]) -> Vec<String> {
    let by_claim = |entries: &[Entry]| -> BTreeMap<(String, String), String> {
        entries.iter().map(|entry| ((entry.experiment.clone(), entry.claim.clone()), entry.verdict.clone())).collect()
    };
    let ids: std::collections::BTreeSet<&str> = found.iter().map(|entry| entry.experiment.as_str()).collect();
    let (expected, found) = (by_claim(expected), by_claim(found));
    let mut differences = Vec::new();
    for ((id, claim), verdict) in expected.iter().filter(|((id, _), _)| ids.contains(id.as_str())) {
        match found.get(&(id.clone(), claim.clone())) {
            Some(now) if now == verdict => {}
            Some(now) => differences.push(format!("{id}: \"{claim}\": expected {verdict}, found {now}")),
            None => differences.push(format!("{id}: \"{claim}\": expected {verdict}, but the claim was not judged")),
        }
    }
    for ((id, claim), verdict) in found.iter().filter(|(key, _)| !expected.contains_key(*key)) {
        differences.push(format!("{id}: \"{claim}\": expected no verdict, found {verdict}"));
    }
    differences
}

/// Table of the number of verdicts of each kind, by paper (an id begins with the paper's tag).
/// Below it stands how often each cause is named.
pub fn scoreboard(entries: &[Entry]) -> String {
    let count = |paper: &str, verdict: Verdict| {
        let of_paper =
            entries.iter().filter(|entry| paper.is_empty() || entry.experiment.split('-').next() == Some(paper));
        of_paper.filter(|entry| entry.verdict == verdict.words()).count()
    };
    let row = |title: &str, paper: &str| {
        let counts = Verdict::ALL.map(|verdict| count(paper, verdict));
        let [reproduced, in_shape, differs, untold, unjudged] = counts.map(|count| count.to_string());
        [title.to_owned(), counts.iter().sum::<usize>().to_string(), reproduced, in_shape, differs, untold, unjudged]
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
        Entry { verdict: verdict.words().to_owned(), cause, claim: claim.to_owned(), ..blank(id) }
    }

    fn blank(id: &str) -> Entry {
        serde_json::from_value(json!({"experiment": id, "claim": "", "verdict": ""})).unwrap()
    }

    #[test]
    fn changed_missing_and_new_claims_of_the_experiments_that_were_run_are_differences() {
        let before = [entry("AP05-F1", "a", Verdict::Reproduced), entry("AP05-F2", "b", Verdict::Differs)];
        assert!(differences(&before, &before).is_empty());
        assert!(differences(&before, &before[..1]).is_empty(), "F2 was not run");
        let after = [entry("AP05-F1", "a", Verdict::InShape), entry("AP05-F2", "c", Verdict::Differs)];
        let told = differences(&before, &after);
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(told[0].contains("AP05-F1") && told[0].contains("found reproduced in shape"), "{told:?}");
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

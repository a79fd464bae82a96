//! Result of an experiment, in sentences for a reader who knows nothing about it. They tell what
//! was found beside what was published, how many claims hold, and which claims do not hold and why.
//! `meshpace reproduce` ends with these sentences, and the page of the experiment begins with them.

use super::Verdict;
use super::data::{At, Beside, Check, Claim};
use super::judge::measured;
use super::library::Experiment;
use super::observations::Observations;
use super::reference::Resolver;
use super::verdicts::Entry;
use std::collections::BTreeSet;

/// Sentences on the result of one experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct Account {
    /// Sentence with the measured number beside the published one. `None` if no single number
    /// decides the first claim.
    pub found: Option<String>,
    /// Sentence with the number of claims and published numbers that hold.
    pub count: String,
    /// Claims that do not hold or cannot be told, with the reason, one sentence each.
    pub failing: Vec<String>,
    /// Claims that hold only in part, with what was found, one sentence each. The count above
    /// includes them among those that hold.
    pub partial: Vec<String>,
    /// Warning without which the result would mislead.
    pub caution: Option<String>,
    /// Sentence on other readings of the paper that were not run, with the command that runs them
    /// too.
    pub unrun: Option<String>,
}

/// Largest number of sentences in each list. The experiment's page lists all of them.
const NAMED: usize = 4;

impl Account {
    /// Describes the result of `experiment`. `entries` are the verdicts on that experiment.
    pub fn of(experiment: &Experiment, entries: &[&Entry], resolver: &Resolver) -> Account {
        let published = &experiment.published;
        let claim = |entry: &Entry| published.claims.iter().find(|claim| claim.text == entry.claim);
        let count = |verdict: Verdict| entries.iter().filter(|entry| entry.verdict == verdict.words()).count();
        let [reproduced, shape, differ, untold, unjudged] = Verdict::ALL.map(count);
        let parts = [
            (reproduced, "reproduced"),
            (shape, "in shape (right in direction, but not in every number or not everywhere)"),
        ];
        let others = [(differ, "not"), (untold, "cannot be told from these runs"), (unjudged, "cannot be judged")];
        let list = |parts: &[(usize, &str)]| -> Vec<String> {
            parts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}")).collect()
        };
        let (held, others) = (list(&parts), list(&others));
        let how = if held.is_empty() { String::new() } else { format!(": {}", held.join(", ")) };
        let rest = if others.is_empty() { String::new() } else { format!("; {}", others.join(", ")) };
        let what = if entries.iter().all(|entry| claim(entry).is_some()) { "claims" } else { "claims and numbers" };
        let found = resolver
            .observations(&published.id)
            .and_then(|observations| published.claims.first().and_then(|first| found(first, &observations)));
        let mut failing: Vec<(bool, String)> = entries
            .iter()
            .filter_map(|entry| {
                let is_untold = entry.verdict == Verdict::CannotBeTold.words();
                if entry.verdict != Verdict::Differs.words() && !is_untold {
                    return None;
                }
                let own = claim(entry).and_then(|claim| claim.why.as_ref());
                let why = match own {
                    Some(why) => format!(" {}", resolver.text(&published.id, why)),
                    None if is_untold => " More runs would be needed.".to_owned(),
                    None => entry.cause.map(|cause| format!(" {}", cause.meaning())).unwrap_or_default(),
                };
                let head = if is_untold { "Cannot be told" } else { "Does not hold" };
                Some((is_untold, format!("{head}: \u{201c}{}\u{201d}{why}", entry.claim)))
            })
            .collect();
        // Claims that differ are listed before claims that cannot be told.
        failing.sort_by_key(|(is_untold, _)| *is_untold);
        let failing = first(failing.into_iter().map(|(_, sentence)| sentence).collect());
        let in_part = entries.iter().filter(|entry| entry.verdict == Verdict::InShape.words());
        let partial = first(in_part.map(|entry| in_part_of(entry)).collect());
        let held = reproduced + shape;
        let caution = published.caution.as_ref().map(|caution| resolver.text(&published.id, caution));
        Account {
            found,
            count: format!("{held} of {} published {what} hold{how}{rest}.", entries.len()),
            failing,
            partial,
            caution,
            unrun: unrun(experiment, entries, resolver),
        }
    }

    /// All sentences, one per line.
    pub fn lines(&self) -> Vec<String> {
        let told = self.found.iter().chain([&self.count]).chain(&self.failing).chain(&self.partial);
        told.chain(&self.caution).chain(&self.unrun).cloned().collect()
    }
}

/// Keeps the first [`NAMED`] sentences and adds one that says how many more there are.
fn first(mut sentences: Vec<String>) -> Vec<String> {
    let left = sentences.len().saturating_sub(NAMED);
    sentences.truncate(NAMED);
    if left > 0 {
        sentences.push(format!("{left} more are not listed here."));
    }
    sentences
}

/// Sentence on a claim that holds in part.
fn in_part_of(entry: &Entry) -> String {
    let evidence = if entry.evidence.is_empty() { String::new() } else { format!(" {}.", entry.evidence) };
    format!("Holds only in part: \u{201c}{}\u{201d}{evidence}", entry.claim)
}

/// Sentence on the other readings that have no runs. `None` if every other reading was run.
fn unrun(experiment: &Experiment, entries: &[&Entry], resolver: &Resolver) -> Option<String> {
    let published = &experiment.published;
    let observations = resolver.observations(&published.id)?;
    let left: BTreeSet<&str> =
        published.other_readings().into_iter().filter(|curve| !observations.has_runs(curve)).collect();
    let is_left = |whole: &&Beside| whole.curves.values().any(|curve| left.contains(curve.as_str()));
    let titles: Vec<&str> = published.beside.iter().filter(is_left).map(|whole| whole.title.as_str()).collect();
    let titles = if titles.is_empty() { String::new() } else { format!(" ({})", titles.join("; ")) };
    let command = entries.iter().map(|entry| &entry.command).find(|command| !left.is_empty() && !command.is_empty())?;
    Some(format!(
        "Other readings of the paper{titles} were not run, and do not count for verdicts. To run them: {command} --readings"
    ))
}

/// Sentence with the measured and the published number. `None` unless one number decides the claim.
fn found(claim: &Claim, observations: &Observations) -> Option<String> {
    let ours = measured(claim, observations)?;
    let published = observations.published;
    let subject = |term: &super::data::Term| published.label(&term.curve);
    let title = |term: &super::data::Term| {
        let id = term.metric.clone().unwrap_or_else(|| published.first_metric());
        published.metric(&id).map_or(id, |metric| metric.title)
    };
    match &claim.check {
        Check::Gain { of, over, at, published_pct, .. } => {
            let [low, high] = published_pct.ends();
            let size = |pct: f64| format!("{:.0} %", pct.abs());
            let side = |pct: f64| if pct < 0.0 { "less" } else { "more" };
            let range = match (*at, low == high) {
                (At::Largest, true) => format!("up to {}", size(high)),
                (_, true) => size(high),
                (_, false) => {
                    format!("{:.0} to {}", low.abs().min(high.abs()), size(if low < 0.0 { low } else { high }))
                }
            };
            let differs = if side(high) == side(ours.value) { String::new() } else { format!(" {}", side(high)) };
            Some(format!(
                "{} has {} {} {} than {}{} (published: {range}{differs}; 95 % interval here {:.0} to {:.0} %).",
                subject(of),
                size(ours.value),
                side(ours.value),
                title(of),
                subject(over),
                ours.at,
                ours.low,
                ours.high
            ))
        }
        Check::Value { of, published: number, .. } => {
            let unit = if ours.unit.is_empty() { String::new() } else { format!(" {}", ours.unit) };
            Some(format!(
                "{}: {}{} is {}{unit} (published: {number}{unit}; interval here {} to {}).",
                subject(of),
                title(of),
                ours.at,
                crate::statistics::digits(ours.value),
                crate::statistics::digits(ours.low),
                crate::statistics::digits(ours.high)
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::register::data::Published;
    use crate::register::observations::parse;
    use std::sync::Arc;

    /// Sentence about `of` with `factor` times the goodput of `over` at 7 hops.
    fn told(factor: f64, check: &str) -> String {
        let text = format!(
            "id = \"X\"\ntitle = \"X\"\nsource = \"X\"\nx = {{ key = \"topology.hops\", title = \"hops\" }}\n\
             curve = [{{ id = \"newreno\" }}, {{ id = \"tcp-ap\", label = \"TCP-AP\" }}]\n\
             [[claim]]\ntext = \"so it is\"\ncheck = {{ {check} }}\n"
        );
        let published: Published = toml::from_str(&text).unwrap();
        let mut lines = String::new();
        for (curve, mean) in [("newreno", 100e3), ("tcp-ap", factor * 100e3)] {
            for seed in 1..=3 {
                let point = serde_json::json!({"flow.transport": curve, "topology.hops": 7});
                let goodput = mean * (1.0 + 0.001 * f64::from(seed));
                let record = serde_json::json!({"seed": seed, "point": point, "aggregate_goodput_bps": goodput});
                lines.push_str(&format!("{record}\n"));
            }
        }
        let observations = Observations::new(&published, Arc::new(parse(&lines).unwrap()));
        found(&published.claims[0], &observations).unwrap_or_default()
    }

    #[test]
    fn claims_that_hold_only_in_part_are_named_and_counted() {
        let entry = |claim: &str| -> Entry {
            let text = serde_json::json!({"experiment": "X", "claim": claim, "verdict": "in shape", "evidence": "at 3 of 4 points"});
            serde_json::from_value(text).unwrap()
        };
        assert_eq!(in_part_of(&entry("it rises")), "Holds only in part: \u{201c}it rises\u{201d} at 3 of 4 points.");
        let sentences =
            |count: usize| first((0..count).map(|number| in_part_of(&entry(&number.to_string()))).collect());
        assert_eq!(sentences(NAMED).len(), NAMED);
        assert_eq!(sentences(NAMED + 3).last().map(String::as_str), Some("3 more are not listed here."));
    }

    #[test]
    fn what_was_found_stands_beside_what_was_published() {
        let gain = "kind = \"gain\", of = \"tcp-ap\", over = \"newreno\", published_pct = 84.0, tolerance_pct = 10.0";
        let more = told(2.0, gain);
        assert!(
            more.starts_with("TCP-AP has 100 % more goodput than NewReno at 7 hops (published: up to 84 %; "),
            "{more}"
        );
        let less = told(0.5, gain);
        assert!(
            less.starts_with("TCP-AP has 50 % less goodput than NewReno at 7 hops (published: up to 84 % more; "),
            "{less}"
        );
        let value = told(2.0, "kind = \"value\", of = \"tcp-ap\", published = 190.0, tolerance_pct = 10.0");
        assert!(value.starts_with("TCP-AP: goodput at 7 hops is 200.4 kbit/s (published: 190 kbit/s; "), "{value}");
        assert_eq!(told(2.0, "kind = \"above\", of = [\"tcp-ap\"], over = [\"newreno\"]"), "", "no one number decides");
    }
}

//! Robustness of a comparison. The comparison is repeated with other choices of the model, one at a
//! time, to see whether its answer holds.
//!
//! The comparison of two variants in one metric has one of four answers ([`Answer`]). An answer
//! holds with another choice if it is the same there. If a variant is better in the scenario as
//! written, "holds" means three things: the difference has the same sign, its 95 % interval over
//! pairs of equal seeds excludes zero, and the better variant starves no flow in any run.
//!
//! An answer can be judged by one metric alone, as in the lists in JSON. It can also be judged
//! after the correction for all metrics of the comparison, as in the sentences for people
//! ([`Reading`]). A model changes nothing if its runs have the same fingerprints as those of the
//! scenario as written.

mod choices;
mod words;

pub use choices::{Choice, choices};
pub use words::{answer, count, starving, verdict};

use crate::compare::{Line, Side, at_points, compared};
use crate::record::excerpt::Excerpt;
use crate::summary::LEAST;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Number of frames up to which a report checks robustness without being told to. They take about a
/// minute of one processor.
pub const FRAMES: u64 = 50_000_000;
/// Number of frames that the runs put on the air.
pub fn frames(runs: &[Excerpt]) -> u64 {
    runs.iter().map(|run| run.frames).sum()
}

/// Criterion for a clear difference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reading {
    /// The interval of the metric alone decides.
    Alone,
    /// The difference must also be clear after the correction for all metrics of the comparison.
    InFamily,
}

/// Answer of a comparison in one metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// This side is clearly better, and starves no flow.
    Better(Side),
    /// This side is clearly better, but starves a flow.
    BetterButStarves(Side),
    /// The interval of the difference contains zero.
    Open,
    /// Nothing can be said: there is no interval, or the metric was not measured in all runs of
    /// both sides.
    Unknown,
}

impl Answer {
    /// Answer of a line. [`Answer::Unknown`] if there is no line.
    fn of(line: Option<&Line>, reading: Reading) -> Answer {
        let Some(line) = line else { return Answer::Unknown };
        let (better, ahead) = match reading {
            Reading::Alone => (line.better_for_all(), line.ahead()),
            Reading::InFamily => (line.better_for_all_in_family(), line.ahead_in_family()),
        };
        if let Some(side) = better {
            return Answer::Better(side);
        }
        match ahead {
            _ if line.counts.iter().any(|of| of.missing > 0) || line.seeds < LEAST => Answer::Unknown,
            Some(side) => Answer::BetterButStarves(side),
            // If no run of either side has a value because flows starve, the sides are equal.
            None if line.interval.is_some() || line.counts.iter().all(|of| of.none == of.runs) => Answer::Open,
            None => Answer::Unknown,
        }
    }
}

/// Verdict on the answer under another choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Verdict {
    /// The answer is the same.
    #[serde(rename = "holds")]
    Holds,
    /// Another side is clearly better and starves no flow, or a side is so where neither was in the
    /// scenario as written.
    #[serde(rename = "flips")]
    Flips,
    /// A side is clearly ahead, but starves a flow.
    #[serde(rename = "starves")]
    Starves,
    /// It cannot be told which side is better.
    #[serde(rename = "cannot be told")]
    Untold,
}

impl Verdict {
    /// Name of the verdict, which JSON also uses.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Flips => "flips",
            Verdict::Starves => "starves",
            Verdict::Untold => "cannot be told",
        }
    }
}

/// A comparison of two variants under one model.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// Name of the model for people, such as `mac.profile = ieee`.
    pub model: String,
    /// Comparison of each metric.
    pub lines: Vec<Line>,
}

impl Trial {
    fn line(&self, metric: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.metric == metric)
    }

    /// For both sides, the number of runs in which a flow was starved and the number of all runs.
    /// `None` if nothing was measured.
    pub fn starved(&self) -> Option<[(usize, usize); 2]> {
        self.lines.first().map(|line| line.counts.map(|of| (of.starved_runs, of.runs)))
    }

    /// True if all runs are equal to those of `other`, judged by their fingerprints.
    fn has_runs_of(&self, other: &Trial) -> bool {
        let runs = |trial: &Trial| trial.lines.first().and_then(|line| line.runs);
        runs(self).is_some() && runs(self) == runs(other)
    }
}

/// Comparison of two variants in the scenario as written and under each other model.
#[derive(Clone, PartialEq, Debug)]
pub struct Robust {
    /// Comparison in the scenario as written.
    pub written: Trial,
    /// Comparisons with one other choice each.
    pub others: Vec<Trial>,
    /// Choices that could not be made, each with the reason.
    pub not_applicable: Vec<(String, String)>,
}

/// Answer to the question whether a comparison holds.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    /// The question was not asked.
    No,
    /// The question was not answered, because the runs of the other models would put too many
    /// frames on the air.
    TooMuch {
        /// Number of other models.
        models: usize,
        /// Number of frames of all of these models.
        frames: u64,
    },
    /// Answers: the second variant against the first, the third against the first, and so on.
    Answered(Vec<Robust>),
}

/// Result of one model in one metric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row<'a> {
    /// Name of the model for people.
    pub model: &'a str,
    /// Comparison of the metric. `None` if it was not measured.
    pub line: Option<&'a Line>,
    /// Answer of the model.
    pub answer: Answer,
    /// Verdict on whether the answer of the scenario as written holds.
    pub verdict: Verdict,
    /// True if the model changes nothing: its runs are those of the scenario as written.
    pub is_same_run: bool,
}

impl Robust {
    /// Row of the scenario as written.
    pub fn first<'a>(&'a self, metric: &str, reading: Reading) -> Row<'a> {
        let (line, answer) = (self.written.line(metric), self.written(metric, reading));
        Row { model: &self.written.model, line, answer, verdict: Verdict::Holds, is_same_run: false }
    }

    /// Answer of the scenario as written, in one metric.
    pub fn written(&self, metric: &str, reading: Reading) -> Answer {
        Answer::of(self.written.line(metric), reading)
    }

    /// Rows of the other models in that metric.
    pub fn rows<'a>(&'a self, metric: &'a str, reading: Reading) -> impl Iterator<Item = Row<'a>> + 'a {
        let written = self.written(metric, reading);
        self.others.iter().map(move |trial| {
            let line = trial.line(metric);
            let answer = Answer::of(line, reading);
            let verdict = match answer {
                Answer::Unknown => Verdict::Untold,
                answer if answer == written => Verdict::Holds,
                Answer::Better(_) => Verdict::Flips,
                Answer::BetterButStarves(_) => Verdict::Starves,
                Answer::Open => Verdict::Untold,
            };
            Row { model: &trial.model, line, answer, verdict, is_same_run: trial.has_runs_of(&self.written) }
        })
    }

    /// Names of the models that change nothing.
    pub fn same_runs(&self) -> impl Iterator<Item = &str> {
        let same = self.others.iter().filter(|trial| trial.has_runs_of(&self.written));
        same.map(|trial| trial.model.as_str())
    }

    /// The same comparison at each point of the swept keys, with the name of the point. Empty if
    /// there is only one point.
    pub fn at_points(&self) -> Vec<(String, Robust)> {
        type Parts<'a> = BTreeMap<String, Vec<&'a Line>>;
        let others: Vec<(&String, Parts<'_>)> =
            self.others.iter().map(|trial| (&trial.model, at_points(&trial.lines).into_iter().collect())).collect();
        let trial = |model: &String, lines: &[&Line]| Trial {
            model: model.clone(),
            lines: lines.iter().map(|line| (*line).clone()).collect(),
        };
        let at = |(place, lines): (String, Vec<&Line>)| {
            let other = |(model, lines): &(&String, Parts<'_>)| Some(trial(model, lines.get(&place)?));
            let others = others.iter().filter_map(other).collect();
            let written = trial(&self.written.model, &lines);
            (place.clone(), Robust { written, others, not_applicable: Vec::new() })
        };
        at_points(&self.written.lines).into_iter().map(at).collect()
    }

    /// Metrics that are shown to people. Programs get all metrics.
    pub fn told(&self) -> impl Iterator<Item = &'static str> + '_ {
        let is_told = |name: &&str| self.written.line(name).is_some_and(|line| line.is_shown);
        compared().filter(|metric| metric.is_told).map(|metric| metric.name).filter(is_told)
    }

    /// Result of a metric for programs: how often its answer holds, the models with which it does
    /// not hold, the rows, and the sentence with these `names`.
    pub fn json(&self, metric: &str, names: [&str; 2]) -> Value {
        let with = |verdict| -> Vec<&str> {
            self.rows(metric, Reading::Alone).filter(|row| row.verdict == verdict).map(|row| row.model).collect()
        };
        let in_family = self.rows(metric, Reading::InFamily).map(|row| row.verdict.name());
        let rows = self.rows(metric, Reading::Alone).zip(in_family).map(|(row, in_family)| {
            let mut object =
                row.line.and_then(|line| serde_json::to_value(line).ok()).unwrap_or_else(|| json!({"metric": metric}));
            object["model"] = row.model.into();
            object["verdict"] = row.verdict.name().into();
            object["verdict_in_family"] = in_family.into();
            object["same_run_as_baseline"] = row.is_same_run.into();
            object
        });
        let reasons = self.not_applicable.iter().map(|(model, why)| json!({"model": model, "why": why}));
        json!({
            "holds": with(Verdict::Holds).len(),
            "of": self.others.len(),
            "flips_with": with(Verdict::Flips),
            "starves_with": with(Verdict::Starves),
            "cannot_be_told_with": with(Verdict::Untold),
            "changes_nothing_with": self.same_runs().collect::<Vec<_>>(),
            "not_applicable": reasons.collect::<Vec<_>>(),
            "models": rows.collect::<Vec<_>>(),
            "words": answer(self, metric, names),
        })
    }
}

#[cfg(test)]
mod tests;

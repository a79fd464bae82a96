//! Robustness of a comparison: the same one made again with other choices of the model, one at a time, and whether its answer holds.
//!
//! The answer of a comparison of two variants in one metric is one of four ([`Answer`]). It holds with another choice if it is the same there. So of
//! a variant that is better as the scenario is written, "holds" means: the difference has the same sign, its 95 % interval, in pairs of equal seeds, has no
//! zero in it, and the variant that is better starves no flow in any run.

mod choices;
mod words;

pub use choices::{Choice, choices};
pub use words::{answer, count, starving, verdict};

use crate::compare::{Line, Side, compared};
use crate::record::Record;
use crate::summary::LEAST;
use serde::Serialize;
use serde_json::{Value, json};

/// Frames up to which a report asks whether its comparison holds without being told to: a minute or so of one processor.
pub const FRAMES: u64 = 50_000_000;
/// The frames that runs put on the air.
pub fn frames(records: &[Record]) -> u64 {
    records.iter().map(|record| record.frames).sum()
}

/// Answer of a comparison in one metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// This side is clearly better, and starves no flow.
    Better(Side),
    /// This side is clearly better, but starves a flow.
    BetterButStarves(Side),
    /// The interval of the difference has a zero in it.
    Open,
    /// Nothing can be said: there is no interval, or it was not measured in all runs of both sides.
    Unknown,
}

impl Answer {
    /// That of a line; none if it was not measured.
    fn of(line: Option<&Line>) -> Answer {
        let Some(line) = line else { return Answer::Unknown };
        if let Some(side) = line.better_for_all() {
            return Answer::Better(side);
        }
        match line.ahead() {
            _ if line.counts.iter().any(|of| of.missing > 0) || line.seeds < LEAST => Answer::Unknown,
            Some(side) => Answer::BetterButStarves(side),
            // None on both sides is the same on both.
            None if line.interval.is_some() || line.counts.iter().all(|of| of.none == of.runs) => Answer::Open,
            None => Answer::Unknown,
        }
    }
}

/// Verdict on the answer under another choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Verdict {
    /// It is the same.
    #[serde(rename = "holds")]
    Holds,
    /// Another one is clearly better, and starves no flow; or one is, where nobody was.
    #[serde(rename = "flips")]
    Flips,
    /// A side is clearly ahead, but starves a flow.
    #[serde(rename = "starves")]
    Starves,
    /// It cannot be told who is better.
    #[serde(rename = "cannot be told")]
    Untold,
}

impl Verdict {
    /// Its name, in JSON too.
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
    /// Name of the model for people: `mac.profile = ieee`.
    pub model: String,
    /// Metric by metric.
    pub lines: Vec<Line>,
}

impl Trial {
    fn line(&self, metric: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.metric == metric)
    }

    /// Runs of both sides in which a flow was starved, and all runs; nothing if nothing was measured.
    pub fn starved(&self) -> Option<[(usize, usize); 2]> {
        self.lines.first().map(|line| line.counts.map(|of| (of.starved_runs, of.runs)))
    }
}

/// Two variants as the scenario is written, and under every other model.
#[derive(Clone, PartialEq, Debug)]
pub struct Robust {
    /// As it is written.
    pub written: Trial,
    /// With one other choice each.
    pub others: Vec<Trial>,
    /// Choices that could not be made, each with the reason.
    pub not_applicable: Vec<(String, String)>,
}

/// Answer to the question whether a comparison holds.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    /// Nobody asked.
    No,
    /// It was not asked, because so many other models would put so many frames on the air.
    TooMuch {
        /// Their number.
        models: usize,
        /// The frames of all of them.
        frames: u64,
    },
    /// The answers: the second variant against the first, the third against the first, and so on.
    Answered(Vec<Robust>),
}

/// One model and one metric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row<'a> {
    /// Name of the model for people.
    pub model: &'a str,
    /// The difference; none if it was not measured.
    pub line: Option<&'a Line>,
    /// Its answer.
    pub answer: Answer,
    /// Verdict on the answer as written.
    pub verdict: Verdict,
}

impl Robust {
    /// The row of the scenario as it is written.
    pub fn first<'a>(&'a self, metric: &str) -> Row<'a> {
        let answer = self.written(metric);
        Row { model: &self.written.model, line: self.written.line(metric), answer, verdict: Verdict::Holds }
    }

    /// Answer of the scenario as written, in one metric.
    pub fn written(&self, metric: &str) -> Answer {
        Answer::of(self.written.line(metric))
    }

    /// Answers of the other models in that metric.
    pub fn rows<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = Row<'a>> + 'a {
        let written = self.written(metric);
        self.others.iter().map(move |trial| {
            let line = trial.line(metric);
            let answer = Answer::of(line);
            let verdict = match answer {
                Answer::Unknown => Verdict::Untold,
                answer if answer == written => Verdict::Holds,
                Answer::Better(_) => Verdict::Flips,
                Answer::BetterButStarves(_) => Verdict::Starves,
                Answer::Open => Verdict::Untold,
            };
            Row { model: &trial.model, line, answer, verdict }
        })
    }

    /// The metrics that people are told of; programs get all.
    pub fn told(&self) -> impl Iterator<Item = &'static str> + '_ {
        let is_told = |name: &&str| self.written.line(name).is_some_and(|line| line.is_shown);
        compared().filter(|metric| metric.is_told).map(|metric| metric.name).filter(is_told)
    }

    /// A metric for programs: how often its answer holds, with which models it does not, the rows, and the sentence with these `names`.
    pub fn json(&self, metric: &str, names: [&str; 2]) -> Value {
        let with = |verdict| -> Vec<&str> {
            self.rows(metric).filter(|row| row.verdict == verdict).map(|row| row.model).collect()
        };
        let rows = self.rows(metric).map(|row| {
            let mut object =
                row.line.and_then(|line| serde_json::to_value(line).ok()).unwrap_or_else(|| json!({"metric": metric}));
            object["model"] = row.model.into();
            object["verdict"] = row.verdict.name().into();
            object
        });
        let reasons = self.not_applicable.iter().map(|(model, why)| json!({"model": model, "why": why}));
        json!({
            "holds": with(Verdict::Holds).len(),
            "of": self.others.len(),
            "flips_with": with(Verdict::Flips),
            "starves_with": with(Verdict::Starves),
            "cannot_be_told_with": with(Verdict::Untold),
            "not_applicable": reasons.collect::<Vec<_>>(),
            "models": rows.collect::<Vec<_>>(),
            "words": answer(self, metric, names),
        })
    }
}

#[cfg(test)]
mod tests;

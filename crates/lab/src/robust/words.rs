//! Robustness in words: one sentence for each metric, one for starvation, and one text for each
//! cell of the table.

use super::{Answer, Reading, Robust, Row, Verdict};
use crate::compare::{Side, amount, metric};

/// Names of the models, such as "mac.profile = ieee, routing.protocol = static".
fn listed<'a>(rows: impl Iterator<Item = &'a Row<'a>>) -> String {
    rows.map(|row| row.model).collect::<Vec<_>>().join(", ")
}

/// Size of the difference with its interval, such as " by 12.0 ± 3.1 kbit/s". Empty if there is no
/// interval.
fn by(row: &Row<'_>) -> String {
    row.line.and_then(amount).map(|amount| format!(" by {amount}")).unwrap_or_default()
}

/// Sentence on whether the answer in a metric holds: "as written tcp-ap has the higher goodput by
/// 12 ± 3 kbit/s; this holds in 9 of 12 other models; ..."
pub fn answer(robust: &Robust, name: &str, names: [&str; 2]) -> String {
    let Some(metric) = metric(name) else { return String::new() };
    let rows: Vec<Row<'_>> = robust.rows(name, Reading::InFamily).filter(|row| !row.is_same_run).collect();
    let of = |verdict: Verdict| rows.iter().filter(move |row| row.verdict == verdict);
    let (holds, all) = (of(Verdict::Holds).count(), rows.len());
    let written = robust.first(name, Reading::InFamily);
    let called = |side: Side| names[side as usize];
    let mut parts = Vec::new();
    let held = format!("in {holds} of {}", models(robust, all));
    parts.push(match written.answer {
        Answer::Better(side) => {
            format!("as written {} {}{}; this holds {held}", called(side), metric.ahead, by(&written))
        }
        Answer::BetterButStarves(side) => format!(
            "as written no side is called better in {}: {} is ahead{}, but starves a flow{}; the same {held}",
            metric.noun,
            called(side),
            by(&written),
            starved(&written, side)
        ),
        Answer::Open if written.line.is_some_and(|line| line.counts.iter().all(|of| of.none == of.runs)) => {
            format!(
                "as written neither side has a {}, because a flow is starved in all runs; the same {held}",
                metric.noun
            )
        }
        Answer::Open => format!("as written there is no clear difference in {}, nor is there {held}", metric.noun),
        Answer::Unknown => format!("as written nothing can be concluded about the {}", metric.noun),
    });
    for side in [Side::A, Side::B] {
        let flips = of(Verdict::Flips).filter(|row| row.answer == Answer::Better(side));
        let told = listed(flips);
        if !told.is_empty() {
            let verb = if matches!(written.answer, Answer::Better(_)) { "flips with" } else { "becomes clear with" };
            parts.push(format!("{verb} {told}, where {} {}", called(side), metric.ahead));
        }
        let told = listed(of(Verdict::Starves).filter(|row| row.answer == Answer::BetterButStarves(side)));
        if !told.is_empty() {
            parts.push(format!("{} is ahead, but starves a flow, with {told}", called(side)));
        }
    }
    let told = listed(of(Verdict::Untold));
    if !told.is_empty() {
        parts.push(format!("cannot be told with {told}"));
    }
    let same: Vec<&str> = robust.same_runs().collect();
    if !same.is_empty() {
        parts.push(format!("changes nothing here: {}", same.join(", ")));
    }
    parts.join("; ")
}

/// Number of models in words, such as "12 other models" or "2 other models that change the runs".
fn models(robust: &Robust, count: usize) -> String {
    let that = if robust.same_runs().next().is_some() { " that change the runs" } else { "" };
    format!("{count} other models{that}")
}

/// Number of runs in which a side starves a flow, such as " in 3 of 10 runs".
fn starved(row: &Row<'_>, side: Side) -> String {
    let of = row.line.map(|line| line.counts[side as usize]);
    of.map(|of| format!(" in {} of {} runs", of.starved_runs, of.runs)).unwrap_or_default()
}

/// Sentence on the sides that starve a flow in the scenario as written, and on the models that
/// change that. `None` if no side ever does.
pub fn starving(robust: &Robust, names: [&str; 2]) -> Option<String> {
    let who = |starved: Option<[(usize, usize); 2]>| starved.map(|sides| sides.map(|(starved, _)| starved > 0));
    let trials = || std::iter::once(&robust.written).chain(&robust.others);
    if trials().all(|trial| who(trial.starved()).is_none_or(|sides| sides == [false, false])) {
        return None;
    }
    let told = |sides: [bool; 2]| match sides {
        [false, false] => "no side starves a flow".to_owned(),
        [true, false] => format!("{} alone starves a flow", names[0]),
        [false, true] => format!("{} alone starves a flow", names[1]),
        [true, true] => format!("both {} and {} starve a flow", names[0], names[1]),
    };
    let written = who(robust.written.starved())?;
    let changed: Vec<_> = robust.others.iter().filter(|trial| !trial.has_runs_of(&robust.written)).collect();
    let same = changed.iter().filter(|trial| who(trial.starved()) == Some(written)).count();
    let runs: Vec<(usize, usize)> =
        robust.written.starved().unwrap_or_default().into_iter().filter(|(starved, _)| *starved > 0).collect();
    let runs = match runs[..] {
        [] => String::new(),
        [(starved, runs)] => format!(" in {starved} of {runs} runs"),
        [(one, runs), (other, _), ..] if one == other => format!(" in {one} of {runs} runs each"),
        [(one, runs), (other, others), ..] => format!(" in {one} of {runs} runs and in {other} of {others}"),
    };
    let where_so = if written == [false, false] { "every run" } else { "some run" };
    let mut parts = vec![format!(
        "as written {}{runs}; so in {where_so} of {same} of {}",
        told(written),
        models(robust, changed.len())
    )];
    for sides in [[false, false], [true, false], [false, true], [true, true]] {
        let models: Vec<&str> = robust
            .others
            .iter()
            .filter(|trial| sides != written && who(trial.starved()) == Some(sides))
            .map(|trial| trial.model.as_str())
            .collect();
        if !models.is_empty() {
            parts.push(format!("{} with {}", told(sides), models.join(", ")));
        }
    }
    Some(parts.join("; "))
}

/// Better side of a row, such as "tcp-ap", or a dash.
pub fn verdict(row: &Row<'_>, names: [&str; 2]) -> String {
    match row.answer {
        Answer::Better(side) => names[side as usize].to_owned(),
        Answer::BetterButStarves(side) => format!("– ({} starves)", names[side as usize]),
        Answer::Open | Answer::Unknown => "–".to_owned(),
    }
}

/// Number of frames for people, such as "83 million" or "640,000".
pub fn count(frames: u64) -> String {
    match frames {
        10_000_000.. => format!("{} million", (frames + 500_000) / 1_000_000),
        1_000_000.. => format!("{:.1} million", frames as f64 / 1e6),
        1_000.. => format!("{},{:03}", frames / 1_000, frames % 1_000),
        _ => frames.to_string(),
    }
}

//! Advice on the settings of a mesh. Each of a few choices is tried in a model of the mesh and
//! compared with the usual settings, seed by seed, one choice at a time.
//!
//! The choices are those that an operator has without new hardware: attempts of the MAC, RTS,
//! congestion control, pacing. The usual settings are those that the mesh is known to have, and
//! otherwise those of Linux: seven attempts, no RTS, CUBIC with delayed ACKs, no pacing, aggregates
//! of up to 64 MPDUs. Beyond the [`limits`] the model was not compared with theory or another
//! simulator, so no answer is given there.

pub mod calibrate;
pub mod flows;
pub mod paths;
pub mod plan;
pub mod questions;
pub mod rates;
pub mod routes;

use crate::compare::{Line, Side, amount, compare_in, mean, words};
use crate::record::Record;
use crate::record::metrics::{DELAY, GOODPUT, JAIN};
use questions::{Choice, Question, SENDER};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;

/// Limits within which an answer is given.
pub mod limits {
    /// Largest number of nodes. Cells of up to 50 stations were compared with theory.
    pub const NODES: usize = 50;
    /// Largest number of flows.
    pub const FLOWS: usize = 16;
    /// Largest number of hops of a flow. The study of 802.11n ends there.
    pub const HOPS: u64 = 5;
    /// Fastest rate. The rates up to it were compared with ns-3.
    pub const MCS: u8 = super::rates::HIGHEST_MCS;
}

/// Form in which the scenario describes the mesh.
#[derive(Clone, PartialEq, Debug)]
pub enum Mesh {
    /// A map of this name with the positions of the nodes.
    Places(String),
    /// Links in `links.csv`, and the links that routes use in `map.json`. The value is the number
    /// of nodes.
    Routed(usize),
}

/// Keys of a scenario, with their values as TOML.
pub type Keys = [(&'static str, String)];

/// Scenario in which choices are tried: bulk transfers between the ends of `flows`. `keys` are the
/// keys of the radio and the MAC.
///
/// # Errors
/// A sentence on the part of it that is beyond the [`limits`].
pub fn scenario(mesh: &Mesh, flows: &[(usize, usize)], keys: &Keys, seconds: u64) -> Result<String, String> {
    if flows.is_empty() || flows.len() > limits::FLOWS {
        return Err(format!("{} flows: expected 1 to {}, each as --flow FROM,TO", flows.len(), limits::FLOWS));
    }
    let mut text = format!(
        "title = \"advice\"\nduration = \"{} s\"\nwarmup = \"2 s\"\n\n[topology]\nkind = \"nodes\"\n",
        seconds + 2
    );
    match mesh {
        Mesh::Places(name) => {
            let _ = writeln!(text, "file = {}", Value::from(name.as_str()));
        }
        Mesh::Routed(nodes) => {
            nodes_within(*nodes)?;
            text.push_str("file = \"map.json\"\nfirewall = true\n");
        }
    }
    text.push_str("\n[radio]\nqueue = 500\n");
    if matches!(mesh, Mesh::Routed(_)) {
        text.push_str("links = \"links.csv\"\n");
    }
    for (from, to) in flows {
        let _ = write!(text, "\n[[flow]]\nfrom = {from}\nto = {to}\nsegment = 1448\n");
    }
    let sets: Vec<String> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
    Ok(written(&text, &sets))
}

/// Writes settings into a scenario of [`scenario`]. Each setting has the form KEY=VALUE as in
/// `--set`. A key of `flow` is set in every flow.
pub fn written(scenario: &str, sets: &[String]) -> String {
    let mut lines: Vec<String> = scenario.lines().map(str::to_owned).collect();
    for (key, text) in sets.iter().filter_map(|set| set.split_once('=')) {
        // A value that is not TOML is a text, as with `--set`.
        let is_value = format!("value = {text}").parse::<toml::Table>().is_ok();
        let value = if is_value { text.to_owned() } else { Value::from(text).to_string() };
        let (table, key) = key.split_once('.').unwrap_or(("", key));
        let heads = [format!("[{table}]"), format!("[[{table}]]")];
        if !table.is_empty() && !lines.iter().any(|line| heads.contains(line)) {
            lines.extend([String::new(), heads[0].clone()]);
        }
        let mut within = table.is_empty();
        let mut out = Vec::new();
        if within {
            out.push(format!("{key} = {value}"));
        }
        for line in lines {
            let is_head = line.starts_with('[');
            if is_head {
                within = heads.contains(&line);
            }
            let is_old = within && line.split_once('=').is_some_and(|(name, _)| name.trim() == key);
            if !is_old {
                out.push(line);
            }
            if is_head && within {
                out.push(format!("{key} = {value}"));
            }
        }
        lines = out;
    }
    lines.join("\n") + "\n"
}

/// Checks that there are not too many nodes.
///
/// # Errors
/// A sentence if there are.
pub fn nodes_within(nodes: usize) -> Result<(), String> {
    if nodes > limits::NODES {
        return Err(format!("the mesh has {nodes} nodes, and advise supports at most {}", limits::NODES));
    }
    Ok(())
}

/// Checks that the flows of these records have no more hops than [`limits::HOPS`].
///
/// # Errors
/// A sentence if one has.
pub fn hops_within(records: &[Record]) -> Result<(), String> {
    let hops = records.iter().flat_map(|record| &record.flows).map(|flow| u64::from(flow.hops));
    match hops.max().unwrap_or(0) {
        most if most > limits::HOPS => {
            Err(format!("a flow has {most} hops, and advise supports at most {}", limits::HOPS))
        }
        _ => Ok(()),
    }
}

/// Result of a choice.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// Question that the choice answers.
    pub question: &'static str,
    /// Name of the choice.
    pub choice: String,
    /// Name of the usual choice of this question.
    pub usual: String,
    /// Rank among the choices of its question by goodput. Choices that cannot be told from the
    /// usual one share its rank.
    pub rank: usize,
    /// Comparisons with the usual choice, one per metric.
    pub lines: Vec<Line>,
    /// Changes that the choice makes for each flow.
    pub flows: Vec<flows::Change>,
    /// Goodput of all flows that another sender has to exceed before it is advised, bit/s. It is
    /// the measured goodput of the sender in use plus the error of the model of the other sender.
    /// `None` if nothing was measured, and for choices that leave the sender as it is.
    pub floor_bps: Option<f64>,
}

/// Largest ratio of the delay to the usual delay at which another sender is advised for its delay,
/// if [`Answer::floor_bps`] is known. The queue of the sender in use also differs from that of its
/// model.
const SHORTER: f64 = 0.5;

/// Largest probability of [`Answer::chance`] at which a choice is advised against starvation: three
/// of five runs, or three of four.
const CHANCE: f64 = 0.1;

impl Answer {
    /// Number of runs, and the numbers of those in which a flow starves: with the choice, and with
    /// the usual settings.
    fn starved(&self) -> (usize, usize, usize) {
        let counts = self.lines.first().map(|line| line.counts).unwrap_or_default();
        (counts[1].runs, counts[1].starved_runs, counts[0].starved_runs)
    }

    /// True if no flow starves in any run with the choice, and this is unlikely to be chance,
    /// because a flow starves in many runs with the usual settings.
    pub fn feeds(&self) -> bool {
        let (_, starved, usual) = self.starved();
        starved == 0 && usual > 0 && self.chance() <= CHANCE
    }

    /// True if no flow starves with the choice, but a flow starves in so few runs with the usual
    /// settings that this may be chance.
    fn may_feed(&self) -> bool {
        let (_, starved, usual) = self.starved();
        starved == 0 && usual > 0 && self.chance() > CHANCE
    }

    /// Probability that all runs in which a flow starves are runs of the usual settings, if the
    /// choice makes no difference. This is the one-sided test of Fisher (Statistical Methods for
    /// Research Workers, section 21.02).
    fn chance(&self) -> f64 {
        let [usual, choice] = self.lines.first().map(|line| line.counts).unwrap_or_default();
        // The usual settings may have more runs than the choice, because seeds are added until
        // their goodput is known.
        let share = |taken: usize| (usual.runs - taken) as f64 / (usual.runs + choice.runs - taken) as f64;
        (0..usual.starved_runs.min(usual.runs)).map(share).product()
    }

    /// True if the choice has clearly more goodput and starves no flow.
    pub fn carries_more(&self) -> bool {
        self.lines.first().and_then(Line::better_for_all_in_family) == Some(Side::B)
    }

    /// True if the choice has clearly more goodput and starves a flow in no more runs than the
    /// usual settings.
    fn is_ahead(&self) -> bool {
        let (_, starved, usual) = self.starved();
        self.carries_more() || starved <= usual && self.lines.first().and_then(Line::ahead_in_family) == Some(Side::B)
    }

    /// True if the choice is ahead by more than the error of the model of its sender.
    pub fn gains(&self) -> bool {
        let exceeds = |floor: f64| self.lines.first().is_some_and(|line| line.b > floor);
        self.is_ahead() && self.floor_bps.is_none_or(exceeds)
    }

    /// True if the choice is ahead, but by no more than the error of the model of its sender.
    fn is_unsure(&self) -> bool {
        self.is_ahead() && !self.gains()
    }

    /// Comparison of the delays.
    fn delay(&self) -> Option<&Line> {
        self.lines.iter().find(|line| line.metric == DELAY)
    }

    /// True if packets clearly wait less, no flow starves, and little goodput is lost.
    pub fn waits_less(&self) -> bool {
        let allowed = |line: &Line| (1.0 - COST) * self.floor_bps.unwrap_or(line.a);
        let costs_goodput = self.lines.first().is_some_and(|line| line.b < allowed(line));
        let is_less = |line: &Line| self.floor_bps.is_none() || line.b < SHORTER * line.a;
        !costs_goodput && self.delay().is_some_and(|line| line.better_in_family == Some(Side::B) && is_less(line))
    }
}

/// Largest share of the goodput that an advice for delay may cost.
const COST: f64 = 0.1;

/// Difference of a line relative to the usual value, for people.
fn percent(line: &Line) -> String {
    if line.a > 0.0 { format!("{:+.0} %", 100.0 * line.difference / line.a) } else { "from nothing".to_owned() }
}

/// Answers that `helps`, each with the line of `metric`, sorted by the difference.
fn ordered<'a>(
    answers: &'a [Answer],
    metric: &str,
    helps: fn(&Answer) -> bool,
    most_first: bool,
) -> Vec<(&'a Answer, &'a Line)> {
    let line = |answer: &'a Answer| answer.lines.iter().find(|line| line.metric == metric);
    let mut found: Vec<(&Answer, &Line)> =
        answers.iter().filter(|answer| helps(answer)).filter_map(|answer| Some((answer, line(answer)?))).collect();
    found.sort_by(|one, other| one.1.difference.total_cmp(&other.1.difference));
    if most_first {
        found.reverse();
    }
    found
}

/// Sentence on the choices that are ahead in the model but not advised. Empty if there are none.
fn unsure(answers: &[Answer]) -> String {
    let names: Vec<&str> = answers.iter().filter(|answer| answer.is_unsure()).map(|answer| &*answer.choice).collect();
    if names.is_empty() {
        return String::new();
    }
    format!(
        "Not recommended, although the simulated goodput is higher: {}. The gain is within the error of the model, compared with the measured goodput of the current sender (docs/measuring-kit.md).\n",
        names.join(", ")
    )
}

/// Sentence on the choices with which no flow starves, if this may be chance. Empty if there are
/// none.
fn maybe_fed(answers: &[Answer]) -> String {
    let found: Vec<&Answer> = answers.iter().filter(|answer| answer.may_feed()).collect();
    let Some(line) = found.first().and_then(|answer| answer.lines.first()) else { return String::new() };
    let (runs, usual) = (line.counts[0].runs, line.counts[0].starved_runs);
    let names: Vec<&str> = found.iter().map(|answer| &*answer.choice).collect();
    format!(
        "A flow starves in {usual} of {runs} runs with the usual settings. No flow starves with these settings, but that may be chance; use more --seeds: {}.\n",
        names.join(", ")
    )
}

/// Sentences on the choices that help, over all questions: against starvation, for goodput, for
/// delay, the largest effect first. If no choice helps, a sentence says so.
pub fn helps(answers: &[Answer]) -> String {
    advised(answers) + &maybe_fed(answers) + &unsure(answers)
}

fn advised(answers: &[Answer]) -> String {
    let mut text = String::new();
    for (answer, line) in ordered(answers, GOODPUT, Answer::feeds, true) {
        let (runs, _, usual) = answer.starved();
        let (choice, goodput) = (&answer.choice, percent(line));
        let _ = writeln!(text, "- {choice}: no flow starves in {runs} runs (usual: in {usual}); goodput {goodput}");
    }
    for (answer, line) in ordered(answers, GOODPUT, Answer::gains, true) {
        let starving = match answer.starved() {
            (_, 0, _) => "no flow starves".to_owned(),
            (runs, starved, usual) => format!("a flow starves in {starved} of {runs} runs (usual: {usual})"),
        };
        let (choice, amount, share) = (&answer.choice, amount(line).unwrap_or_default(), percent(line));
        let _ = writeln!(
            text,
            "- {choice}: the goodput of all flows together is {amount} higher ({share}), and {starving}"
        );
    }
    for (answer, line) in ordered(answers, DELAY, Answer::waits_less, false) {
        let (choice, amount, share) = (&answer.choice, amount(line).unwrap_or_default(), percent(line));
        let goodput = answer.lines.first().map(percent).unwrap_or_default();
        let _ = writeln!(
            text,
            "- {choice}, for delay: the 95th percentile of the delay is {amount} shorter ({share}); goodput {goodput}"
        );
    }
    let tried = answers.iter().filter(|answer| answer.choice != answer.usual).count();
    if text.is_empty() {
        let starves = answers.iter().any(|answer| answer.starved().2 > 0);
        return match starves {
            true if answers.iter().any(Answer::may_feed) => {
                format!(
                    "No setting clearly helps: none of the {tried} settings clearly increases the goodput or shortens the delay.\n"
                )
            }
            true => format!(
                "No setting helps: with each of the {tried} settings, a flow still starves in at least one run. Try other routes, other rates of the flows, or another channel for some links.\n"
            ),
            false => {
                format!(
                    "Nothing to change: no flow starves, and none of the {tried} settings clearly increases the goodput or shortens the delay.\n"
                )
            }
        };
    }
    text.push_str(
        "Each interval is a 95 % confidence interval: of ten settings, one may look better by chance. More --seeds give narrower intervals.\n",
    );
    text
}

/// Sets [`Answer::floor_bps`] of the answers that change the sender. `goodput_bps` is the measured
/// goodput of all flows together, bit/s.
pub fn measured(answers: &mut [Answer], goodput_bps: f64) {
    for answer in answers {
        let error = SENDER.iter().find(|(question, _)| *question == answer.question).map(|(_, error)| error);
        answer.floor_bps = error.map(|error| (1.0 + error) * goodput_bps);
    }
}

/// Metrics that are compared. They are one family for each choice, because an advice speaks of no
/// other metric.
const SAID: [&str; 3] = [GOODPUT, JAIN, DELAY];

/// Answers to one question, the best first. `tried` has each choice with its records. The usual
/// choice is included, compared with itself.
///
/// # Errors
/// The runs cannot be compared.
pub fn answers(question: &Question, usual: &[Record], tried: &[(Choice, Vec<Record>)]) -> Result<Vec<Answer>, String> {
    let mut answers = Vec::new();
    let mut answer = |choice: &Choice, records: &[Record]| -> Result<(), String> {
        answers.push(Answer {
            question: question.name,
            choice: choice.name.clone(),
            usual: question.usual.name.clone(),
            rank: 0,
            lines: compare_in(&SAID, usual, records)?,
            flows: flows::changes(usual, records),
            floor_bps: None,
        });
        Ok(())
    };
    answer(&question.usual, usual)?;
    tried.iter().try_for_each(|(choice, records)| answer(choice, records))?;
    let goodput = |answer: &Answer| {
        answer.lines.first().map_or((None, 0.0), |line| (line.better_for_all_in_family(), line.difference))
    };
    let class = |answer: &Answer| match goodput(answer).0 {
        Some(Side::B) => 0,
        None => 1,
        Some(Side::A) => 2,
    };
    answers.sort_by(|a, b| class(a).cmp(&class(b)).then(goodput(b).1.total_cmp(&goodput(a).1)));
    let better = answers.iter().filter(|answer| goodput(answer).0 == Some(Side::B)).count();
    let same = answers.iter().filter(|answer| goodput(answer).0.is_none()).count();
    let (mut above, mut below) = (0, 0);
    for answer in &mut answers {
        answer.rank = match goodput(answer).0 {
            Some(Side::B) => {
                above += 1;
                above
            }
            None => better + 1,
            Some(Side::A) => {
                below += 1;
                better + same + below
            }
        };
    }
    Ok(answers)
}

/// Text of an answer for people.
pub fn told(answer: &Answer) -> String {
    if answer.choice == answer.usual {
        let means: Vec<String> = answer.lines.iter().map(mean).collect();
        return format!("{}. {} (usual): {}\n", answer.rank, answer.usual, means.join(", "));
    }
    let verdict = match answer.lines.first().and_then(Line::better_for_all_in_family) {
        Some(Side::B) => "carries more than",
        Some(Side::A) => "carries less than",
        None => "cannot be told by goodput from",
    };
    let mut text = format!("{}. {} {verdict} {}\n", answer.rank, answer.choice, answer.usual);
    for line in &answer.lines {
        let _ = writeln!(text, "   - {}", words(line, [&answer.usual, &answer.choice]));
    }
    let starves = |change: &&flows::Change| change.starved_runs + change.usual_starved_runs > 0;
    for change in answer.flows.iter().filter(starves) {
        let _ = writeln!(text, "   - {}", flows::change_words(change));
    }
    text
}

/// Note on what the model leaves out.
pub const LEFT_OUT: &str = "This model knows only the links of the mesh, with their rates and losses. It has no rate adaptation, no fading, only drop-tail queues, only best-effort traffic, and no other networks. A flow that starves here is at risk: in a measured mesh (docs/field.md), FQ-CoDel and rate adaptation shared far more equally than this model. Rely on the order of the settings where the intervals are clear, not on the numbers.";

#[cfg(test)]
mod tests;

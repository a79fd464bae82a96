//! Settings for a mesh: each of a few choices is tried in a model of it against what is usual, seed by seed, one at a time.
//!
//! The choices are those that an operator has without new hardware: attempts of the MAC, RTS, congestion control, pacing. What is usual is what Linux
//! does: seven attempts, no RTS, CUBIC with delayed ACKs, no pacing, aggregates of up to 64 MPDUs. Beyond the [`limits`] nothing here was held
//! against theory or another simulator; nothing is answered there.

pub mod flows;
pub mod paths;
pub mod routes;

use crate::compare::{Line, Side, amount, compare, mean, words};
use crate::field::dumps::Dump;
use crate::field::ways::etx;
use crate::record::Record;
use crate::record::metrics::{DELAY, GOODPUT, JAIN};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Something that can be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Its name for people.
    pub name: &'static str,
    /// It as arguments of `--set`.
    pub sets: &'static [&'static str],
}

/// A question, and what can be answered to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// The question.
    pub name: &'static str,
    /// The usual choice.
    pub usual: Choice,
    /// The choices that are tried instead.
    pub others: &'static [Choice],
}

const fn choice(name: &'static str, sets: &'static [&'static str]) -> Choice {
    Choice { name, sets }
}

/// All that is tried.
pub const QUESTIONS: [Question; 4] = [
    Question {
        name: "retry limit",
        usual: choice("7 attempts", &["mac.short_retry_limit=7"]),
        others: &[
            choice("4 attempts", &["mac.short_retry_limit=4"]),
            choice("15 attempts", &["mac.short_retry_limit=15"]),
        ],
    },
    Question {
        name: "RTS threshold",
        usual: choice("no RTS", &["radio.rts_cts=false"]),
        others: &[
            choice("RTS before every frame", &["radio.rts_cts=true"]),
            choice("RTS before frames of more than 500 bytes", &["radio.rts_threshold=500 B"]),
        ],
    },
    Question {
        name: "congestion control",
        usual: choice("CUBIC", &["flow.transport=cubic+delack"]),
        others: &[
            choice("NewReno", &["flow.transport=newreno+delack"]),
            choice("NewReno with a small window", &["flow.transport=cwl"]),
        ],
    },
    Question {
        name: "pacing",
        usual: choice("no pacing", &["flow.transport=cubic+delack"]),
        others: &[
            choice("adaptive pacing (TCP-AP)", &["flow.transport=tcp-ap+delack"]),
            choice("quiet trains", &["flow.transport=quiet-train"]),
            choice(
                "trains that leave at once",
                &["flow.transport={ name = \"quiet-train\", interval = \"10 us\", train = 64 }"],
            ),
        ],
    },
];

/// Limits within which an answer is given.
pub mod limits {
    /// Nodes at most: cells of up to 50 stations were held against theory.
    pub const NODES: usize = 50;
    /// Flows at most.
    pub const FLOWS: usize = 16;
    /// Hops of a flow at most: the study of 802.11n ends there.
    pub const HOPS: u64 = 5;
    /// The fastest rate: the rates up to it were held against ns-3.
    pub const MCS: u8 = 7;
}

/// The arguments of `--set` with which a choice of `question` is tried; with `None` all is as usual.
pub fn sets(varied: Option<(&Question, &Choice)>) -> Vec<String> {
    let key = |set: &str| set.split('=').next().unwrap_or_default().to_owned();
    let chosen = varied.map(|(_, choice)| choice.sets).unwrap_or_default();
    let same = |set: &&str| chosen.iter().any(|other| key(other) == key(set));
    let mut all: Vec<String> = Vec::new();
    for question in &QUESTIONS {
        let replaced = varied.is_some_and(|(asked, _)| asked.name == question.name);
        for set in question.usual.sets.iter().filter(|set| !replaced && !same(set)) {
            if !all.iter().any(|known| known == set) {
                all.push((*set).to_owned());
            }
        }
    }
    all.extend(chosen.iter().map(|set| (*set).to_owned()));
    all
}

/// A mesh as the scenario has it.
#[derive(Clone, PartialEq, Debug)]
pub enum Mesh {
    /// Places in a map of this name.
    Places(String),
    /// Links in `links.csv`, and how many nodes there are.
    Links(usize),
    /// The same, with the links that routes use in `map.json`.
    Routed(usize),
}

impl Mesh {
    /// True if it is one of links.
    fn has_links(&self) -> bool {
        !matches!(self, Mesh::Places(_))
    }
}

/// The scenario in which choices are tried: bulk transfers between the ends of `flows`.
///
/// # Errors
/// A sentence on the part of it that is beyond the [`limits`].
pub fn scenario(mesh: &Mesh, flows: &[(usize, usize)], mcs: u8, seconds: u64) -> Result<String, String> {
    if mcs > limits::MCS {
        return Err(format!("MCS {mcs}: only rates up to MCS {} were held against another simulator", limits::MCS));
    }
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
        Mesh::Links(nodes) | Mesh::Routed(nodes) => {
            nodes_within(*nodes)?;
            if let Some((from, to)) = flows.iter().find(|(from, to)| from.max(to) >= nodes) {
                return Err(format!("--flow {from},{to}: the mesh has the nodes 0 to {}", nodes.saturating_sub(1)));
            }
            if *mesh == Mesh::Routed(*nodes) {
                text.push_str("file = \"map.json\"\nfirewall = true\n");
            } else {
                // Where they are only says how long a frame is under way.
                let places: Vec<String> = (0..*nodes).map(|node| format!("[\"{node} m\", \"0 m\"]")).collect();
                let _ = writeln!(text, "positions = [{}]", places.join(", "));
            }
        }
    }
    let _ = writeln!(text, "\n[radio]\nrate = \"MCS {mcs}\"\nqueue = 500");
    if mesh.has_links() {
        text.push_str("links = \"links.csv\"\n");
    }
    text.push_str("\n[mac]\nprofile = \"ht\"\n");
    for (from, to) in flows {
        let _ = write!(text, "\n[[flow]]\nfrom = {from}\nto = {to}\nsegment = 1448\n");
    }
    Ok(text)
}

/// A scenario of [`scenario`] with these settings, KEY=VALUE as of `--set`, written into it; a key of `flow` is set in every flow.
pub fn written(scenario: &str, sets: &[String]) -> String {
    let mut lines: Vec<String> = scenario.lines().map(str::to_owned).collect();
    for (key, text) in sets.iter().filter_map(|set| set.split_once('=')) {
        // What is no value of TOML is a text, as for `--set`.
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
        return Err(format!("{nodes} nodes: nothing is answered for more than {}", limits::NODES));
    }
    Ok(())
}

/// Checks that the flows of these records have no more hops than were looked into.
///
/// # Errors
/// A sentence if one has.
pub fn hops_within(records: &[Record]) -> Result<(), String> {
    let hops = records.iter().flat_map(|record| &record.flows).map(|flow| u64::from(flow.hops));
    match hops.max().unwrap_or(0) {
        most if most > limits::HOPS => {
            Err(format!("a flow has {most} hops: nothing is answered for more than {}", limits::HOPS))
        }
        _ => Ok(()),
    }
}

/// The metric of an ETX above which a link is left out: no route takes such a one if there is another.
const WORST_ETX: f64 = 2.0;
/// The ratio that links of a dump get, dB: enough for every rate here.
const GOOD_DB: f64 = 30.0;

/// Files of the scenario for a mesh that is known by a dump: `links.csv` for `radio.links`, and `map.json`, whose links are those that `ways` use, so that
/// routes follow them. Links are those with an ETX up to 2 and those of the ways; their strength is what the dump tells, or else they are taken to be good. A
/// direction that nobody told of is as good as the other.
pub fn files(dump: &Dump, ways: &[Vec<usize>]) -> (String, String) {
    let used: BTreeSet<(usize, usize)> =
        ways.iter().flat_map(|way| way.windows(2)).map(|hop| (hop[0].min(hop[1]), hop[0].max(hop[1]))).collect();
    let strength = |from: usize, to: usize| {
        dump.links.iter().find(|link| (link.from, link.to) == (from, to)).and_then(|link| link.snr_db)
    };
    let mut list = "from,to,snr_db\n".to_owned();
    for ((from, to), etx) in etx(dump) {
        if from < to && (etx <= WORST_ETX || used.contains(&(from, to))) {
            let (there, back) = (strength(from, to), strength(to, from));
            let _ = writeln!(list, "{from},{to},{}", there.or(back).unwrap_or(GOOD_DB));
            if back.is_some() && back != there {
                let _ = writeln!(list, "{to},{from},{}", back.unwrap_or(GOOD_DB));
            }
        }
    }
    // Where they are only says how long a frame is under way.
    let nodes: Vec<Value> =
        (0..dump.nodes.len()).map(|node| json!({"id": node.to_string(), "x_m": node, "y_m": 0})).collect();
    let links: Vec<Value> =
        used.iter().map(|(from, to)| json!({"source": from.to_string(), "target": to.to_string()})).collect();
    (list, format!("{}\n", json!({"nodes": nodes, "links": links})))
}

/// Result of a choice.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// The question.
    pub question: &'static str,
    /// The choice.
    pub choice: &'static str,
    /// The usual choice instead.
    pub usual: &'static str,
    /// Its place among the choices of its question by goodput; those that cannot be told from what is usual share its place.
    pub rank: usize,
    /// The comparisons with the usual choice.
    pub lines: Vec<Line>,
    /// Changes that it makes for each flow.
    pub flows: Vec<flows::Change>,
}

impl Answer {
    /// Runs of all, and those in which some flow starves with the choice and with what is usual.
    fn starved(&self) -> (usize, usize, usize) {
        let counts = self.lines.first().map(|line| line.counts).unwrap_or_default();
        (counts[1].runs, counts[1].starved_runs, counts[0].starved_runs)
    }

    /// True if every flow gets something in every run, where with what is usual one starves in some.
    pub fn feeds(&self) -> bool {
        let (runs, starved, usual) = self.starved();
        runs > 0 && starved == 0 && usual > 0
    }

    /// True if it carries more for sure and starves nobody.
    pub fn carries_more(&self) -> bool {
        self.lines.first().and_then(Line::better_for_all) == Some(Side::B)
    }
}

/// The choices that help, over all questions, in sentences; if none does, a sentence that says so.
pub fn helps(answers: &[Answer]) -> String {
    let amount = |answer: &Answer| answer.lines.first().and_then(amount).unwrap_or_default();
    let mut text = String::new();
    for answer in answers.iter().filter(|answer| answer.feeds()) {
        let (runs, _, usual) = answer.starved();
        let _ = writeln!(text, "- {}: nobody starves in {runs} runs (usual: somebody in {usual})", answer.choice);
    }
    for answer in answers.iter().filter(|answer| answer.carries_more()) {
        let _ =
            writeln!(text, "- {}: all flows together carry {} more, and nobody starves", answer.choice, amount(answer));
    }
    let tried = answers.iter().filter(|answer| answer.choice != answer.usual).count();
    if text.is_empty() {
        let starves = answers.iter().any(|answer| answer.starved().2 > 0);
        return match starves {
            true => format!(
                "Nothing that was tried helps: with each of the {tried} choices some flow still starves in some run. Other routes, other rates of the flows or \
                 another channel for some links are what is left.\n"
            ),
            false => {
                format!("Nothing to change: none of the {tried} choices carries more for sure, and nobody starves.\n")
            }
        };
    }
    text.push_str(
        "Each interval is right in 19 of 20 cases: of ten choices one may look better by chance. More --seeds tell.\n",
    );
    text
}

/// Metrics that are compared: an advice says no more of a choice.
const SAID: [&str; 3] = [GOODPUT, JAIN, DELAY];

/// The answers to one question, the best first: `tried` has each choice with its records. What is usual is among them, compared with itself.
///
/// # Errors
/// If runs cannot be compared.
pub fn answers(question: &Question, usual: &[Record], tried: &[(Choice, Vec<Record>)]) -> Result<Vec<Answer>, String> {
    let mut answers = Vec::new();
    let mut answer = |choice: &Choice, records: &[Record]| -> Result<(), String> {
        let mut lines = compare(usual, records)?;
        lines.retain(|line| SAID.contains(&line.metric));
        answers.push(Answer {
            question: question.name,
            choice: choice.name,
            usual: question.usual.name,
            rank: 0,
            lines,
            flows: flows::changes(usual, records),
        });
        Ok(())
    };
    answer(&question.usual, usual)?;
    tried.iter().try_for_each(|(choice, records)| answer(choice, records))?;
    let goodput =
        |answer: &Answer| answer.lines.first().map_or((None, 0.0), |line| (line.better_for_all(), line.difference));
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

/// An answer as people read it.
pub fn told(answer: &Answer) -> String {
    if answer.choice == answer.usual {
        let means: Vec<String> = answer.lines.iter().map(mean).collect();
        return format!("{}. {}, which is usual: {}\n", answer.rank, answer.usual, means.join(", "));
    }
    let verdict = match answer.lines.first().and_then(Line::better_for_all) {
        Some(Side::B) => "carries more than",
        Some(Side::A) => "carries less than",
        None => "cannot be told by goodput from",
    };
    let mut text = format!("{}. {} {verdict} {}\n", answer.rank, answer.choice, answer.usual);
    for line in &answer.lines {
        let _ = writeln!(text, "   - {}", words(line, [answer.usual, answer.choice]));
    }
    let starves = |change: &&flows::Change| change.starved_runs + change.usual_starved_runs > 0;
    for change in answer.flows.iter().filter(starves) {
        let _ = writeln!(text, "   - {}", flows::change_words(change));
    }
    text
}

/// Note on what an advice leaves out.
pub const LEFT_OUT: &str = "Of the mesh only who hears whom is in this model. Every link has one rate; rates are not adapted, links do not fade, loss comes from \
    collisions alone, queues are drop-tail, everything is best effort, other networks are silent. A flow that starves here is in danger: where it was \
    measured (docs/field.md), FQ-CoDel and rates that adapt shared far more equally than this model. Rely on the order where intervals are clear, not \
    on the numbers.";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::dumps::{Heard, Metric};
    use crate::field::ways::way;

    #[test]
    fn one_thing_is_changed_at_a_time() {
        let usual = sets(None);
        assert_eq!(usual, ["mac.short_retry_limit=7", "radio.rts_cts=false", "flow.transport=cubic+delack"]);
        for question in &QUESTIONS {
            for choice in question.others {
                let sets = sets(Some((question, choice)));
                assert_eq!(sets.len(), usual.len(), "{sets:?}");
                let changed: Vec<&String> = sets.iter().filter(|set| !usual.contains(set)).collect();
                assert_eq!(changed, choice.sets, "{}", choice.name);
            }
        }
    }

    fn records(goodputs: [f64; 4], hops: u64) -> Vec<Record> {
        let record = |(seed, goodput)| {
            crate::record::record(json!({
                "seed": seed, "point": {}, "fingerprint": "f", "aggregate_goodput_bps": goodput,
                "flows": [{"transport": "x", "hops": hops, "delay_p95_s": 0.1}],
            }))
        };
        (1..).zip(goodputs).map(record).collect()
    }

    #[test]
    fn what_cannot_be_told_apart_shares_a_place() {
        let usual = records([100.0, 300.0, 200.0, 500.0], 2);
        let tried = [
            (choice("worse", &[]), records([90.0, 289.0, 191.0, 490.0], 2)),
            (choice("same", &[]), records([110.0, 290.0, 210.0, 490.0], 2)),
            (choice("better", &[]), records([120.0, 321.0, 219.0, 520.0], 2)),
            (choice("far worse", &[]), records([10.0, 209.0, 111.0, 410.0], 2)),
        ];
        let answers = answers(&QUESTIONS[0], &usual, &tried).unwrap();
        let ranks: Vec<(&str, usize)> = answers.iter().map(|answer| (answer.choice, answer.rank)).collect();
        assert_eq!(ranks, [("better", 1), ("7 attempts", 2), ("same", 2), ("worse", 4), ("far worse", 5)]);
        assert_eq!(answers[1].lines[0].difference, 0.0);
        assert_eq!(
            told(&answers[1]),
            "2. 7 attempts, which is usual: goodput 0.275 kbit/s, 95th percentile of the delay 100 ms\n"
        );
        assert!(told(&answers[0]).starts_with("1. better carries more than 7 attempts\n   - better is faster by"));
        assert!(told(&answers[2]).contains("cannot be told"));
    }

    #[test]
    fn a_scenario_is_written_with_its_settings() {
        let text = scenario(&Mesh::Links(3), &[(0, 1), (0, 2)], 3, 10).unwrap();
        let sets = ["duration=5 s", "radio.queue=9", "flow.transport=cubic+delack", "routing.protocol=aodv"]
            .map(str::to_owned);
        let table: toml::Table = written(&text, &sets).parse().unwrap();
        let flow = |place: usize| table["flow"][place]["transport"].as_str();
        assert_eq!((table["duration"].as_str(), table["radio"]["queue"].as_integer()), (Some("5 s"), Some(9)));
        assert_eq!(
            (flow(0), flow(1), table["routing"]["protocol"].as_str()),
            (Some("cubic+delack"), Some("cubic+delack"), Some("aodv"))
        );
    }

    /// Runs of two flows with these goodputs; a flow of zero starved.
    fn pairs(goodputs: [[f64; 2]; 4]) -> Vec<Record> {
        let flow = |goodput: f64| json!({"transport": "x", "hops": 2, "goodput_bps": goodput, "delivered_bytes": goodput as u64, "longest_gap_s": 0.1});
        let record = |(seed, goodputs): (i32, [f64; 2])| {
            crate::record::record(json!({
                "seed": seed, "point": {}, "fingerprint": "f", "duration_s": 12.0, "warmup_s": 2.0,
                "flows": goodputs.map(flow), "aggregate_goodput_bps": goodputs.iter().sum::<f64>(),
            }))
        };
        (1..).zip(goodputs).map(record).collect()
    }

    #[test]
    fn what_helps_starves_nobody_and_nothing_may_help() {
        let usual = pairs([[900.0, 0.0], [901.0, 0.0], [902.0, 50.0], [903.0, 0.0]]);
        let worse = pairs([[990.0, 0.0], [991.0, 0.0], [992.0, 0.0], [993.0, 0.0]]);
        let fed = pairs([[300.0, 300.0], [301.0, 300.0], [302.0, 300.0], [303.0, 300.0]]);
        let of = |tried: &[(Choice, Vec<Record>)]| answers(&QUESTIONS[0], &usual, tried).unwrap();
        let told = helps(&of(&[(choice("greedy", &[]), worse.clone())]));
        assert!(told.starts_with("Nothing that was tried helps: with each of the 1 choices"), "{told}");
        let both = of(&[(choice("greedy", &[]), worse), (choice("fair", &[]), fed.clone())]);
        let told = helps(&both);
        assert!(told.starts_with("- fair: nobody starves in 4 runs (usual: somebody in 3)\nEach interval"), "{told}");
        assert!(super::told(both.iter().find(|answer| answer.choice == "fair").unwrap()).contains("flow 1: +"));
        // Nobody starves and nothing is clear.
        let same = answers(&QUESTIONS[0], &fed, &[(choice("same", &[]), fed.clone())]).unwrap();
        assert!(helps(&same).starts_with("Nothing to change"), "{}", helps(&same));
    }

    #[test]
    fn beyond_what_was_looked_into_nothing_is_answered() {
        let mesh = Mesh::Links(3);
        assert!(scenario(&mesh, &[(0, 2)], 7, 10).is_ok());
        for (problem, told) in [
            (scenario(&mesh, &[(0, 2)], 8, 10).unwrap_err(), "MCS 8"),
            (scenario(&mesh, &[], 7, 10).unwrap_err(), "--flow"),
            (scenario(&Mesh::Links(51), &[(0, 2)], 7, 10).unwrap_err(), "51 nodes"),
            (hops_within(&records([1.0; 4], 6)).unwrap_err(), "6 hops"),
        ] {
            assert!(problem.contains(told), "{problem}");
        }
        assert!(hops_within(&records([1.0; 4], 5)).is_ok());
    }

    #[test]
    fn a_dump_gives_links_that_are_good_enough_and_those_of_its_routes() {
        let heard = |from, to, delivery| Heard { from, to, delivery: Some(delivery), ..Heard::default() };
        let nodes = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
        // ETX 1.25 by what two tell, 4 by what one does, and no way to the last but by such a link.
        let links = vec![heard(0, 1, 1.0), heard(1, 0, 0.8), heard(1, 2, 0.5), heard(0, 2, 0.5)];
        let dump = Dump { nodes, links, metric: Metric::Etx, ..Dump::default() };
        let found = etx(&dump);
        assert_eq!((found[&(0, 1)], found[&(1, 0)], found[&(2, 1)]), (1.25, 1.25, 4.0));
        let (list, map) = files(&dump, &[way(&dump, 1, 0).unwrap()]);
        assert_eq!(list, "from,to,snr_db\n0,1,30\n");
        assert!(map.contains(r#""links":[{"source":"0","target":"1"}]"#), "{map}");
        let (list, _) = files(&dump, &[way(&dump, 0, 2).unwrap()]);
        assert_eq!(list, "from,to,snr_db\n0,1,30\n0,2,30\n");
    }
}

//! Counts the runs of several groups and the flows that were starved in them, and reports them in
//! sentences. Every summary for people begins with these sentences.

use super::starvation::{Silence, Starved};
use super::{FlowRecord, Record};
use crate::words::{part, within_part};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Colours a line that reports starvation black on yellow. This pair has the greatest contrast in
/// brightness on every terminal, also for readers with colour blindness.
pub fn coloured(line: &str, is_coloured: bool) -> String {
    console::Style::new().force_styling(is_coloured).black().on_yellow().apply_to(line).to_string()
}

/// Counts of runs and of starved flows in several groups, such as the points of a sweep or the
/// sides of a comparison.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tally {
    groups: Vec<Group>,
    /// Shortest and longest limit above which a flow counts as starved, over all runs, seconds.
    long: Option<(f64, f64)>,
    /// Index of each group, by its part and its name.
    places: BTreeMap<Arc<str>, BTreeMap<Arc<str>, usize>>,
}

/// Counts of one group.
#[derive(Clone, PartialEq, Debug, Default)]
struct Group {
    /// Part of a campaign of several scenarios; empty without parts. Flows with the same number in
    /// different parts have nothing in common, so the sentences count each part alone.
    part: Arc<str>,
    /// Name for people; empty if this is the only group of its part.
    name: Arc<str>,
    runs: usize,
    starved_runs: usize,
    runs_without_path: usize,
    /// Flows of the group, by their numbers.
    flows: Vec<Flow>,
}

/// Counts of a flow in a group.
#[derive(Clone, PartialEq, Debug, Default)]
struct Flow {
    /// Name of the flow, if it has one.
    name: Option<String>,
    /// Ends of the flow, if they are the same in all runs.
    ends: Option<(u16, u16)>,
    /// Runs that have this flow. Runs of one group may have different numbers of flows.
    runs: usize,
    /// Runs in which other flows starved it.
    starved: Silences,
    /// Runs in which it was silent because it had no path.
    without_path: Silences,
}

/// A flow of a run, as it is counted.
#[derive(Clone, PartialEq, Debug)]
pub struct Tallied {
    /// Name of the flow, if it has one.
    pub name: Option<String>,
    /// Sending and receiving node.
    pub ends: (u16, u16),
    /// Silence of the flow, if it was longer than a flow may be silent.
    pub silence: Option<Silence>,
}

/// Runs in which a flow was silent, for one reason.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Silences {
    /// Runs in which the flow delivered nothing.
    nothing: usize,
    /// Other runs in which the flow delivered nothing for a long time.
    gaps: usize,
    /// Longest of these gaps, seconds.
    longest: f64,
}

impl Silences {
    fn add(&mut self, silent: Starved) {
        match silent {
            Starved::Nothing => self.nothing += 1,
            Starved::Gap(gap) => {
                self.gaps += 1;
                self.longest = self.longest.max(gap);
            }
        }
    }

    fn runs(&self) -> usize {
        self.nothing + self.gaps
    }
}

/// Selects one of the two reasons for silence.
type Of = fn(&Flow) -> &Silences;

/// Largest number of groups or flows that are named: the flows with the most silent runs, and the
/// groups with the largest share of silent runs.
const NAMED: usize = 6;

impl Tally {
    /// Counts another run in the group of its point.
    pub fn add(&mut self, record: &Record) {
        let flow = |flow: &FlowRecord| Tallied {
            name: flow.name.clone(),
            ends: (flow.from, flow.to),
            silence: record.silence(flow),
        };
        let group = (part(&record.point), within_part(&record.point));
        self.count((group.0, &group.1), record.starved_after(), record.flows.iter().map(flow));
    }

    /// Counts another run of the group with this part and this name. Its flows are starved by a
    /// silence of more than `long` seconds.
    pub fn count(&mut self, group: (&str, &str), long: f64, flows: impl ExactSizeIterator<Item = Tallied>) {
        let group = self.group(group);
        group.runs += 1;
        if group.flows.len() < flows.len() {
            group.flows.reserve_exact(flows.len() - group.flows.len());
            group.flows.resize_with(flows.len(), Flow::default);
        }
        let (mut any_starved, mut any_without_path) = (false, false);
        for (flow, known) in flows.zip(&mut group.flows) {
            let ends = Some(flow.ends);
            known.name = flow.name;
            known.ends = ends.filter(|_| known.runs == 0 || known.ends == ends);
            known.runs += 1;
            match flow.silence {
                Some(Silence::Starved(silent)) => {
                    known.starved.add(silent);
                    any_starved = true;
                }
                Some(Silence::NoPath(silent)) => {
                    known.without_path.add(silent);
                    any_without_path = true;
                }
                None => {}
            }
        }
        group.starved_runs += usize::from(any_starved);
        group.runs_without_path += usize::from(any_without_path);
        let (shortest, longest) = self.long.unwrap_or((long, long));
        self.long = Some((shortest.min(long), longest.max(long)));
    }

    /// The group of this part and this name, which is added if it is not there.
    fn group(&mut self, (part, name): (&str, &str)) -> &mut Group {
        let place = match self.places.get(part).and_then(|names| names.get(name)) {
            Some(place) => *place,
            None => {
                let (part, name): (Arc<str>, Arc<str>) = (part.into(), name.into());
                self.places.entry(Arc::clone(&part)).or_default().insert(Arc::clone(&name), self.groups.len());
                self.groups.push(Group { part, name, ..Group::default() });
                self.groups.len() - 1
            }
        };
        &mut self.groups[place]
    }

    /// Counts runs, grouped by their points.
    pub fn of(records: &[Record]) -> Tally {
        let mut tally = Tally::default();
        records.iter().for_each(|record| tally.add(record));
        tally
    }

    /// Number of runs counted.
    pub fn runs(&self) -> usize {
        self.groups.iter().map(|group| group.runs).sum()
    }

    /// Number of runs in which some flow was starved.
    pub fn starved_runs(&self) -> usize {
        self.groups.iter().map(|group| group.starved_runs).sum()
    }

    /// Sentences with which a summary begins; empty if no flow was silent. Sentences about flows
    /// that others starve come before those about flows without a path.
    pub fn sentences(&self) -> Vec<String> {
        let without_path = self.groups.iter().map(|group| group.runs_without_path).sum();
        let mut sentences = Vec::new();
        if let Some(which) = self.which("was starved", self.starved_runs(), |flow| &flow.starved) {
            sentences.push(format!("STARVED: {which}. {}", self.definition()));
            sentences.extend(self.of_flows(|flow| &flow.starved, ""));
        }
        if let Some(which) = self.which("had no path for long", without_path, |flow| &flow.without_path) {
            sentences.push(format!("NO PATH: {which}; that is not starvation by others."));
            sentences.extend(self.of_flows(|flow| &flow.without_path, " because it had no path"));
        }
        sentences
    }

    /// Definition of a starved flow as a sentence.
    fn definition(&self) -> String {
        let long = match self.long {
            Some((shortest, longest)) if shortest == longest => format!("{} s", (10.0 * longest).round() / 10.0),
            _ => "`starved_after`".to_owned(),
        };
        format!("A starved flow has a path and delivers nothing, or nothing for more than {long}.")
    }

    /// Phrase such as "a flow was starved in 5 of 6 runs (8 of 12 flows in all runs)"; `None` if there
    /// were no such runs.
    fn which(&self, what: &str, count: usize, of: Of) -> Option<String> {
        let runs = match (count, self.runs()) {
            (0, _) => return None,
            (1, 1) => String::new(),
            (count, runs) if count == runs => format!(" in every one of {runs} runs"),
            (count, runs) => format!(" in {count} of {runs} runs"),
        };
        let all = || self.groups.iter().flat_map(|group| &group.flows);
        let flows: usize = all().map(|flow| flow.runs).sum();
        let silent: usize = all().map(|flow| of(flow).runs()).sum();
        // With one flow in each run both counts say the same.
        let flows = match self.groups.iter().map(|group| group.flows.len()).max() {
            None | Some(0 | 1) => String::new(),
            _ => format!(" ({silent} of {flows} flows{})", if self.runs() > 1 { " in all runs" } else { "" }),
        };
        Some(format!("a flow {what}{runs}{flows}"))
    }

    /// Returns a sentence for each flow that was silent for this reason, the flow with the most
    /// silent runs first. With several parts, the worst flow of each part stands before the second
    /// flow of any part, so that one part does not hide the others.
    fn of_flows(&self, of: Of, why: &str) -> Vec<String> {
        let silent = |id: &(&str, usize)| self.of_id(*id).map(|(_, flow)| of(flow).runs()).sum();
        let mut ids: Vec<((&str, usize), usize)> = self.ids().into_iter().map(|id| (id, silent(&id))).collect();
        ids.retain(|(_, silent)| *silent > 0);
        ids.sort_by_key(|((_, number), silent)| (std::cmp::Reverse(*silent), *number));
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        let mut rank = |part| {
            let rank = seen.entry(part).or_default();
            *rank += 1;
            *rank
        };
        let mut ranked: Vec<_> = ids.iter().map(|(id, _)| (rank(id.0), *id)).collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let mut sentences: Vec<String> = ranked.iter().take(NAMED).map(|(_, id)| self.of_flow(*id, of, why)).collect();
        if ids.len() > NAMED {
            let were = if why.is_empty() { "were starved" } else { "had no path" };
            let how_many = if self.places.len() > 1 { "" } else { " in fewer runs or as many" };
            sentences.push(format!("{} more flows {were}{how_many}.", ids.len() - NAMED));
        }
        sentences
    }

    /// Returns all flows, each as its part and its number.
    fn ids(&self) -> BTreeSet<(&str, usize)> {
        self.groups.iter().flat_map(|group| (0..group.flows.len()).map(|number| (&*group.part, number))).collect()
    }

    /// Returns the counts of a flow with their groups.
    fn of_id(&self, (part, number): (&str, usize)) -> impl Iterator<Item = (&Group, &Flow)> {
        let of = move |group: &&Group| *group.part == *part;
        self.groups.iter().filter(of).filter_map(move |group| Some((group, group.flows.get(number)?)))
    }

    /// Sentence about the silence of a flow.
    fn of_flow(&self, id: (&str, usize), of: Of, why: &str) -> String {
        let all: Vec<(&Group, &Flow)> = self.of_id(id).collect();
        let runs: usize = all.iter().map(|(_, flow)| flow.runs).sum();
        let ends = match all.first().and_then(|(_, flow)| flow.ends) {
            Some((from, to)) if all.iter().all(|(_, flow)| flow.ends == Some((from, to))) => {
                format!(" (node {from} to node {to})")
            }
            // Of a point: nodes that move, or flows at random.
            _ if all.iter().any(|(_, flow)| flow.ends.is_none()) => " (its nodes differ between runs)".to_owned(),
            _ => String::new(),
        };
        let names = |(_, flow): &(&Group, &Flow)| flow.name.clone();
        let name = all.iter().find_map(names).unwrap_or_else(|| format!("flow {}", id.1));
        let part = if self.places.len() > 1 { format!("part {}: ", id.0) } else { String::new() };
        let mut silent = Silences::default();
        for (_, flow) in &all {
            let Silences { nothing, gaps, longest } = *of(flow);
            (silent.nothing, silent.gaps) = (silent.nothing + nothing, silent.gaps + gaps);
            silent.longest = silent.longest.max(longest);
        }
        let Silences { nothing, gaps, longest } = silent;
        let in_runs = |count: usize| match (count, runs) {
            (1, 1) => String::new(),
            _ => format!(" in {count} of {runs} runs"),
        };
        let mut parts = Vec::new();
        if nothing > 0 {
            parts.push(format!("delivered nothing{}", in_runs(nothing)));
        }
        if gaps > 0 {
            let in_runs = if nothing > 0 { format!(" in {gaps} more") } else { in_runs(gaps) };
            parts.push(format!("was silent for up to {longest:.1} s{in_runs}"));
        }
        let mut places: Vec<&(&Group, &Flow)> =
            all.iter().filter(|(group, flow)| of(flow).runs() > 0 && !group.name.is_empty()).collect();
        let found = places.len();
        if found > NAMED {
            // The groups with the largest share of silent runs are named, in the order of the
            // groups.
            let mut by_share: Vec<usize> = (0..found).collect();
            let share = |place: &usize| of(places[*place].1).runs() as f64 / places[*place].1.runs as f64;
            by_share.sort_by(|a, b| share(b).total_cmp(&share(a)));
            by_share.truncate(NAMED);
            let mut number = 0..;
            places.retain(|_| number.next().is_some_and(|number| by_share.contains(&number)));
        }
        let several = self.places.get(id.0).is_some_and(|names| names.len() > 1);
        let mut told: Vec<String> = places
            .iter()
            .filter(|_| several)
            .map(|(group, flow)| format!("{} {} of {}", group.name, of(flow).runs(), flow.runs))
            .collect();
        if several && found > told.len() {
            told.push(format!("and {} more", found - told.len()));
        }
        let all = if parts.len() > 1 { "; together" } else { ":" };
        let told = if told.is_empty() { String::new() } else { format!("{all} {}", told.join(", ")) };
        format!("{part}{name}{ends} {}{why}{told}.", parts.join(" and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn flow(delivered: u64, gap: f64) -> Value {
        json!({"from": 0, "to": 6, "delivered_bytes": delivered, "longest_gap_s": gap})
    }

    fn record(transport: &str, seed: u64, flows: &[Value]) -> Record {
        let point = json!({"flow.transport": transport});
        crate::record::record(
            json!({"seed": seed, "point": point, "duration_s": 100.0, "warmup_s": 20.0, "flows": flows}),
        )
    }

    #[test]
    fn the_sentences_name_runs_flows_and_places() {
        let (dead, well, late) = (flow(0, 80.0), flow(9, 1.0), flow(9, 20.0));
        let runs = |transport, flows: [&Value; 2]| {
            (1..=3).map(move |seed| record(transport, seed, &flows.map(Clone::clone))).collect::<Vec<_>>()
        };
        assert_eq!(Tally::of(&runs("cubic", [&well, &well])).sentences(), [""; 0]);
        let mut all = [runs("cubic", [&dead, &well]), runs("quiet-train", [&dead, &late])].concat();
        all[0] = record("cubic", 1, &[well.clone(), well.clone()]);
        let tally = Tally::of(&all);
        assert_eq!((tally.runs(), tally.starved_runs()), (6, 5));
        assert_eq!(
            tally.sentences(),
            [
                "STARVED: a flow was starved in 5 of 6 runs (8 of 12 flows in all runs). A starved flow has a path and delivers nothing, or nothing for more than 8 s.",
                "flow 0 (node 0 to node 6) delivered nothing in 5 of 6 runs: cubic 2 of 3, quiet-train 3 of 3.",
                "flow 1 (node 0 to node 6) was silent for up to 20.0 s in 3 of 6 runs: quiet-train 3 of 3.",
            ]
        );
        let one = Tally::of(&all[5..]);
        assert_eq!(
            one.sentences()[0],
            "STARVED: a flow was starved (2 of 2 flows). A starved flow has a path and delivers nothing, or nothing for more than 8 s."
        );
        assert_eq!(one.sentences()[1], "flow 0 (node 0 to node 6) delivered nothing.");
    }

    #[test]
    fn only_the_flows_that_a_run_has_are_counted() {
        // A side of a comparison with runs of 1, 12 and 8 flows. Its last flows are starved.
        let (well, late) = (flow(9, 1.0), flow(9, 20.0));
        let run = |seed, flows: usize, starved: usize| {
            let of = |number| if number + starved < flows { well.clone() } else { late.clone() };
            record("cubic", seed, &(0..flows).map(of).collect::<Vec<_>>())
        };
        let mut tally = Tally::default();
        for run in [run(1, 1, 0), run(1, 12, 2), run(1, 8, 1), run(2, 1, 0), run(2, 12, 1), run(2, 8, 0)] {
            tally.add(&run);
        }
        let sentences = tally.sentences();
        // 2 + 1 + 1 flows of 2 * (1 + 12 + 8).
        assert!(sentences[0].contains("in 3 of 6 runs (4 of 42 flows in all runs)"), "{sentences:?}");
        assert_eq!(
            sentences[1..],
            [
                "flow 11 (node 0 to node 6) was silent for up to 20.0 s in 2 of 2 runs.",
                "flow 7 (node 0 to node 6) was silent for up to 20.0 s in 1 of 4 runs.",
                "flow 10 (node 0 to node 6) was silent for up to 20.0 s in 1 of 2 runs.",
            ]
        );
    }

    #[test]
    fn flows_of_different_parts_are_told_apart() {
        let of_part = |part: &str, transport: &str, seed: u64, ends: (u16, u16), gap: f64| {
            let mut record = record(transport, seed, &[flow(9, gap)]);
            record.point.insert("part".to_owned(), json!(part));
            (record.flows[0].from, record.flows[0].to) = ends;
            record
        };
        let mut all = Vec::new();
        for seed in 1..=2 {
            all.push(of_part("grid", "cubic", seed, (0, 6), 20.0));
            all.push(of_part("grid", "newreno", seed, (0, 6), if seed == 1 { 30.0 } else { 1.0 }));
            all.push(of_part("random mesh", "cubic", seed, (3, 40 + seed as u16), 40.0));
        }
        let expected = [
            "part grid: flow 0 (node 0 to node 6) was silent for up to 30.0 s in 3 of 4 runs: cubic 2 of 2, newreno 1 of 2.",
            "part random mesh: flow 0 (its nodes differ between runs) was silent for up to 40.0 s in 2 of 2 runs.",
        ];
        assert_eq!(Tally::of(&all).sentences()[1..], expected);
        all.retain(|record| record.point["part"] == "grid");
        assert!(Tally::of(&all).sentences()[1].starts_with("flow 0 "), "there is one part");
    }

    #[test]
    fn no_part_hides_the_others() {
        let run = |part: &str, seed, flows| {
            let mut record = record("cubic", seed, &vec![flow(9, 20.0); flows]);
            record.point.insert("part".to_owned(), json!(part));
            record
        };
        // Each of the eight flows of the grid is starved in two runs, that of the chain in one.
        let told = Tally::of(&[run("grid", 1, 8), run("grid", 2, 8), run("chain", 1, 1)]).sentences();
        let starts = |sentence: &str, start: &str| assert!(sentence.starts_with(start), "{told:?}");
        starts(&told[1], "part grid: flow 0 ");
        starts(&told[2], "part chain: flow 0 ");
        starts(&told[3], "part grid: flow 1 ");
        assert_eq!(told[7..], ["3 more flows were starved."]);
    }

    #[test]
    fn of_many_points_the_worst_are_named() {
        let mut all = Vec::new();
        for point in 0..9 {
            for seed in 1..=3 {
                let is_dead = seed <= if point == 8 { 3 } else { 1 };
                all.push(record(&format!("t{point}"), seed, &[flow(u64::from(!is_dead), 1.0)]));
            }
        }
        let told = Tally::of(&all).sentences();
        assert!(
            told[1].ends_with("t0 1 of 3, t1 1 of 3, t2 1 of 3, t3 1 of 3, t4 1 of 3, t8 3 of 3, and 3 more."),
            "{told:?}"
        );
    }

    #[test]
    fn a_flow_without_a_path_is_told_apart_from_one_that_others_starve() {
        let parted = json!({
            "from": 0, "to": 6, "delivered_bytes": 9, "longest_gap_s": 40.0, "longest_gap_with_path_s": 2.0,
            "time_without_path_s": 38.0,
        });
        let all: Vec<Record> = (1..=3).map(|seed| record("cubic", seed, &[parted.clone(), flow(9, 20.0)])).collect();
        assert_eq!(
            Tally::of(&all).sentences(),
            [
                "STARVED: a flow was starved in every one of 3 runs (3 of 6 flows in all runs). A starved flow has a path and delivers nothing, or nothing for more than 8 s.",
                "flow 1 (node 0 to node 6) was silent for up to 20.0 s in 3 of 3 runs.",
                "NO PATH: a flow had no path for long in every one of 3 runs (3 of 6 flows in all runs); that is not starvation by others.",
                "flow 0 (node 0 to node 6) was silent for up to 40.0 s in 3 of 3 runs because it had no path.",
            ]
        );
        let alone = record("cubic", 1, &[parted]);
        let tally = Tally::of(&[alone]);
        assert_eq!((tally.starved_runs(), tally.sentences().len()), (0, 2));
    }
}

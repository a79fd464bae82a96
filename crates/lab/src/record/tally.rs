//! Runs of several groups and who starved in them, in sentences. Every summary for people says them first.

use super::Record;
use super::starvation::{Starved, of_record};
use crate::words::told;
use std::collections::BTreeMap;

/// A line that says who starved, black on yellow: on every terminal as different in light as colours can be, whatever colours its reader sees.
pub fn coloured(line: &str, is_coloured: bool) -> String {
    console::Style::new().force_styling(is_coloured).black().on_yellow().apply_to(line).to_string()
}

/// Runs of several groups, such as the points of a sweep or the sides of a comparison, and who starved in them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Tally {
    groups: Vec<Group>,
}

/// The runs of one group.
#[derive(Clone, PartialEq, Debug, Default)]
struct Group {
    /// Its name for people; empty if it is the only one.
    name: String,
    runs: usize,
    starved_runs: usize,
    flows: BTreeMap<usize, Flow>,
}

/// A flow of a group.
#[derive(Clone, PartialEq, Debug, Default)]
struct Flow {
    /// Its name, if it has one.
    name: Option<String>,
    /// Its ends, if they are the same in all runs.
    ends: Option<(u16, u16)>,
    /// Runs in which it delivered nothing.
    nothing: usize,
    /// Other runs in which it delivered nothing for long.
    gaps: usize,
    /// The longest of those, seconds.
    longest: f64,
}

/// Groups and flows that are named, the worst ones.
const NAMED: usize = 6;

impl Tally {
    /// Counts another run of the group that people call so.
    pub fn add(&mut self, name: &str, record: &Record) {
        let place = self.groups.iter().position(|group| group.name == name).unwrap_or_else(|| {
            self.groups.push(Group { name: name.to_owned(), ..Group::default() });
            self.groups.len() - 1
        });
        let group = &mut self.groups[place];
        let is_first = group.runs == 0;
        group.runs += 1;
        for (id, flow) in record.flows.iter().enumerate() {
            let ends = Some((flow.from, flow.to));
            let known = group.flows.entry(id).or_default();
            known.name = flow.name.clone();
            known.ends = ends.filter(|_| is_first || known.ends == ends);
        }
        let starved = of_record(record);
        group.starved_runs += usize::from(!starved.is_empty());
        for (id, starved) in starved {
            let flow = group.flows.entry(id).or_default();
            match starved {
                Starved::Nothing => flow.nothing += 1,
                Starved::Gap(gap) => {
                    flow.gaps += 1;
                    flow.longest = flow.longest.max(gap);
                }
            }
        }
    }

    /// Counts runs by the words of their points.
    pub fn of(records: &[Record]) -> Tally {
        let mut tally = Tally::default();
        records.iter().for_each(|record| tally.add(&told(&record.point), record));
        tally
    }

    /// Runs that were counted.
    pub fn runs(&self) -> usize {
        self.groups.iter().map(|group| group.runs).sum()
    }

    /// Runs in which some flow was starved.
    pub fn starved_runs(&self) -> usize {
        self.groups.iter().map(|group| group.starved_runs).sum()
    }

    /// Sentences to be said first; nothing if nobody was starved. The first says how many runs, the others which flows, where.
    pub fn sentences(&self) -> Vec<String> {
        let starved = self.starved_runs();
        if starved == 0 {
            return Vec::new();
        }
        let runs = self.runs();
        let which = match (starved, runs) {
            (1, 1) => "a flow was starved".to_owned(),
            _ if starved == runs => format!("a flow was starved in every one of {runs} runs"),
            _ => format!("a flow was starved in {starved} of {runs} runs"),
        };
        let mut sentences = vec![format!("STARVED: {which}; nothing that starves a flow is called best.")];
        let mut ids: Vec<(usize, usize)> = self.ids().map(|id| (id, self.starved_runs_of_flow(id))).collect();
        ids.retain(|(_, starved)| *starved > 0);
        ids.sort_by_key(|(id, starved)| (std::cmp::Reverse(*starved), *id));
        sentences.extend(ids.iter().take(NAMED).map(|(id, _)| self.of_flow(*id)));
        if ids.len() > NAMED {
            sentences.push(format!("{} more flows were starved in fewer runs or as many.", ids.len() - NAMED));
        }
        sentences
    }

    /// The numbers of all flows.
    fn ids(&self) -> impl Iterator<Item = usize> {
        0..self.groups.iter().filter_map(|group| group.flows.keys().last()).max().map_or(0, |last| last + 1)
    }

    fn starved_runs_of_flow(&self, id: usize) -> usize {
        self.groups.iter().filter_map(|group| group.flows.get(&id)).map(|flow| flow.nothing + flow.gaps).sum()
    }

    /// Starvation of a flow in words.
    fn of_flow(&self, id: usize) -> String {
        let of: Vec<(&Group, &Flow)> =
            self.groups.iter().filter_map(|group| Some((group, group.flows.get(&id)?))).collect();
        let runs: usize = of.iter().map(|(group, _)| group.runs).sum();
        let ends = match of.first().and_then(|(_, flow)| flow.ends) {
            Some((from, to)) if of.iter().all(|(_, flow)| flow.ends == Some((from, to))) => {
                format!(" (node {from} to node {to})")
            }
            _ => String::new(),
        };
        let names = |(_, flow): &(&Group, &Flow)| flow.name.clone();
        let name = of.iter().find_map(names).unwrap_or_else(|| format!("flow {id}"));
        let (nothing, gaps) =
            of.iter().fold((0, 0), |(nothing, gaps), (_, flow)| (nothing + flow.nothing, gaps + flow.gaps));
        let longest = of.iter().map(|(_, flow)| flow.longest).fold(0.0, f64::max);
        let in_runs = |count: usize| match (count, runs) {
            (1, 1) => String::new(),
            _ => format!(" in {count} of {runs} runs"),
        };
        let mut befell = Vec::new();
        if nothing > 0 {
            befell.push(format!("delivered nothing{}", in_runs(nothing)));
        }
        if gaps > 0 {
            befell.push(format!("was silent for up to {longest:.1} s{}", in_runs(gaps)));
        }
        let mut places: Vec<(&Group, usize)> = of
            .iter()
            .filter(|(group, flow)| flow.nothing + flow.gaps > 0 && !group.name.is_empty())
            .map(|(group, flow)| (*group, flow.nothing + flow.gaps))
            .collect();
        let found = places.len();
        if found > NAMED {
            // The worst, in the order in which they come.
            let mut by_share: Vec<usize> = (0..found).collect();
            let share = |place: &usize| places[*place].1 as f64 / places[*place].0.runs as f64;
            by_share.sort_by(|a, b| share(b).total_cmp(&share(a)));
            by_share.truncate(NAMED);
            let mut number = 0..;
            places.retain(|_| number.next().is_some_and(|number| by_share.contains(&number)));
        }
        let several = self.groups.len() > 1;
        let mut told: Vec<String> = places
            .iter()
            .filter(|_| several)
            .map(|(group, starved)| format!("{} {starved} of {}", group.name, group.runs))
            .collect();
        if several && found > told.len() {
            told.push(format!("and {} more", found - told.len()));
        }
        let told = if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) };
        format!("{name}{ends} {}{told}.", befell.join(" and "))
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
                "STARVED: a flow was starved in 5 of 6 runs; nothing that starves a flow is called best.",
                "flow 0 (node 0 to node 6) delivered nothing in 5 of 6 runs: cubic 2 of 3, quiet-train 3 of 3.",
                "flow 1 (node 0 to node 6) was silent for up to 20.0 s in 3 of 6 runs: quiet-train 3 of 3.",
            ]
        );
        let one = Tally::of(&all[5..]);
        assert_eq!(one.sentences()[0], "STARVED: a flow was starved; nothing that starves a flow is called best.");
        assert_eq!(one.sentences()[1], "flow 0 (node 0 to node 6) delivered nothing.");
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
}

//! Goodput of each flow with the usual settings, flows that starve, and the change that a choice
//! makes for each flow.

use super::routes::{Hop, Route};
use crate::record::starvation::{Starved, of_record};
use crate::record::{FlowRecord, Record};
use crate::statistics::estimate;
use crate::summary::{LEVEL, Mean};
use serde::Serialize;
use std::fmt::Write;

/// Result of a flow with the usual settings.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Told {
    /// Number of the flow.
    pub flow: usize,
    /// Names of its ends.
    pub ends: [String; 2],
    /// Mean goodput, bit/s.
    pub goodput_bps: f64,
    /// Ends of the 95 % interval of the mean. `None` with fewer than three runs.
    pub interval: Option<[f64; 2]>,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs in which the flow delivered nothing.
    pub nothing_runs: usize,
    /// Number of further runs in which it delivered nothing for more than a tenth of the time.
    pub silent_runs: usize,
    /// Longest such gap, seconds.
    pub longest_gap_s: f64,
    /// Goodput without other flows, bit/s, if that was asked for.
    pub alone_bps: Option<f64>,
    /// Goodput without other flows in the other direction, bit/s, if that was asked for.
    pub back_alone_bps: Option<f64>,
    /// Route of the flow.
    pub route: Route,
    /// Basis of the goodput, for people: bit rates of the dump, an assumed rate, or measured hops.
    pub basis: String,
    /// Rate that was assumed, if some hop has no rate in the dump.
    pub assumed_rate: Option<String>,
    /// True if the goodput is simulated, and false if it is predicted from the goodputs of the
    /// hops.
    pub is_simulated: bool,
}

impl Told {
    /// Number of runs in which the flow starved.
    pub fn starved_runs(&self) -> usize {
        self.nothing_runs + self.silent_runs
    }
}

/// Result of a flow that was not simulated, from the prediction by the goodputs of its hops.
pub fn predicted(path: &super::paths::Path, route: &Route, ends: [String; 2]) -> Told {
    Told {
        flow: path.flow,
        ends,
        goodput_bps: 1e3 * path.predicted_shared_kbps,
        interval: path.interval_kbps.map(|(low, high)| {
            let share = 1e3 * path.predicted_shared_kbps / path.predicted_kbps;
            [low * share, high * share]
        }),
        runs: 0,
        nothing_runs: 0,
        silent_runs: 0,
        longest_gap_s: 0.0,
        alone_bps: None,
        back_alone_bps: None,
        route: route.clone(),
        basis: "predicted from the goodput of its hops".to_owned(),
        assumed_rate: None,
        is_simulated: false,
    }
}

/// Goodput of a flow in each run, bit/s.
fn goodputs(records: &[Record], flow: usize) -> Vec<f64> {
    let of = |record: &Record| record.flows.get(flow).map(|flow| flow.goodput_bps);
    records.iter().map(|record| of(record).unwrap_or(f64::NAN)).collect()
}

/// Mean goodput of the first flow of these records, bit/s. Used for runs with a single flow.
pub fn alone(records: &[Record]) -> Option<f64> {
    Mean::of(&goodputs(records, 0)).map(|mean| mean.numbers.mean)
}

/// Results of all flows from the records of the usual settings: flows that starve come first, then
/// the order is that of their numbers. `name` gives the name of a node for people.
pub fn told(records: &[Record], routes: &[Route], name: &dyn Fn(usize) -> String) -> Vec<Told> {
    let mut all: Vec<Told> = Vec::new();
    for (flow, route) in routes.iter().enumerate() {
        let end = |of: fn(&FlowRecord) -> u16| {
            let flow = records.first().and_then(|record| record.flows.get(flow));
            flow.map_or_else(String::new, |flow| name(usize::from(of(flow))))
        };
        let values = goodputs(records, flow);
        let Some(Mean { numbers, .. }) = Mean::of(&values) else { continue };
        let mut told = Told {
            flow,
            ends: [end(|flow| flow.from), end(|flow| flow.to)],
            goodput_bps: numbers.mean,
            interval: numbers
                .half_width
                .is_finite()
                .then_some([numbers.mean - numbers.half_width, numbers.mean + numbers.half_width]),
            runs: records.len(),
            nothing_runs: 0,
            silent_runs: 0,
            longest_gap_s: 0.0,
            alone_bps: None,
            back_alone_bps: None,
            route: route.clone(),
            basis: String::new(),
            assumed_rate: None,
            is_simulated: true,
        };
        for (_, starved) in records.iter().flat_map(of_record).filter(|(id, _)| *id == flow) {
            match starved {
                Starved::Nothing => told.nothing_runs += 1,
                Starved::Gap(gap) => {
                    told.silent_runs += 1;
                    told.longest_gap_s = told.longest_gap_s.max(gap);
                }
            }
        }
        all.push(told);
    }
    all.sort_by_key(|told| (std::cmp::Reverse(told.nothing_runs), std::cmp::Reverse(told.silent_runs), told.flow));
    all
}

/// Half width of the interval of a printed goodput that is aimed at, as a share of the goodput.
pub const PRECISION: f64 = 0.15;
/// Largest number of runs, as a multiple of the number of seeds that were asked for.
const MOST: usize = 8;

/// Number of runs with which the interval becomes as narrow as is aimed at, estimated from these
/// goodputs. Zero if that cannot be estimated.
pub fn runs_for(goodputs: &[f64]) -> usize {
    let found = estimate(goodputs, LEVEL);
    let ratio = found.half_width / found.mean / PRECISION;
    // The half width falls with the square root of the number of runs.
    if ratio.is_finite() { (goodputs.len() as f64 * ratio * ratio).ceil() as usize } else { 0 }
}

/// Number of further seeds that make the intervals of flows that do not starve narrow enough. Zero
/// if they are narrow enough, or if there are already `MOST` times the first `seeds`. The number of
/// seeds at most doubles, because the deviation of few runs says little.
pub fn more_seeds(records: &[Record], seeds: usize) -> usize {
    let count = records.first().map_or(0, |record| record.flows.len());
    let wanted = |flow: usize| {
        let is_starved = records.iter().flat_map(of_record).any(|(id, _)| id == flow);
        if is_starved { 0 } else { runs_for(&goodputs(records, flow)) }
    };
    let wanted = (0..count).map(wanted).max().unwrap_or(0).min(MOST * seeds);
    wanted.saturating_sub(records.len()).min(records.len())
}

fn kbps(bps: f64) -> String {
    let value = bps / 1e3;
    match value.abs() {
        size if size == 0.0 || size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Text on a flow for people: one line, and explanations below it.
pub fn words(told: &Told, name: &dyn Fn(usize) -> String) -> String {
    let [from, to] = &told.ends;
    let half = told.interval.map(|[low, high]| match told.is_simulated {
        true => format!(" ± {}", kbps((high - low) / 2.0)),
        // The error interval of a prediction is not the interval of a mean and not symmetric.
        false => format!(" (nine in ten such paths: {} to {})", kbps(low), kbps(high)),
    });
    let half = half.unwrap_or_default();
    let runs = told.runs;
    let mut befell = Vec::new();
    if told.nothing_runs > 0 {
        befell.push(format!("delivers nothing in {} of {runs} runs", told.nothing_runs));
    }
    if told.silent_runs > 0 {
        befell.push(format!("is silent for up to {:.1} s in {} of {runs} runs", told.longest_gap_s, told.silent_runs));
    }
    let mut text = match befell.is_empty() {
        true => format!("flow {} ({from}→{to}) ", told.flow),
        false => format!("STARVED: flow {} ({from}→{to}) {}; ", told.flow, befell.join(" and ")),
    };
    let way: Vec<String> = told.route.nodes().into_iter().map(name).collect();
    let basis = if told.basis.is_empty() { String::new() } else { format!(" ({})", told.basis) };
    let _ = writeln!(text, "goodput {}{half} kbit/s{basis} over {}", kbps(told.goodput_bps), way.join("-"));
    for hop in told.route.hops.iter().filter(|hop| hop.medium != "radio") {
        let _ = writeln!(
            text,
            "   {}-{} is not a radio link ({}), so it uses no air time",
            name(hop.from),
            name(hop.to),
            hop.medium
        );
    }
    if let Some(alone) = told.alone_bps {
        let back = told.back_alone_bps.map(|back| format!(", {to}→{from} {}", kbps(back))).unwrap_or_default();
        let cause = match told.back_alone_bps {
            Some(back) if 10.0 * alone < back => "it is also low without the other flows",
            _ if alone > 2.0 * told.goodput_bps => "the other flows use its air time",
            _ => "it is about the same without the other flows",
        };
        let _ = writeln!(text, "   goodput alone {} kbit/s{back}: {cause}", kbps(alone));
    }
    for hop in told.route.hops.iter().filter(|hop| hop.is_weak()) {
        let _ = writeln!(text, "   {}", weak(hop, name));
    }
    if let (Some(better), Some(tries)) = (&told.route.better, told.route.better_tries) {
        let better: Vec<String> = better.iter().map(|&node| name(node)).collect();
        let _ = writeln!(
            text,
            "   this route needs {:.1} transmissions per packet, and {} needs {tries:.1}: use the metric ETX",
            told.route.tries(),
            better.join("-")
        );
    }
    text
}

fn weak(hop: &Hop, name: &dyn Fn(usize) -> String) -> String {
    let (from, to) = (name(hop.from), name(hop.to));
    format!(
        "{from}-{to} is weak: {:.0} % of the frames arrive {from}→{to}, {:.0} % {to}→{from}; {:.1} transmissions per frame",
        100.0 * hop.delivery,
        100.0 * hop.delivery_back,
        hop.tries()
    )
}

/// Change that a choice makes for a flow.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Change {
    /// Number of the flow.
    pub flow: usize,
    /// Goodput with the choice less the goodput with the usual settings, mean over the seeds,
    /// bit/s.
    pub difference_bps: f64,
    /// Ends of the 95 % interval of the difference. `None` with fewer than three seeds.
    pub interval: Option<[f64; 2]>,
    /// Number of runs in which the flow starves with the choice.
    pub starved_runs: usize,
    /// Number of runs in which it starves with the usual settings.
    pub usual_starved_runs: usize,
    /// Number of runs of the choice.
    pub runs: usize,
}

/// Changes of all flows, seed by seed. Both sides have the same seeds in the same order.
pub fn changes(usual: &[Record], tried: &[Record]) -> Vec<Change> {
    let count = usual.first().map_or(0, |record| record.flows.len());
    let starved = |records: &[Record], flow: usize| {
        records.iter().filter(|record| of_record(record).iter().any(|(id, _)| *id == flow)).count()
    };
    let change = |flow: usize| {
        let differences: Vec<f64> =
            goodputs(usual, flow).iter().zip(goodputs(tried, flow)).map(|(usual, tried)| tried - usual).collect();
        let found = estimate(&differences, LEVEL);
        let has_interval = differences.len() >= crate::compare::LEAST && found.half_width.is_finite();
        Change {
            flow,
            difference_bps: found.mean,
            interval: has_interval.then_some([found.mean - found.half_width, found.mean + found.half_width]),
            starved_runs: starved(tried, flow),
            usual_starved_runs: starved(usual, flow),
            runs: tried.len(),
        }
    };
    (0..count).map(change).collect()
}

/// Text on a change for people.
pub fn change_words(change: &Change) -> String {
    let half = change.interval.map(|[low, high]| format!(" ± {}", kbps((high - low) / 2.0))).unwrap_or_default();
    let sign = if change.difference_bps < 0.0 { "-" } else { "+" };
    format!(
        "flow {}: {sign}{}{half} kbit/s; it starves in {} of {} runs (usual: {})",
        change.flow,
        kbps(change.difference_bps.abs()),
        change.starved_runs,
        change.runs,
        change.usual_starved_runs
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Records of runs with two flows. Each flow is a goodput in bit/s and its longest gap in
    /// seconds, in a measured interval of 10 s.
    fn runs(of: &[[(f64, f64); 2]]) -> Vec<Record> {
        let flow = |(goodput, gap): (f64, f64)| json!({"from": 4, "to": 7, "goodput_bps": goodput, "delivered_bytes": goodput as u64, "longest_gap_s": gap});
        let run = |flows: &[(f64, f64); 2]| {
            crate::record::record(json!({"duration_s": 12.0, "warmup_s": 2.0, "flows": flows.map(flow)}))
        };
        of.iter().map(run).collect()
    }

    fn usual() -> Vec<Record> {
        runs(&[[(9e6, 0.1), (0.0, 10.0)], [(9e6, 0.1), (2e3, 7.0)], [(9e6, 0.1), (4e3, 0.5)]])
    }

    fn route() -> Route {
        let hop = |from, to, delivery, delivery_back| Hop {
            from,
            to,
            delivery,
            delivery_back,
            medium: "radio",
            rate_mbps: None,
        };
        Route {
            hops: vec![hop(4, 5, 1.0, 1.0), hop(5, 7, 0.5, 0.8)],
            better: Some(vec![4, 6, 7]),
            better_tries: Some(2.0),
        }
    }

    #[test]
    fn others_are_blamed_only_where_a_flow_carries_more_without_them() {
        let mut told = told(&usual(), &[Route::default(), route()], &|node| format!("n{node}"));
        let mut cause = |alone: f64, back: f64| {
            (told[0].alone_bps, told[0].back_alone_bps) = (Some(alone), Some(back));
            let text = words(&told[0], &|node| format!("n{node}"));
            text.lines().find_map(|line| line.strip_prefix("   goodput alone ")?.split_once(": ")).unwrap().1.to_owned()
        };
        // It gets 2 kbit/s of some 4000 that the other direction carries: the link is bad this way, whoever else sends.
        assert_eq!(cause(3.86e3, 4.3e6), "it is also low without the other flows");
        assert_eq!(cause(1e6, 4.3e6), "the other flows use its air time");
        assert_eq!(cause(2.5e3, 3e3), "it is about the same without the other flows");
    }

    #[test]
    fn who_starves_comes_first_with_what_it_carries_alone_and_its_weak_hops() {
        let name = |node: usize| format!("n{node}");
        let mut all = told(&usual(), &[Route::default(), route()], &name);
        assert_eq!(all.iter().map(|told| told.flow).collect::<Vec<_>>(), [1, 0]);
        let first = &mut all[0];
        assert_eq!((first.nothing_runs, first.silent_runs, first.longest_gap_s), (1, 1, 7.0));
        assert_eq!((first.goodput_bps, first.starved_runs()), (2e3, 2));
        (first.alone_bps, first.back_alone_bps) = (Some(3e6), Some(2e6));
        let text = words(first, &name);
        // 1 + 1 / (0.5 x 0.8); the half width of 0, 2, 4 is 4.303 x 2 / sqrt 3.
        for part in [
            "STARVED: flow 1 (n4→n7) delivers nothing in 1 of 3 runs and is silent for up to 7.0 s in 1 of 3 runs; goodput 2.00 ± 4.97 kbit/s over n4-n5-n7\n",
            "   goodput alone 3000 kbit/s, n7→n4 2000: the other flows use its air time\n",
            "   n5-n7 is weak: 50 % of the frames arrive n5→n7, 80 % n7→n5; 2.5 transmissions per frame\n",
            "   this route needs 3.5 transmissions per packet, and n4-n6-n7 needs 2.0: use the metric ETX\n",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(
            words(&all[1], &name).starts_with("flow 0 (n4→n7) goodput 9000 ± 0 kbit/s"),
            "{}",
            words(&all[1], &name)
        );
    }

    #[test]
    fn goodputs_get_as_many_seeds_as_their_intervals_need() {
        let of = |goodputs: &[f64]| runs(&goodputs.iter().map(|goodput| [(*goodput, 0.1); 2]).collect::<Vec<_>>());
        // The half width of 9, 10 and 11 is 4.303 / sqrt 3 = 2.48, and 1.5 are aimed at: 3 x (2.48 / 1.5)^2 = 8.2.
        assert_eq!(more_seeds(&of(&[9e6, 10e6, 11e6]), 3), 3, "as many again");
        let six = of(&[9e6, 10e6, 11e6, 9e6, 10e6, 11e6]);
        // 2.571 x 0.894 / sqrt 6 = 0.94 of 10.
        assert_eq!((more_seeds(&six, 3), more_seeds(&of(&[10e6, 10e6, 10e6]), 3)), (0, 0));
        assert_eq!(more_seeds(&usual(), 3), 0, "one starves, and the other has an interval of nothing");
        let wild: Vec<f64> = (0..24).map(|seed| if seed % 6 == 0 { 50e6 } else { 1e6 }).collect();
        assert_eq!((more_seeds(&of(&wild), 3), more_seeds(&of(&wild), 4)), (0, 8), "eight times the first seeds");
    }

    #[test]
    fn a_change_is_told_of_each_flow_seed_by_seed() {
        let tried = runs(&[[(8e6, 0.1), (1e3, 0.1)], [(8e6, 0.1), (3e3, 0.1)], [(8e6, 0.1), (5e3, 9.0)]]);
        let all = changes(&usual(), &tried);
        assert_eq!((all[1].difference_bps, all[1].interval), (1e3, Some([1e3, 1e3])));
        assert_eq!((all[1].starved_runs, all[1].usual_starved_runs, all[0].starved_runs), (1, 2, 0));
        assert_eq!(change_words(&all[1]), "flow 1: +1.00 ± 0 kbit/s; it starves in 1 of 3 runs (usual: 2)");
        assert!(change_words(&all[0]).starts_with("flow 0: -1000 ± 0 kbit/s"));
    }
}

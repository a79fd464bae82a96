//! Saturated flows over one hop with the profile `ieee` and the reception `sinr`, compared with
//! ns-3.44 and its own receiver.

use super::{Options, Point, Sample, Table, Verdict, rows, scenes};
use meshpace_mesh::config::Position;
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    case: String,
    rts: u8,
    /// Positions of the nodes, each "X:Y" in metres.
    nodes: String,
    /// Ends of the flows, each "FROM-TO".
    flows: String,
    n_seeds: usize,
    sum_kbps: f64,
    sum_ci95: f64,
    /// One mean for each flow, separated by blanks.
    flow_kbps: String,
}

/// Pairs in a list such as "0:0,200:0".
fn pairs<T: std::str::FromStr>(list: &str, between: char) -> Vec<(T, T)> {
    let pair = |word: &str| {
        let (first, second) = word.split_once(between)?;
        Some((first.parse().ok()?, second.parse().ok()?))
    };
    list.split(',').map(|word| pair(word).unwrap_or_else(|| panic!("embedded reference: not a pair: {word}"))).collect()
}

/// Largest error, per cent.
const RULE: f64 = 3.0;

/// Compares the sum of the flows, and how equal the flows are.
pub fn compare(options: &Options) -> Vec<Table> {
    let text = include_str!("../../../../validation/reference/ns3/saturated.csv");
    let mut points = Vec::new();
    for row in options.sampled(rows::<Row>("ns3/saturated", text), &[0, 3, 8, 11, 16]) {
        let places = pairs(&row.nodes, ':').into_iter().map(|(x, y)| Position { x, y }).collect();
        let flows = pairs(&row.flows, '-');
        let config = scenes::saturated(places, &flows, row.rts == 1);
        let outcomes = options.runs(&config, options.seeds(row.n_seeds));
        let case = format!("{}, {}", row.case, if row.rts == 1 { "RTS/CTS" } else { "basic access" });
        let sums: Vec<f64> = outcomes.iter().map(|outcome| outcome.aggregate_goodput_bps / 1e3).collect();
        let (reference, ours) =
            (Sample { mean: row.sum_kbps, half_width: row.sum_ci95, n: row.n_seeds }, Sample::of(&sums));
        points.push(Point {
            case: format!("{case}: sum"),
            verdict: Verdict::from(ours.error_pct(&reference).abs() <= RULE),
            reference: Some(reference),
            ours,
            rule: format!("{RULE} %"),
        });
        if flows.len() < 2 {
            continue;
        }
        // Means over the seeds, flow by flow. They show advantages that a station has in every run.
        let theirs: Vec<f64> = row.flow_kbps.split(' ').filter_map(|word| word.parse().ok()).collect();
        let mean =
            |flow: usize| outcomes.iter().map(|o| o.flows[flow].goodput_bps).sum::<f64>() / outcomes.len() as f64;
        let ours: Vec<f64> = (flows.len()..2 * flows.len()).map(mean).collect();
        let jain = |means: &[f64]| meshpace_sim::outcome::jain(means).unwrap_or(f64::NAN);
        let (theirs, ours) = (jain(&theirs), jain(&ours));
        points.push(Point {
            case: format!("{case}: Jain index of the flows' means"),
            verdict: Verdict::from((ours - theirs).abs() <= 0.01),
            reference: Some(Sample::single(theirs)),
            ours: Sample::single(ours),
            rule: "0.01".into(),
        });
    }
    vec![Table {
        name: "ieee",
        title: "Saturated flows, profile ieee, reception sinr",
        source: "ns-3.44",
        unit: "kbit/s",
        rule: "The reference is ns-3.44 with its own receiver (`ns3/saturated.cc`). The sum of the flows within 3 %; Jain's index of the \
               flows' means over the seeds within 0.01. Under the reception of ns-2 cells that only sense each other are a tenth lower: there a \
               frame that is only sensed holds the receiver.",
        points,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_are_scenes() {
        let text = include_str!("../../../../validation/reference/ns3/saturated.csv");
        for row in rows::<Row>("ns3/saturated", text) {
            let (places, flows) = (pairs::<f64>(&row.nodes, ':').len(), pairs::<u16>(&row.flows, '-'));
            assert!(flows.iter().all(|&(from, to)| usize::from(from.max(to)) < places), "{}", row.case);
            assert_eq!(row.flow_kbps.split(' ').count(), flows.len(), "{}", row.case);
        }
    }
}

//! Two NewReno flows that cross in the middle node of nine.

use super::{NS2, Options, Point, Sample, Table, Verdict, rows, scenes};
use meshpace_mesh::config::Position;
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    n_seeds: usize,
    agg_kbps: f64,
    agg_ci95: f64,
    jain: f64,
    jain_ci95: f64,
    ijain_2s: f64,
    ijain_ci95: f64,
}

#[derive(Deserialize)]
struct Place {
    kind: String,
    id_or_src: u16,
    x_or_dst: f64,
    y: Option<f64>,
}

/// Compares sum and fairness.
pub fn compare(options: &Options) -> Vec<Table> {
    let nodes = include_str!("../../../../validation/reference/ns2/cross_nodes.csv");
    let (mut positions, mut ends) = (Vec::new(), Vec::new());
    for place in rows::<Place>("cross_nodes", nodes) {
        match place.y {
            Some(y) if place.kind == "node" => positions.push(Position { x: place.x_or_dst, y }),
            _ => ends.push((place.id_or_src, place.x_or_dst as u16)),
        }
    }
    let mut points = Vec::new();
    for row in rows::<Row>("cross", include_str!("../../../../validation/reference/ns2/cross.csv")) {
        let config = scenes::cross(positions.clone(), &ends, &scenes::transport("newreno"));
        let outcomes = options.runs(&config, options.seeds(row.n_seeds));
        let sample =
            |value: fn(&meshpace_sim::Outcome) -> f64| Sample::of(&outcomes.iter().map(value).collect::<Vec<f64>>());
        let reference = |mean, half_width| Sample { mean, half_width, n: row.n_seeds };
        let (sum, sum_reference) = (sample(|o| o.aggregate_goodput_bps / 1e3), reference(row.agg_kbps, row.agg_ci95));
        points.push(Point {
            case: "sum of both flows, kbit/s".into(),
            verdict: Verdict::from(sum.error_pct(&sum_reference).abs() <= 5.0),
            reference: Some(sum_reference),
            ours: sum,
            rule: "5 %".into(),
        });
        let (short, short_reference) = (sample(|o| o.jain_2s), reference(row.ijain_2s, row.ijain_ci95));
        points.push(Point {
            case: "Jain index over 2 s".into(),
            verdict: Verdict::from((short.mean - short_reference.mean).abs() <= 0.05),
            reference: Some(short_reference),
            ours: short,
            rule: "0.05".into(),
        });
        points.push(Point {
            case: "Jain index over the run".into(),
            reference: Some(reference(row.jain, row.jain_ci95)),
            ours: sample(|o| o.jain),
            rule: String::new(),
            verdict: Verdict::Shown,
        });
    }
    vec![Table {
        name: "cross",
        title: "Two crossing NewReno flows, nine nodes, AODV",
        source: NS2,
        unit: "as named",
        rule: "The sum of the goodputs within 5 %, the mean Jain index of 2-second windows within 0.05.",
        points,
    }]
}

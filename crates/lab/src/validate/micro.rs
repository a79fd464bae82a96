//! Saturated flows on small topologies. Each case isolates one behaviour of the radio or the MAC.

use super::scenes::Micro;
use super::{NS2, Options, Point, Sample, Table, Verdict, rows};
use meshpace_core::Rate;
use meshpace_sim::Outcome;
use serde::Deserialize;

/// Payload rate of one saturated hop with RTS/CTS, kbit/s. "Below 1 % of capacity" means below 1 %
/// of this rate.
const CAPACITY: f64 = 1539.190;

#[derive(Deserialize)]
struct Row {
    case: String,
    flow1_kbps: f64,
    flow2_kbps: Option<f64>,
}

/// Result of one seed of ns-2 in a bistable case.
#[derive(Deserialize)]
struct BistableRow {
    case: String,
    flow1_kbps: f64,
    flow2_kbps: f64,
}

/// Name of a bistable case in the file of many seeds, or `None` if the case is not bistable. Hidden
/// pairs without RTS/CTS synchronise after a time that differs from seed to seed, or not at all. A
/// single run therefore says nothing about another one.
fn bistable(case: &str) -> Option<&'static str> {
    if case.starts_with("chain hidden") && case.ends_with("RTS off") {
        Some("hidden_rts_off")
    } else if case.starts_with("capture") && case.contains("430 m") {
        Some("capture_430_rts_off")
    } else {
        None
    }
}

/// Compares a bistable case with many seeds of ns-2.
fn compare_bistable(options: &Options, case: &str, rows: &[&BistableRow]) -> Vec<Point> {
    let outcomes = options.runs(&scene(case).config(), options.seeds(rows.len()));
    let point = |label: &str, reference: Sample, ours: Sample| Point {
        case: format!("{case}, {label}"),
        verdict: Verdict::from(ours.error_pct(&reference).abs() <= 1.0 || ours.joins(&reference)),
        reference: Some(reference),
        ours,
        rule: "1 % or joined".into(),
    };
    let ours = |value: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(value).collect::<Vec<f64>>();
    let theirs = |value: &dyn Fn(&BistableRow) -> f64| rows.iter().map(|row| value(row)).collect::<Vec<f64>>();
    let starved =
        |values: &[f64]| Sample::share(values.iter().filter(|&&kbps| kbps < 0.01 * CAPACITY).count(), values.len());
    let (first, first_reference) = (ours(&|o| o.flows[0].goodput_bps / 1e3), theirs(&|row| row.flow1_kbps));
    vec![
        point("flow 1", Sample::of(&first_reference), Sample::of(&first)),
        point(
            "flow 2",
            Sample::of(&theirs(&|row| row.flow2_kbps)),
            Sample::of(&ours(&|o| o.flows[1].goodput_bps / 1e3)),
        ),
        point(
            "sum",
            Sample::of(&theirs(&|row| row.flow1_kbps + row.flow2_kbps)),
            Sample::of(&ours(&|o| o.aggregate_goodput_bps / 1e3)),
        ),
        point("share of runs that starve flow 1", starved(&first_reference), starved(&first)),
    ]
}

/// Nodes of two links. The senders are `d` metres apart, and each sends away from the other.
fn outward(d: f64) -> (Vec<f64>, Vec<(u16, u16)>) {
    (vec![200.0, 0.0, 200.0 + d, 400.0 + d], vec![(0, 1), (2, 3)])
}

/// Nodes of a link of 240 m, with the sender of another link `c` metres from its receiver.
fn capture(c: f64) -> (Vec<f64>, Vec<(u16, u16)>) {
    (vec![0.0, 240.0, 240.0 + c, 440.0 + c], vec![(0, 1), (2, 3)])
}

/// Scenario of a row of the reference.
fn scene(case: &str) -> Micro {
    let one = |length| (vec![0.0, length], vec![(0, 1)]);
    let (x, flows) = match case {
        case if case.starts_with("1 hop") => one(200.0),
        "range 249 m" => one(249.0),
        "range 251 m" => one(251.0),
        case if case.starts_with("two senders 300 m") => outward(300.0),
        case if case.starts_with("two senders 540 m") => outward(540.0),
        case if case.starts_with("two senders 549 m") => outward(549.0),
        case if case.starts_with("two senders 551 m") => outward(551.0),
        case if case.starts_with("two senders 560 m") => outward(560.0),
        case if case.starts_with("chain hidden") => (vec![0.0, 200.0, 600.0, 800.0], vec![(0, 1), (2, 3)]),
        case if case.starts_with("capture") && case.contains("420 m") => capture(420.0),
        case if case.starts_with("capture") && case.contains("430 m") => capture(430.0),
        case if case.starts_with("three-link") => (vec![0.0, 200.0, 400.0, 600.0], vec![(0, 1), (2, 3)]),
        case if case.starts_with("converging") => (vec![0.0, 200.0, 400.0], vec![(0, 1), (2, 1)]),
        _ => panic!("no scene for the reference row {case:?}"),
    };
    Micro {
        x,
        flows,
        rts: !case.contains("RTS off"),
        segment: if case.contains("1000B") { 1000 } else { 1460 },
        rate: Rate::from_mbps(if case.contains("11Mb") { 11 } else { 2 }),
    }
}

/// Compares all rows.
pub fn compare(options: &Options) -> Vec<Table> {
    let many_seeds = rows::<BistableRow>(
        "ns2_micro_bistable",
        include_str!("../../../../validation/reference/ns2_micro_bistable.csv"),
    );
    let mut points = Vec::new();
    let rows = rows::<Row>("micro", include_str!("../../../../validation/reference/ns2/micro.csv"));
    // A sample leaves out the cases with many seeds.
    for row in options.sampled(rows, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 16, 17]) {
        if let Some(name) = bistable(&row.case) {
            let seeds: Vec<&BistableRow> = many_seeds.iter().filter(|seed| seed.case == name).collect();
            points.extend(compare_bistable(options, &row.case, &seeds));
            continue;
        }
        let outcomes = options.runs(&scene(&row.case).config(), options.seeds(1));
        let flow = |i: usize| -> Vec<f64> { outcomes.iter().map(|o| o.flows[i].goodput_bps / 1e3).collect() };
        let single = |label: &str, reference: f64, runs: &[f64]| {
            let ours = Sample::of(runs);
            let (rule, met) = if reference < 0.01 * CAPACITY {
                (format!("below {:.1}", 0.01 * CAPACITY), ours.mean < 0.01 * CAPACITY)
            } else {
                let close = (ours.mean - reference).abs() <= 0.01 * reference;
                let spread = Sample::spread(runs);
                let inside = (ours.mean - reference).abs() <= spread;
                (format!("1 % or ±{spread:.1}"), close || inside)
            };
            Point {
                case: format!("{}{label}", row.case),
                reference: Some(Sample::single(reference)),
                ours,
                rule,
                verdict: met.into(),
            }
        };
        match row.flow2_kbps {
            None => points.push(single("", row.flow1_kbps, &flow(0))),
            Some(flow2_kbps) => {
                let sums: Vec<f64> = outcomes.iter().map(|o| o.aggregate_goodput_bps / 1e3).collect();
                let (reference, ours) = (Sample::single(row.flow1_kbps + flow2_kbps), Sample::of(&sums));
                points.push(single(", flow 1", row.flow1_kbps, &flow(0)));
                points.push(single(", flow 2", flow2_kbps, &flow(1)));
                points.push(Point {
                    case: format!("{}, sum", row.case),
                    verdict: Verdict::from(ours.error_pct(&reference).abs() <= 1.0),
                    reference: Some(reference),
                    ours,
                    rule: "1 %".into(),
                });
            }
        }
    }
    vec![Table {
        name: "micro",
        title: "Saturated flows, one behaviour of the MAC at a time",
        source: NS2,
        unit: "kbit/s",
        rule: "The sum of the flows within 1 %. Each flow within 1 %, or the reference, which is a single run, inside the \
               interval in which 95 % of single runs fall here. A flow that gets below 1 % of the capacity there must \
               get below 1 % here. Out of range means nothing is delivered. Two cases are bistable in ns-2 itself (hidden \
               pairs without RTS/CTS synchronise, or do not, depending on the seed): there a single run is no reference, \
               and the means over 100 seeds of ns-2 are compared, within 1 % or inside the joined 95 % interval.",
        points,
    }]
}

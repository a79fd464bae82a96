//! NewReno over chains of 1 to 10 hops.

use super::{NS2, Options, Point, Sample, Table, Verdict, rows, scenes};
use meshpace_mesh::config::{AodvDetection, LocalRepair, RoutingConfig};
use serde::Deserialize;

#[derive(Deserialize)]
struct StaticRow {
    hops: u16,
    cwl: u32,
    n_seeds: usize,
    goodput_kbps: f64,
    ci95: f64,
}

/// Compares chains with frozen shortest paths, which show what the MAC alone does to TCP.
pub fn static_routes(options: &Options) -> Vec<Table> {
    let text = include_str!("../../../../validation/reference/ns2/chain_static_routes.csv");
    let mut points = Vec::new();
    for row in options.sampled(rows::<StaticRow>("chain_static_routes", text), &[0, 1, 18]) {
        let transport = if row.cwl == 0 { scenes::transport("newreno") } else { scenes::newreno_limited(row.cwl) };
        let config = scenes::chain(row.hops, transport, RoutingConfig::Static);
        let ours = Sample::of(&options.goodputs(&config, options.seeds(row.n_seeds)));
        let reference = Sample { mean: row.goodput_kbps, half_width: row.ci95, n: row.n_seeds };
        let error = ours.error_pct(&reference).abs();
        let (rule, met) = match row.cwl {
            1 => ("1 %", error <= 1.0),
            _ => ("3 % or joined", error <= 3.0 || ours.joins(&reference)),
        };
        let window = if row.cwl == 0 { "window 64".into() } else { format!("window {}", row.cwl) };
        points.push(Point {
            case: format!("{} hops, {window}", row.hops),
            reference: Some(reference),
            ours,
            rule: rule.into(),
            verdict: met.into(),
        });
    }
    vec![Table {
        name: "chain_static_routes",
        title: "NewReno over a chain, frozen shortest paths",
        source: NS2,
        unit: "kbit/s",
        rule: "Within 3 % or inside the joined 95 % interval; with a window of one segment within 1 %.",
        points,
    }]
}

#[derive(Deserialize)]
struct AodvRow {
    hops: u16,
    n_seeds: usize,
    goodput_kbps: f64,
    ci95: f64,
}

/// Compares chains with AODV, which show what false link failures and their repair add.
pub fn aodv(options: &Options) -> Vec<Table> {
    let text = include_str!("../../../../validation/reference/ns2/chain_aodv.csv");
    let (mut points, mut repairs) = (Vec::new(), Vec::new());
    let mut drops: Vec<(&str, [Option<f64>; 2])> =
        ["ns-2", "ns2", "rfc3561", "off"].map(|name| (name, [None; 2])).to_vec();
    // The table of the drop below compares 6 and 7 hops.
    for row in options.sampled(rows::<AodvRow>("chain_aodv", text), &[0, 5, 6]) {
        let seeds = options.seeds(row.n_seeds);
        let ours = |local_repair| {
            let config = scenes::chain(
                row.hops,
                scenes::transport("newreno"),
                RoutingConfig::aodv(local_repair, AodvDetection::LinkLayer),
            );
            Sample::of(&options.goodputs(&config, seeds))
        };
        let reference = Sample { mean: row.goodput_kbps, half_width: row.ci95, n: row.n_seeds };
        let measured = [
            ("ns-2", reference),
            ("ns2", ours(LocalRepair::Ns2)),
            ("rfc3561", ours(LocalRepair::Rfc3561)),
            ("off", ours(LocalRepair::Off)),
        ];
        let faithful = measured[1].1;
        points.push(Point {
            case: format!("{} hops", row.hops),
            reference: Some(reference),
            ours: faithful,
            rule: "8 % or joined".into(),
            verdict: Verdict::from(faithful.error_pct(&reference).abs() <= 8.0 || faithful.joins(&reference)),
        });
        for (slot, (name, sample)) in drops.iter_mut().zip(measured) {
            if let 6 | 7 = row.hops {
                slot.1[usize::from(row.hops - 6)] = Some(sample.mean);
            }
            if matches!(name, "rfc3561" | "off") {
                repairs.push(Point {
                    case: format!("{} hops, local repair {name}", row.hops),
                    reference: Some(reference),
                    ours: sample,
                    rule: String::new(),
                    verdict: Verdict::Shown,
                });
            }
        }
    }
    let ratio = |ends: &[Option<f64>; 2]| ends[1].zip(ends[0]).map_or(f64::NAN, |(after, before)| after / before);
    let reference = ratio(&drops[0].1);
    let drop_points = drops[1..]
        .iter()
        .map(|(name, ends)| {
            let value = ratio(ends);
            let judged = *name == "ns2";
            Point {
                case: format!("local repair {name}"),
                reference: Some(Sample::single(reference)),
                ours: Sample::single(value),
                rule: if judged { "below 0.70".into() } else { String::new() },
                verdict: if judged { (value < 0.70).into() } else { Verdict::Shown },
            }
        })
        .collect();
    vec![
        Table {
            name: "chain_aodv",
            title: "NewReno over a chain, AODV with the local repair of ns-2",
            source: NS2,
            unit: "kbit/s",
            rule: "Within 8 % or inside the joined 95 % interval.",
            points,
        },
        Table {
            name: "chain_aodv_drop",
            title: "The drop between 6 and 7 hops, by kind of local repair",
            source: NS2,
            unit: "goodput at 7 hops / goodput at 6 hops",
            rule: "With the local repair of ns-2 at 7 hops less than 0.70 of the goodput at 6 hops is left (0.55 in ns-2; \
                   without the effect it would be 0.9 to 1). The other kinds are shown.",
            points: drop_points,
        },
        Table {
            name: "chain_aodv_repair",
            title: "The same with the local repair of RFC 3561 and without any, beside ns-2's own",
            source: NS2,
            unit: "kbit/s",
            rule: "No rule: shown so that a reader sees what the repair of ns-2 costs.",
            points: repairs,
        },
    ]
}

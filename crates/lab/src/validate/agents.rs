//! TCP-AP over chains, compared with two implementations of it in ns-2.35.

use super::{NS2, Options, Point, Sample, Table, Verdict, rows, scenes};
use meshpace_mesh::config::RoutingConfig;
use meshpace_sim::Outcome;
use meshpace_transport::Config as Transport;
use serde::Deserialize;

/// Our counterpart of an agent of the reference: its name here and its parameters. `None` for
/// agents that are not compared.
fn counterpart(agent: &str) -> Option<(&'static str, Transport)> {
    match agent {
        "released" => Some(("tcp-ap-released", scenes::transport("tcp-ap-released"))),
        "paper-karn" => Some(("tcp-ap", scenes::transport("tcp-ap"))),
        "paper-mad" => Some(("tcp-ap, mean absolute deviation", scenes::tcp_ap_mad())),
        _ => None,
    }
}

#[derive(Deserialize)]
struct GoodputRow {
    agent: String,
    hops: u16,
    n_seeds: usize,
    goodput_kbps: f64,
    ci95: f64,
}

/// Compares goodput with AODV.
pub fn compare_goodput(options: &Options) -> Vec<Table> {
    let text = include_str!("../../../../validation/reference/ns2ap/chain_aodv.csv");
    let mut points = Vec::new();
    for row in options.sampled(rows::<GoodputRow>("ns2ap/chain_aodv", text), &[10, 16, 32, 36, 49]) {
        let Some((name, transport)) = counterpart(&row.agent) else { continue };
        let config = scenes::chain(row.hops, transport, scenes::AODV);
        let ours = Sample::of(&options.goodputs(&config, options.seeds(row.n_seeds)));
        let reference = Sample { mean: row.goodput_kbps, half_width: row.ci95, n: row.n_seeds };
        points.push(Point {
            case: format!("{name}, {} hops", row.hops),
            verdict: Verdict::from(ours.error_pct(&reference).abs() <= 8.0 || ours.joins(&reference)),
            reference: Some(reference),
            ours,
            rule: "8 % or joined".into(),
        });
    }
    vec![Table {
        name: "agents",
        title: "TCP-AP over a chain, AODV with the local repair of ns-2",
        source: NS2,
        unit: "kbit/s",
        rule: "Within 8 % or inside the joined 95 % interval.",
        points,
    }]
}

#[derive(Deserialize)]
struct MeansRow {
    agent: String,
    hops: u16,
    n_seeds: usize,
    mean_rtt_sample_ms: Option<f64>,
    mean_smoothed_n_hop_delay_ms: Option<f64>,
    mean_cov: Option<f64>,
    mean_rel_abs_dev: Option<f64>,
    mean_interval_ms: Option<f64>,
}

/// A quantity that is averaged: its name, the reference if there is one, and the function that
/// reads it from an outcome.
type Quantity = (&'static str, Option<f64>, fn(&Outcome) -> f64);

/// Compares the means of the pacing estimator on frozen routes.
pub fn compare_estimator(options: &Options) -> Vec<Table> {
    let text = include_str!("../../../../validation/reference/ns2ap/estimator_means.csv");
    let mut points = Vec::new();
    for row in options.sampled(rows::<MeansRow>("ns2ap/estimator_means", text), &[2, 13, 22]) {
        let Some((name, transport)) = counterpart(&row.agent) else { continue };
        let config = scenes::chain(row.hops, transport, RoutingConfig::Static);
        let outcomes = options.runs(&config, options.seeds(row.n_seeds));
        // `tcp-ap` paces by the coefficient of variation, the other two by the absolute deviation.
        let by_cov = row.agent == "paper-karn";
        // The delay of the released agent is averaged over the ticks of its timer, that of the
        // others over samples.
        let delay: fn(&Outcome) -> f64 = if row.agent == "released" {
            |o| o.flows[0].pacing.interval_delay_s * 1e3
        } else {
            |o| o.flows[0].pacing.delay_s * 1e3
        };
        let quantities: [Quantity; 5] = [
            ("RTT sample, ms", row.mean_rtt_sample_ms, |o| o.flows[0].rtt_mean_s * 1e3),
            ("n-hop delay, ms", row.mean_smoothed_n_hop_delay_ms, delay),
            ("cov", row.mean_cov.filter(|_| by_cov), |o| o.flows[0].pacing.cov),
            ("relative deviation", row.mean_rel_abs_dev.filter(|_| !by_cov), |o| o.flows[0].pacing.mean_rel_abs_dev),
            ("interval, ms", row.mean_interval_ms, |o| o.flows[0].pacing.interval_s * 1e3),
        ];
        for (quantity, reference, value) in quantities {
            let Some(reference) = reference else { continue };
            let reference = Sample { mean: reference, half_width: f64::NAN, n: row.n_seeds };
            let ours = Sample::of(&outcomes.iter().map(value).collect::<Vec<f64>>());
            points.push(Point {
                case: format!("{name}, {} hops, {quantity}", row.hops),
                verdict: Verdict::from(ours.error_pct(&reference).abs() <= 5.0),
                reference: Some(reference),
                ours,
                rule: "5 %".into(),
            });
        }
    }
    vec![Table {
        name: "estimator",
        title: "What the pacing of TCP-AP estimates, frozen shortest paths",
        source: NS2,
        unit: "as named",
        rule: "Every mean within 5 %: RTT, delay and dispersion per sample; the interval per paced send (tcp-ap) or per \
               tick of the timer (tcp-ap-released), whose delay is per tick as well: this reading meets the reference at \
               all ten lengths, the one per sample misses it by 2 to 55 %.",
        points,
    }]
}

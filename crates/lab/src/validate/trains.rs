//! Quiet trains with a fixed interval over chains, here and in ns-2. The comparison shows that
//! their goodput is no artefact of this simulator.

use super::{NS2, Options, Point, Sample, Table, Verdict, rows, scenes};
use meshpace_core::Duration;
use meshpace_mesh::config::RoutingConfig;
use meshpace_sim::Config;
use meshpace_transport::config::Config as Transport;
use serde::Deserialize;

/// Largest error in per cent on static routes and under AODV, the same as for other transfers over
/// chains.
const WITHIN: (f64, f64) = (3.0, 8.0);
/// Interval in ms from which on a longer interval is on the gentle slope of the optimum. Shorter
/// intervals are on the cliff: a collision of hidden stations occurs in every train, or in none.
/// Therefore the position of the cliff is compared, and not the goodput beside it.
const SLOPE: f64 = 31.0;

#[derive(Deserialize)]
struct Row {
    hops: u16,
    routes: String,
    interval_ms: f64,
    n_seeds: usize,
    goodput_kbps: f64,
    ci95: f64,
}

/// A transfer with trains of 32 segments that are `interval_ms` apart.
fn config(hops: u16, interval_ms: f64, routing: RoutingConfig) -> Config {
    let mut transport = scenes::transport("quiet-train");
    if let Transport::Train(train) = &mut transport {
        train.control.interval = Some(Duration::from_secs_f64(interval_ms * 1e-3));
        train.control.span = Duration::from_secs(2);
    }
    scenes::chain(hops, transport, routing)
}

/// Compares the goodput at intervals around the optimum, and the position of the optimum.
pub fn compare(options: &Options) -> Vec<Table> {
    let text = include_str!("../../../../validation/reference/ns2/quiet_train.csv");
    let rows = rows::<Row>("quiet_train", text);
    let mut points = Vec::new();
    let mut sweep: Vec<(f64, f64, f64)> = Vec::new();
    for row in options.sampled(&rows, &[0, 3, 17, 23]) {
        let (routing, within) =
            if row.routes == "static" { (RoutingConfig::Static, WITHIN.0) } else { (scenes::AODV, WITHIN.1) };
        let ours =
            Sample::of(&options.goodputs(&config(row.hops, row.interval_ms, routing), options.seeds(row.n_seeds)));
        let reference = Sample { mean: row.goodput_kbps, half_width: row.ci95, n: row.n_seeds };
        if row.hops == 7 && row.routes == "static" {
            sweep.push((row.interval_ms, ours.mean, reference.mean));
        }
        let near = ours.error_pct(&reference).abs() <= within || ours.joins(&reference);
        points.push(Point {
            case: format!("{}, {}, {:.1} ms", hops(row.hops), row.routes, row.interval_ms),
            verdict: if row.hops < 4 || row.interval_ms >= SLOPE { Verdict::from(near) } else { Verdict::Shown },
            reference: Some(reference),
            ours,
            rule: format!("{within} % or joined"),
        });
    }
    vec![Table {
        name: "quiet_train",
        title: "Trains of 32 segments at a fixed interval, then silence until one ACK of 52 bytes",
        source: NS2,
        unit: "kbit/s",
        rule: "The goodput at intervals of 31.0 ms and more, and over one and two hops, is joined or, as in the other comparisons over \
               chains, within 3 % on static routes and 8 % under AODV. Shorter intervals over \
               four and more hops are on the cliff, where a train either escapes a collision of hidden stations or does not: they \
               are shown. The best interval of the sweep over seven hops is within 0.1 ms.",
        // The best interval needs the whole sweep, so a sample does not have it.
        points: points.into_iter().chain(best(&sweep).filter(|_| !options.sample)).collect(),
    }]
}

fn hops(count: u16) -> String {
    if count == 1 { "1 hop".to_owned() } else { format!("{count} hops") }
}

/// Compares the best intervals of a sweep of (interval, our goodput, goodput of the reference).
fn best(sweep: &[(f64, f64, f64)]) -> Option<Point> {
    let of = |value: fn(&(f64, f64, f64)) -> f64| {
        sweep.iter().max_by(|a, b| value(a).total_cmp(&value(b))).map(|best| best.0)
    };
    let (ours, theirs) = (of(|point| point.1)?, of(|point| point.2)?);
    Some(Point {
        case: "7 hops, static, best interval in ms".into(),
        reference: Some(Sample::single(theirs)),
        ours: Sample::single(ours),
        rule: "0.1 ms".into(),
        verdict: Verdict::from((ours - theirs).abs() < 0.15),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_a_sweep_is_found_on_both_sides() {
        let point = best(&[(30.0, 1.0, 9.0), (30.1, 5.0, 7.0), (31.0, 3.0, 1.0)]).unwrap();
        assert_eq!((point.ours.mean, point.reference.unwrap().mean), (30.1, 30.0));
        assert_eq!(point.verdict, Verdict::Met);
        let point = best(&[(30.0, 9.0, 1.0), (30.2, 1.0, 9.0)]).unwrap();
        assert_eq!(point.verdict, Verdict::NotMet);
        assert!(best(&[]).is_none());
    }
}

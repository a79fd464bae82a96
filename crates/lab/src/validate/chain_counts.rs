//! Counts that explain the goodput of chains: frames given up, route messages, CTS per RTS, delays,
//! round trips.

use super::round_trips::RoundTrips;
use super::{NS2, Options, Point, Sample, Table, Verdict, rows, scenes};
use meshpace_core::{Duration, Time};
use meshpace_mesh::config::RoutingConfig;
use meshpace_mesh::mac::FrameKind;
use meshpace_sim::{Event, Outcome, Probe, SimPacket};
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    routes: String,
    hops: u16,
    quantity: String,
    n_seeds: usize,
    mean: f64,
    ci95: f64,
}

/// RTS and CTS frames on the air, and the round trips of the flow.
struct Seen {
    rts: u64,
    cts: u64,
    round_trips: RoundTrips,
}

impl Probe<SimPacket> for Seen {
    fn on(&mut self, now: Time, event: Event<'_, SimPacket>) {
        match event {
            Event::OnAir { frame } => match frame.kind {
                FrameKind::Rts => self.rts += 1,
                FrameKind::Cts => self.cts += 1,
                FrameKind::Data | FrameKind::Ack | FrameKind::BlockAck | FrameKind::BlockAckReq => {}
            },
            Event::Inject { node, packet } => self.round_trips.on_inject(now, node, packet),
            Event::Deliver { node, packet } => self.round_trips.on_deliver(now, node, packet),
            _ => {}
        }
    }
}

/// Function that reads a quantity of the reference from one run.
type Quantity = fn(&Outcome, &Seen) -> f64;

/// The quantities: name in the reference, description, and function. Rates are averages over the
/// 200 s of the run.
const QUANTITIES: [(&str, &str, Quantity); 9] = [
    ("mac_drops", "frames given up by the MAC per second", |o, _| o.counters.mac_drops as f64 / 200.0),
    ("rreq", "route requests per second", |o, _| o.counters.route_requests as f64 / 200.0),
    ("rrep", "route replies per second", |o, _| o.counters.route_replies as f64 / 200.0),
    ("rerr", "route errors per second", |o, _| o.counters.route_errors as f64 / 200.0),
    ("cts_per_rts", "CTS for each RTS", |_, seen| seen.cts as f64 / seen.rts as f64),
    ("delay_mean", "mean delay of segments, ms", |o, _| 1e3 * o.flows[0].delay.mean_s),
    ("delay_p95", "delay of 95 % of segments, ms", |o, _| 1e3 * o.flows[0].delay.p95_s),
    ("rtt_mean", "mean round trip, ms", |_, seen| seen.round_trips.mean()),
    ("rtt_p95", "round trip of 95 % of ACKs, ms", |_, seen| seen.round_trips.p95()),
];

/// Compares chains of 4 and 7 hops.
pub fn compare(options: &Options) -> Vec<Table> {
    let text = include_str!("../../../../validation/reference/ns2/chain_counts.csv");
    let rows = rows::<Row>("chain_counts", text);
    let mut points = Vec::new();
    for of_case in options.sampled(rows.chunk_by(|a, b| (&a.routes, a.hops) == (&b.routes, b.hops)), &[1]) {
        let first = &of_case[0];
        let routing = if first.routes == "aodv" { scenes::AODV } else { RoutingConfig::Static };
        let config = scenes::chain(first.hops, scenes::transport("newreno"), routing);
        let runs = options.simulate(options.seeds(first.n_seeds), move |seed| {
            let round_trips = RoundTrips::from(Time::ZERO + Duration::from_secs(20));
            let mut seen = Seen { rts: 0, cts: 0, round_trips };
            (meshpace_sim::run_with(&config, seed, &mut seen), seen)
        });
        for row in of_case {
            let (_, what, value) =
                QUANTITIES.iter().find(|(name, ..)| *name == row.quantity).expect("a known quantity");
            let ours = Sample::of(&runs.iter().map(|(outcome, seen)| value(outcome, seen)).collect::<Vec<f64>>());
            let reference = Sample { mean: row.mean, half_width: row.ci95, n: row.n_seeds };
            points.push(Point {
                case: format!("{} hops, {}: {what}", row.hops, if row.routes == "aodv" { "AODV" } else { "static" }),
                verdict: Verdict::from(ours.error_pct(&reference).abs() <= 3.0 || ours.joins(&reference)),
                reference: Some(reference),
                ours,
                rule: "3 % or joined".into(),
            });
        }
    }
    vec![Table {
        name: "chain_counts",
        title: "What a NewReno flow over a chain meets: losses, route messages, delays, round trips",
        source: NS2,
        unit: "as named",
        rule: "Within 3 % or inside the joined 95 % interval.",
        points,
    }]
}

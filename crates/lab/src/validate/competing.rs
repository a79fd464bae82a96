//! Two competing flows of NewReno. They cross in the middle node of nine, or run over parallel
//! chains 400 m apart.

use super::{NS2, Options, Point, Sample, Table, Verdict, rows, scenes};
use meshpace_mesh::config::Position;
use meshpace_sim::Outcome;
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    topo: String,
    agent: String,
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

/// Compares the two flows that cross.
pub fn cross(options: &Options) -> Vec<Table> {
    let nodes = include_str!("../../../../validation/reference/ns2/cross_nodes.csv");
    vec![compare(options, "cross", "Two crossing NewReno flows, nine nodes, AODV", nodes)]
}

/// Compares the two parallel flows.
pub fn parallel(options: &Options) -> Vec<Table> {
    let nodes = include_str!("../../../../validation/reference/ns2/parallel_nodes.csv");
    vec![compare(options, "parallel", "Two NewReno flows over parallel chains 400 m apart, AODV", nodes)]
}

/// Positions of the nodes and ends of the flows in a file.
fn mesh(nodes: &str) -> (Vec<Position>, Vec<(u16, u16)>) {
    let (mut positions, mut ends) = (Vec::new(), Vec::new());
    for place in rows::<Place>("nodes", nodes) {
        match place.y {
            Some(y) if place.kind == "node" => positions.push(Position { x: place.x_or_dst, y }),
            _ => ends.push((place.id_or_src, place.x_or_dst as u16)),
        }
    }
    (positions, ends)
}

fn compare(options: &Options, name: &'static str, title: &'static str, nodes: &str) -> Table {
    let (positions, ends) = mesh(nodes);
    let text = include_str!("../../../../validation/reference/ns2/multi_rts1460_200s.csv");
    let rows = rows::<Row>("multi_rts1460_200s", text).into_iter().filter(|row| row.topo == name);
    let points = options.sampled(rows, &[0]).into_iter().flat_map(|row| {
        // The reference uses our names of transports, but for the character before an option.
        let transport = scenes::transport(&row.agent.replace("-delack", "+delack"));
        let config = scenes::competing(positions.clone(), &ends, &transport);
        row.points(&options.runs(&config, options.seeds(row.n_seeds)))
    });
    Table {
        name,
        title,
        source: NS2,
        unit: "as named",
        rule: "The sum of the goodputs within 5 %, the mean Jain index of 2-second windows within 0.05, the Jain index over the run \
               inside the joined 95 % interval. The flows are mirror images of each other: each has half of the reference's sum, \
               inside the joined interval. (The reference's own two means over parallel chains under delayed ACKs, 187 ± 33 and 110 ± 32 \
               over 20 seeds, differ by more than that.) Every ACK at once, and delayed ACKs.",
        points: points.collect(),
    }
}

impl Row {
    fn points(&self, outcomes: &[Outcome]) -> Vec<Point> {
        let sample = |value: &dyn Fn(&Outcome) -> f64| Sample::of(&outcomes.iter().map(value).collect::<Vec<f64>>());
        let point = |what: String, reference: (f64, f64), ours: Sample, rule: Rule| {
            let reference = Sample { mean: reference.0, half_width: reference.1, n: self.n_seeds };
            Point {
                case: format!("{}: {what}", self.agent),
                verdict: Verdict::from(rule.holds(&ours, &reference)),
                reference: Some(reference),
                ours,
                rule: rule.short().into(),
            }
        };
        let mut points = vec![
            point(
                "sum of both flows, kbit/s".into(),
                (self.agg_kbps, self.agg_ci95),
                sample(&|o| o.aggregate_goodput_bps / 1e3),
                Rule::FivePerCent,
            ),
            point(
                "Jain index over 2 s".into(),
                (self.ijain_2s, self.ijain_ci95),
                sample(&|o| o.jain_2s),
                Rule::ATwentieth,
            ),
            point("Jain index over the run".into(), (self.jain, self.jain_ci95), sample(&|o| o.jain), Rule::Joined),
        ];
        points.extend((0..2).map(|flow| {
            let ours = sample(&|o| o.flows[flow].goodput_bps / 1e3);
            point(format!("flow {}, kbit/s", flow + 1), (self.agg_kbps / 2.0, self.agg_ci95 / 2.0), ours, Rule::Joined)
        }));
        points
    }
}

/// Rule by which a value is judged.
#[derive(Clone, Copy)]
enum Rule {
    FivePerCent,
    ATwentieth,
    Joined,
}

impl Rule {
    fn short(self) -> &'static str {
        match self {
            Rule::FivePerCent => "5 %",
            Rule::ATwentieth => "0.05",
            Rule::Joined => "joined",
        }
    }

    fn holds(self, ours: &Sample, reference: &Sample) -> bool {
        match self {
            Rule::FivePerCent => ours.error_pct(reference).abs() <= 5.0,
            Rule::ATwentieth => (ours.mean - reference.mean).abs() <= 0.05,
            Rule::Joined => ours.joins(reference),
        }
    }
}

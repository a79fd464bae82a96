//! Chains, hidden terminals and transfers, compared with ns-3.44. `validation/ns3/ht.py` writes the
//! reference values; their columns are the keys of `validation/ns3/ht.cc`.

use super::scene::{How, datagrams, mbps, segments_mbps, transfer};
use super::{NS3, Options, Sample, Table, how, point, words};
use crate::validate::rows;
use meshpace_core::{NodeId, Time};
use meshpace_mesh::mac::FrameKind;
use meshpace_sim::{Config, Event, Probe, SimPacket};
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    set: String,
    nodes: u16,
    reach: u16,
    /// Ends of the flows, each "FROM-TO", separated by blanks.
    flows: String,
    traffic: String,
    mcs: u8,
    ampdu: u8,
    rts: u8,
    bar: u8,
    warmup: u64,
    duration: u64,
    /// Goodput of each flow, Mbit/s, separated by blanks.
    goodput: String,
    /// Half the 95 % interval of the sum of the flows.
    ci95: f64,
    /// Mean number of MPDUs in a frame of each node, separated by blanks.
    mpdus: String,
}

/// Smallest number of seeds behind a row.
const RUNS: usize = 3;

fn table() -> Vec<Row> {
    rows("ns3/ht-hops", include_str!("../../../../../validation/reference/ns3/ht-hops.csv"))
}

/// Number of data frames and number of bytes in them, by node.
struct Sizes(Vec<(u64, u64)>);

impl Probe<SimPacket> for Sizes {
    fn on(&mut self, now: Time, event: Event<'_, SimPacket>) {
        if let Event::OnAir { frame } = event
            && frame.kind == FrameKind::Data
            && now >= Time(2_000_000_000)
        {
            let sent = &mut self.0[frame.from.index()];
            *sent = (sent.0 + 1, sent.1 + u64::from(frame.bytes));
        }
    }
}

/// Goodput of a run in Mbit/s, and the mean number of MPDUs in a frame over the nodes that sent any
/// frame.
struct Seen {
    carried: f64,
    mpdus: f64,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Row {
    fn flows(&self) -> Vec<(u16, u16)> {
        let ends = |pair: &str| {
            let (from, to) = pair.split_once('-')?;
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        self.flows.split(' ').map(|pair| ends(pair).unwrap_or_else(|| panic!("embedded reference: {pair}"))).collect()
    }

    fn case(&self) -> String {
        let how = words(self.mcs, self.ampdu == 1, self.rts == 1, self.bar == 1);
        match self.set.as_str() {
            "transfer" | "transfer-hops" => {
                let hops = if self.nodes > 2 { format!(" over {} hops", self.nodes - 1) } else { String::new() };
                format!("transfer{hops} with {}, seconds {} to {}, {how}", self.traffic, self.warmup, self.duration)
            }
            "hidden" => format!("hidden pair, {how}"),
            _ => {
                let hears = match self.reach {
                    0 => "all hear each other".to_owned(),
                    1 => "only neighbours hear each other".to_owned(),
                    reach => format!("heard over {reach} hops"),
                };
                format!("{} hops, {hears}, {how}", self.nodes - 1)
            }
        }
    }

    fn config(&self) -> Config {
        // ns-3 with the limit 7 draws one more backoff from the largest window after it gave up a
        // frame (README.md of the reference).
        let how = How { retries: 8, ..how(self.mcs, self.ampdu == 1, self.rts == 1, self.bar == 1) };
        let mesh = how.mesh(self.nodes, |a, b| self.reach == 0 || a.abs_diff(b) <= self.reach);
        let (seconds, flows) = (self.duration - self.warmup, self.flows());
        let config = if self.traffic == "udp" {
            datagrams(mesh, self.nodes, &flows, (3.0 / flows.len() as f64).min(1.1), seconds)
        } else {
            transfer(mesh, self.nodes, flows[0], &self.traffic, self.warmup, seconds)
        };
        // Packets follow the line, even if nodes farther away hear them.
        let firewall = (1..self.nodes).map(|node| (NodeId(node - 1), NodeId(node))).collect();
        Config { firewall: Some(firewall), ..config }
    }

    fn run(config: &Config, traffic: &str, seed: u64) -> Seen {
        let mut sizes = Sizes(vec![(0, 0); config.positions.len()]);
        let outcome = meshpace_sim::run_with(config, seed, &mut sizes);
        let sent = sizes.0.iter().filter(|(frames, _)| *frames > 0);
        // An MPDU has 1540 bytes.
        let mpdus: Vec<f64> = sent.map(|&(frames, bytes)| bytes as f64 / 1540.0 / frames as f64).collect();
        let carried = if traffic == "udp" { mbps(&outcome).iter().sum() } else { segments_mbps(&outcome) };
        Seen { carried, mpdus: mean(&mpdus) }
    }

    /// Sum of the flows in ns-3.
    fn reference(&self) -> Sample {
        let sum = self.goodput.split(' ').filter_map(|flow| flow.parse::<f64>().ok()).sum();
        Sample { mean: sum, half_width: self.ci95, n: RUNS }
    }

    fn reference_mpdus(&self) -> f64 {
        let nodes: Vec<f64> = self.mpdus.split(' ').filter_map(|node| node.parse().ok()).filter(|&n| n > 0.0).collect();
        mean(&nodes)
    }

    /// Largest error, per cent. `None` if the difference is explained in docs/ht.md.
    fn rule(&self) -> Option<f64> {
        let how = (self.mcs, self.ampdu == 1, self.rts == 1);
        match self.set.as_str() {
            "chain" | "transfer-hops" => Some(5.0),
            "transfer" if self.traffic == "cubic" && how == (0, false, false) => None,
            "transfer" => Some(3.0),
            _ => Some(10.0),
        }
    }
}

/// Compares the goodput, and the mean size of aggregates.
pub fn compare(options: &Options) -> Vec<Table> {
    let (mut points, mut sizes) = (Vec::new(), Vec::new());
    for row in options.sampled(table(), &[9, 17, 36, 43, 60]) {
        let (config, traffic) = (row.config(), row.traffic.clone());
        let seen = options.simulate(options.seeds(RUNS), move |seed| Row::run(&config, &traffic, seed));
        let carried: Vec<f64> = seen.iter().map(|seen| seen.carried).collect();
        points.push(point(row.case(), row.reference(), Sample::of(&carried), row.rule()));
        if row.ampdu == 1 && row.traffic == "udp" {
            let mpdus: Vec<f64> = seen.iter().map(|seen| seen.mpdus).collect();
            sizes.push(point(row.case(), Sample::single(row.reference_mpdus()), Sample::of(&mpdus), None));
        }
    }
    vec![
        Table {
            name: "ht_hops",
            title: "802.11n over several hops, with hidden terminals, and transfers",
            source: NS3,
            unit: "Mbit/s",
            rule: "`ns3/ht-hops.csv`. Chains in which everybody is in carrier sense within 5 %, hidden terminals within 10 %, transfers within 3 %, over two hops within 5 %; what is shown only differs for a reason that docs/ht.md tells.",
            points,
        },
        Table {
            name: "ht_sizes",
            title: "802.11n: the mean size of aggregates",
            source: NS3,
            unit: "MPDUs in a frame, mean of the nodes that send",
            rule: "No rule: shown beside the goodput.",
            points: sizes,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_and_a_hidden_pair_carry_what_they_do_in_ns3() {
        let table = table();
        for set in ["chain", "hidden"] {
            let row = table.iter().find(|row| row.set == set).unwrap();
            let config = row.config();
            let runs = [1, 2].map(|seed| Row::run(&config, &row.traffic, seed).carried);
            let error = Sample::of(&runs).error_pct(&row.reference());
            assert!(error.abs() <= row.rule().unwrap(), "{}: {runs:?}, {error} %", row.case());
        }
    }
}

//! A chain of 802.11a at 6 Mbit/s, compared with ns-3.44. One, two and three hops of this chain
//! were also measured in the field ([`crate::validate::field`]). `validation/ns3/legacy.py` writes
//! the reference values.

use super::scene::{How, POWER_DBM, datagrams, mbps};
use super::{NS3, Options, Sample, Table, point};
use crate::validate::rows;
use meshpace_core::NodeId;
use meshpace_mesh::Propagation;
use meshpace_mesh::radio::{Channel, Links, OfdmRate};
use meshpace_sim::Config;
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    nodes: u16,
    /// 0: all nodes hear each other; 1: only neighbours do.
    reach: u16,
    /// "NODE:SHARE": this node loses that share of the data frames that it receives.
    loses: String,
    /// Offered load, Mbit/s.
    offered: f64,
    warmup: u64,
    duration: u64,
    runs: usize,
    /// Goodput, Mbit/s; the next field is half its 95 % interval.
    goodput: f64,
    ci95: f64,
}

fn table() -> Vec<Row> {
    rows("ns3/80211a", include_str!("../../../../../validation/reference/ns3/80211a.csv"))
}

impl Row {
    fn hops(&self) -> u16 {
        self.nodes - 1
    }

    /// The node whose receiver loses data frames, and the share that arrives.
    fn lossy_receiver(&self) -> Option<(u16, f64)> {
        let (node, share) = self.loses.split_once(':')?;
        Some((node.parse().ok()?, 1.0 - share.parse::<f64>().ok()?))
    }

    fn case(&self) -> String {
        let hears = if self.reach == 0 { "all hear each other" } else { "only neighbours hear each other" };
        let loses = self.lossy_receiver().map_or(String::new(), |(node, share)| {
            format!(", {:.0} % lost between nodes {} and {node}", 100.0 * (1.0 - share), node - 1)
        });
        let hops = self.hops();
        format!("{hops} hop{}, {hears}{loses}", if hops == 1 { "" } else { "s" })
    }

    fn config(&self) -> Config {
        let rate = OfdmRate::NonHt(0);
        // ns-3 draws one more backoff from the largest window after it gave up a frame, as in the
        // chains of 802.11n.
        let how = How { rate, ht: None, rts: false, retries: 8 };
        let hears = |a: u16, b: u16| a != b && (self.reach == 0 || a.abs_diff(b) <= self.reach);
        let mut mesh = how.mesh(self.nodes, hears);
        if let Some((node, share)) = self.lossy_receiver() {
            // Frames are detected in the noise, but some of them cannot be decoded.
            mesh.radio.detect_ratio_db = 0.0;
            let weak = mesh.radio.noise_dbm + Channel::snr_for(&mesh.radio, share);
            let pairs = (0..self.nodes).flat_map(|from| (0..self.nodes).map(move |to| (from, to)));
            let power = |from, to| if (from, to) == (node - 1, node) { weak } else { POWER_DBM };
            let links = pairs.filter(|&(from, to)| hears(from, to));
            let links = links.map(|(from, to)| (NodeId(from), NodeId(to), power(from, to))).collect();
            mesh.radio.propagation = Propagation::Links(Links::new(links));
        }
        let share = self.offered / 6.0;
        let config = datagrams(mesh, self.nodes, &[(0, self.hops())], share, self.duration - self.warmup);
        // Packets follow the line, even if nodes farther away hear them.
        let firewall = (1..self.nodes).map(|node| (NodeId(node - 1), NodeId(node))).collect();
        Config { firewall: Some(firewall), ..config }
    }

    fn reference(&self) -> Sample {
        Sample { mean: self.goodput, half_width: self.ci95, n: self.runs }
    }

    /// Largest error, per cent. `None` for three hops with a lossy receiver, which are only shown.
    /// Such a receiver near other senders loses more frames here, where noise causes the loss, than
    /// in ns-3, where the loss is random.
    fn rule(&self) -> Option<f64> {
        match (self.hops(), self.lossy_receiver()) {
            (1, _) => Some(1.0),
            (2, _) | (_, None) => Some(5.0),
            _ => None,
        }
    }
}

/// Compares the goodput.
pub fn compare(options: &Options) -> Vec<Table> {
    let compared = |row: Row| {
        let runs = options.runs(&row.config(), options.seeds(row.runs));
        let ours: Vec<f64> = runs.iter().map(|outcome| mbps(outcome).iter().sum()).collect();
        point(row.case(), row.reference(), Sample::of(&ours), row.rule())
    };
    vec![Table {
        name: "ht_80211a",
        title: "802.11a: a chain at 6 Mbit/s",
        source: NS3,
        unit: "Mbit/s",
        rule: "`ns3/80211a.csv`. UDP, offered more than the chain carries. One hop within 1 %, others within 5 %; three hops with a link that loses are shown.",
        points: options.sampled(table(), &[0, 5]).into_iter().map(compared).collect(),
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hops_carry_what_they_do_in_ns3() {
        let two = table().into_iter().filter(|row| row.hops() == 2);
        let two: Vec<Row> = two.collect();
        assert_eq!(two.len(), 3, "neighbours only, everybody, and a link that loses");
        for row in two {
            let runs = [1, 2].map(|seed| mbps(&meshpace_sim::run(&row.config(), seed)).iter().sum::<f64>());
            let error = Sample::of(&runs).error_pct(&row.reference());
            assert!(error.abs() <= row.rule().unwrap(), "{}: {runs:?}, {error} %", row.case());
        }
    }
}

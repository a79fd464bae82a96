//! Links, cells and transfers over one hop, compared with ns-3.44: ad hoc, HT20, fixed MCS, 5 GHz,
//! all stations in range.

use super::scene::{datagrams, mbps, segments_mbps, transfer};
use super::{NS3, Options, Sample, Table, how, point, words};
use crate::validate::rows;
use meshpace_sim::Config;
use serde::Deserialize;

#[derive(Deserialize)]
struct Row {
    set: String,
    n: u16,
    traffic: String,
    tcp: String,
    mcs: u8,
    ampdu: u8,
    rts: u8,
    bar: u8,
    warm_s: u64,
    dur_s: u64,
    runs: usize,
    goodput_mbps: f64,
    ci95: f64,
}

fn table() -> Vec<Row> {
    rows("ns3/ht", include_str!("../../../../../validation/reference/ns3/ht.csv"))
}

impl Row {
    fn config(&self) -> Config {
        let how = how(self.mcs, self.ampdu == 1, self.rts == 1, self.bar == 1);
        if self.traffic == "tcp" {
            let control = self.tcp.to_lowercase();
            return transfer(how.mesh(2, |_, _| true), 2, (0, 1), &control, self.warm_s, self.dur_s);
        }
        let stations = self.stations();
        let ends: Vec<(u16, u16)> = (1..=stations).map(|station| (station, 0)).collect();
        let share = (3.0 / f64::from(stations)).min(1.1);
        datagrams(how.mesh(stations + 1, |_, _| true), stations + 1, &ends, share, self.dur_s)
    }

    /// Number of sending stations. The pair is 1 -> 0 <- 2 with all stations in range.
    fn stations(&self) -> u16 {
        if self.set.starts_with("4-pair") { 2 } else { self.n }
    }

    fn case(&self) -> String {
        let what = match (self.traffic.as_str(), self.stations()) {
            ("tcp", _) => {
                format!("transfer with {}, seconds {} to {}", self.tcp, self.warm_s, self.warm_s + self.dur_s)
            }
            (_, 1) => "one link, UDP".to_owned(),
            (_, stations) => format!("{stations} stations, UDP"),
        };
        format!("{what}, {}", words(self.mcs, self.ampdu == 1, self.rts == 1, self.bar == 1))
    }

    /// Largest error, per cent. `None` for transfers at MCS 0 and for CUBIC, which are only shown.
    /// At MCS 0 the queue of 500 packets takes a second to drain, so ten seconds hold few round
    /// trips and one recovery. The five seconds of CUBIC begin in the recovery after slow start.
    /// The rows of [`super::hops`] have later seconds.
    fn rule(&self) -> Option<f64> {
        match (self.traffic.as_str(), self.stations()) {
            ("tcp", _) => (self.mcs != 0 && self.tcp == "NewReno").then_some(3.0),
            (_, 1) => Some(1.0),
            _ => Some(3.0),
        }
    }
}

/// Compares the sum of the flows.
pub fn compare(options: &Options) -> Vec<Table> {
    let mut points = Vec::new();
    for row in options.sampled(table(), &[0, 15, 25, 34, 44]) {
        let runs = options.runs(&row.config(), options.seeds(row.runs));
        let sum = |outcome| if row.traffic == "tcp" { segments_mbps(outcome) } else { mbps(outcome).iter().sum() };
        let ours: Vec<f64> = runs.iter().map(sum).collect();
        let reference = Sample { mean: row.goodput_mbps, half_width: row.ci95, n: row.runs };
        points.push(point(row.case(), reference, Sample::of(&ours), row.rule()));
    }
    vec![Table {
        name: "ht_links",
        title: "802.11n over one hop: links, cells, transfers",
        source: NS3,
        unit: "Mbit/s",
        rule: "`ns3/ht.csv`. One link with UDP within 1 %, cells and transfers within 3 %. The first seconds of CUBIC and of transfers at MCS 0 are shown (docs/ht.md).",
        points,
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_and_a_pair_carry_what_they_do_in_ns3() {
        // One seed of a link and of a pair without aggregates, 10 s: some 15,000 frames.
        let of = |row: &&Row| (row.mcs, row.ampdu, row.rts) == (3, 0, 0) && row.traffic == "udp";
        let table = table();
        let rows: Vec<&Row> = table.iter().filter(of).collect();
        assert_eq!(rows.len(), 2, "the link, and the pair in range");
        for row in rows {
            let ours: f64 = mbps(&meshpace_sim::run(&row.config(), 1)).iter().sum();
            let error = 100.0 * (ours / row.goodput_mbps - 1.0);
            assert!(error.abs() <= row.rule().unwrap(), "{}: {ours}, {error} %", row.case());
        }
    }
}

//! Links and cells against ns-3.44: ad hoc, HT20, fixed MCS, 5 GHz. Figures and set-up: `validation/reference/ns3/ht.csv`.

use super::scene::{How, datagrams, mbps, transfer};
use meshpace_mesh::HtConfig;

/// How a case of the table is run here.
fn how(mcs: u8, aggregates: bool, rts: bool, asks: bool) -> How {
    let mpdus = if aggregates { 64 } else { 1 };
    How { ht: Some(HtConfig { mpdus, asks, ..HtConfig::default() }), ..How::mcs(mcs, mpdus, rts) }
}

fn compare(case: &str, ours: f64, theirs: f64, limit: f64) {
    let error = 100.0 * (ours / theirs - 1.0);
    println!("{case}: {ours:.3}, ns-3 {theirs:.3}, {error:+.2} %");
    assert!(error.abs() <= limit, "{case}: {ours:.3}, ns-3 {theirs:.3}, {error:+.2} %");
}

fn rows() -> Vec<Vec<&'static str>> {
    let text = include_str!("../../../../validation/reference/ns3/ht.csv");
    text.lines().skip(1).map(|line| line.split(',').collect()).collect()
}

#[test]
fn links_and_cells_carry_what_they_do_in_ns3() {
    for row in rows() {
        let [set, _, _, n, traffic, tcp, mcs, ampdu, rts, bar] = row[..10] else { panic!("{row:?}") };
        let (stations, mcs): (u16, u8) = (n.parse().unwrap(), mcs.parse().unwrap());
        let how = how(mcs, ampdu == "1", rts == "1", bar == "1");
        let theirs: f64 = row[15].parse().unwrap();
        let case = format!("{set} {n} {traffic} {tcp} MCS {mcs} A-MPDU {ampdu} RTS {rts} BAR {bar}");
        if traffic == "tcp" {
            if tcp == "NewReno" {
                let config = transfer(how.mesh(2, |_, _| true), 2, (0, 1), "newreno", 2, 10);
                let ours = meshpace_sim::run(&config, 1).flows[0].goodput_bps / 1e6 * 1448.0 / 1460.0;
                // At MCS 0 the queue of 500 packets takes a second to drain, so that ten seconds hold few round trips and one recovery:
                // shown, and asked for nothing.
                compare(&case, ours, theirs, if mcs == 0 { f64::INFINITY } else { 3.0 });
            }
            continue;
        }
        // "4-pair-inrange": 1 -> 0 <- 2, everybody in range.
        let stations = if set.starts_with("4-pair") { 2 } else { stations };
        let (ends, limit): (Vec<_>, _) =
            ((1..=stations).map(|n| (n, 0)).collect(), if set == "1-link" { 1.0 } else { 3.0 });
        let share = (3.0 / f64::from(stations)).min(1.1);
        let config = datagrams(how.mesh(stations + 1, |_, _| true), stations + 1, &ends, share, 10);
        let seeds = if stations == 1 { 1 } else { 3 };
        let sum: f64 = (1..=seeds).map(|seed| mbps(&meshpace_sim::run(&config, seed)).iter().sum::<f64>()).sum();
        compare(&case, sum / seeds as f64, theirs, limit);
    }
}

//! Saturated stations of one cell against theory: within 2 %.

use super::scene::{How, datagrams, mbps};
use super::theory::Cell;
use meshpace_mesh::HtConfig;

/// Mean throughput of `n` saturated stations, Mbit/s. A missed block ACK makes everything go again, and nothing is given up, as in the
/// theory.
fn simulated(n: u16, mcs: u8, mpdus: u32, rts: bool, seconds: u64, seeds: u64) -> f64 {
    let ht = HtConfig { mpdus, asks: false, ..HtConfig::default() };
    let how = How { ht: Some(ht), retries: 255, ..How::mcs(mcs, mpdus, rts) };
    let ends: Vec<(u16, u16)> = (1..=n).map(|station| (station, 0)).collect();
    let config = datagrams(how.mesh(n + 1, |_, _| true), n + 1, &ends, (4.0 / f64::from(n)).min(1.1), seconds);
    let runs = (1..=seeds).map(|seed| mbps(&meshpace_sim::run(&config, seed)).iter().sum::<f64>());
    runs.sum::<f64>() / seeds as f64
}

fn check(stations: &[u16], seconds: u64, seeds: u64) {
    // As many aggregates at each rate: what chance leaves is a small part of the 2 %.
    for (mcs, seconds) in [(0, 10 * seconds), (3, 3 * seconds), (7, seconds)] {
        for mpdus in [1, 4, 16, 64] {
            for rts in [false, true] {
                for &n in stations {
                    let (ours, theory) =
                        (simulated(n, mcs, mpdus, rts, seconds, seeds), Cell::new(mcs, mpdus, rts).throughput(n));
                    let error = 100.0 * (ours / theory - 1.0);
                    let line = format!(
                        "{n} stations, MCS {mcs}, {mpdus} MPDUs, RTS {rts}: {ours:.3}, theory {theory:.3}, {error:+.2} %"
                    );
                    println!("{line}");
                    assert!(error.abs() <= 2.0, "{line}");
                }
            }
        }
    }
}

#[test]
fn one_and_ten_stations_share_what_theory_says() {
    check(&[1, 10], 5, 1);
}

#[test]
#[ignore = "minutes: the whole table"]
fn one_to_fifty_stations_share_what_theory_says() {
    check(&[1, 2, 5, 10, 20, 50], 20, 2);
}

//! Saturated stations of one cell against theory: within 2 %.

use super::scene::{How, datagrams, mbps};
use super::theory::Cell;
use meshpace_mesh::HtConfig;

/// Throughput of `n` saturated stations by seed, Mbit/s. A missed block ACK makes everything go again, and nothing is given up, as in the
/// theory.
fn simulated(n: u16, mcs: u8, mpdus: u32, rts: bool, seconds: u64, seeds: u64) -> Vec<f64> {
    let ht = HtConfig { mpdus, asks: false, ..HtConfig::default() };
    let how = How { ht: Some(ht), retries: 255, ..How::mcs(mcs, mpdus, rts) };
    let ends: Vec<(u16, u16)> = (1..=n).map(|station| (station, 0)).collect();
    let config = datagrams(how.mesh(n + 1, |_, _| true), n + 1, &ends, (4.0 / f64::from(n)).min(1.1), seconds);
    (1..=seeds).map(|seed| mbps(&meshpace_sim::run(&config, seed)).iter().sum()).collect()
}

/// Mean, and half the 95 % interval of three runs or more.
fn mean_and_half(runs: &[f64]) -> (f64, Option<f64>) {
    const T975: [f64; 4] = [4.303, 3.182, 2.776, 2.571];
    let count = runs.len() as f64;
    let mean = runs.iter().sum::<f64>() / count;
    let squares: f64 = runs.iter().map(|run| (run - mean).powi(2)).sum();
    let half = runs.len().checked_sub(3).map(|place| T975[place] * (squares / (count - 1.0) / count).sqrt());
    (mean, half)
}

fn check(stations: &[u16], seconds: u64, seeds: u64) {
    let mut misses = Vec::new();
    // As many aggregates at each rate: what chance leaves is a small part of the 2 %.
    for (mcs, seconds) in [(0, 10 * seconds), (3, 3 * seconds), (7, seconds)] {
        for mpdus in [1, 4, 16, 64] {
            for rts in [false, true] {
                for &n in stations {
                    let (ours, half) = mean_and_half(&simulated(n, mcs, mpdus, rts, seconds, seeds));
                    let theory = Cell::new(mcs, mpdus, rts).throughput(n);
                    let error = 100.0 * (ours / theory - 1.0);
                    let interval =
                        half.map_or(String::new(), |half| format!(" (95 %: +- {:.2} %)", 100.0 * half / ours));
                    let line = format!(
                        "{n} stations, MCS {mcs}, {mpdus} MPDUs, RTS {rts}: {ours:.3}, theory {theory:.3}, \
                         {error:+.2} %{interval}"
                    );
                    println!("{line}");
                    if error.abs() > 2.0 {
                        misses.push(line);
                    }
                }
            }
        }
    }
    assert_eq!(misses, Vec::<String>::new());
}

#[test]
fn one_and_ten_stations_share_what_theory_says() {
    check(&[1, 10], 5, 1);
}

#[test]
#[ignore = "minutes: the whole table"]
fn one_to_fifty_stations_share_what_theory_says() {
    check(&[1, 2, 5, 10, 20, 50], 10, 4);
}

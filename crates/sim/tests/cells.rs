//! Saturated stations around one that receives, under the `sinr` reception: nobody is favoured.

use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::config::Reception;
use meshpace_mesh::{MacProfile, MeshConfig, Position};
use meshpace_sim::{Config, Flow, Outcome, Traffic, run};
use meshpace_transport::names;

/// Stations at `places`, each of which sends as much as it can to the first, with RTS/CTS, profile `ieee`; before they do, each
/// sends one datagram alone, so that ARP has been answered.
fn saturated(places: Vec<Position>, senders: &[u16], seconds: u64) -> Config {
    let mut udp = names::lookup("udp").unwrap();
    if let meshpace_transport::Config::Udp(udp) = &mut udp {
        udp.segment = 1460;
    }
    let flow = |from: u16, start_ms: u64, rate: u64| Flow {
        from: NodeId(from),
        to: NodeId(0),
        transport: udp.clone(),
        traffic: Traffic::Cbr { rate: Rate::from_bps(rate) },
        start: Time(start_ms * 1_000_000),
        start_jitter: Duration::ZERO,
        stop: None,
    };
    let alone = senders.iter().map(|&from| flow(from, 100 + 100 * u64::from(from), 1));
    let at_once = senders.iter().map(|&from| flow(from, 5_000, 2_000_000));
    let mut mesh = MeshConfig { mac: MacProfile::Ieee.into(), ..MeshConfig::default() };
    mesh.radio.reception = Reception::Sinr;
    Config {
        duration: Duration::from_secs(10 + seconds),
        warmup: Duration::from_secs(10),
        positions: places,
        mesh,
        flows: alone.chain(at_once).collect(),
        ..Config::default()
    }
}

/// A receiver in the middle of a circle of `stations`.
fn cell(stations: u16, seconds: u64) -> Config {
    let angle = |n: u16| core::f64::consts::TAU * f64::from(n) / f64::from(stations);
    let around = (0..stations).map(|n| Position { x: 50.0 * angle(n).cos(), y: 50.0 * angle(n).sin() });
    let places = [Position { x: 0.0, y: 0.0 }].into_iter().chain(around).collect();
    saturated(places, &(1..=stations).collect::<Vec<_>>(), seconds)
}

/// Goodputs of the saturated flows, bit/s.
fn shares(outcome: &Outcome) -> Vec<f64> {
    outcome.flows[outcome.flows.len() / 2..].iter().map(|flow| flow.goodput_bps).collect()
}

fn jain(shares: &[f64]) -> f64 {
    meshpace_sim::outcome::jain(shares).unwrap()
}

#[test]
fn cells_of_five_and_ten_are_fair() {
    for stations in [5, 10] {
        let shares = shares(&run(&cell(stations, 60), 1));
        assert!(jain(&shares) >= 0.995, "{stations}: {shares:?}");
        // No order by node number either: means over 12 seeds of 40 s differ by chance only.
        let mut sums = vec![0.0; usize::from(stations)];
        for seed in 1..=12 {
            let shares = self::shares(&run(&cell(stations, 40), seed));
            sums.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share / 12.0);
        }
        let (least, most) = sums.iter().fold((f64::MAX, 0.0f64), |(low, high), &x| (low.min(x), high.max(x)));
        assert!(most / least < 1.25, "{stations}: {sums:?}");
        println!("{stations}: Jain {:.4}, spread {:.3}", jain(&shares), most / least);
    }
}

#[test]
fn two_hidden_from_nobody_share_a_receiver_equally() {
    // 1 -> 0 <- 2 on a line, 200 m apart: all sense each other. ns-3.44 has 782 and 781 kbit/s.
    let places = [0.0, -200.0, 200.0].map(|x| Position { x, y: 0.0 }).to_vec();
    let shares = shares(&run(&saturated(places, &[1, 2], 60), 1));
    assert!((shares[0] / shares[1] - 1.0).abs() < 0.05, "{shares:?}");
    assert!(shares.iter().all(|share| (share / 781.5e3 - 1.0).abs() < 0.05), "{shares:?}");
    println!("{shares:?}");
}

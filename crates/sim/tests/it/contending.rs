//! Tests of quiet trains that claim their share beside a sender that fills queues, and that stay
//! quiet among themselves.

use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::MeshConfig;
use meshpace_mesh::config::Position;
use meshpace_sim::{Config, Flow, Outcome, Traffic, run};
use meshpace_transport::names;

/// Bulk transfers from one end of a chain of four hops of 11 Mbit/s to the other, with these
/// transports. The last one stops at `last_stops`, if given. The measurement begins after `warmup`
/// seconds and lasts for 60.
fn bulk(transports: &[&str], warmup: u64, last_stops: Option<u64>, seed: u64) -> Outcome {
    let flow = |(place, name): (usize, &&str)| Flow {
        from: NodeId(0),
        to: NodeId(4),
        transport: names::lookup(name).unwrap(),
        traffic: Traffic::Ftp,
        start: Time(1_000_000_000),
        start_jitter: Duration::from_millis(100),
        stop: last_stops.filter(|_| place + 1 == transports.len()).map(|s| Time::ZERO + Duration::from_secs(s)),
        dscp: 0,
    };
    let mut mesh = MeshConfig::default();
    mesh.radio.rate = Rate::from_mbps(11);
    let config = Config {
        duration: Duration::from_secs(warmup + 60),
        warmup: Duration::from_secs(warmup),
        positions: (0..=4).map(|i| Position { x: 200.0 * f64::from(i), y: 0.0 }).collect(),
        mesh,
        flows: transports.iter().enumerate().map(flow).collect(),
        ..Config::default()
    };
    run(&config, seed)
}

/// Goodput in kbit/s of a flow beside CUBIC, and its share, over five runs.
fn beside_cubic(name: &str) -> (f64, f64) {
    let runs: Vec<Outcome> = (1..=5).map(|seed| bulk(&[name, "cubic"], 20, None, seed)).collect();
    let [own, other] = [0, 1].map(|flow| runs.iter().map(|run| run.flows[flow].goodput_bps / 5e3).sum::<f64>());
    eprintln!("{name}: {own:.0} kbit/s beside {other:.0}");
    (own, own / (own + other))
}

#[test]
fn a_third_is_theirs_beside_cubic() {
    let [plain, contending] = ["quiet-train", "quiet-train+contending"].map(beside_cubic);
    assert!(contending.1 > 1.0 / 3.0 && contending.1 < 0.5, "{contending:?}");
    // Without the claim they get almost nothing.
    assert!(plain.1 < 0.1, "{plain:?}");
}

#[test]
fn once_the_other_has_left_they_are_quiet_again() {
    let four = ["quiet-train+contending"; 4];
    let with_cubic: Vec<&str> = four.into_iter().chain(["cubic"]).collect();
    for seed in 1..=3 {
        let [alone, after] = [bulk(&four, 100, None, seed), bulk(&with_cubic, 100, Some(40), seed)];
        let worst = |run: &Outcome| run.flows[..4].iter().map(|flow| flow.delay.mean_s).fold(0.0, f64::max);
        eprintln!("mean delay at most {:.4} s alone, {:.4} s after CUBIC has left", worst(&alone), worst(&after));
        assert!(worst(&after) < 1.5 * worst(&alone), "{:?} {:?}", worst(&alone), worst(&after));
        // While CUBIC sends, the delay is much longer.
        let beside = bulk(&with_cubic, 20, None, seed);
        assert!(worst(&beside) > 5.0 * worst(&alone), "{:?}", worst(&beside));
    }
}

#[test]
fn alone_they_are_quiet_trains() {
    for seed in 1..=3 {
        let [plain, contending] =
            ["quiet-train", "quiet-train+contending"].map(|name| bulk(&[name; 3], 20, None, seed));
        let goodput = |run: &Outcome| run.flows.iter().map(|flow| flow.goodput_bps).collect::<Vec<_>>();
        assert_eq!(goodput(&plain), goodput(&contending));
    }
}

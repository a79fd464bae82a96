//! The simulator as a library: a chain of seven hops, one transfer over it, with and without pacing.
//!
//!   cargo run --release -p meshpace-examples --bin simulator
//!
//! A run is a pure function of a configuration and a seed. Scenario files are one way to write a configuration; this is another.

use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::config::Position;
use meshpace_mesh::{AodvDetection, LocalRepair, MeshConfig, RoutingConfig};
use meshpace_sim::{Config, Flow, Outcome, Traffic, run};
use meshpace_transport::names;

const HOPS: u16 = 7;

/// 30 s of `transport` over the chain.
fn simulate(transport: &str, seed: u64) -> Outcome {
    let flow = Flow {
        from: NodeId(0),
        to: NodeId(HOPS),
        transport: names::lookup(transport).expect("a name of `meshpace transports`"),
        traffic: Traffic::Ftp,
        start: Time::ZERO,
        start_jitter: Duration::from_millis(100),
        stop: None,
        dscp: 0,
    };
    let config = Config {
        duration: Duration::from_secs(30),
        warmup: Duration::from_secs(5),
        // 200 m apart, where 250 m can be decoded and 550 m sensed.
        positions: (0..=HOPS).map(|node| Position { x: 200.0 * f64::from(node), y: 0.0 }).collect(),
        mesh: MeshConfig {
            routing: RoutingConfig::aodv(LocalRepair::Ns2, AodvDetection::LinkLayer),
            ..MeshConfig::default()
        },
        flows: vec![flow],
        ..Config::default()
    };
    run(&config, seed)
}

fn main() {
    for transport in ["newreno", "tcp-ap"] {
        let runs: Vec<Outcome> = (1..=3).map(|seed| simulate(transport, seed)).collect();
        let goodput = runs.iter().map(|run| run.aggregate_goodput_bps).sum::<f64>() / runs.len() as f64;
        let again: u64 = runs.iter().map(|run| run.flows[0].retransmissions).sum();
        println!("{transport:8} {:.0} kbit/s, {again} retransmissions in {} runs", goodput / 1e3, runs.len());
    }
}

#[test]
fn pacing_spares_retransmissions_and_a_run_can_be_repeated() {
    let [newreno, paced] = ["newreno", "tcp-ap"].map(|transport| simulate(transport, 1));
    // AP05, section 4.4: hidden terminals drop what is sent in bursts.
    assert!(paced.flows[0].retransmissions < newreno.flows[0].retransmissions / 2);
    assert_eq!(simulate("tcp-ap", 1).fingerprint, paced.fingerprint);
}

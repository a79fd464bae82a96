//! Tests the window that adapts to the path over chains of 802.11 hops: it carries as much data,
//! and delays other traffic as little, as three segments.

use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::MeshConfig;
use meshpace_mesh::config::Position;
use meshpace_sim::{Config, Flow, Traffic, run};
use meshpace_transport::tpa::window::Rule;
use meshpace_transport::tpa::{ack, names};
use meshpace_transport::{self as transport, udp};

/// Bulk data as over UDP, with messages of 64 bytes five times a second beside it. Returns the
/// goodput in kbit/s and the messages' mean delay in ms, over four runs.
fn bulk_and_messages(window: Rule, hops: u16, rate: Rate) -> (f64, f64) {
    let mut tpa = names::plain(3, ack::Rule::EveryOther);
    (tpa.window, tpa.ack_block_end, tpa.fill_timeout) = (window, true, Duration::ZERO);
    tpa.rto.margin = Duration::from_millis(150);
    let message = udp::Config { segment: 64, ..Default::default() };
    let flow = |transport, traffic| Flow {
        from: NodeId(0),
        to: NodeId(hops),
        transport,
        traffic,
        start: Time(1_000_000_000),
        start_jitter: Duration::from_millis(100),
        stop: None,
        dscp: 0,
    };
    let mut mesh = MeshConfig::default();
    mesh.radio.rate = rate;
    let config = Config {
        duration: Duration::from_secs(120),
        warmup: Duration::from_secs(20),
        positions: (0..=hops).map(|i| Position { x: 200.0 * f64::from(i), y: 0.0 }).collect(),
        mesh,
        flows: vec![
            flow(transport::Config::Tpa(tpa), Traffic::Ftp),
            flow(transport::Config::Udp(message), Traffic::Cbr { rate: Rate(64 * 8 * 5) }),
        ],
        ..Config::default()
    };
    let runs: Vec<_> = (1..=4).map(|seed| run(&config, seed)).collect();
    let mean = |of: &dyn Fn(&meshpace_sim::Outcome) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    (mean(&|run| run.flows[0].goodput_bps / 1e3), mean(&|run| run.flows[1].delay.mean_s * 1e3))
}

#[test]
fn over_hops_of_802_11_it_is_no_worse_than_three() {
    for (hops, rate) in [(4, 2), (4, 11), (6, 2), (2, 11)] {
        let rate = Rate::from_mbps(rate);
        let [three, auto] = [Rule::Fixed(3), Rule::Auto].map(|window| bulk_and_messages(window, hops, rate));
        eprintln!("{hops} hops of {rate:?}: {three:?} with 3, {auto:?} with auto (kbit/s, ms)");
        assert!(auto.0 > 0.98 * three.0 && auto.1 < 1.03 * three.1, "{hops} hops: {three:?} {auto:?}");
    } // The effect is measurable: a fixed window of 12 does increase the delay.
    let [three, twelve] = [3, 12].map(|window| bulk_and_messages(Rule::Fixed(window), 4, Rate::from_mbps(2)));
    eprintln!("{twelve:?} with 12");
    assert!(twelve.1 > 1.2 * three.1, "{three:?} {twelve:?}");
}

//! Tests of the effects of queue disciplines and markers on whole runs: the shapes of the papers'
//! curves, not their exact values.

use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::config::{LinkConfig, MarkerConfig, Position, QueueConfig};
use meshpace_mesh::link::dcc::DccConfig;
use meshpace_mesh::link::llap::LlapConfig;
use meshpace_mesh::{AodvDetection, LocalRepair, MeshConfig, RoutingConfig, RtsPolicy};
use meshpace_sim::{Config, Flow, Outcome, Traffic, run};
use meshpace_transport::{self as transport, names};

const LLAP: fn() -> LinkConfig =
    || LinkConfig { queue: QueueConfig::Llap(LlapConfig::default()), ..LinkConfig::default() };

fn mesh(link: LinkConfig, routing: RoutingConfig) -> MeshConfig {
    MeshConfig { routing, link, ..MeshConfig::default() }
}

fn aodv() -> RoutingConfig {
    RoutingConfig::aodv(LocalRepair::Ns2, AodvDetection::LinkLayer)
}

fn chain(hops: u16) -> Vec<Position> {
    (0..=hops).map(|i| Position { x: 200.0 * f64::from(i), y: 0.0 }).collect()
}

/// Two chains of four hops that share their middle node: nodes 0 to 4, and 5, 6, 2, 7, 8.
fn cross() -> Vec<Position> {
    let horizontal = (0..5).map(|i| Position { x: 200.0 * f64::from(i), y: 400.0 });
    horizontal.chain([0.0, 200.0, 600.0, 800.0].map(|y| Position { x: 400.0, y })).collect()
}

fn flow(from: u16, to: u16, transport: transport::Config, traffic: Traffic, start: Duration) -> Flow {
    Flow {
        from: NodeId(from),
        to: NodeId(to),
        transport,
        traffic,
        start: Time::ZERO + start,
        start_jitter: Duration::from_millis(100),
        stop: None,
        dscp: 0,
    }
}

/// A named TCP with the papers' segments of 1000 bytes.
fn tcp(name: &str) -> transport::Config {
    let mut config = names::lookup(name).unwrap();
    if let transport::Config::Tcp(tcp) = &mut config {
        tcp.segment = 1000;
    }
    config
}

fn mean(outcomes: impl Iterator<Item = Outcome>, value: impl Fn(&Outcome) -> f64) -> f64 {
    let values: Vec<f64> = outcomes.map(|outcome| value(&outcome)).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Goodput in kbit/s of UDP with an offered load of `kbps` over ten hops.
fn udp_over_ten_hops(link: LinkConfig, kbps: u64) -> f64 {
    let udp = transport::udp::Config { segment: 1000, ..Default::default() };
    let traffic = Traffic::Cbr { rate: Rate::from_bps(kbps * 1000) };
    let config = Config {
        duration: Duration::from_secs(70),
        warmup: Duration::from_secs(20),
        positions: chain(10),
        mesh: mesh(link, aodv()),
        flows: vec![flow(0, 10, transport::Config::Udp(udp), traffic, Duration::from_secs(1))],
        ..Config::default()
    };
    mean((1..=3).map(|seed| run(&config, seed)), |outcome| outcome.aggregate_goodput_bps / 1e3)
}

/// LLAP, figure 8.
#[test]
fn beyond_capacity_udp_falls_without_llap_and_stays_with_it() {
    let loads = [20, 100, 200, 300, 400];
    let plain: Vec<f64> = loads.iter().map(|&load| udp_over_ten_hops(LinkConfig::default(), load)).collect();
    let paced: Vec<f64> = loads.iter().map(|&load| udp_over_ten_hops(LLAP(), load)).collect();
    let peak = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
    for (i, &load) in loads.iter().enumerate() {
        let offered = load as f64;
        if load <= 200 {
            // Both curves rise with the load: the whole offered load arrives.
            assert!(plain[i] > 0.97 * offered && plain[i] < 1.03 * offered, "{load}: {plain:?}");
            assert!(paced[i] > 0.97 * offered && paced[i] < 1.03 * offered, "{load}: {paced:?}");
        }
        // Frames of one packet on four neighbouring links exclude each other. A packet therefore
        // passes at most every 4 x (DIFS 50 + mean backoff 300 + RTS 352 + CTS 304 + data 4408 +
        // ACK 304 + three SIFS 30) us.
        let bound = 8e6 / (4.0 * 5748.0);
        assert!(plain[i] < bound && paced[i] < bound, "{load}: {plain:?} {paced:?}");
    }
    // Without pacing the first links carry frames that later links lose.
    assert!(plain[4] < 0.8 * peak(&plain), "does not fall: {plain:?}");
    assert!(paced[4] > 0.9 * peak(&paced), "falls: {paced:?}");
    assert!(paced[4] > 1.2 * plain[4], "{paced:?} {plain:?}");
}

/// Two crossing flows of NewReno. The second starts after 30 s, and the following 30 s are
/// measured.
fn late_second_flow(link: LinkConfig, routing: RoutingConfig, rts: RtsPolicy, seed: u64) -> Outcome {
    let mut mesh = mesh(link, routing);
    mesh.mac.rts = rts;
    let second = Duration::from_secs(30);
    let config = Config {
        duration: second + Duration::from_secs(30),
        warmup: second,
        positions: cross(),
        mesh,
        flows: vec![
            flow(0, 4, tcp("newreno"), Traffic::Ftp, Duration::ZERO),
            flow(5, 8, tcp("newreno"), Traffic::Ftp, second),
        ],
        ..Config::default()
    };
    run(&config, seed)
}

/// LLAP, figures 6 and 7, on routes that do not break and without RTS, where the first flow of
/// NewReno occupies the channel. As soon as the second flow starts, both get a share.
#[test]
fn under_llap_a_second_flow_gets_its_share_at_once() {
    let long = |link: fn() -> LinkConfig| {
        let runs = (1..=20).map(|seed| late_second_flow(link(), RoutingConfig::Static, RtsPolicy::Never, seed));
        mean(runs, |outcome| outcome.jain)
    };
    let (plain, paced) = (long(LinkConfig::default), long(LLAP));
    // Jain's index is 0.5 for one flow alone, 0.8 for a ratio of 3 : 1, and 0.96 for 3 : 2.
    assert!(paced > 0.9 && plain < 0.85, "Jain's index {paced} with LLAP, {plain} without");
}

/// LLAP's purpose, on routes that AODV finds: fewer losses for which the sender must wait.
#[test]
fn under_llap_crossing_flows_time_out_less() {
    let timeouts = |link: fn() -> LinkConfig| {
        let runs = (1..=10).map(|seed| late_second_flow(link(), aodv(), RtsPolicy::Always, seed));
        mean(runs, |outcome| outcome.flows.iter().map(|flow| flow.timeouts as f64).sum())
    };
    let (plain, paced) = (timeouts(LinkConfig::default), timeouts(LLAP));
    assert!(paced < 0.6 * plain, "{paced} timeouts with LLAP, {plain} without");
}

fn dcc(k_p: f64) -> LinkConfig {
    let marker = MarkerConfig::Dcc(DccConfig { k_p, ..DccConfig::default() });
    LinkConfig { marker, ..LinkConfig::default() }
}

/// DCC, figures 11 and 16: in windows of two seconds only one flow of NewReno sends, but both flows
/// of DCC do.
#[test]
fn dcc_lets_both_crossing_flows_live() {
    let jain_2s = |link: LinkConfig, name: &str| {
        let mut mesh = mesh(link, aodv());
        mesh.mac.rts = RtsPolicy::Never;
        let start = Duration::from_secs(1);
        let config = Config {
            duration: Duration::from_secs(120),
            warmup: Duration::from_secs(20),
            positions: cross(),
            mesh,
            flows: vec![flow(0, 4, tcp(name), Traffic::Ftp, start), flow(5, 8, tcp(name), Traffic::Ftp, start)],
            ..Config::default()
        };
        mean((1..=5).map(|seed| run(&config, seed)), |outcome| outcome.jain_2s)
    };
    let newreno = jain_2s(LinkConfig::default(), "newreno");
    let dcc = jain_2s(dcc(13.203), "dcc");
    // 0.8 is a constant ratio of 3 : 1, 0.5 one flow alone.
    assert!(newreno < 0.8, "NewReno {newreno}");
    assert!(dcc > 0.9, "DCC {dcc}");
    assert!(dcc > newreno + 0.15, "NewReno {newreno}, DCC {dcc}");
}

/// DCC, figure 10: as a function of k_p the goodput over eight hops has one maximum. Far beyond it
/// the goodput still exceeds that of standard TCP.
#[test]
fn dcc_over_eight_hops_has_one_maximum_in_k_p() {
    let goodput = |link: LinkConfig, name: &str| {
        let mut mesh = mesh(link, aodv());
        mesh.mac.rts = RtsPolicy::Never;
        let config = Config {
            duration: Duration::from_secs(100),
            warmup: Duration::from_secs(20),
            positions: chain(8),
            mesh,
            flows: vec![flow(0, 8, tcp(name), Traffic::Ftp, Duration::from_secs(1))],
            ..Config::default()
        };
        mean((1..=6).map(|seed| run(&config, seed)), |outcome| outcome.aggregate_goodput_bps / 1e3)
    };
    let newreno = goodput(LinkConfig::default(), "newreno");
    let [none, best, far] = [0.0, 7.922, 132.03].map(|k_p| goodput(dcc(k_p), "dcc"));
    assert!(best > none && best > far, "{none} {best} {far}");
    assert!(far > newreno, "{far}, NewReno {newreno}");
    // The paper's maximum is 236.1 kbit/s.
    assert!((best / 236.1 - 1.0).abs() < 0.1, "{best}");
}

//! End-to-end tests of nodes that move, of firewalls, and of applications other than bulk
//! transfers.

use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::config::Position;
use meshpace_mesh::{AodvDetection, LocalRepair, MeshConfig, OlsrConfig, OlsrMetric, RoutingConfig};
use meshpace_sim::config::TraceWrite;
use meshpace_sim::mobility::{Mobility, Move, Waypoint};
use meshpace_sim::{Config, Flow, Outcome, Traffic, run};
use meshpace_transport::names;

const AODV: RoutingConfig = RoutingConfig::aodv(LocalRepair::Ns2, AodvDetection::LinkLayer);

fn at(x: f64, y: f64) -> Position {
    Position { x, y }
}

fn flow(from: u16, to: u16, transport: &str, traffic: Traffic) -> Flow {
    Flow {
        from: NodeId(from),
        to: NodeId(to),
        transport: names::lookup(transport).unwrap(),
        traffic,
        start: Time(1_000_000_000),
        start_jitter: Duration::ZERO,
        stop: None,
        dscp: 0,
    }
}

fn config(seconds: u64, positions: Vec<Position>, flows: Vec<Flow>) -> Config {
    Config {
        duration: Duration::from_secs(seconds),
        positions,
        mesh: MeshConfig { routing: AODV, ..MeshConfig::default() },
        flows,
        ..Config::default()
    }
}

/// A flow with a constant rate from node 0 to node 1, which is out of range from 20 s to 40 s.
fn away_and_back() -> Outcome {
    let cbr = Traffic::Cbr { rate: Rate::from_bps(80_000) };
    let mut config = config(60, vec![at(0.0, 0.0), at(200.0, 0.0)], vec![flow(0, 1, "udp", cbr)]);
    let second = |s: u64| Time(s * 1_000_000_000);
    // At 100 m/s the range of 250 m is left half a second after the departure, and entered again
    // half a second before the return.
    let leg = |start, x| Move { node: NodeId(1), start: second(start), end: second(start + 1), to: at(x, 0.0) };
    config.mobility = Mobility::Scripted(vec![leg(20, 300.0), leg(39, 200.0)]);
    run(&config, 1)
}

#[test]
fn a_partitioned_network_runs_on_and_counts_the_time_without_a_path() {
    let outcome = away_and_back();
    let flow = &outcome.flows[0];
    // Node 1 is out of range from 20.5 s to 39.5 s.
    assert!((flow.time_without_path_s - 19.0).abs() < 0.15, "{}", flow.time_without_path_s);
    // Nothing arrives in that time. Before and after, almost all of the 80 kbit/s arrives, except
    // during the time until AODV sends a request again, at most 10 s.
    let sent_connected = (59.0 - 19.0) * 10_000.0;
    let delivered = flow.delivered_bytes as f64;
    assert!(delivered < sent_connected + 64.0 * 1460.0, "{delivered}");
    assert!(delivered > sent_connected - 10.5 * 10_000.0, "{delivered}");
    assert!(flow.time_without_route_s > 15.0 && flow.time_without_route_s < 32.0, "{}", flow.time_without_route_s);
}

#[test]
fn random_waypoint_is_a_function_of_the_seed() {
    let flows = vec![flow(0, 1, "newreno", Traffic::Ftp), flow(2, 3, "newreno", Traffic::Ftp)];
    let mut config = config(30, vec![at(0.0, 0.0); 30], flows);
    let pause = Duration::from_secs(20);
    let waypoint = Waypoint { width: 1000.0, height: 600.0, min_speed: 1.0, max_speed: 9.0, pause, seed: None };
    config.mobility = Mobility::Waypoint(waypoint);
    let outcome = run(&config, 1);
    assert_eq!(outcome.fingerprint, run(&config, 1).fingerprint);
    assert_ne!(outcome.fingerprint, run(&config, 2).fingerprint);
    assert!(outcome.aggregate_goodput_bps > 0.0);
    for flow in &outcome.flows {
        assert!(flow.time_without_path_s <= flow.time_without_route_s + 30.0 && flow.time_without_path_s <= 30.0);
    }
}

#[test]
fn nodes_that_rest_do_the_same_as_nodes_that_cannot_move() {
    let places: Vec<Position> = (0..6).map(|i| at(200.0 * f64::from(i), 0.0)).collect();
    let still = config(20, places, vec![flow(0, 5, "newreno", Traffic::Ftp)]);
    let mut resting = still.clone();
    // The move begins after the end of the run. The tables are computed for each transmission all
    // the same.
    let late = Move { node: NodeId(5), start: Time(90_000_000_000), end: Time(91_000_000_000), to: at(0.0, 9.0) };
    resting.mobility = Mobility::Scripted(vec![late]);
    let (still, resting) = (run(&still, 3), run(&resting, 3));
    assert_eq!((still.fingerprint, still.frames), (resting.fingerprint, resting.frames));
    assert!(still.flows[0].time_without_route_s.is_nan() && resting.flows[0].time_without_path_s == 0.0);
}

#[test]
fn a_firewall_makes_a_chain_of_nodes_that_all_hear_each_other() {
    let places: Vec<Position> = (0..4).map(|i| at(50.0 * f64::from(i), 0.0)).collect();
    let open = config(20, places, vec![flow(0, 3, "newreno", Traffic::Ftp)]);
    let mut walled = open.clone();
    walled.firewall = Some((0..3).map(|i| (NodeId(i), NodeId(i + 1))).collect());
    assert_eq!(run(&open, 1).flows[0].hops, 1);
    for routing in [AODV, RoutingConfig::Static] {
        walled.mesh.routing = routing;
        let outcome = run(&walled, 1);
        assert_eq!(outcome.flows[0].hops, 3, "{routing:?}");
        assert!(outcome.flows[0].goodput_bps > 100e3, "{routing:?}: {}", outcome.flows[0].goodput_bps);
    }
}

fn http(persistent: bool) -> Traffic {
    Traffic::Http { mean_size: 30_000.0, shape: 1.5, mean_pause: Duration::from_secs(1), persistent }
}

#[test]
fn files_arrive_one_after_the_other_on_connections_of_their_own_or_on_one() {
    for transport in ["newreno", "tpa-3"] {
        for persistent in [false, true] {
            let mut flow = flow(0, 2, transport, http(persistent));
            flow.stop = Some(Time(150_000_000_000));
            let places = (0..3).map(|i| at(200.0 * f64::from(i), 0.0)).collect();
            let outcome = run(&config(200, places, vec![flow]), 1);
            let flow = &outcome.flows[0];
            let files = &flow.completions;
            let what = format!("{transport}, persistent: {persistent}, {} files", files.len());
            // 149 s of pauses of 1 s and transfers of about half a second.
            assert!((60..150).contains(&files.len()), "{what}");
            // The files account for all delivered bytes: none is in transfer at the end.
            let bytes: u64 = files.iter().map(|file| file.bytes).sum();
            assert_eq!(bytes, flow.delivered_bytes, "{what}");
            assert!(files.iter().all(|file| file.bytes >= 10_000), "the smallest file is the scale: {what}");
            assert!(files.windows(2).all(|pair| pair[0].end < pair[1].start), "{what}");
            let busy: f64 = files.iter().map(|file| file.end.since(file.start).as_secs_f64()).sum();
            assert!((busy - flow.transferring_s).abs() < 1e-6, "{what}: {busy} s, {} s", flow.transferring_s);
            // Every byte was sent in a segment that was counted, on whichever connection.
            assert!(flow.segments_sent - flow.retransmissions >= bytes / 1460, "{what}");
        }
    }
}

#[test]
fn a_fixed_rate_stays_what_it_is_with_and_without_jitter() {
    for jitter in [0, 50] {
        let traffic = Traffic::FixedRate { rate: Rate::from_bps(100_000), jitter: Duration::from_millis(jitter) };
        let flow = flow(0, 1, "newreno", traffic);
        let outcome = run(&config(101, vec![at(0.0, 0.0), at(200.0, 0.0)], vec![flow]), 1);
        // 100 s from 1 s on: the first write at once, the last within one interval of the end.
        let delivered = outcome.flows[0].delivered_bytes as f64;
        assert!((delivered - 1_250_000.0).abs() <= 2.0 * 1460.0, "{jitter} ms: {delivered}");
    }
}

#[test]
fn a_trace_is_replayed_to_the_byte() {
    let write = |ms, bytes| TraceWrite { after: Duration::from_millis(ms), bytes };
    for (transport, expected) in [("newreno", 5_001), ("udp", 5_001)] {
        let flow = flow(0, 1, transport, Traffic::Trace { number: 0 });
        let mut config = config(20, vec![at(0.0, 0.0), at(200.0, 0.0)], vec![flow]);
        config.traces = vec![vec![write(0, 1), write(5_000, 2_000), write(5_000, 3_000)]];
        config.warmup = Duration::from_secs(1);
        let all = run(&config, 1).flows[0].delivered_bytes;
        assert_eq!(all, expected, "{transport}");
        // The first byte has arrived by 4 s, and the rest begins at 6 s.
        config.warmup = Duration::from_secs(4);
        assert_eq!(run(&config, 1).flows[0].delivered_bytes, expected - 1, "{transport}");
        config.duration = Duration::from_millis(5_999);
        assert_eq!(run(&config, 1).flows[0].delivered_bytes, 0, "{transport}");
    }
}

/// TPA, section 4.5 and figure 17: the roaming node, in the view of OLSR at the sender while a
/// transfer runs.
#[test]
fn olsr_sees_the_roaming_node_at_one_two_three_two_one_hops() {
    let places = vec![at(0.0, 0.0), at(200.0, 0.0), at(400.0, 0.0), at(100.0, 50.0)];
    let (p1, p2, p3) = (at(100.0, 50.0), at(350.0, 50.0), at(580.0, 50.0));
    let second = |s: u64| Time(s * 1_000_000_000);
    let leg = |start, to| Move { node: NodeId(3), start: second(start), end: second(start + 20), to };
    let mut config = config(280, places, vec![flow(3, 0, "tcp-3", Traffic::Ftp)]);
    config.mesh.routing = RoutingConfig::Olsr(OlsrConfig { metric: OlsrMetric::Hops, link_layer: false });
    config.mobility = Mobility::Scripted(vec![leg(40, p2), leg(100, p3), leg(160, p2), leg(220, p1)]);
    config.series = Some(Duration::from_secs(1));
    for seed in 1..=3 {
        let series = run(&config, seed).series.expect("asked for");
        let hops = |from: usize, until: usize| series.windows[from..until].iter().map(|window| window[0].hops);
        // A link is lost 6 s after the last HELLO. In the first 16 s of each stay the topology map
        // has been updated. For some seconds there may be no route if the transfer caused the loss
        // of three consecutive HELLOs, but there is never another route.
        for (arrived, expected) in [(0, 1), (60, 2), (120, 3), (180, 2), (240, 1)] {
            let (from, until) = (arrived + 16, arrived + 40);
            assert!(hops(from, until).flatten().all(|hops| hops == expected), "seed {seed}, {arrived} s");
            assert!(hops(from, until).flatten().count() > 12, "seed {seed}, {arrived} s: hardly any route");
        }
    }
}

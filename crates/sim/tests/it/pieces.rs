//! Tests of runs in windows of time and in batches of packets, and of applications that stop.

use meshpace_core::{Duration, NodeId, Time};
use meshpace_mesh::config::Position;
use meshpace_mesh::{AodvDetection, LocalRepair, MeshConfig, RoutingConfig};
use meshpace_sim::config::Batches;
use meshpace_sim::{Config, Flow, Traffic, World, run};
use meshpace_transport::names;

/// Two hops, with one flow from time zero.
fn config(transport: &str, seconds: u64) -> Config {
    let positions = [0.0, 200.0, 400.0].map(|x| Position { x, y: 0.0 }).to_vec();
    let flow = Flow {
        from: NodeId(0),
        to: NodeId(2),
        transport: names::lookup(transport).unwrap(),
        traffic: Traffic::Ftp,
        start: Time::ZERO,
        start_jitter: Duration::ZERO,
        stop: None,
        dscp: 0,
    };
    Config {
        duration: Duration::from_secs(seconds),
        positions,
        mesh: MeshConfig::default(),
        flows: vec![flow],
        ..Config::default()
    }
}

#[test]
fn windows_add_up_to_the_run_and_do_not_change_it() {
    let whole = config("tcp-ap", 30);
    let in_windows = Config { series: Some(Duration::from_millis(700)), ..whole.clone() };
    let (whole, pieces) = (run(&whole, 3), run(&in_windows, 3));
    assert_eq!(whole.fingerprint, pieces.fingerprint, "watching changes nothing");
    // Compared as text, because values that were not measured are NaN.
    assert_eq!(format!("{:?}", whole.flows), format!("{:?}", pieces.flows));
    let series = pieces.series.unwrap();
    assert_eq!(series.windows.len(), 42, "the windows of 0.7 s that 30 s complete");
    let in_windows: u64 = series.windows.iter().map(|window| window[0].delivered_bytes).sum();
    let left = whole.flows[0].delivered_bytes - in_windows;
    // The last 0.6 s are in no window: at most the data that the window of 64 segments and the air
    // allow.
    assert!(left < 600_000 / 8, "{left}");
    assert!(series.windows[10][0].rtt_mean_s > 0.0 && series.windows[10][0].hops == Some(2));
}

#[test]
fn a_run_ends_with_its_last_batch() {
    let batches = Some(Batches { packets: 200, count: 5 });
    let outcome = run(&Config { batches, ..config("newreno", 1000) }, 1);
    assert_eq!(outcome.batches.len(), 5);
    let mut before = 0.0;
    for batch in &outcome.batches {
        assert_eq!(batch.start_s, before);
        before = batch.end_s;
        // The number is checked every 0.1 s, in which 2 Mbit/s carry at most 17 segments of 1460
        // bytes.
        let packets = batch.flows[0].segments_received;
        assert!((200..217).contains(&packets), "{packets}");
        let bits = batch.flows[0].delivered_bytes as f64 * 8.0;
        assert!((batch.aggregate_goodput_bps - bits / (batch.end_s - batch.start_s)).abs() < 1e-6);
    }
    assert_eq!(outcome.ended_s, before);
    assert_eq!(outcome.measured_s, before, "measured until then");
    // With too little time there are fewer batches, and the run ends at its duration.
    let short = run(&Config { batches, ..config("newreno", 10) }, 1);
    assert!(short.batches.len() < 5 && short.ended_s == 10.0);
}

#[test]
fn a_transfer_without_end_ends_when_its_application_stops() {
    for transport in ["newreno", "tcp-ap", "tpa-3", "tpa-ap-2"] {
        let mut config = Config { series: Some(Duration::from_secs(1)), ..config(transport, 30) };
        config.flows[0].stop = Some(Time(10_000_000_000));
        let series = run(&config, 1).series.unwrap();
        let delivered = |second: usize| series.windows[second][0].delivered_bytes;
        assert!((2..9).all(|second| delivered(second) > 20_000), "{transport}");
        // Data in flight still arrives, then nothing more.
        assert!((12..30).all(|second| delivered(second) == 0), "{transport}: {}", delivered(12));
    }
}

#[test]
fn a_clone_of_a_world_goes_on_as_the_original() {
    let mut config = config("tcp-ap", 30);
    config.mesh.routing = RoutingConfig::aodv(LocalRepair::Ns2, AodvDetection::Both);
    let (middle, end) = (Time(9_321_000_000), Time(20_000_000_000));
    let mut world = World::new(&config, 5, ());
    world.advance(middle);
    let (before, mut copy) = (world.engine().fingerprint(), world.clone());
    world.advance(end);
    assert_eq!(copy.engine().fingerprint(), before, "the original has gone on alone");
    copy.advance(end);
    let whole = {
        let mut whole = World::new(&config, 5, ());
        whole.advance(end);
        whole.engine().fingerprint()
    };
    assert_ne!(whole, before);
    assert_eq!((world.engine().fingerprint(), copy.engine().fingerprint()), (whole, whole));
}

/// The longest sequence of windows without a byte from `begin` seconds on, in seconds.
fn longest_silence(windows: &[Vec<meshpace_sim::outcome::FlowWindow>], flow: usize, window_s: f64, begin: f64) -> f64 {
    let (mut longest, mut row) = (0usize, 0usize);
    for (number, window) in windows.iter().enumerate() {
        let counts = number as f64 * window_s >= begin;
        row = if counts && window[flow].delivered_bytes == 0 { row + 1 } else { 0 };
        longest = longest.max(row);
    }
    longest as f64 * window_s
}

#[test]
fn the_longest_gap_is_that_of_the_time_series() {
    // Two transfers that cross in one cell of hidden stations: each is silent for a while. Narrow
    // windows show the same gaps, up to a window at each end.
    for transport in ["newreno", "tcp-ap", "tpa-2", "quiet-train"] {
        let mut config =
            Config { series: Some(Duration::from_millis(10)), warmup: Duration::from_secs(5), ..config(transport, 40) };
        config.positions = [0.0, 200.0, 400.0, 600.0].map(|x| Position { x, y: 0.0 }).to_vec();
        let other = Flow { from: NodeId(3), to: NodeId(0), ..config.flows[0].clone() };
        config.flows[0].to = NodeId(3);
        config.flows.push(other);
        let outcome = run(&config, 1);
        let windows = outcome.series.unwrap().windows;
        for (number, flow) in outcome.flows.iter().enumerate() {
            let seen = longest_silence(&windows, number, 0.01, 5.0);
            assert!(flow.longest_gap_s > 0.01, "{transport}: {}", flow.longest_gap_s);
            assert!((flow.longest_gap_s - seen).abs() <= 0.021, "{transport}: {} and {seen}", flow.longest_gap_s);
        }
    }
}

#[test]
fn a_flow_that_gets_nothing_has_a_gap_as_long_as_the_measured_interval() {
    let mut config = Config { warmup: Duration::from_secs(3), ..config("newreno", 20) };
    // Out of every node's range.
    config.positions.push(Position { x: 5_000.0, y: 0.0 });
    config.flows[0].to = NodeId(3);
    assert_eq!(run(&config, 1).flows[0].longest_gap_s, 17.0);
    config.flows[0].start = Time(15_000_000_000);
    assert_eq!(run(&config, 1).flows[0].longest_gap_s, 5.0, "from its start on");
    config.flows[0].stop = Some(Time(18_000_000_000));
    assert_eq!(run(&config, 1).flows[0].longest_gap_s, 3.0, "until its application stops");
    (config.flows[0].start, config.flows[0].stop) = (Time(30_000_000_000), None);
    assert_eq!(run(&config, 1).flows[0].longest_gap_s, 0.0, "it has nothing to send yet");
}

#[test]
fn pauses_between_files_and_between_writes_are_no_gaps() {
    let rate = meshpace_core::Rate(1_000);
    let files =
        |persistent| Traffic::Http { mean_size: 30_000.0, shape: 1.5, mean_pause: Duration::from_secs(20), persistent };
    // A datagram of 1460 bytes every 11.7 s.
    let kinds = [("udp", Traffic::Cbr { rate }), ("newreno", Traffic::Cbr { rate })];
    let kinds = kinds.into_iter().chain([("newreno", files(false)), ("newreno", files(true)), ("tpa-2", files(false))]);
    for (transport, traffic) in kinds {
        let mut config = Config { series: Some(Duration::from_millis(10)), ..config(transport, 300) };
        config.flows[0].traffic = traffic;
        let outcome = run(&config, 1);
        let silent = longest_silence(&outcome.series.unwrap().windows, 0, 0.01, 0.0);
        let gap = outcome.flows[0].longest_gap_s;
        assert!(
            silent > 8.0 && gap > 0.0 && gap < 3.0,
            "{transport} {traffic:?}: silent for {silent} s, a gap of {gap} s"
        );
    }
}

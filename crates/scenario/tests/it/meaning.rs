//! Tests of the meaning of scenario files: units, defaults, topologies, `--set`, sweeps.

use meshpace_core::{Duration, NodeId, Rate, Time};
use meshpace_mesh::config::{
    AodvConfig, AodvDetection, LinkConfig, LocalRepair, MacProfile, MarkerConfig, OlsrConfig, OlsrMetric, QueueConfig,
    RoutingConfig, RtsPolicy,
};
use meshpace_mesh::link::{dcc, fq_codel, fq_codel_airtime, llap, lred};
use meshpace_scenario::{Scenario, Source};
use meshpace_sim::{Config, Traffic};
use meshpace_transport::pacing::AdaptiveConfig;
use meshpace_transport::{names, pacing, tcp};
use std::path::Path;

fn read(text: &str, sets: &[&str]) -> Scenario {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let source = Source { name: "mesh.toml".to_owned(), text: text.to_owned(), sets };
    Scenario::read(source, Path::new("."), "mesh").unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn config(text: &str, sets: &[&str]) -> Config {
    read(text, sets).points.into_vec().remove(0).config
}

fn tcp_of(config: &Config) -> &tcp::Config {
    match &config.flows[0].transport {
        meshpace_transport::Config::Tcp(tcp) => tcp,
        other => panic!("{other:?} is no TCP"),
    }
}

fn places(config: &Config) -> Vec<(f64, f64)> {
    config.positions.iter().map(|place| (place.x, place.y)).collect()
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let scenario = read("[[flow]]\n", &[]);
    assert_eq!((scenario.name.as_str(), scenario.seeds, scenario.points.len()), ("mesh", 1, 1));
    let config = &scenario.points[0].config;
    assert_eq!((config.duration, config.warmup), (Duration::from_secs(200), Duration::ZERO));
    assert_eq!(places(config), (0..8).map(|i| (200.0 * f64::from(i), 0.0)).collect::<Vec<_>>());
    assert_eq!(config.mesh.radio.rate, Rate::from_mbps(2));
    assert_eq!(config.mesh.radio.basic_rate, Rate::from_mbps(1));
    assert_eq!((config.mesh.mac.rts, config.mesh.link.limit), (RtsPolicy::Always, 50));
    assert_eq!((config.mesh.mac.profile, config.mesh.routing), (MacProfile::Ns2, RoutingConfig::Static));
    let flow = &config.flows[0];
    assert_eq!((flow.from, flow.to, flow.traffic), (NodeId(0), NodeId(7), Traffic::Ftp));
    assert_eq!((flow.start, flow.start_jitter, flow.stop), (Time(1_000_000_000), Duration::from_millis(100), None));
    assert_eq!(Some(&flow.transport), names::lookup("tcp-ap").as_ref());
    assert_eq!((tcp_of(config).segment, tcp_of(config).max_window), (1460, 64));
}

#[test]
fn every_key_reaches_the_run() {
    let text = "title = 'T'\nduration = '2 min'\nwarmup = '500 ms'\n[topology]\nhops = 2\nspacing = '0.1 km'\n\
        [radio]\nmodel = 'two-ray'\nrate = '11 Mbit/s'\nbasic_rate = '2 Mbit/s'\nrts_threshold = '100 B'\nqueue = 9\n\
        reception = 'ns2'\n[mac]\nprofile = 'ieee'\n[routing]\nprotocol = 'aodv'\nlocal_repair = 'rfc3561'\n\
        [[flow]]\nfrom = 2\nto = 1\ntransport = 'udp'\nsegment = 512\nstart = '0 s'\nstart_jitter = '0 s'\n\
        stop = '90 s'\ntraffic = 'cbr'\nrate = '64 kbit/s'\n";
    let scenario = read(text, &[]);
    assert_eq!(scenario.name, "T");
    let config = &scenario.points[0].config;
    assert_eq!((config.duration, config.warmup), (Duration::from_secs(120), Duration::from_millis(500)));
    // Every flow has started by then.
    let text = "duration = '50 s'\nwarmup = 'auto'\n[[flow]]\n[[flow]]\nstart = '5 s'\n";
    let point = read(text, &[]).points.into_vec().remove(0);
    assert_eq!((point.config.warmup, point.finds_warmup), (Duration::from_millis(5_100), true));
    assert_eq!(places(config), [(0.0, 0.0), (100.0, 0.0), (200.0, 0.0)]);
    assert_eq!((config.mesh.radio.rate, config.mesh.radio.basic_rate), (Rate::from_mbps(11), Rate::from_mbps(2)));
    assert_eq!((config.mesh.mac.rts, config.mesh.link.limit), (RtsPolicy::Threshold(100), 9));
    assert_eq!(config.mesh.mac.profile, MacProfile::Ieee);
    assert_eq!(config.mesh.routing, RoutingConfig::aodv(LocalRepair::Rfc3561, AodvDetection::LinkLayer));
    let flow = &config.flows[0];
    assert_eq!((flow.from, flow.to), (NodeId(2), NodeId(1)));
    assert_eq!((flow.start, flow.start_jitter, flow.stop), (Time::ZERO, Duration::ZERO, Some(Time(90_000_000_000))));
    assert_eq!(flow.traffic, Traffic::Cbr { rate: Rate::from_bps(64_000) });
    assert_eq!(flow.transport.segment(), 512);
}

#[test]
fn the_cross_is_numbered_as_the_ns_2_reference_numbers_it() {
    let config = config("[topology]\nkind = 'cross'\n[[flow]]\n[[flow]]\n", &[]);
    let horizontal = (0..5).map(|i| (200.0 * f64::from(i), 400.0));
    let vertical = [(400.0, 0.0), (400.0, 200.0), (400.0, 600.0), (400.0, 800.0)];
    assert_eq!(places(&config), horizontal.chain(vertical).collect::<Vec<_>>());
    let ends: Vec<_> = config.flows.iter().map(|flow| (flow.from.0, flow.to.0)).collect();
    assert_eq!(ends, [(0, 4), (5, 8)]);
}

#[test]
fn parallel_chains_grids_and_maps() {
    let parallel = config("[topology]\nkind = 'parallel'\nhops = 1\n[[flow]]\n[[flow]]\n", &[]);
    assert_eq!(places(&parallel), [(0.0, 0.0), (200.0, 0.0), (0.0, 400.0), (200.0, 400.0)]);
    assert_eq!((parallel.flows[1].from, parallel.flows[1].to), (NodeId(2), NodeId(3)));
    let text = "[topology]\nkind = 'grid'\nrows = 2\ncolumns = 3\nspacing = '100 m'\n[[flow]]\nfrom = 0\nto = 5\n";
    let grid = places(&config(text, &[]));
    assert_eq!(grid, [(0.0, 0.0), (100.0, 0.0), (200.0, 0.0), (0.0, 100.0), (100.0, 100.0), (200.0, 100.0)]);
    let text =
        "[topology]\nkind = 'nodes'\npositions = [['0 m', '0 m'], ['-20 m', '0.1 km']]\n[[flow]]\nfrom = 1\nto = 0\n";
    assert_eq!(places(&config(text, &[])), [(0.0, 0.0), (-20.0, 100.0)]);
}

#[test]
fn a_map_file_is_found_beside_the_scenario_and_counts_for_the_digest() {
    let directory = tempfile::tempdir().unwrap();
    let map = directory.path().join("map.csv");
    let text = "[topology]\nkind = 'nodes'\nfile = 'map.csv'\n[[flow]]\nfrom = 0\nto = 1\n";
    let read = || {
        let source = Source { name: "mesh.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
        Scenario::read(source, directory.path(), "mesh")
    };
    std::fs::write(&map, "x_m,y_m\n0,0\n150,20\n").unwrap();
    let first = read().unwrap();
    assert_eq!(places(&first.points[0].config), [(0.0, 0.0), (150.0, 20.0)]);
    std::fs::write(&map, "x_m,y_m\n0,0\n150,21\n").unwrap();
    assert_ne!(read().unwrap().digest, first.digest);
    std::fs::write(&map, "x_m,y_m\n0,0\nfar,20\n").unwrap();
    let message = read().unwrap_err().to_string();
    assert!(message.contains("map.csv:3") && message.contains("mesh.toml:3:"), "{message}");
}

#[test]
fn a_transport_can_be_spelled_out() {
    let text = "[[flow]]\n[flow.transport]\nname = 'tcp-ap-released'\ninitial_window = 1\nlimited_transmit = false\n\
        window = { kind = 'clamp', segments = 5 }\n[flow.transport.pacing]\nalpha = 0.5\nhops = 'routing-table'\n\
        delay_limit = 'none'\ninitial_interval = '20 ms'\n[flow.transport.rto]\nmin = '1 s'\nsampling = 'timestamps'\n";
    let config = config(text, &[]);
    let tcp = tcp_of(&config);
    assert_eq!((tcp.initial_window, tcp.limited_transmit), (1, false));
    assert_eq!(tcp.window, tcp::window::Config::Clamp { segments: 5 });
    let expected = AdaptiveConfig {
        alpha: 0.5,
        hops: pacing::HopSource::RoutingTable,
        delay_limit: None,
        initial_interval: Duration::from_millis(20),
        ..AdaptiveConfig::released()
    };
    assert_eq!(tcp.pacing, pacing::Config::Adaptive(expected));
    assert_eq!(tcp.rto.min, Duration::from_secs(1));
    assert_eq!(tcp.rto.sampling, tcp::rtt::Sampling::Timestamps);
    // Values of the named transport that the table does not mention are kept.
    assert!(!tcp.rto.backoff);
}

#[test]
fn a_transport_is_labelled_with_what_was_changed() {
    let scenario = read("[[flow]]\ntransport = 'tcp-ap'\n", &["flow.transport.pacing.alpha=0.5"]);
    assert_eq!(scenario.points[0].transports, ["tcp-ap{pacing.alpha=0.5}"]);
}

#[test]
fn set_reaches_every_flow_or_one() {
    let text = "[topology]\nkind = 'cross'\n[[flow]]\n[[flow]]\n";
    let scenario = read(text, &["flow.transport=newreno", "flow.1.transport=cwl", "flow.0.segment=512"]);
    assert_eq!(scenario.points[0].transports, ["newreno", "cwl"]);
    let segments: Vec<_> = scenario.points[0].config.flows.iter().map(|flow| flow.transport.segment()).collect();
    assert_eq!(segments, [512, 1460]);
}

#[test]
fn set_takes_toml_values_and_bare_text() {
    for set in ["duration=30 s", "duration = \"30 s\"", "duration='30 s'"] {
        assert_eq!(config("duration = '10 s'\n[[flow]]\n", &[set]).duration, Duration::from_secs(30), "{set}");
    }
    assert_eq!(config("[[flow]]\n", &["radio.rts_cts=false"]).mesh.mac.rts, RtsPolicy::Never);
    let routing = config("[[flow]]\n", &["routing={ protocol = 'aodv', local_repair = 'off' }"]).mesh.routing;
    assert_eq!(routing, RoutingConfig::aodv(LocalRepair::Off, AodvDetection::LinkLayer));
}

#[test]
fn the_last_set_of_a_key_counts() {
    assert_eq!(config("[[flow]]\n", &["duration=30 s", "duration=40 s"]).duration, Duration::from_secs(40));
}

const SWEEP: &str = "[topology]\nhops = 7\n[[flow]]\nfrom = 0\nto = 7\n\
    [sweep]\n'topology.hops' = [3, 1]\n'flow.transport' = ['tcp-ap', 'newreno']\nseeds = 4\n";

#[test]
fn a_sweep_is_the_product_in_the_order_of_the_file() {
    let scenario = read(SWEEP, &[]);
    assert_eq!(scenario.seeds, 4);
    let points: Vec<_> =
        scenario.points.iter().map(|p| (p.config.positions.len() - 1, p.transports[0].as_str())).collect();
    assert_eq!(points, [(3, "tcp-ap"), (3, "newreno"), (1, "tcp-ap"), (1, "newreno")]);
    let keys: Vec<_> = scenario.points[0].values.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["topology.hops", "flow.transport"]);
}

#[test]
fn several_sweeps_follow_one_another() {
    let text = "[[flow]]\n[[sweep]]\n'topology.hops' = [1, 2]\nseeds = 3\n[[sweep]]\n'topology.hops' = [5]\n";
    let scenario = read(text, &["flow.segment=500"]);
    let hops: Vec<_> = scenario.points.iter().map(|point| point.config.positions.len() - 1).collect();
    assert_eq!((hops, scenario.seeds), (vec![1, 2, 5], 3));
}

#[test]
fn the_last_node_of_a_chain_follows_a_sweep_over_its_hops() {
    let ends: Vec<_> = read(SWEEP, &[]).points.iter().map(|point| point.config.flows[0].to.0).collect();
    assert_eq!(ends, [3, 3, 1, 1]);
    // An end that is not the last node of the chain is not changed.
    let text = "[topology]\nhops = 7\n[[flow]]\nto = 1\n[sweep]\n'topology.hops' = [1, 2]\n";
    let ends: Vec<_> = read(text, &[]).points.iter().map(|point| point.config.flows[0].to.0).collect();
    assert_eq!(ends, [1, 1]);
}

#[test]
fn the_last_node_of_a_chain_follows_set_as_it_follows_a_sweep() {
    let ends = |text: &str, sets: &[&str]| -> Vec<(u16, u16)> {
        config(text, sets).flows.iter().map(|flow| (flow.from.0, flow.to.0)).collect()
    };
    let text = "[topology]\nhops = 7\n[[flow]]\nfrom = 0\nto = 7\n[[flow]]\nfrom = 7\nto = 1\n";
    for hops in [4, 10] {
        let swept = read(&format!("{text}[sweep]\n'topology.hops' = [{hops}]\n"), &[]);
        let swept: Vec<_> = swept.points[0].config.flows.iter().map(|flow| (flow.from.0, flow.to.0)).collect();
        assert_eq!(swept, [(0, hops), (hops, 1)]);
        assert_eq!(ends(text, &[&format!("topology.hops={hops}")]), swept);
    }
    // The whole topology, a chain without a length, and two arguments of which the last counts.
    assert_eq!(ends(text, &["topology={ kind = 'chain', hops = 3 }"])[0], (0, 3));
    assert_eq!(ends("[[flow]]\nto = 7\n", &["topology.hops=2"]), [(0, 2)]);
    assert_eq!(ends(text, &["topology.hops=2", "topology.hops=5"])[1], (5, 1));
    // An end that is set is kept, whichever argument is first. So is an end that is not the last
    // node.
    assert_eq!(ends(text, &["flow.0.to=7", "topology.hops=9"])[0], (0, 7));
    assert_eq!(ends(text, &["topology.hops=9", "flow.0.to=7"])[0], (0, 7));
    assert_eq!(ends("[topology]\nhops = 7\n[[flow]]\nto = 6\n", &["topology.hops=9"]), [(0, 6)]);
    // A topology that is not a chain has no last node.
    let parallel = "[topology]\nkind = 'parallel'\nhops = 4\n[[flow]]\nfrom = 0\nto = 4\n";
    assert_eq!(ends(parallel, &["topology.hops=6"]), [(0, 4)]);
}

#[test]
fn a_set_key_leaves_the_sweep() {
    let scenario = read(SWEEP, &["flow.transport=cwl"]);
    let points: Vec<_> =
        scenario.points.iter().map(|p| (p.config.positions.len() - 1, p.transports[0].as_str())).collect();
    assert_eq!(points, [(3, "cwl"), (1, "cwl")]);
    assert_eq!(scenario.points[0].values.len(), 1);
}

#[test]
fn queues_and_markers_by_name_are_the_papers() {
    let link = |text: &str, sets: &[&str]| config(&format!("[link]\n{text}\n[[flow]]\n"), sets).mesh.link;
    assert_eq!(link("", &[]), LinkConfig::default());
    let named = link("queue = 'llap'\nmarker = 'dcc'", &[]);
    assert_eq!((named.queue, named.marker), (QueueConfig::Llap(<_>::default()), MarkerConfig::Dcc(<_>::default())));
    let named = link("queue = 'fq-codel'\nmarker = 'lred'", &[]);
    assert_eq!((named.queue, named.marker), (QueueConfig::FqCodel(<_>::default()), MarkerConfig::Lred(<_>::default())));
    assert_eq!(link("queue = 'drop-tail'\nmarker = 'none'", &[]), LinkConfig::default());
    // `--set` and sweeps reach the parameters of a component that the file only names.
    let set = link("marker = 'dcc'", &["link.marker.k_p=3", "link.queue.kind=llap", "link.queue.alpha=0.5"]);
    assert_eq!(set.marker, MarkerConfig::Dcc(dcc::DccConfig { k_p: 3.0, ..<_>::default() }));
    assert_eq!(set.queue, QueueConfig::Llap(llap::LlapConfig { alpha: 0.5, ..<_>::default() }));
    let sweep = "[link]\nmarker = 'dcc'\n[[flow]]\n[sweep]\n'link.marker.k_p' = [0, 13.203]\n\
        'link.queue' = ['drop-tail', { kind = 'llap', queue = 10 }]\n";
    let points: Vec<_> = read(sweep, &[]).points.iter().map(|point| point.config.mesh.link).collect();
    let marker = |k_p| MarkerConfig::Dcc(dcc::DccConfig { k_p, ..<_>::default() });
    let queue = QueueConfig::Llap(llap::LlapConfig { queue: 10, ..<_>::default() });
    assert_eq!(points.len(), 4);
    assert_eq!((points[0].marker, points[0].queue), (marker(0.0), QueueConfig::DropTail));
    assert_eq!((points[3].marker, points[3].queue), (marker(13.203), queue));
}

#[test]
fn every_key_of_a_queue_and_of_a_marker_reaches_the_run() {
    let link = |text: &str| config(&format!("{text}\n[[flow]]\n"), &[]).mesh.link;
    let text = "[link.queue]\nkind = 'llap'\nalpha = 0.5\nqueue = 7\nrelay_delay = 'space'\n\
        delay_update = 'overhearing'\ndelay_base = 'waited'\nnegative_delay = true\nmax_delay = '2 s'\nby_origin = false\n\
        pace_acks = false\npatience = '300 ms'\nlimit = 'per-node'";
    let expected = llap::LlapConfig {
        alpha: 0.5,
        queue: 7,
        relay_delay: llap::RelayDelay::Space,
        delay_update: llap::DelayUpdate::Overhearing,
        delay_base: llap::DelayBase::Waited,
        negative_delay: true,
        max_delay: Duration::from_secs(2),
        by_origin: false,
        pace_acks: false,
        patience: Duration::from_millis(300),
        limit: llap::QueueLimit::PerNode,
    };
    assert_eq!(link(text).queue, QueueConfig::Llap(expected));
    let text = "[link.queue]\nkind = 'fq-codel'\nquantum = '300 B'\ntarget = '20 ms'\ninterval = '0.4 s'\n\
        limit = 100\nflows = 8\necn = false";
    let expected = fq_codel::FqCodelConfig {
        quantum: 300,
        target: Duration::from_millis(20),
        interval: Duration::from_millis(400),
        limit: 100,
        flows: 8,
        ecn: false,
    };
    assert_eq!(link(text).queue, QueueConfig::FqCodel(expected));
    let text = "[link.queue]\nkind = 'fq-codel-airtime'\nquantum = '600 B'\ntarget = '10 ms'\ninterval = '0.2 s'\nlimit = 100\nflows = 8\n\
        ecn = false\nairtime_quantum = '300 us'\naql_low = '1 ms'\naql_high = '2 ms'\naql_threshold = '3 ms'\nslow_below = '0 kbit/s'\n\
        slow_target = '30 ms'\nslow_interval = '0.5 s'";
    let expected = fq_codel_airtime::FqCodelAirtimeConfig {
        queues: fq_codel::FqCodelConfig {
            quantum: 600,
            target: Duration::from_millis(10),
            interval: Duration::from_millis(200),
            limit: 100,
            flows: 8,
            ecn: false,
        },
        airtime_quantum: Duration::from_micros(300),
        aql_low: Duration::from_millis(1),
        aql_high: Duration::from_millis(2),
        aql_threshold: Duration::from_millis(3),
        slow_target: Duration::from_millis(30),
        slow_interval: Duration::from_millis(500),
        slow_below: Rate::from_bps(0),
    };
    assert_eq!(link(text).queue, QueueConfig::FqCodelAirtime(expected));
    let text = "[link.marker]\nkind = 'lred'\nmin_threshold = 0.5\nmax_threshold = 3\nmax_probability = 0.02\n\
        action = 'drop'\npacing = false";
    let expected = lred::LredConfig {
        min_threshold: 0.5,
        max_threshold: 3.0,
        max_probability: 0.02,
        action: lred::LredAction::Drop,
        pacing: false,
    };
    assert_eq!(link(text).marker, MarkerConfig::Lred(expected));
    let text = "[link.marker]\nkind = 'dcc'\nk_p = 8\ninterval = '500 ms'\nweight = 0.5\ncounts = 'data-and-acks'\n\
        mac_ack = true\naverages = 'gamma'";
    let expected = dcc::DccConfig {
        k_p: 8.0,
        interval: Duration::from_millis(500),
        weight: 0.5,
        counts: dcc::DccCounts::DataAndAcks,
        mac_ack: true,
        averages: dcc::DccAverages::Gamma,
    };
    assert_eq!(link(text).marker, MarkerConfig::Dcc(expected));
}

#[test]
fn routing_by_protocol_metric_and_detection() {
    let routing = |text: &str| config(&format!("[routing]\n{text}\n[[flow]]\n"), &[]).mesh.routing;
    let aodv = |detection| RoutingConfig::aodv(LocalRepair::Ns2, detection);
    assert_eq!(routing("protocol = 'aodv'"), aodv(AodvDetection::LinkLayer));
    assert_eq!(routing("protocol = 'aodv'\ndetection = 'link-layer'"), aodv(AodvDetection::LinkLayer));
    assert_eq!(routing("protocol = 'aodv'\ndetection = 'hello'"), aodv(AodvDetection::Hello));
    assert_eq!(routing("protocol = 'aodv'\ndetection = 'both'\nmetric = 'etx'"), aodv(AodvDetection::Both));
    let forgetting =
        AodvConfig { delete_period: Some(Duration::from_secs(50)), ..AodvConfig::repairing(LocalRepair::Ns2) };
    assert_eq!(routing("protocol = 'aodv'\ndelete_period = '50 s'"), RoutingConfig::Aodv(forgetting));
    let olsr = |metric, link_layer| RoutingConfig::Olsr(OlsrConfig { metric, link_layer });
    assert_eq!(routing("protocol = 'olsr'"), olsr(OlsrMetric::Hops, false));
    assert_eq!(routing("protocol = 'olsr'\nmetric = 'etx'\ndetection = 'hello'"), olsr(OlsrMetric::Etx, false));
    assert_eq!(routing("protocol = 'olsr'\ndetection = 'both'"), olsr(OlsrMetric::Hops, true));
}

#[test]
fn the_digest_covers_text_and_arguments() {
    let digest = |text, sets| read(text, sets).digest;
    assert_eq!(digest("[[flow]]\n", &[]), digest("[[flow]]\n", &[]));
    assert_ne!(digest("[[flow]]\n", &[]), digest("[[flow]]\n\n", &[]));
    assert_ne!(digest("[[flow]]\n", &[]), digest("[[flow]]\n", &["flow.segment=512"]));
    assert_eq!(digest("[[flow]]\n", &[]).len(), 64);
}

/// Every file under `scenarios/` is accepted, and the examples run.
#[test]
fn the_scenarios_of_this_repository_are_accepted_and_examples_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut pending = vec![root];
    let (mut accepted, mut run) = (0, 0);
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            // A file with a paper's claims is beside its scenario and is not a scenario.
            let name = path.to_string_lossy().into_owned();
            let is_claims = name.ends_with(".published.toml") || name.ends_with("register.toml");
            if is_claims || path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let source = |sets| Source { name: path.display().to_string(), text: text.clone(), sets };
            Scenario::read(source(Vec::new()), &directory, "x").unwrap_or_else(|refusal| panic!("{refusal}"));
            accepted += 1;
            if directory.ends_with("examples") {
                let short = ["duration=10 s", "warmup=2 s"].map(str::to_owned).to_vec();
                let scenario = Scenario::read(source(short), &directory, "x").unwrap();
                for point in &scenario.points {
                    let outcome = meshpace_sim::run(&point.config, 1);
                    let what = format!("{} at {:?}", path.display(), point.values);
                    assert_eq!(outcome.flows.len(), point.config.flows.len(), "{what}");
                    assert!(outcome.aggregate_goodput_bps > 0.0, "nothing arrived: {what}");
                    run += 1;
                }
            }
        }
    }
    assert!(accepted >= 5 && run >= 20, "{accepted} accepted, {run} run: where are the scenarios?");
}

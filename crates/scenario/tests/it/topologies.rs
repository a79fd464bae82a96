//! Tests of the papers' topologies, of the parts that are drawn for each seed, and of the kinds of
//! traffic.

use meshpace_core::{Duration, NodeId, Rate};
use meshpace_mesh::config::Position;
use meshpace_mesh::radio::{Channel, Neighbours};
use meshpace_scenario::{Point, Scenario, Source};
use meshpace_sim::mobility::{Mobility, Motion};
use meshpace_sim::{Config, Traffic};
use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

fn read_in(directory: &Path, text: &str) -> Scenario {
    let source = Source { name: "mesh.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
    Scenario::read(source, directory, "mesh").unwrap_or_else(|refusal| panic!("{refusal}"))
}

fn point(text: &str) -> Point {
    read_in(Path::new("."), text).points.into_vec().remove(0)
}

fn ends(config: &Config) -> Vec<(u16, u16)> {
    config.flows.iter().map(|flow| (flow.from.0, flow.to.0)).collect()
}

fn place(config: &Config, node: usize) -> (f64, f64) {
    (config.positions[node].x, config.positions[node].y)
}

/// Number of hops over links of 250 m, by breadth-first search.
fn hops(positions: &[Position], from: u16, to: u16) -> Option<usize> {
    let mut open = VecDeque::from([(usize::from(from), 0)]);
    let mut seen = BTreeSet::from([usize::from(from)]);
    while let Some((node, distance)) = open.pop_front() {
        if node == usize::from(to) {
            return Some(distance);
        }
        for next in 0..positions.len() {
            if positions[node].distance(positions[next]) <= 250.0 && seen.insert(next) {
                open.push_back((next, distance + 1));
            }
        }
    }
    None
}

#[test]
fn the_cross_of_the_testbed_has_a_firewall() {
    let config = point("[topology]\nkind = 'tpa-cross'\n[[flow]]\n[[flow]]\n").config;
    // N1 to N4 from west to east, N8 to N5 from north to south.
    assert_eq!(
        [0, 3, 7, 4].map(|node| place(&config, node)),
        [(-300.0, 0.0), (300.0, 0.0), (0.0, 300.0), (0.0, -300.0)]
    );
    assert_eq!(ends(&config), [(0, 3), (7, 4)]);
    let links: Vec<_> = config.firewall.unwrap().iter().map(|(a, b)| (a.0, b.0)).collect();
    assert_eq!(links, [(0, 1), (1, 2), (2, 3), (4, 5), (5, 6), (6, 7)]);
}

#[test]
fn the_asymmetric_chains_overlap_in_the_middle() {
    let config = point("[topology]\nkind = 'asymmetric'\n[[flow]]\n[[flow]]\n").config;
    assert_eq!(
        [0, 4, 5, 15].map(|node| place(&config, node)),
        [(600.0, 0.0), (1400.0, 0.0), (0.0, 400.0), (2000.0, 400.0)]
    );
    assert_eq!(ends(&config), [(0, 4), (5, 15)]);
    assert_eq!([(0, 4), (5, 15)].map(|(from, to)| hops(&config.positions, from, to)), [Some(4), Some(10)]);
}

#[test]
fn the_flows_of_the_grids() {
    let config = point("[topology]\nkind = 'grid'\nflows = 'paper'\n[[flow]]\ntransport = 'newreno'\n").config;
    // FTP 1 to 3 on rows 3, 2, 1 from west to east, FTP 4 to 6 on columns 1, 2, 3 from south to
    // north.
    let places: Vec<_> =
        ends(&config).iter().map(|&(from, to)| (place(&config, from.into()), place(&config, to.into()))).collect();
    let row = |y: f64| ((0.0, y), (800.0, y));
    let column = |x: f64| ((x, 0.0), (x, 800.0));
    assert_eq!(places, [row(600.0), row(400.0), row(200.0), column(200.0), column(400.0), column(600.0)]);
    let config = point("[topology]\nkind = 'grid'\nflows = 'symmetric'\n[[flow]]\n").config;
    // A quarter turn about the middle maps each flow to the next, and the last to the first.
    let turn = |node: u16| {
        let (x, y) = place(&config, node.into());
        (800.0 - y, x)
    };
    let flows = ends(&config);
    for (flow, next) in flows.iter().zip(flows.iter().cycle().skip(1)) {
        assert_eq!((turn(flow.0), turn(flow.1)), (place(&config, next.0.into()), place(&config, next.1.into())));
    }
}

#[test]
fn flows_from_every_side_of_a_grid() {
    let text = "[topology]\nkind = 'grid'\nrows = 10\ncolumns = 10\nflows = { per_side = 5 }\n[[flow]]\n";
    let point = point(text);
    let mut patterns = BTreeSet::new();
    for seed in 1..=20 {
        let flows = ends(&point.drawn(seed).unwrap().config);
        assert_eq!(flows.len(), 20);
        let sources: BTreeSet<u16> = flows.iter().map(|flow| flow.0).collect();
        assert!(sources.len() >= 16, "only a corner can be a source of two sides");
        let side = |test: fn(u16, u16) -> bool| flows.iter().filter(|&&(from, to)| test(from, to)).count();
        let sides = [
            side(|from, to| from % 10 == 0 && to % 10 == 9),
            side(|from, to| from % 10 == 9 && to % 10 == 0),
            side(|from, to| from / 10 == 0 && to / 10 == 9),
            side(|from, to| from / 10 == 9 && to / 10 == 0),
        ];
        assert!(sides.iter().all(|&flows| flows >= 5), "{sides:?}");
        patterns.insert(flows);
    }
    assert_eq!(patterns.len(), 20);
}

const RANDOM: &str = "[topology]\nkind = 'random'\nnodes = 120\nwidth = '2500 m'\nheight = '1000 m'\n\
    flows = { count = 10, min_hops = 2, max_hops = 6 }\n[[flow]]\n";

#[test]
fn random_placements_are_connected_and_their_flows_as_long_as_asked() {
    let point = point(RANDOM);
    let mut first_places = BTreeSet::new();
    for seed in 1..=10 {
        let config = &point.drawn(seed).unwrap().config;
        assert_eq!((config.positions.len(), config.flows.len()), (120, 10));
        assert!(config.positions.iter().all(|p| (0.0..2500.0).contains(&p.x) && (0.0..1000.0).contains(&p.y)));
        assert!((1..120).all(|node| hops(&config.positions, 0, node).is_some()), "seed {seed} is not connected");
        let flows = ends(config);
        let nodes: BTreeSet<u16> = flows.iter().flat_map(|&(from, to)| [from, to]).collect();
        assert_eq!(nodes.len(), 20, "all ends differ");
        for (from, to) in flows {
            assert!(hops(&config.positions, from, to).is_some_and(|hops| (2..=6).contains(&hops)), "seed {seed}");
        }
        first_places.insert(config.positions[0].x.to_bits());
        assert_eq!(*config, point.drawn(seed).unwrap().config);
    }
    assert_eq!(first_places.len(), 10, "every seed has its own");
    // The parsed scenario is the one of seed 1.
    assert_eq!(point.config, point.drawn(1).unwrap().config);
}

#[test]
fn a_placement_can_be_shared_by_seeds() {
    let fixed = point(&RANDOM.replace("nodes", "placement = 3\nnodes"));
    let other = point(RANDOM);
    assert_eq!(fixed.drawn(1).unwrap().config, fixed.drawn(2).unwrap().config);
    assert_eq!(fixed.drawn(1).unwrap().config, other.drawn(3).unwrap().config);
}

#[test]
fn explicit_ends_stay_and_partition_can_be_allowed() {
    let text = "[topology]\nkind = 'random'\nnodes = 3\nwidth = '9 km'\nheight = '9 km'\nallow_partition = true\n\
        [[flow]]\nfrom = 2\nto = 1\n";
    let point = point(text);
    let drawn = point.drawn(8).unwrap();
    assert_eq!((ends(&drawn.config), drawn.config.positions.len()), (vec![(2, 1)], 3));
}

#[test]
fn the_roaming_node_is_one_two_three_two_one_hops_away() {
    let config = point("[routing]\nprotocol = 'aodv'\n[topology]\nkind = 'roaming'\n[[flow]]\n").config;
    assert_eq!(ends(&config), [(3, 0)]);
    let mut motion = Motion::new(&config.positions, &config.mobility, 1).unwrap();
    let mut at = |s: u64| motion.positions(meshpace_core::Time(s * 1_000_000_000));
    // TPA's roaming node: pauses, and the ends of moves.
    for (from, until, expected) in [(0, 40, 1), (60, 100, 2), (120, 160, 3), (180, 220, 2), (240, 280, 1)] {
        for second in [from, (from + until) / 2, until] {
            assert_eq!(hops(&at(second), 3, 0), Some(expected), "at {second} s");
        }
    }
    assert_eq!((at(280)[3].x, at(280)[3].y), (100.0, 50.0));
}

#[test]
fn waypoint_nodes_are_where_the_run_will_see_them() {
    let text = "[routing]\nprotocol = 'aodv'\n[topology]\nkind = 'waypoint'\nnodes = 50\nwidth = '1000 m'\n\
        height = '1000 m'\nflows = { count = 5 }\n[[flow]]\n";
    let point = point(text);
    for seed in [1, 2] {
        let config = &point.drawn(seed).unwrap().config;
        let mut motion = Motion::new(&config.positions, &config.mobility, seed).unwrap();
        assert_eq!(motion.positions(meshpace_core::Time::ZERO), config.positions);
    }
    assert_ne!(point.drawn(1).unwrap().config.positions, point.drawn(2).unwrap().config.positions);
    let Mobility::Waypoint(waypoint) = point.config.mobility else { panic!("random waypoint") };
    let expected = (1.0, 9.0, Duration::from_secs(20));
    assert_eq!((waypoint.min_speed, waypoint.max_speed, waypoint.pause), expected);
}

#[test]
fn a_map_in_degrees_with_links_can_have_a_firewall() {
    let directory = tempfile::tempdir().unwrap();
    // 0.001 degrees are 111 m, so all nodes receive each other. The links restrict this to a chain.
    let map = r#"{"nodes": [{"id": "a", "lat": 48.000, "lon": 11}, {"id": "b", "lat": 48.001, "lon": 11},
        {"id": "c", "lat": 48.002, "lon": 11}],
        "links": [{"source": "a", "target": "b"}, {"source": "c", "target": "b"}]}"#;
    std::fs::write(directory.path().join("map.json"), map).unwrap();
    let text = "[topology]\nkind = 'nodes'\nfile = 'map.json'\nfirewall = true\n[[flow]]\nfrom = 0\nto = 2\n";
    let config = read_in(directory.path(), text).points.into_vec().remove(0).config;
    assert_eq!(
        Neighbours::new(&Channel::new(&config.mesh.radio), &config.positions).adjacency()[0],
        [NodeId(1), NodeId(2)]
    );
    let mut short = config.clone();
    short.duration = Duration::from_secs(5);
    assert_eq!(meshpace_sim::run(&short, 1).flows[0].hops, 2);
}

#[test]
fn kinds_of_traffic_and_their_defaults() {
    let flow = |keys: &str| point(&format!("[[flow]]\n{keys}\n")).config.flows.remove(0);
    let voip = flow("traffic = 'voip'\nrate = '8 kbit/s'");
    assert_eq!((voip.traffic, voip.transport.segment()), (Traffic::Cbr { rate: Rate::from_bps(8_000) }, 50));
    assert!(matches!(voip.transport, meshpace_transport::Config::Udp(_)));
    let mp3 = flow("traffic = 'mp3'");
    assert_eq!((mp3.traffic, mp3.transport.segment()), (Traffic::Cbr { rate: Rate::from_bps(192_000) }, 1000));
    let http = flow("traffic = 'http'\npause = '2 s'\ntransport = 'newreno'");
    let expected =
        Traffic::Http { mean_size: 30_000.0, shape: 1.5, mean_pause: Duration::from_secs(2), persistent: false };
    assert_eq!(http.traffic, expected);
    let fixed = flow("traffic = 'fixed-rate'\nrate = '100 kbit/s'\nwrite_jitter = '10 ms'");
    let jitter = Duration::from_millis(10);
    assert_eq!(fixed.traffic, Traffic::FixedRate { rate: Rate::from_bps(100_000), jitter });
}

#[test]
fn a_trace_counts_for_the_digest() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t.csv");
    let text = "[[flow]]\ntraffic = 'trace'\ntrace = 't.csv'\n[[flow]]\n";
    std::fs::write(&trace, "time_s,bytes\n0,100\n").unwrap();
    let first = read_in(directory.path(), text);
    assert_eq!(first.points[0].config.traces.len(), 1);
    std::fs::write(&trace, "time_s,bytes\n0,101\n").unwrap();
    assert_ne!(read_in(directory.path(), text).digest, first.digest);
}

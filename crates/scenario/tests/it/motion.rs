//! Tests of movement from traces of ns-2 and BonnMotion: positions are compared with a walk in
//! small steps, and faulty traces are refused.

use meshpace_core::{NodeId, Time};
use meshpace_scenario::{Refusal, Scenario, Source};
use meshpace_sim::Mobility;
use meshpace_sim::mobility::Motion;

const HEAD: &str = "[routing]\nprotocol = 'aodv'\n[topology]\nallow_partition = true\n";
const FLOW: &str = "\n[[flow]]\nfrom = 0\nto = 1\n";

fn read(topology: &str, files: &[(&str, &str)]) -> Result<Scenario, Refusal> {
    let source = Source { name: "mesh.toml".to_owned(), text: format!("{HEAD}{topology}{FLOW}"), sets: Vec::new() };
    let load = |name: &str| {
        let found = files.iter().find(|(known, _)| *known == name);
        found.map(|(_, text)| text.as_bytes().to_vec()).ok_or_else(|| format!("{name}: not there"))
    };
    Scenario::read_with(source, &load, "mesh")
}

/// The movement of a scenario with this trace.
fn motion(topology: &str, files: &[(&str, &str)]) -> Motion {
    let scenario = read(topology, files).unwrap_or_else(|refusal| panic!("{refusal}"));
    let config = &scenario.points[0].config;
    assert_ne!(config.mobility, Mobility::Still);
    Motion::new(&config.positions, &config.mobility, 1).unwrap()
}

const ALONE: &str = "kind = 'nodes'\nmotion = 'walk.txt'";

/// A trace in the format of ns-2's `setdest`, with comments, distances and pauses. A destination is
/// changed on the way, at 14 s and at 15 s.
const NS2: &str = "\
# nodes: 2, pause: 2.00, max speed: 20.00  max x = 500.00, max y: 500.00
$node_(0) set X_ 83.36
$node_(0) set Y_ 239.43
$node_(0) set Z_ 0.000000000000
$node_(1) set X_ 300.0
$node_(1) set Y_ 0.5e2
$god_ set-dist 0 1 1
$ns_ at 2.000000000000 \"$node_(0) setdest 90.44 44.89 10.5\"
$ns_ at 3.0 \"$god_ set-dist 0 1 2\"
$ns_ at 15.0 \"$node_(0) setdest 200.0 100.0 0.0\"
$ns_ at 14.0 \"$node_(0) setdest 400.0 300.0 20.0\"
$ns_ at 0.0 \"$node_(1) setdest 300.0 450.0 25.0\"
$ns_ at 40.0 \"$node_(0) setdest 90.44 44.89 1.25\"
";

/// Position of node 0 of [`NS2`], computed in steps of a millisecond towards its destination at
/// each time.
fn walked(until_s: f64) -> (f64, f64) {
    let orders =
        [(2.0, 90.44, 44.89, 10.5), (14.0, 400.0, 300.0, 20.0), (15.0, 200.0, 100.0, 0.0), (40.0, 90.44, 44.89, 1.25)];
    let (mut x, mut y) = (83.36, 239.43);
    let (mut to, mut speed) = ((x, y), 0.0);
    for step in 0..(until_s * 1e3).round() as u64 {
        for (at_s, to_x, to_y, new_speed) in orders {
            if (at_s * 1e3) as u64 == step {
                (to, speed) = ((to_x, to_y), new_speed);
            }
        }
        let (east, north): (f64, f64) = (to.0 - x, to.1 - y);
        let left = east.hypot(north);
        let share = if left > 0.0 { (speed * 1e-3 / left).min(1.0) } else { 0.0 };
        (x, y) = (x + share * east, y + share * north);
    }
    (x, y)
}

#[test]
fn a_trace_of_ns2_moves_nodes_as_it_says_also_those_that_are_turned_back_on_the_way() {
    let mut motion = motion(ALONE, &[("walk.txt", NS2)]);
    for at_s in [0.0, 1.0, 2.0, 7.25, 13.999, 14.0, 14.5, 15.0, 30.0, 40.0, 77.0, 100.0, 300.0] {
        let place = motion.position(NodeId(0), Time((at_s * 1e9) as u64));
        let (x, y) = walked(at_s);
        assert!((place.x - x).abs() < 1e-3 && (place.y - y).abs() < 1e-3, "{at_s} s: {place:?}, by steps ({x}, {y})");
        // 400 m northwards at 25 m/s.
        let other = motion.position(NodeId(1), Time((at_s * 1e9) as u64));
        assert!((other.x - 300.0).abs() < 1e-9 && (other.y - (50.0 + 25.0 * at_s.min(16.0))).abs() < 1e-6, "{other:?}");
    }
}

#[test]
fn a_trace_of_bonnmotion_is_a_line_of_times_and_places_for_each_node() {
    let trace = "0.0 0.0 0.0 10.0 100.0 0.0 15.0 100.0 0.0 20.0 100.0 50.0\n3 250 0 4 250 10\n";
    let mut motion = motion(ALONE, &[("walk.txt", trace)]);
    for (at_s, x, y) in [(0, 0.0, 0.0), (5, 50.0, 0.0), (12, 100.0, 0.0), (17, 100.0, 20.0), (99, 100.0, 50.0)] {
        let place = motion.position(NodeId(0), Time(at_s * 1_000_000_000));
        assert!((place.x - x).abs() < 1e-9 && (place.y - y).abs() < 1e-9, "{at_s} s: {place:?}");
        let north = if at_s < 4 { 0.0 } else { 10.0 };
        let other = motion.position(NodeId(1), Time(at_s * 1_000_000_000));
        assert_eq!((other.x, other.y), (250.0, north), "its first place is where it is before");
    }
}

#[test]
fn a_map_or_a_shape_says_where_nodes_begin_and_the_trace_how_they_go_on() {
    let moves = "$ns_ at 10.0 \"$node_(1) setdest 150.0 80.0 8.0\"\n";
    let map = "name,x,y\ngate,0,0\nbus,150,0\nhouse,300,0\n";
    let files = [("walk.txt", moves), ("map.csv", map)];
    for topology in
        ["kind = 'nodes'\nfile = 'map.csv'\nmotion = 'walk.txt'", "hops = 2\nspacing = '150 m'\nmotion = 'walk.txt'"]
    {
        let mut motion = motion(topology, &files);
        let places = motion.positions(Time(15_000_000_000));
        assert_eq!(
            places.iter().map(|place| (place.x, place.y)).collect::<Vec<_>>(),
            [(0.0, 0.0), (150.0, 40.0), (300.0, 0.0)]
        );
    }
    // The digest of the scenario includes its files.
    let digest = |walk| read("hops = 2\nspacing = '150 m'\nmotion = 'walk.txt'", &[("walk.txt", walk)]).unwrap().digest;
    assert_ne!(digest(moves), digest("$ns_ at 11.0 \"$node_(1) setdest 150.0 80.0 8.0\"\n"));
}

/// Traffic in the format of ns-2's cbrgen, with other lines of such scripts.
const TRAFFIC: &str = "#\n# 0 connecting to 1 at time 2.5\n#\nset udp_(0) [new Agent/UDP]\n$ns_ attach-agent $node_(0) $udp_(0)\n\
    set null_(0) [new Agent/Null]\nset cbr_(0) [new Application/Traffic/CBR]\n$cbr_(0) set packetSize_ 512\n$ns_ connect $udp_(0) $null_(0)\n\
    $ns_ at 2.5 \"$cbr_(0) start\"\n$ns_ at 3.0 \"$node_(1) reset\";\nset tcp_(0) [$ns_ create-connection  TCP $node_(0) TCPSink $node_(1) 0]\n\
    $tcp_(0) set window_ 32\nset ftp_(0) [$tcp_(0) attach-source FTP]\nputs \"traffic loaded\"\n$god_ set-dist 0 1 1\n";

#[test]
fn traffic_in_the_script_is_passed_over_wherever_it_stands() {
    let scenario = |trace: &str| read(ALONE, &[("walk.txt", trace)]).unwrap_or_else(|refusal| panic!("{refusal}"));
    let alone = scenario(NS2);
    for trace in [
        format!("{NS2}{TRAFFIC}"),
        format!("{TRAFFIC}{NS2}"),
        format!("\u{feff}{}", format!("set val(nn) 3\n{NS2}").replace('\n', "\r\n")),
    ] {
        let config = &scenario(&trace).points[0].config;
        let expected = &alone.points[0].config;
        assert_eq!((&config.positions, &config.mobility), (&expected.positions, &expected.mobility), "{trace}");
    }
}

#[test]
fn what_is_wrong_with_a_trace_names_the_file_and_the_line() {
    let starts = "$node_(0) set X_ 0\n$node_(0) set Y_ 0\n$node_(1) set X_ 9\n$node_(1) set Y_ 0\n";
    let after = |line: &str| format!("{starts}{line}\n");
    for (trace, words) in [
        (after("$ns_ at 1.0 \"$node_(2) setdest 5 5 1\""), ["walk.txt:5:", "where node 2 begins"]),
        (after("$ns_ at 1.0 \"$node_(1) setdest 5 5\""), ["walk.txt:5:", "setdest X Y SPEED"]),
        (
            after("$ns_ at 1.0 \"$node_(1) setdest 5 north 1\""),
            ["walk.txt:5:", "a coordinate in metres, found \"north\""],
        ),
        (after("$ns_ at -1 \"$node_(1) setdest 5 5 1\""), ["walk.txt:5:", "a time in seconds"]),
        (after("$ns_ at 1 \"$node_(1) setdest 5 5 -1\""), ["walk.txt:5:", "a speed in m/s"]),
        (after("$ns_ at 1 \"$node_(one) setdest 5 5 1\""), ["walk.txt:5:", "$node_(3)"]),
        (after("$ns_ at 1 \"$node_(99999999) setdest 5 5 1\""), ["walk.txt:5:", "at most"]),
        (after("$ns_ at 1 \"$node_(1) set X_ 5\""), ["walk.txt:5:", "says nothing of movement"]),
        ("$node_(0) set X_ 4\n".to_owned(), ["walk.txt:1:", "X_ or Y_ and not the other"]),
        ("# empty\n\n".to_owned(), ["walk.txt:1:", "no movement"]),
        ("0 0 0 5 10 0\n0 9 9 5 10\n".to_owned(), ["walk.txt:2:", "5 numbers"]),
        ("0 0 0 5 10 0\n0 9 9 5 9 10 4 9 11\n".to_owned(), ["walk.txt:2:", "goes back in time"]),
        ("0 0 0 5 10 0\n0 9 9 0 9 10\n".to_owned(), ["walk.txt:2:", "jumps"]),
        ("0 0 0 inf 10 0\n".to_owned(), ["walk.txt:1:", "a time in seconds, found \"inf\""]),
        ("#3D\n0 0 0 0 5 10 0 0\n".to_owned(), ["walk.txt:1:", "three dimensions"]),
    ] {
        let refusal = read(ALONE, &[("walk.txt", &trace)]).expect_err(&trace).to_string();
        assert!(
            words.iter().all(|word| refusal.contains(word)) && refusal.contains("topology.motion"),
            "{trace}{refusal}"
        );
    }
    let map = [("map.csv", "x,y\n0,0\n50,0\n"), ("walk.txt", starts)];
    let both = "kind = 'nodes'\nfile = 'map.csv'\nmotion = 'walk.txt'";
    let refusal = read(both, &map).expect_err("two beginnings").to_string();
    assert!(refusal.contains("walk.txt:4: node 1 begins at (9, 0) here, and at (50, 0)"), "{refusal}");
    let more = [map[0], ("walk.txt", "0 0 0\n0 50 0\n1 70 0 2 80 0\n")];
    let refusal = read(both, &more).expect_err("three nodes").to_string();
    assert!(refusal.contains("walk.txt:3: there is no node 2: the topology has nodes 0 to 1"), "{refusal}");
    for (topology, words) in [
        ("kind = 'nodes'\nmotion = 'other.txt'", "other.txt: not there"),
        ("motion = 'walk.txt'\nmoves = []", "either motion or moves"),
        ("kind = 'nodes'", "motion ="),
        ("kind = 'roaming'\nmotion = 'walk.txt'", "unknown key"),
    ] {
        let refusal = read(topology, &[("walk.txt", NS2)]).expect_err(topology).to_string();
        assert!(refusal.contains(words), "{topology}: {refusal}");
    }
}

/// Node 2 moves 500 m away from node 1 in 10 s and returns at the same speed 20 s later.
const PARTS: &str = "kind = 'nodes'\npositions = [['0 m', '0 m'], ['200 m', '0 m'], ['200 m', '100 m']]\n\
    moves = [{ node = 2, to = ['700 m', '100 m'], start = '10 s', end = '20 s' }, { node = 2, to = ['200 m', '100 m'], start = '40 s', end = '50 s' }]\n";

#[test]
fn a_flow_of_moving_nodes_may_be_without_a_path_only_so_long() {
    let read = |more: &str| {
        let text = format!(
            "duration = '60 s'\n[routing]\nprotocol = 'aodv'\n[topology]\n{PARTS}{more}\n[[flow]]\nfrom = 0\nto = 1\n[[flow]]\nfrom = 0\nto = 2\n"
        );
        let source = Source { name: "mesh.toml".to_owned(), text, sets: Vec::new() };
        Scenario::read_with(source, &|_| Err("not there".to_owned()), "mesh")
    };
    let refused = |more: &str| read(more).map(drop).unwrap_err().to_string();
    assert!(read("").is_ok(), "nobody asked");
    // Links reach 250 m, so the one to node 1 ends 229 m east of it: from 14.6 s until 45.4 s. The
    // mesh is examined once a second.
    let told = refused("longest_partition = '20 s'");
    assert!(
        told.contains("with seed 1 flow 1 (node 0 to node 2) has no path of links for 31 s from 15 s on"),
        "{told}"
    );
    assert!(told.contains("longer than 20 s") && told.contains("allow_partition"), "{told}");
    assert!(read("longest_partition = '40 s'").is_ok());
    assert!(read("longest_partition = '20 s'\nallow_partition = true").is_ok());
}

#[test]
fn a_flow_that_never_has_a_path_is_refused_where_the_scenario_asks_for_paths() {
    let read = |more: &str| {
        let text = format!(
            "duration = '60 s'\n[topology]\nkind = 'waypoint'\nnodes = 4\nwidth = '9 km'\nheight = '9 km'\nmax_speed = '2 m/s'\n{more}\nflows = {{ count = 1 }}\n[routing]\nprotocol = 'aodv'\n[[flow]]\n"
        );
        let source = Source { name: "mesh.toml".to_owned(), text, sets: Vec::new() };
        Scenario::read_with(source, &|_| Err("not there".to_owned()), "mesh").map(drop)
    };
    let told = read("allow_partition = false").unwrap_err().to_string();
    assert!(told.contains("has no path of links for 60 s from 0 s on, longer than 10 s"), "{told}");
    assert!(read("").is_ok(), "summaries tell it apart from starvation");
    assert!(read("allow_partition = true").is_ok());
}

//! Tests that a wrong topology, movement, map or kind of traffic is refused, with a message that
//! names the place.

use meshpace_scenario::{Refusal, Scenario, Source};
use std::path::Path;

fn read_in(directory: &Path, text: &str) -> Result<Scenario, Refusal> {
    Scenario::read(Source { name: "mesh.toml".to_owned(), text: text.to_owned(), sets: Vec::new() }, directory, "mesh")
}

/// The line marked with `#!` is wrong. The message must name it, the file, the key, and each of
/// `words`.
#[track_caller]
fn assert_refused_in(directory: &Path, text: &str, key: &str, words: &[&str]) {
    let message = match read_in(directory, text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(refusal) => refusal.to_string(),
    };
    crate::refused::assert_names_the_place(&message, text, key, words);
}

#[track_caller]
fn assert_refused(text: &str, key: &str, words: &[&str]) {
    assert_refused_in(Path::new("."), text, key, words);
}

fn accepted(text: &str) -> Scenario {
    read_in(Path::new("."), text).unwrap_or_else(|refusal| panic!("{refusal}"))
}

#[test]
fn a_topology_without_a_path_for_a_flow() {
    let apart = "[topology] #!\nkind = 'nodes'\npositions = [['0 m', '0 m'], ['100 m', '0 m'], ['1 km', '0 m']]\n\
                 [[flow]]\nfrom = 0\nto = 2\n";
    assert_refused(apart, "topology", &["between node 0 and node 2"]);
    // The same nodes are accepted for flows that have a path.
    accepted(&apart.replace("to = 2", "to = 1").replace(" #!", ""));
}

#[test]
fn scripted_neighbours_too_far_apart_are_named() {
    let words = ["between node 0 and node 7", "nodes 0 and 1 are neighbours in the topology, but 251 m apart"];
    assert_refused("[topology] #!\nspacing = '251 m'\n[[flow]]\n", "topology", &words);
    let asymmetric = "[topology] #!\nkind = 'asymmetric'\nspacing = '300 m'\n[[flow]]\n";
    assert_refused(asymmetric, "topology", &["nodes 0 and 1", "300 m apart"]);
}

#[test]
fn a_path_longer_than_packets_live_is_refused_and_names_the_flow() {
    let chain = |hops: u32, protocol: &str| {
        format!("[topology] #!\nhops = {hops}\n[routing]\nprotocol = '{protocol}'\n[[flow]]\nto = 1\n[[flow]]\n")
    };
    for (protocol, limit) in [("static", 64), ("olsr", 64), ("aodv", 30)] {
        let words = format!("flow 1 needs {} hops from node 0 to node {}", limit + 1, limit + 1);
        assert_refused(&chain(limit + 1, protocol), "topology", &[&words, &format!("dropped after {limit}")]);
        accepted(&chain(limit, protocol).replace("#!", ""));
    }
    // If the range covers two links, half as many hops are needed.
    accepted(&chain(60, "aodv").replace(" #!", "\nspacing = '125 m'"));
    let firewall = chain(60, "aodv").replace(" #!", "  #!\nspacing = '125 m'\nfirewall = true");
    assert_refused(&firewall, "topology", &["flow 1 needs 60 hops"]);
}

#[test]
fn a_firewall_can_part_what_the_radio_joins() {
    let text = "[topology] #!\nkind = 'tpa-cross'\n[[flow]]\nfrom = 0\nto = 7\n";
    assert_refused(text, "topology", &["between node 0 and node 7"]);
    accepted(&text.replace("kind", "firewall = false\nkind"));
    accepted("[topology]\nkind = 'tpa-cross'\n[[flow]]\n[[flow]]\n");
}

#[test]
fn a_firewall_needs_neighbours_that_stay() {
    let nodes = "[topology]\nkind = 'nodes'\nfirewall = true #!\npositions = [['0 m', '0 m'], ['9 m', '0 m']]\n\
                 [[flow]]\nfrom = 0\nto = 1\n";
    assert_refused(nodes, "topology.firewall", &["does not define neighbours"]);
    let moving = "[routing]\nprotocol = 'aodv'\n[topology]\nkind = 'roaming'\nfirewall = true #!\n[[flow]]\n";
    assert_refused(moving, "topology.firewall", &["nodes that do not move"]);
}

#[test]
fn nodes_at_one_place() {
    let text = "[topology]\nkind = 'nodes'\npositions = [\n['5 m', '5 m'],\n['5 m', '5 m'], #!\n]\n[[flow]]\nfrom = 0\nto = 1\n";
    assert_refused(text, "topology", &["nodes 0 and 1 are both at (5 m, 5 m)"]);
}

#[test]
fn a_leg_of_a_movement_does_not_go_back_in_time() {
    let text =
        |legs: &str| format!("[routing]\nprotocol = 'aodv'\n[topology]\nhops = 3\nmoves = [\n{legs}\n]\n[[flow]]\n");
    let leg = |node: u8, start: u8, end: u8| {
        format!("{{ node = {node}, start = '{start} s', end = '{end} s', to = ['9 m', '9 m'] }},")
    };
    let good = [leg(1, 10, 20), leg(2, 5, 30), leg(1, 20, 21)].join("\n");
    accepted(&text(&good));
    let backward = leg(1, 20, 10) + " #!";
    assert_refused(&text(&backward), "topology.moves.0.end", &["goes back in time", "20 s"]);
    let instant = leg(1, 20, 20) + " #!";
    assert_refused(&text(&instant), "topology.moves.0.end", &["goes back in time"]);
    let overlapping = [leg(1, 10, 20), leg(2, 0, 99), leg(1, 19, 30) + " #!"].join("\n");
    assert_refused(&text(&overlapping), "topology.moves.2.start", &["goes back in time", "node 1", "until 20 s"]);
    assert_refused(&text(&(leg(4, 10, 20) + " #!")), "topology.moves.0.node", &["0 to 3"]);
    let without = "{ node = 1, start = '1 s', end = '2 s' }, #!";
    assert_refused(&text(without), "topology.moves.0.to", &["missing"]);
    let wrong = "{ node = 1, start = '1 s', end = '2 s', to = ['9 m', 9] }, #!";
    assert_refused(&text(wrong), "topology.moves.0.to", &["\"9 m\""]);
}

#[test]
fn static_routes_do_not_follow_nodes_that_move() {
    assert_refused("[topology] #!\nkind = 'roaming'\n[[flow]]\n", "routing.protocol", &["move"]);
    let text = "[routing]\nprotocol = 'static' #!\n[topology]\nkind = 'roaming'\n[[flow]]\n".replace("] #!", "]");
    let text = text.replace("[routing]\nprotocol = 'static' #!", "[routing] #!\nprotocol = 'static'");
    assert_refused(&text, "routing.protocol", &["aodv"]);
}

#[test]
fn what_is_drawn_has_bounds() {
    let random = |keys: &str| format!("[topology]\nkind = 'random'\n{keys}\n[[flow]]\n");
    let area = "width = '1000 m'\nheight = '500 m'";
    assert_refused(
        &random("width = '1 km'\nheight = '1 km'")
            .replacen("[topology]", "[topology] #!", 1)
            .replace("[[flow]]\n", "[[flow]]\nfrom = 0\nto = 1\n"),
        "topology.nodes",
        &["missing"],
    );
    assert_refused(&random(&format!("nodes = 1 #!\n{area}")), "topology.nodes", &["2 to"]);
    assert_refused(&random("nodes = 9\nwidth = '0 m' #!\nheight = '9 m'"), "topology.width", &["above zero"]);
    let sparse = "nodes = 5 #!\nwidth = '50 km'\nheight = '50 km'\nflows = { count = 1 }";
    assert_refused(
        &random(sparse),
        "topology.nodes",
        &["5 nodes in 50000 m x 50000 m", "none of 1000 random placements"],
    );
    let far = "nodes = 20 #!\nwidth = '300 m'\nheight = '300 m'\nflows = { count = 1, min_hops = 9 }";
    assert_refused(&random(far), "topology.nodes", &["none of 1000 random placements"]);
    let crowd = format!("nodes = 9\n{area}\nflows = {{ count = 5 }} #!");
    assert_refused(&random(&crowd), "topology.flows.count", &["1 to 4"]);
    let hops = format!("nodes = 9\n{area}\nflows = {{ count = 1, min_hops = 3, max_hops = 2 }} #!");
    assert_refused(&random(&hops), "topology.flows.max_hops", &["below min_hops, 3"]);
    // Ends are defined by the topology or by the flow, not by both.
    let both =
        format!("[topology]\nkind = 'random'\nnodes = 30\n{area}\nflows = {{ count = 2 }}\n[[flow]]\nfrom = 3 #!\n");
    assert_refused(&both, "flow.0.from", &["topology.flows"]);
    let three = format!(
        "[topology]\nkind = 'random'\nnodes = 30\n{area}\nflows = {{ count = 2 }}\n[[flow]] #!\n[[flow]]\n[[flow]]\n"
    );
    let message = read_in(Path::new("."), &three).unwrap_err().to_string();
    assert!(message.contains("topology.flows creates 2 flows, but the scenario has 3 [[flow]] tables"), "{message}");
}

#[test]
fn a_random_waypoint_has_a_lowest_speed() {
    let text = |keys: &str| {
        format!(
            "[routing]\nprotocol = 'aodv'\n[topology]\nkind = 'waypoint'\nnodes = 9\nwidth = '1 km'\nheight = '1 km'\n\
             flows = {{ count = 2 }}\n{keys}\n[[flow]]\n"
        )
    };
    accepted(&text("pause = '0 s'\nmin_speed = '3.6 km/h'"));
    assert_refused(&text("min_speed = '0 m/s' #!"), "topology.min_speed", &["above zero"]);
    assert_refused(&text("max_speed = '0.5 m/s' #!"), "topology.max_speed", &["below min_speed"]);
    assert_refused(&text("pause = '-1 s' #!"), "topology.pause", &["zero or more"]);
}

#[test]
fn flows_of_a_grid_need_their_grid() {
    let text = "[topology]\nkind = 'grid'\nrows = 4\nflows = 'paper' #!\n[[flow]]\n";
    assert_refused(text, "topology.flows", &["5 rows and 5 columns"]);
    assert_refused("[topology]\nkind = 'grid'\nflows = 'papers' #!\n[[flow]]\n", "topology.flows", &["\"paper\""]);
    let text = "[topology]\nkind = 'grid'\nflows = { per_side = 6 } #!\n[[flow]]\n";
    assert_refused(text, "topology.flows.per_side", &["1 to 5"]);
}

#[test]
fn a_map_with_unknown_coordinates_names_the_place_in_it() {
    let directory = tempfile::tempdir().unwrap();
    for (name, contents, words) in [
        ("m.csv", "x_m,y_m\n0,0\n5,\n", ["m.csv:3:", "metres"]),
        ("n.csv", "name,east\na,0\n", ["n.csv:1:", "x_m and y_m"]),
        ("m.graphml", "<graphml>\n<graph>\n<node id='roof'/>\n</graph></graphml>", ["m.graphml:3:", "\"roof\""]),
        (
            "m.json",
            "{\"nodes\": [{\"id\": \"roof\", \"lat\": 48}]}",
            ["m.json:1: node \"roof\":", "unknown coordinates"],
        ),
        (
            "n.json",
            "{\"nodes\": [{\"id\": \"roof\", \"lat\": 148, \"lon\": 0}]}",
            ["n.json:1: node \"roof\":", "latitude"],
        ),
    ] {
        std::fs::write(directory.path().join(name), contents).unwrap();
        let text = format!("[topology]\nkind = 'nodes'\nfile = '{name}' #!\n[[flow]]\nfrom = 0\nto = 1\n");
        assert_refused_in(directory.path(), &text, "topology.file", &words);
    }
}

#[test]
fn traffic_has_its_own_keys() {
    assert_refused(
        "[[flow]]\ntraffic = 'http' #!\n".replace("[[flow]]\n", "[[flow]] #!\n").replacen("' #!", "'", 1).as_str(),
        "flow.0.pause",
        &["missing"],
    );
    assert_refused("[[flow]]\npause = '1 s' #!\n", "flow.0.pause", &["belongs to traffic = http"]);
    assert_refused("[[flow]]\ntraffic = 'http'\npause = '1 s'\nfile_shape = 1 #!\n", "flow.0.file_shape", &["1.01"]);
    assert_refused("[[flow]]\ntraffic = 'http'\npause = '1 s'\nrate = '1 kbit/s' #!\n", "flow.0.rate", &["cbr"]);
    assert_refused("[[flow]]\ntraffic = 'http'\npause = '1 s'\ntransport = 'udp' #!\n", "flow.0.transport", &["udp"]);
    let jitter = "[[flow]]\ntraffic = 'fixed-rate'\nrate = '100 kbit/s'\nwrite_jitter = '1 s' #!\n";
    assert_refused(jitter, "flow.0.write_jitter", &["0.1168 s"]);
    assert_refused("[[flow]] #!\ntraffic = 'voip'\n", "flow.0.rate", &["missing"]);
    assert_refused("[[flow]]\ntraffic = 'voice' #!\n", "flow.0.traffic", &["\"voip\""]);
}

#[test]
fn a_trace_goes_forward_in_time() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("t.csv"), "time_s,bytes\n1,100\n0.5,100\n").unwrap();
    let text = "[[flow]]\ntraffic = 'trace'\ntrace = 't.csv' #!\n";
    assert_refused_in(directory.path(), text, "flow.0.trace", &["t.csv:3:", "back in time"]);
    assert_refused_in(directory.path(), &text.replace("t.csv", "u.csv"), "flow.0.trace", &["u.csv"]);
}

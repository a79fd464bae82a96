//! Tests that every class of mistake in a scenario is refused, with a message that names the file,
//! the line and the key.

use meshpace_scenario::{Refusal, Scenario, Source};
use std::path::Path;

fn read(text: &str, sets: &[&str]) -> Result<Scenario, Refusal> {
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    Scenario::read(Source { name: "mesh.toml".to_owned(), text: text.to_owned(), sets }, Path::new("."), "mesh")
}

fn refusal(text: &str, sets: &[&str]) -> String {
    match read(text, sets) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(refusal) => refusal.to_string(),
    }
}

/// The line marked with `#!` is wrong. The message must name it, the file, the key, and each of
/// `words`.
#[track_caller]
fn assert_refused(text: &str, key: &str, words: &[&str]) {
    crate::refused::assert_names_the_place(&refusal(text, &[]), text, key, words);
}

#[test]
fn an_unknown_key_gets_a_suggestion() {
    assert_refused("[topology]\nspacng = '200 m' #!\n[[flow]]\n", "topology.spacng", &["unknown key", "`spacing`"]);
    assert_refused("duratoin = '20 s' #!\n[[flow]]\n", "duratoin", &["`duration`"]);
    assert_refused("[[flow]]\nmaxwindow = 3 #!\n", "flow.0.maxwindow", &["`max_window`"]);
    assert_refused("[rado] #!\n[[flow]]\n", "rado", &["`radio`"]);
}

#[test]
fn a_key_of_another_kind_of_topology_is_unknown_here() {
    let text = "[topology]\nkind = 'chain'\nrows = 3 #!\n[[flow]]\n";
    assert_refused(text, "topology.rows", &["unknown key in a chain", "hops"]);
}

#[test]
fn a_missing_unit_is_told_what_to_write() {
    assert_refused("duration = 20 #!\n[[flow]]\n", "duration", &["\"20 s\""]);
    assert_refused("duration = '20' #!\n[[flow]]\n", "duration", &["\"20 s\""]);
    assert_refused("[topology]\nspacing = 200.5 #!\n[[flow]]\n", "topology.spacing", &["\"200.5 m\""]);
    assert_refused("[radio]\nrate = 2 #!\n[[flow]]\n", "radio.rate", &["\"2 Mbit/s\""]);
    assert_refused("[radio]\nrts_threshold = 100 #!\n[[flow]]\n", "radio.rts_threshold", &["\"100 B\""]);
    assert_refused("[[flow]]\nstart = 1 #!\n", "flow.0.start", &["\"1 s\""]);
}

#[test]
fn a_wrong_unit_is_told_the_right_ones() {
    assert_refused("duration = '20 m' #!\n[[flow]]\n", "duration", &["min", "ms"]);
    assert_refused("[radio]\nrate = '2 mbit/s' #!\n[[flow]]\n", "radio.rate", &["did you mean \"Mbit/s\""]);
}

#[test]
fn rates_are_above_zero_and_numbers_are_numbers() {
    for rate in ["-2 Mbit/s", "0 bit/s", "NaN Mbit/s", "inf Mbit/s", "fast"] {
        assert_refused(&format!("[radio]\nrate = '{rate}' #!\n[[flow]]\n"), "radio.rate", &["expected a"]);
    }
    // Rates that 802.11b does not have: in files, by --set and in sweeps.
    for rate in ["54 Mbit/s", "3 Mbit/s", "2000001 bit/s"] {
        assert_refused(&format!("[radio]\nrate = '{rate}' #!\n[[flow]]\n"), "radio.rate", &["11 Mbit/s", rate]);
        assert_refused(&format!("[radio]\nbasic_rate = '{rate}' #!\n[[flow]]\n"), "radio.basic_rate", &["11 Mbit/s"]);
        assert!(refusal("[[flow]]\n", &[&format!("radio.rate={rate}")]).contains("11 Mbit/s"));
        assert!(
            refusal(&format!("[[flow]]\n[sweep]\n'radio.rate' = ['2 Mbit/s', '{rate}']\n"), &[]).contains("11 Mbit/s")
        );
    }
    for rate in ["1 Mbit/s", "2000 kbit/s", "5.5 Mbit/s", "11 Mbit/s"] {
        assert!(read(&format!("[radio]\nrate = '{rate}'\n[[flow]]\n"), &[]).is_ok(), "{rate}");
    }
    assert_refused("duration = nan #!\n[[flow]]\n", "duration", &["expected a time"]);
    assert_refused(
        "[[flow]]\ntransport = { name = 'tcp-ap', pacing = { alpha = nan } } #!\n",
        "flow.0.transport.pacing.alpha",
        &[],
    );
    assert_refused(
        "[[flow]]\ntransport = { name = 'tcp-ap', pacing = { alpha = 1.5 } } #!\n",
        "flow.0.transport.pacing.alpha",
        &["0 to 1"],
    );
}

#[test]
fn a_flow_ends_at_nodes_that_are_there_and_differ() {
    assert_refused("[topology]\nhops = 3\n[[flow]]\nto = 4 #!\n", "flow.0.to", &["no node 4", "0 to 3"]);
    assert_refused("[[flow]]\nfrom = -1 #!\n", "flow.0.from", &["no node -1"]);
    assert_refused("[[flow]]\nfrom = 2\nto = 2 #!\n", "flow.0.to", &["both node 2"]);
    assert_refused("[[flow]]\nto = '7' #!\n", "flow.0.to", &["the string \"7\""]);
    let grid = "[topology]\nkind = 'grid'\n[[flow]] #!\nfrom = 3\n";
    assert_refused(grid, "flow.0.to", &["missing"]);
}

#[test]
fn a_chain_has_hops() {
    assert_refused("[topology]\nhops = 0 #!\n[[flow]]\n", "topology.hops", &["1 to 65534"]);
    assert_refused("[topology]\nhops = -3 #!\n[[flow]]\n", "topology.hops", &["found -3"]);
    assert_refused("[topology]\nhops = 2.5 #!\n[[flow]]\n", "topology.hops", &["whole number"]);
    assert_refused("[topology]\nspacing = '0 m' #!\n[[flow]]\n", "topology.spacing", &["above zero"]);
}

#[test]
fn too_many_nodes_are_refused_before_they_are_made() {
    assert_refused("[topology]\nhops = 65535 #!\n[[flow]]\n", "topology.hops", &["65534"]);
    let grid = "[topology]\nkind = 'grid'\nrows = 300 #!\ncolumns = 300\n[[flow]]\nfrom = 0\nto = 1\n";
    assert_refused(grid, "topology.rows", &["65535"]);
}

#[test]
fn two_nodes_at_one_place_are_named() {
    let text = "[topology]\nkind = 'nodes'\npositions = [\n  ['0 m', '0 m'],\n  ['200 m', '0 m'],\n  ['0 m', '-0 m'], #!\n]\n\
                [[flow]]\nfrom = 0\nto = 1\n";
    assert_refused(text, "topology", &["nodes 0 and 2", "the same place"]);
}

#[test]
fn positions_are_pairs_of_lengths() {
    let text = |position: &str| {
        format!(
            "[topology]\nkind = 'nodes'\npositions = [\n['0 m', '0 m'],\n{position} #!\n]\n[[flow]]\nfrom = 0\nto = 1\n"
        )
    };
    assert_refused(&text("['200 m', 7]"), "topology.positions", &["node 1", "\"7 m\""]);
    assert_refused(&text("['200 m']"), "topology.positions", &["node 1", "pair"]);
    assert_refused(
        "[topology]\nkind = 'nodes' #!\n[[flow]]\nfrom = 0\nto = 1\n",
        "topology.kind",
        &["positions or file"],
    );
    let missing = "[topology]\nkind = 'nodes'\nfile = 'not-there.csv' #!\n[[flow]]\nfrom = 0\nto = 1\n";
    assert_refused(missing, "topology.file", &["not-there.csv"]);
}

#[test]
fn a_topology_that_cannot_connect_is_refused_unless_that_is_wanted() {
    let text = "[topology] #!\nspacing = '251 m'\n[[flow]]\n";
    assert_refused(text, "topology", &["between node 0 and node 7", "allow_partition"]);
    assert!(read("[topology]\nspacing = '251 m'\nallow_partition = true\n[[flow]]\n", &[]).is_ok());
    assert!(read("[topology]\nspacing = '250 m'\n[[flow]]\n", &[]).is_ok());
}

#[test]
fn something_must_be_left_to_measure() {
    assert_refused("duration = '20 s'\nwarmup = '20 s' #!\n[[flow]]\n", "warmup", &["20 s"]);
    let late = "duration = '20 s'\nwarmup = 'auto' #!\n[[flow]]\nstart = '19.95 s'\n";
    assert_refused(late, "warmup", &["20.05 s"]);
    assert_refused("warmup = 'automatic' #!\n[[flow]]\n", "warmup", &["\"auto\""]);
    assert_refused("duration = '20 s'\n[[flow]]\nstart = '21 s' #!\n", "flow.0.start", &["after the end of the run"]);
    assert_refused("[[flow]]\nstart = '5 s'\nstop = '4 s' #!\n", "flow.0.stop", &["before it starts"]);
    assert_refused("duration = '0 s' #!\nwarmup = '0 s'\n[[flow]]\nstart = '0 s'\n", "duration", &["above zero"]);
}

#[test]
fn segments_and_windows_are_above_zero() {
    assert_refused("[[flow]]\nsegment = 0 #!\n", "flow.0.segment", &["1 to 65495"]);
    assert_refused("[[flow]]\nmax_window = 0 #!\n", "flow.0.max_window", &["1 to 65535"]);
    assert_refused("[radio]\nqueue = 0 #!\n[[flow]]\n", "radio.queue", &["packets"]);
}

#[test]
fn rts_is_decided_in_one_way() {
    let text = "[radio]\nrts_cts = true\nrts_threshold = '100 B' #!\n[[flow]]\n";
    assert_refused(text, "radio.rts_threshold", &["rts_cts"]);
}

#[test]
fn the_parameters_of_a_queue_and_of_a_marker_have_ranges_and_units() {
    for (link, key, words) in [
        ("queue = 'lap'", "link.queue", &["did you mean \"llap\"?"][..]),
        ("queue = 25", "link.queue", &["\"drop-tail\""]),
        ("queue = { alpha = 0.8 }", "link.queue.kind", &["is missing", "\"llap\""]),
        ("queue = { kind = 'llap', alpha = 1.0 }", "link.queue.alpha", &["below 1, found 1"]),
        ("queue = { kind = 'llap', alpha = nan }", "link.queue.alpha", &["a number"]),
        ("queue = { kind = 'llap', queue = 0 }", "link.queue.queue", &["packets, 1 to 10000"]),
        ("queue = { kind = 'llap', max_delay = 1 }", "link.queue.max_delay", &["\"1 s\""]),
        ("queue = { kind = 'llap', patience = '2 min' }", "link.queue.patience", &["1 ms to 60 s"]),
        ("queue = { kind = 'llap', relay_delay = 'wait' }", "link.queue.relay_delay", &["\"hold\" or \"space\""]),
        ("queue = { kind = 'fq-codel', quantum = 1514 }", "link.queue.quantum", &["\"1514 B\""]),
        ("queue = { kind = 'fq-codel', quantum = '255 B' }", "link.queue.quantum", &["256 B to 65535 B"]),
        ("queue = { kind = 'fq-codel', interval = '4 ms' }", "link.queue.interval", &["at least target"]),
        ("queue = { kind = 'fq-codel-airtime', interval = '19 ms' }", "link.queue.interval", &["at least target"]),
        ("queue = { kind = 'fq-codel-airtime', airtime_quantum = '9 us' }", "link.queue.airtime_quantum", &["100 us"]),
        ("queue = { kind = 'fq-codel-airtime', aql_high = '4 ms' }", "link.queue.aql_high", &["at least aql_low"]),
        ("queue = { kind = 'fq-codel-airtime', slow_target = '1 s' }", "link.queue.slow_interval", &["slow_target"]),
        ("queue = { kind = 'fq-codel-airtime', slow_below = 12 }", "link.queue.slow_below", &["\"12 Mbit/s\""]),
        ("queue = { kind = 'fq-codel', alpha = 0.5 }", "link.queue.alpha", &["unknown key in the queue", "ecn"]),
        ("queue = { kind = 'drop-tail', limit = 9 }", "link.queue.limit", &["radio.queue"]),
        ("marker = 'red'", "link.marker", &["did you mean \"lred\"?"]),
        ("marker = { kind = 'lred', min_threshold = 2.0 }", "link.marker.min_threshold", &["below max_threshold"]),
        ("marker = { kind = 'lred', max_probability = 1.5 }", "link.marker.max_probability", &["0 to 1, found 1.5"]),
        ("marker = { kind = 'lred', action = 'ecn' }", "link.marker.action", &["\"drop\" or \"mark\""]),
        ("marker = { kind = 'dcc', k_p = -1 }", "link.marker.k_p", &["0 to 10000"]),
        ("marker = { kind = 'dcc', interval = '0 s' }", "link.marker.interval", &["1 ms to 60 s"]),
        ("marker = { kind = 'dcc', weight = 0 }", "link.marker.weight", &["above 0, at most 1"]),
        ("marker = { kind = 'dcc', mac_ack = 'yes' }", "link.marker.mac_ack", &["true or false"]),
        ("markers = 'dcc'", "link.markers", &["unknown key in [link]", "`marker`"]),
    ] {
        assert_refused(&format!("[link]\n{link} #!\n[[flow]]\n"), key, words);
    }
    let message = refusal("[link]\nmarker = 'dcc'\n[[flow]]\n", &["link.marker.k_p=-3"]);
    assert!(message.contains("--set 'link.marker.k_p=-3'") && message.contains("0 to 10000"), "{message}");
}

#[test]
fn olsr_cannot_do_without_hellos() {
    let text = "[routing]\nprotocol = 'olsr'\ndetection = 'link-layer' #!\n[[flow]]\n";
    assert_refused(text, "routing.detection", &["HELLOs", "\"both\""]);
    assert_refused("[routing]\nmetric = 'etc' #!\n[[flow]]\n", "routing.metric", &["\"etx\""]);
    let text = "[routing]\nprotocol = 'aodv'\ndelete_period = '9 s' #!\n[[flow]]\n";
    assert_refused(text, "routing.delete_period", &["10 s or more"]);
}

/// A chain of two hops over the log-distance radio, with `keys` in `[radio]`.
fn log_distance(keys: &str) -> String {
    let topology = "[topology]\nkind = 'chain'\nhops = 2\nspacing = '10 m'\n";
    format!("{topology}[[flow]]\nfrom = 0\nto = 2\n[radio]\nmodel = 'log-distance'\n{keys}\n")
}

#[test]
fn an_attenuator_has_0_to_30_db() {
    for good in ["'0 dB'", "'30 dB'", "['0 dB', '16 dB', '30 dB']"] {
        let text = log_distance(&format!("attenuator = {good}"));
        assert!(read(&text, &["topology.allow_partition=true"]).is_ok(), "{good}");
    }
    let range = "0 dB to 30 dB";
    assert_refused(&log_distance("attenuator = '31 dB' #!"), "radio.attenuator", &[range, "\"31 dB\""]);
    assert_refused(&log_distance("attenuator = '-1 dB' #!"), "radio.attenuator", &[range]);
    assert_refused(&log_distance("attenuator = 16 #!"), "radio.attenuator", &["\"16 dB\""]);
    let list = "attenuator = [\n'3 dB',\n'30.5 dB', #!\n'3 dB']";
    assert_refused(&log_distance(list), "radio.attenuator: node 1", &[range, "30.5 dB"]);
    let short = log_distance("attenuator = ['3 dB', '3 dB'] #!");
    assert_refused(&short, "radio.attenuator", &["2 attenuators for 3 nodes", "a list of 3"]);
}

#[test]
fn the_radio_s_parameters_have_their_ranges_and_units() {
    assert_refused(&log_distance("path_loss_exponent = 0.5 #!"), "radio.path_loss_exponent", &["1 to 10"]);
    assert_refused(&log_distance("noise = -90 #!"), "radio.noise", &["\"-90 dBm\""]);
    assert_refused(&log_distance("cable = '-1 dB' #!"), "radio.cable", &["zero to 200 dB"]);
    assert_refused(&log_distance("shadowing = '-1 dB' #!"), "radio.shadowing", &["zero to 100 dB"]);
    assert_refused(&log_distance("transmit_power = '15 dB' #!"), "radio.transmit_power", &["dBm"]);
    assert_refused(&log_distance("rate = '6 Mbit/s' #!"), "radio.rate", &["1, 2, 5.5 or 11 Mbit/s"]);
    assert_refused("[radio]\nmodel = 'log-distanc' #!\n[[flow]]\n", "radio.model", &["did you mean", "log-distance"]);
    assert_refused("[radio]\npreamble = 'none' #!\n[[flow]]\n", "radio.preamble", &["\"long\"", "\"short\""]);
    assert_refused("[mac]\nshort_retry_limit = 0 #!\n[[flow]]\n", "mac.short_retry_limit", &["1 to 255"]);
}

#[test]
fn what_belongs_to_another_radio_is_refused() {
    for key in ["attenuator = '3 dB'", "path_loss_exponent = 3", "shadowing = '3 dB'"] {
        let name = key.split(' ').next().unwrap();
        let text = format!("[radio]\n{key} #!\n[[flow]]\n");
        assert_refused(&text, &format!("radio.{name}"), &["log-distance"]);
    }
    assert_refused("[radio]\nnoise = '-90 dBm' #!\n[[flow]]\n", "radio.noise", &["sinr"]);
    assert!(read("[radio]\nreception = 'sinr'\nnoise = '-90 dBm'\n[[flow]]\n", &[]).is_ok());
    assert_refused("[radio]\nreception = 'sinr'\nrate = '3 Mbit/s' #!\n[[flow]]\n", "radio.rate", &["5.5"]);
}

#[test]
fn links_end_where_the_radio_s_do() {
    // 1534 bytes at 2 Mbit/s need 0.7 dB, but their preamble needs 4 dB: -89.6 dBm. 15 + 89.6 -
    // 39.74 = 64.86 dB, or 145 m.
    let text = log_distance("").replace("[topology]", "[topology] #!");
    assert!(read(&text, &["topology.spacing=144 m"]).is_ok());
    assert_refused(&text.replace("10 m", "146 m"), "topology", &["links up to 145 m", "146 m apart"]);
    // With 10 dB less at one end of each link the range is shorter by 10^(1/3). No common range is
    // named.
    let text = text + "attenuator = ['10 dB', '0 dB', '10 dB']\n";
    assert!(read(&text, &["topology.spacing=67 m"]).is_ok());
    let message = refusal(&text, &["topology.spacing=68 m"]);
    assert!(
        message.contains("no path of links between")
            && !message.contains(" up to ")
            && message.contains("68.0 m apart"),
        "{message}"
    );
}

#[test]
fn transports_and_traffic_fit_together() {
    assert_refused("[[flow]]\ntransport = 'tcpap' #!\n", "flow.0.transport", &["did you mean \"tcp-ap\"", "newreno"]);
    assert_refused("[[flow]]\ntransport = 'udp' #!\n", "flow.0.transport", &["cbr"]);
    assert_refused("[[flow]] #!\ntraffic = 'cbr'\n", "flow.0.rate", &["missing"]);
    assert_refused("[[flow]]\nrate = '1 kbit/s' #!\n", "flow.0.rate", &["cbr"]);
    let text = "[[flow]]\n[flow.transport]\nrto = { min = '2 s' }\n[flow.transport.windo] #!\n";
    assert_refused(text, "flow.0.transport.windo", &["`window`"]);
    let text = "[[flow]]\ntransport = { rto = { min = '2 s', max = '1 s' } } #!\n";
    assert_refused(text, "flow.0.transport", &["rto.max"]);
}

#[test]
fn sweeps_have_values_and_every_value_once() {
    assert_refused("[[flow]]\n[sweep]\n'topology.hops' = [] #!\n", "sweep.\"topology.hops\"", &["at least one"]);
    assert_refused("[[flow]]\n[sweep]\n'topology.hops' = 3 #!\n", "sweep.\"topology.hops\"", &["list"]);
    assert_refused(
        "[[flow]]\n[sweep]\n'topology.hops' = [1, 2, 1] #!\n",
        "sweep.\"topology.hops\"",
        &["1 occurs twice"],
    );
    assert_refused("[[flow]]\n[sweep]\n'topology.hopps' = [1, 2] #!\n", "topology.hopps", &["`hops`"]);
    assert_refused("[[flow]]\n[sweep]\n'flow.1.segment' = [1, 2] #!\n", "sweep.\"flow.1.segment\"", &["no flow 1"]);
    assert_refused("[[flow]]\n[sweep]\ntopology.hops = [1, 2] #!\n", "sweep.topology", &["quotes"]);
    assert_refused("[[flow]]\n[sweep]\nseeds = 0 #!\n", "sweep.seeds", &["from 1"]);
    let text = "[[flow]]\n[sweep]\n'flow.segment' = [1, 2]\n'flow.0.segment' = [3, 4] #!\n";
    assert_refused(text, "sweep.\"flow.0.segment\"", &["overlaps"]);
}

#[test]
fn several_sweeps_vary_the_same_keys() {
    let first = "[[flow]]\n[[sweep]]\n'topology.hops' = [1]\nseeds = 3\n[[sweep]]\n";
    assert_refused(&format!("{first}'flow.segment' = [500] #!\n"), "sweep", &["same keys", "topology.hops"]);
    assert_refused(
        &format!("{first}'topology.hops' = [2]\nseeds = 4 #!\n"),
        "sweep.seeds",
        &["differs from an earlier number"],
    );
    let message = refusal(&format!("{first}'topology.hops' = [2]\n"), &["topology.hops=4"]);
    assert!(message.contains("several [[sweep]] over topology.hops"), "{message}");
}

#[test]
fn a_bad_point_of_a_sweep_is_named() {
    let message = refusal("[topology]\n[[flow]]\n[sweep]\n'topology.spacing' = ['200 m', '300 m']\n", &[]);
    assert!(message.contains("at the point topology.spacing = \"300 m\""), "{message}");
}

#[test]
fn a_scenario_has_flows() {
    let message = refusal("duration = '20 s'\n", &[]);
    assert!(message.contains("mesh.toml") && message.contains("[[flow]]"), "{message}");
}

#[test]
fn broken_toml_is_pointed_at() {
    assert_refused("duration = '20 s'\n[topology #!\n[[flow]]\n", "not TOML", &[]);
    assert_refused("duration = '20 s'\nduration = '30 s' #!\n[[flow]]\n", "not TOML", &["duplicate"]);
}

#[test]
fn several_mistakes_are_told_at_once_in_the_order_of_the_file() {
    let message = refusal("duration = 20\n[topology]\nhops = 0\n[radio]\nrate = '-1 bit/s'\n[[flow]]\n", &[]);
    let lines: Vec<_> = ["mesh.toml:1:12", "mesh.toml:3:8", "mesh.toml:5:8"].map(|at| message.find(at)).into();
    assert!(lines.iter().all(Option::is_some) && lines.is_sorted(), "{message}");
}

#[test]
fn a_mistake_on_the_command_line_names_the_argument_and_no_line() {
    for (argument, words) in [
        ("topology.hops=0", &["topology.hops"][..]),
        ("topology.hopz=3", &["topology.hopz", "`hops`"]),
        ("flow.to=9", &["flow.0.to", "no node 9"]),
        ("flow.3.to=1", &["no flow 3"]),
        ("duration=20", &["duration", "\"20 s\""]),
        ("warmup=1 h", &["warmup"]),
        ("topology.spacing=400 m", &["no path of links"]),
        ("flow.start=100 s", &["flow.0.start"]),
        ("no-equals-sign", &["="]),
        ("=3", &["not a key"]),
    ] {
        let message = refusal("duration = '100 s'\nwarmup = '5 s'\n[topology]\nhops = 7\n[[flow]]\n", &[argument]);
        assert!(message.contains(&format!("--set '{argument}'")), "{message}");
        assert!(!message.contains("mesh.toml"), "{message}");
        for word in words {
            assert!(message.contains(word), "no {word:?} in:\n{message}");
        }
    }
}

#[test]
fn an_end_of_a_flow_left_behind_by_set_blames_the_argument() {
    let message = refusal("[topology]\nhops = 7\n[[flow]]\nto = 6\n", &["topology.hops=3"]);
    for word in ["no node 6", "--set 'topology.hops=3'", "write --set flow.0.to=3 as well"] {
        assert!(message.contains(word), "no {word} in: {message}");
    }
    // A sweep cannot set another end, so the message says which end would apply without this one.
    let message = refusal("[topology]\nhops = 7\n[[flow]]\nto = 6\n[sweep]\n'topology.hops' = [7, 3]\n", &[]);
    assert!(message.contains("no node 6") && message.contains("without flow.0.to it is node 3"), "{message}");
}

#[test]
fn a_flow_that_is_not_there_is_told_which_are() {
    let message = refusal("[[flow]]\n[[flow]]\n", &["flow.3.transport.pacing.alpha=0.5"]);
    for word in ["no flow 3", "flows 0 to 1", "flow.transport.pacing.alpha means every flow"] {
        assert!(message.contains(word), "no {word} in: {message}");
    }
    assert!(!message.contains("write --set key=value"), "the form is right: {message}");
    let message = refusal("[[flow]]\n", &["flow.2=x"]);
    assert!(message.contains("flow 0 alone; flow means every flow"), "{message}");
}

#[test]
fn a_duration_set_too_short_for_a_flow_blames_the_argument() {
    let message = refusal("[[flow]]\nstart = '5 s'\n", &["duration=4 s"]);
    assert!(message.contains("flow.0.start") && message.contains("--set 'duration=4 s'"), "{message}");
}

#[test]
fn ten_errors_are_shown_and_the_others_counted() {
    let text: String = (0..15).map(|number| format!("strange{number} = {number}\n")).collect::<String>() + "[[flow]]\n";
    let message = refusal(&text, &[]);
    assert_eq!(message.matches("error: ").count(), 10, "{message}");
    assert!(message.ends_with("and 5 more errors in mesh.toml"), "{message}");
}

#[test]
fn measured_time_that_begins_before_a_flow_is_warned_of() {
    let warnings = |text: &str| read(text, &[]).unwrap().warnings;
    let late = "duration = '50 s'\n[[flow]]\n[[flow]]\nstart = '5 s'\n";
    let told = warnings(late);
    assert_eq!(told.len(), 1, "{told:?}");
    for part in ["begins at 0 s", "flow 1 starts at 5 s", "warmup = \"5.1 s\"", "\"auto\""] {
        assert!(told[0].contains(part), "{part}: {told:?}");
    }
    // There is no warning for the value that the message names, for a scenario that needs none, or
    // for a second out of 200.
    for text in ["warmup = '5.1 s'\n", "warmup = 'auto'\n"].map(|warmup| format!("{warmup}{late}")) {
        assert_eq!(warnings(&text), [""; 0], "{text}");
    }
    assert_eq!(warnings("[[flow]]\n"), [""; 0]);
    assert_eq!(warnings("duration = '20 s'\n[[flow]]\n").len(), 1, "a flow starts after 1 s unless told");
}

#[test]
fn rates_from_marks_without_a_marker_are_warned_of() {
    let warnings = |text: &str| read(text, &[]).unwrap().warnings;
    let told = warnings("[[flow]]\ntransport = 'dcc'\n");
    assert!(told.len() == 1 && told[0].contains("link.marker"), "{told:?}");
    assert!(warnings("link.marker = 'dcc'\n[[flow]]\ntransport = 'dcc'\n").is_empty());
    assert!(warnings("[[flow]]\n").is_empty());
}

#[test]
fn a_plot_is_of_what_is_swept() {
    let with = |line: &str| format!("[plot]\n{line} #!\n[[flow]]\n[sweep]\n'topology.hops' = [2, 4]\n");
    assert_refused(&with("x = 'topology.hop'"), "plot.x", &["is not swept", "did you mean \"topology.hops\""]);
    assert_refused(&with("lines = ['flow.transport']"), "plot.lines", &["is not swept", "topology.hops"]);
    assert_refused(&with("lines = 'topology.hops'"), "plot.lines", &["a list of names"]);
    assert_refused(&with("metrics = ['godput']"), "plot.metrics", &["did you mean \"goodput\""]);
    assert_refused(&with("logarithmic = 'yes'"), "plot.logarithmic", &["true or false"]);
    assert_refused(&with("log = true"), "plot.log", &["unknown key in a plot", "`logarithmic`"]);
    assert_refused(&with("titles = { godput = 'x' }"), "plot.titles", &["did you mean \"goodput\""]);
    assert_refused(&with("labels = ['x']"), "plot.labels", &["a table of texts"]);
    assert_refused(&with("colours = { newreno = 'blue' }"), "plot.colours", &["is not a colour", "#0072b2"]);
    assert_refused(&with("width = 'wide'"), "plot.width", &["\"column\"", "inches from 3.25 to 40"]);
    assert_refused(&with("width = 41"), "plot.width", &["inches from 3.25 to 40"]);
    assert_refused(&with("width = 3.2"), "plot.width", &["inches from 3.25 to 40", "smaller than 7 pt"]);
    assert_refused(&with("height = 0.5"), "plot.height", &["expected inches from 1 to 40"]);
    assert_refused(&with("height = 'column'"), "plot.height", &["inches from 1 to 40"]);
    assert_refused("plot = 3 #!\n[[flow]]\n", "plot", &["[plot]"]);
    let swept = "[plot]\n[[flow]]\n[sweep]\n'plot.logarithmic' = [true, false] #!\n";
    assert_refused(swept, "sweep.\"plot.logarithmic\"", &["not a key of a scenario"]);
    // A key that --set removes from the sweep is not a mistake.
    let text = "[plot]\nx = 'topology.hops'\nlogarithmic = true\n[[flow]]\n[sweep]\n'topology.hops' = [2, 4]\n";
    assert_eq!(read(text, &[]).unwrap().plot.x.as_deref(), Some("topology.hops"));
    let fixed = read(text, &["topology.hops=3"]).unwrap().plot;
    assert!(fixed.x.is_none() && fixed.logarithmic);
    let looks = "titles.goodput = 'A chain'\nlabels = { newreno = 'NewReno', 'a, b' = 'both' }\ncolours.newreno = '#0072b2'\n\
        width = 'column'\nheight = 2\n";
    let plot = read(&text.replace("logarithmic = true\n", looks), &["plot.labels.cubic=CUBIC"]).unwrap().plot;
    assert_eq!((plot.titles["goodput"].as_str(), plot.width, plot.height), ("A chain", Some(3.5), Some(2.0)));
    let labels = ["newreno", "newreno, cubic", "a, b", "x, a"].map(|line| plot.label(line));
    assert_eq!(labels, ["NewReno", "NewReno, CUBIC", "both", "x, a"]);
    assert_eq!(plot.colour("newreno, flow 1").map(String::as_str), Some("#0072b2"));
    assert_eq!(plot.colour("cubic"), None);
    // Neither the run nor its records depend on it.
    let plain = text.replace("x = 'topology.hops'\nlogarithmic = true\n", "");
    assert_eq!(read(&plain, &[]).unwrap().points[0].config, read(text, &[]).unwrap().points[0].config);
}

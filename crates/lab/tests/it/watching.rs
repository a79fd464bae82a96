//! Tests of watched links in the time series, and of flows with a count.

use meshpace_lab::record::Record;
use meshpace_scenario::{Scenario, Source};
use std::path::Path;

fn read(text: &str) -> Result<Scenario, String> {
    let source = Source { name: "watching.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
    Scenario::read(source, Path::new("."), "watching").map_err(|refusal| refusal.to_string())
}

fn record(text: &str) -> Record {
    let scenario = read(text).unwrap();
    let outcome = meshpace_sim::run(&scenario.points[0].config, 1);
    Record::new(&scenario, &scenario.points[0], 1, &outcome)
}

const CBR: &str = "[[flow]]\ntransport = 'udp'\ntraffic = 'cbr'\nsegment = 1000\nstart = '0 s'\n";

#[test]
fn llap_estimates_four_undisturbed_hops() {
    // A packet every 40 ms over 9 hops meets no other packet. The measured time lasts from the end
    // of the exchange that brings it to a relay until the end of the data frame that forwards it:
    // DIFS 50 us, half of the smallest window 310 us, RTS 352 us, CTS 304 us, two SIFS 20 us, 192
    // us of preamble and 1062 bytes at 2 Mbit/s. Four of these are 21.9 ms.
    let record = record(&format!(
        "duration = '30 s'\nseries = '1 s'\nwatch = [{{ node = 0, toward = 9 }}]\nlink.queue = 'llap'\n\
         topology.hops = 9\n{CBR}rate = '200 kbit/s'\n"
    ));
    let links = record.series.unwrap().links;
    assert_eq!(links.len(), 1);
    let delays = &links[0].four_hop_delay_s;
    assert_eq!(delays.len(), 30);
    let mean = delays[5..].iter().map(|delay| delay.unwrap()).sum::<f64>() / 25.0;
    assert!((0.021..0.023).contains(&mean), "{mean}");
    assert!(links[0].collision_probability.iter().all(Option::is_none), "nothing there measures it");
}

#[test]
fn dcc_measures_what_a_link_sends_and_loses() {
    // 12.5 packets of 1000 bytes with headers per second, each about 4.2 ms of data at 2 Mbit/s and
    // 0.2 ms of preamble: 5.5 % of the time. Without other senders nothing collides.
    let record = record(&format!(
        "duration = '30 s'\nseries = '500 ms'\nwatch = [{{ node = 0, toward = 1 }}, {{ node = 1, toward = 0 }}]\n\
         link.marker = {{ kind = 'dcc', k_p = 0, interval = '1 s', weight = 1 }}\nradio.rts_cts = false\n\
         topology.hops = 1\n{CBR}rate = '100 kbit/s'\n"
    ));
    let links = record.series.unwrap().links;
    let last = |values: &[Option<f64>]| values.last().copied().flatten().unwrap();
    let air = last(&links[0].air_time);
    assert!((0.052..0.059).contains(&air), "{air}");
    assert_eq!((last(&links[0].collision_probability), last(&links[0].congestion_index)), (0.0, 0.0));
    assert_eq!(last(&links[1].air_time), 0.0, "nothing is sent back");
}

#[test]
fn a_link_without_a_route_has_no_state() {
    let record = record(&format!(
        "duration = '3 s'\nseries = '1 s'\nwatch = [{{ node = 0, toward = 2 }}]\nlink.marker = 'dcc'\n\
         routing.protocol = 'aodv'\ntopology.hops = 2\n{CBR}rate = '100 kbit/s'\nfrom = 1\nto = 2\n"
    ));
    assert_eq!(record.series.unwrap().links[0].air_time, [None, None, None]);
}

#[test]
fn what_is_watched_must_be_there() {
    for (text, message) in [
        ("watch = [{ node = 0, toward = 7 }]\n[[flow]]\n", "the scenario has no time series"),
        ("series = '1 s'\nwatch = [{ node = 0 }]\n[[flow]]\n", "watch.0.toward: is missing"),
        ("series = '1 s'\nwatch = [{ node = 8, toward = 7 }]\n[[flow]]\n", "watch.0.node: expected a whole number"),
        ("series = '1 s'\nwatch = [{ node = 1, toward = 7, hop = 2 }]\n[[flow]]\n", "watch.0.hop: unknown key"),
        ("series = '1 s'\nwatch = 3\n[[flow]]\n", "watch: expected a list"),
        ("[[flow]]\ncount = 0\n", "flow.0.count: expected a whole number"),
    ] {
        let refusal = read(text).unwrap_err();
        assert!(refusal.contains(message), "{refusal}");
    }
}

#[test]
fn a_count_makes_flows_alike() {
    let several = read("[[flow]]\ntransport = 'tcp-ap'\ncount = 3\n[[flow]]\ntransport = 'newreno'\n").unwrap();
    let config = &several.points[0].config;
    assert_eq!(several.points[0].transports, ["tcp-ap", "tcp-ap", "tcp-ap", "newreno"]);
    assert_eq!((&config.flows[0], config.flows.len()), (&config.flows[2], 4));
}

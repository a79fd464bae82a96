//! Tests the end of slow start before the first loss against ns-2.35: one hop, a queue, a window of
//! 64 segments.
//!
//! ns-2 with `window_` set on the agent (its threshold stays 20) retransmits nothing in 6 s. With
//! the default of the class set to 64 it retransmits 20 to 32, 10 to 25, 1 to 14 segments with
//! queues of 40, 50, 60, over ten seeds.

use meshpace_scenario::{Scenario, Source};
use std::path::Path;

/// Number of retransmitted segments with each of ten seeds.
fn repeated(queue: u32, initial_ssthresh: u32) -> Vec<u64> {
    let text = format!(
        "duration = \"6 s\"\n[topology]\nhops = 1\n[radio]\nqueue = {queue}\n[[flow]]\nto = 1\n\
         transport = {{ name = \"newreno\", initial_ssthresh = {initial_ssthresh} }}\n"
    );
    let source = Source { name: "hop.toml".to_owned(), text, sets: Vec::new() };
    let scenario = Scenario::read(source, Path::new("."), "hop").unwrap_or_else(|refusal| panic!("{refusal}"));
    let config = &scenario.points[0].config;
    (1..=10).map(|seed| meshpace_sim::run(config, seed).flows[0].retransmissions).collect()
}

#[test]
fn at_20_nothing_is_repeated() {
    for queue in [40, 50, 60] {
        let counts = repeated(queue, 20);
        assert!(counts.iter().all(|&count| count <= 1), "queue {queue}: {counts:?}");
    }
}

#[test]
fn at_64_as_much_is_repeated_as_in_ns2() {
    for (queue, least, most) in [(40, 20, 32), (50, 10, 25), (60, 1, 14)] {
        let counts = repeated(queue, 64);
        let (smallest, largest) = (counts.iter().min().unwrap(), counts.iter().max().unwrap());
        assert!(*smallest <= most && *largest >= least, "queue {queue}: {counts:?}, in ns-2 {least} to {most}");
        let inside = counts.iter().filter(|&&count| (least..=most).contains(&count)).count();
        assert!(inside >= 5, "queue {queue}: {counts:?}, in ns-2 {least} to {most}");
    }
}

//! Compares Flush in the simulator with the published results (Kim et al., SenSys 2007, abstract).

use meshpace_scenario::{Scenario, Source};
use std::path::Path;

/// Goodput over `hops` hops of nodes that disturb only their neighbours, in bit/s.
fn goodput(hops: u8) -> f64 {
    let text = format!(
        "duration = '120 s'\nwarmup = '30 s'\ntopology.hops = {hops}\nrouting.protocol = 'static'\nradio.model = 'two-ray'\n\
         radio.carrier_sense_threshold = '-64.5 dBm'\n[[flow]]\nto = {hops}\ntransport = {{ name = 'flush', reuse_hops = 3 }}\n"
    );
    let source = Source { name: "flush.toml".to_owned(), text, sets: Vec::new() };
    let scenario = Scenario::read(source, Path::new("."), "flush").unwrap_or_else(|refusal| panic!("{refusal}"));
    let outcome = meshpace_sim::run(&scenario.points[0].config, 1);
    outcome.flows[0].goodput_bps
}

#[test]
fn forty_eight_hops_carry_about_a_third_of_one() {
    let share = goodput(48) / goodput(1);
    assert!((0.28..=0.36).contains(&share), "{share}");
}

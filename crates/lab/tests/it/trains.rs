//! Tests the statements of docs/quiet-trains.md about quiet trains beside a neighbour that does not
//! receive them, and about the control law under a delay that no queue causes.

use meshpace_scenario::{Scenario, Source};
use meshpace_sim::Outcome;
use std::path::Path;

/// Runs `text` with `seed`.
fn run(text: &str, seed: u64) -> Outcome {
    let source = Source { name: "trains.toml".to_owned(), text: text.to_owned(), sets: Vec::new() };
    let scenario = Scenario::read(source, Path::new("."), "trains").unwrap_or_else(|refusal| panic!("{refusal}"));
    meshpace_sim::run(&scenario.points[0].config, seed)
}

/// Number of runs, out of 20, in which a flow of six hops and a crossing flow of two hops meet and
/// one of them has no byte.
fn dead(company: f64) -> usize {
    let flow = |from, to| {
        format!("[[flow]]\nfrom = {from}\nto = {to}\ntransport = {{ name = 'quiet-train', company = {company:.1} }}\n")
    };
    let chain: String = (0..7).map(|place| format!("['{} m', '0 m'], ", 200 * place)).collect();
    let text = format!(
        "duration = '100 s'\nwarmup = '20 s'\nrouting.protocol = 'aodv'\nlink.repeats = 2\nlink.repeat_gap = '11 ms'\ntopology.kind = 'nodes'\n\
         topology.positions = [{chain}['600 m', '-200 m'], ['600 m', '200 m']]\n{}{}",
        flow(0, 6),
        flow(7, 8)
    );
    (1..=20).filter(|&seed| run(&text, seed).flows.iter().any(|flow| flow.goodput_bps == 0.0)).count()
}

#[test]
fn who_leaves_half_of_a_shared_path_lets_a_hidden_neighbour_begin() {
    let (without, with) = (dead(1.0), dead(2.0));
    assert!(with < without && with <= 2, "{with} of 20 beside {without}");
}

/// Goodput in bit/s of each of `flows` flows over seven hops. The jitter is up to `ms`
/// milliseconds, different for each packet.
fn goodputs(flows: usize, ms: f64) -> Vec<f64> {
    let text = format!(
        "duration = '100 s'\nwarmup = '20 s'\ntopology.hops = 7\nrouting.protocol = 'static'\nlink.jitter = '{ms} ms'\nlink.jitter_time = '0 s'\n{}",
        "[[flow]]\nto = 7\ntransport = 'quiet-train'\n".repeat(flows)
    );
    run(&text, 1).flows.iter().map(|flow| flow.goodput_bps).collect()
}

#[test]
fn jitter_costs_what_the_law_says_and_starves_nobody() {
    // R = 2^1.5 b, b = 0.09 scale tau, tau = 4 * 7.75 ms, scale = 2.125.
    let r = 2_f64.powf(1.5) * 0.09 * 2.125 * 31.0;
    let [alone] = goodputs(1, 0.0)[..] else { panic!() };
    // The delay is uniform up to D with mean D/2, and the mean of many packets hardly varies: I =
    // floor (D / (2 b))^(2/3).
    for times in [2.0, 4.0] {
        let expected = (times * 2_f64.powf(1.5) / 2.0).powf(-2.0 / 3.0);
        let share = goodputs(1, times * r)[0] / alone;
        assert!((share / expected - 1.0).abs() < 0.1, "{times} R: {share} instead of {expected}");
    }
    let two = goodputs(2, 4.0 * r);
    let sum: f64 = two.iter().sum();
    assert!(two.iter().all(|flow| *flow > 0.4 * sum), "{two:?}");
}

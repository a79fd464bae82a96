//! Tests that the worked example of `docs/new-pacing-rule.md` is the code that is compiled, needs
//! one file and one line, and has the described effect.

use crate::worked::{block, scenario};
use meshpace_sim::Outcome;
use meshpace_transport::{Config, names, pacing};

const PAGE: &str = "docs/new-pacing-rule.md";

#[test]
fn the_diff_is_one_new_file_and_one_line_and_is_what_is_compiled() {
    crate::worked::is_one_new_file_and_one_line(PAGE, "longest-rtt");
}

#[test]
fn the_line_makes_a_name_and_a_kind_with_its_parameters() {
    let read = |transport: &str| {
        let scenario = scenario(format!("[topology]\nhops = 4\n[[flow]]\ntransport = {transport}\n"))?;
        Ok::<Config, String>(scenario.points[0].config.flows[0].transport.clone())
    };
    let named = names::lookup("longest-rtt").expect("a named transport");
    assert_eq!(read("'longest-rtt'"), Ok(named.clone()));
    assert_eq!(read("{ pacing = 'longest-rtt' }"), Ok(named.clone()));
    assert_eq!(read("{ name = 'longest-rtt', pacing = { samples = 10 } }"), Ok(named.clone()));
    assert_ne!(read("{ pacing = { kind = 'longest-rtt', samples = 20 } }"), Ok(named));
    assert_eq!(read("'longest-rtt+delack'"), Ok(names::lookup("longest-rtt+delack").unwrap()));
    let Ok(Config::Tpa(tpa)) = read("{ name = 'tpa-3', pacing = { kind = 'longest-rtt', samples = 20 } }") else {
        panic!()
    };
    let pacing::Config::Rule(rule) = tpa.pacing else { panic!("{:?}", tpa.pacing) };
    assert_eq!(rule.parameters(), [20.0]);
    let refused = read("{ pacing = { kind = 'longest-rtt', samples = 1 } }").unwrap_err();
    assert!(refused.contains("samples") && refused.contains('2') && refused.contains("1000"), "{refused}");
    let refused = read("{ pacing = { kind = 'longest-rtt', sample = 5 } }").unwrap_err();
    assert!(refused.contains("samples"), "{refused}");
}

#[test]
fn the_scenario_of_the_page_runs_and_the_rule_paces() {
    let scenario = scenario(block(PAGE, "toml")).unwrap();
    let runs = |name: &str| -> Vec<Outcome> {
        let point = scenario.points.iter().find(|point| point.values.iter().any(|(_, value)| value == name));
        let config = &point.unwrap_or_else(|| panic!("{name}")).config;
        (1..=3).map(|seed| meshpace_sim::run(config, seed)).collect()
    };
    let (ours, newreno) = (runs("longest-rtt"), runs("newreno"));
    for (ours, newreno) in ours.iter().zip(&newreno) {
        // A segment of 1500 bytes is on the air for 6 ms in each of seven hops. No round trip is
        // shorter than 42 ms, and no interval after the first sample is shorter than 4/14 of it, 12
        // ms.
        let interval = ours.flows[0].pacing.interval_s;
        assert!(interval > 0.012 && interval < 1.0, "{interval} s");
        assert!(ours.aggregate_goodput_bps <= 1460.0 * 8.0 / 0.012);
        // The purpose of pacing: more data arrives, with fewer retransmissions.
        let goodput = (ours.aggregate_goodput_bps, newreno.aggregate_goodput_bps);
        assert!(goodput.0 > goodput.1, "{goodput:?}");
        let again = (ours.retransmission_index, newreno.retransmission_index);
        assert!(again.0 < again.1, "{again:?}");
    }
}

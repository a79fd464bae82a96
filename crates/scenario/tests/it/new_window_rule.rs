//! Tests that the worked example of `docs/new-window-rule.md` is the code that is compiled, needs
//! one file and one line, and has the described effect.

use crate::worked::{block, scenario};
use meshpace_transport::tcp::window::{self, OneFile};
use meshpace_transport::{Config, tcp};

const PAGE: &str = "docs/new-window-rule.md";

#[test]
fn the_diff_is_one_new_file_and_one_line_and_is_what_is_compiled() {
    crate::worked::is_one_new_file_and_one_line(PAGE, "gaimd");
}

fn read(transport: &str) -> Result<tcp::Config, String> {
    let scenario = scenario(format!("[topology]\nhops = 4\n[[flow]]\ntransport = {transport}\n"))?;
    match scenario.points[0].config.flows[0].transport.clone() {
        Config::Tcp(config) => Ok(config),
        other => panic!("{other:?}"),
    }
}

fn rule(config: &tcp::Config) -> &OneFile {
    match &config.window {
        window::Config::OneFile(rule) => rule,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_line_makes_a_kind_with_its_parameters() {
    let plain = read("{ window = 'gaimd' }").unwrap();
    assert_eq!(rule(&plain).kind().about().name, "gaimd");
    assert_eq!(rule(&plain).parameters(), [0.875]);
    assert_eq!(tcp::Config { window: window::Config::NewReno, ..plain.clone() }, tcp::Config::default());
    let line = Config::Tcp(plain).describe();
    assert!(line.contains("gaimd, beta 0.875"), "{line}");
    let set = read("{ window = { kind = 'gaimd', beta = 0.75, byte_counting = 2 } }").unwrap();
    assert_eq!((rule(&set).parameters(), set.byte_counting), (&[0.75][..], Some(2)));
    let refused = read("{ window = { kind = 'gaimd', beta = 1.5 } }").unwrap_err();
    assert!(refused.contains("beta") && refused.contains("0.99"), "{refused}");
    let refused = read("{ window = { kind = 'gaimd', bata = 0.5 } }").unwrap_err();
    assert!(refused.contains("beta"), "{refused}");
}

#[test]
fn the_scenario_of_the_page_runs_with_both_windows() {
    let scenario = scenario(block(PAGE, "toml")).unwrap();
    let points = scenario.points.into_vec();
    let [newreno, gaimd] = &points[..] else { panic!("{} points", points.len()) };
    let runs = [newreno, gaimd].map(|point| meshpace_sim::run(&point.config, 1));
    for run in &runs {
        // A segment of 1500 bytes is on the air for at least 6 ms, and three hops of a chain do not
        // transmit at the same time.
        let goodput = run.aggregate_goodput_bps;
        assert!(goodput > 0.0 && goodput < 1460.0 * 8.0 / 0.018, "{goodput}");
    }
    assert_ne!(runs[0].fingerprint, runs[1].fingerprint, "a window of its own");
}

//! Tests that the worked example of `docs/new-parameter.md` is the code that is compiled, consists
//! of one entry and its use, and has the described effect.

use crate::worked::scenario;
use meshpace_core::Duration;
use meshpace_scenario::keys;
use meshpace_transport::{Config, pacing};

#[test]
fn the_diff_is_one_entry_and_its_use_and_nothing_else_knows_of_it() {
    crate::worked::is_one_file("docs/new-parameter.md", "hop_noise");
}

#[test]
fn the_entry_makes_a_key_in_both_places_with_its_check_and_its_row() {
    let read = |transport: &str| {
        let scenario = scenario(format!("[topology]\nhops = 4\n[[flow]]\ntransport = {transport}\n"))?;
        Ok::<Config, String>(scenario.points[0].config.flows[0].transport.clone())
    };
    let Ok(Config::Train(train)) = read("{ name = 'quiet-train', hop_noise = '1 ms' }") else { panic!() };
    assert_eq!(train.estimator.hop_noise, Duration::from_millis(1));
    let Ok(Config::Tcp(tcp)) = read("{ pacing = { kind = 'trains', hop_noise = '2 ms' } }") else { panic!() };
    let pacing::Config::Trains(solo) = tcp.pacing else { panic!() };
    assert_eq!(solo.estimator.hop_noise, Duration::from_millis(2));
    let refused = read("{ name = 'quiet-train', hop_noise = '-1 ms' }").unwrap_err();
    assert!(refused.contains("hop_noise") && refused.contains("zero or more"), "{refused}");
    let all = keys::all();
    for place in ["flow.transport", "flow.transport.pacing"] {
        let name = format!("{place}.hop_noise");
        let key = all.iter().find(|key| key.name == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(key.default.as_deref(), Some("\"300 us\""));
        assert!(key.meaning.ends_with("delay per hop that does not count as queueing"), "{}", key.meaning);
    }
}

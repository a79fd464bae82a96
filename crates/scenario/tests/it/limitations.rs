//! Tests that features which `docs/limitations.md` lists as missing are refused, with a message
//! that names the alternatives.

use meshpace_scenario::{Scenario, Source};
use std::path::Path;

#[test]
fn what_is_not_there_yet_is_refused_by_name() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/limitations.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (_, rest) = page.split_once("## What is not there yet").unwrap();
    let section = rest.split("\n## ").next().unwrap();
    let settings: Vec<&str> = section.split('`').skip(1).step_by(2).collect();
    assert_eq!(settings.len(), section.matches(" = ").count(), "something is not in backticks");
    let read = |sets: Vec<String>| {
        let text = "[topology]\nkind = 'chain'\nhops = 2\n[[flow]]\nfrom = 0\nto = 2\n".to_owned();
        Scenario::read(Source { name: "x.toml".to_owned(), text, sets }, Path::new("."), "x")
    };
    assert!(read(Vec::new()).is_ok());
    for setting in settings {
        let (key, value) = setting.split_once(" = ").unwrap_or_else(|| panic!("{setting} is no setting"));
        let Err(refusal) = read(vec![format!("{key}={value}")]) else {
            panic!("{setting} is there, but docs/limitations.md says that it is not")
        };
        let refusal = refusal.to_string();
        let last = key.rsplit('.').next().unwrap();
        assert!(refusal.contains(last) && refusal.contains(value.trim_matches('"')), "{setting}: {refusal}");
    }
}

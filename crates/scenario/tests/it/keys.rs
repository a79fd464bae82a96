//! Tests that `meshpace keys` lists exactly the keys that the parser accepts, and that its defaults
//! are those of absent keys.

use meshpace_scenario::{Scenario, Source, keys};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn read(text: &str, sets: Vec<String>) -> Result<String, String> {
    let source = Source { name: "keys.toml".to_owned(), text: text.to_owned(), sets };
    let (_, load) = keys::examples();
    let scenario = Scenario::read_with(source, load, "keys").map_err(|refusal| refusal.to_string())?;
    Ok(format!("{:?}", scenario.points.iter().map(|point| (&point.config, &point.draw)).collect::<Vec<_>>()))
}

/// The keys that each prototype requests.
fn asked() -> Vec<(String, BTreeSet<String>)> {
    let (texts, load) = keys::examples();
    let (mut asked, mut refused) = (Vec::new(), Vec::new());
    for text in texts {
        match keys::asked(&text, load) {
            Ok(names) => asked.push((text, names.into_keys().collect())),
            Err(why) => refused.push(format!("{why}\n{text}")),
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    asked
}

#[test]
fn every_key_that_the_reader_takes_is_listed_and_every_listed_one_is_taken() {
    let taken: BTreeSet<String> = asked().into_iter().flat_map(|(_, asked)| asked).collect();
    let all = keys::all();
    let listed: BTreeSet<String> = all.iter().map(|key| key.name.clone()).collect();
    assert_eq!(listed.len(), all.len(), "each once");
    // The sweep is removed before the rest is parsed. Its own test is `seeds_are_a_key`.
    let missing: Vec<_> = listed.iter().filter(|name| !taken.contains(*name) && *name != "sweep.seeds").collect();
    assert!(missing.is_empty(), "listed, but no prototype makes the reader take it: {missing:?}");
    let unlisted: Vec<_> = taken.difference(&listed).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
    for key in &all {
        assert!(!key.takes().is_empty() && !key.meaning.is_empty(), "{key:?}");
        assert!(!key.takes().contains("inf"), "{key:?}");
    }
}

#[test]
fn each_kind_of_thing_has_its_own_range() {
    let all = keys::all();
    let takes = |name: &str| all.iter().find(|key| key.name == name).unwrap_or_else(|| panic!("{name}")).takes();
    for (name, own) in [
        ("flow.transport.pacing.alpha", &["adaptive: number, 0 to 1;", "dcc: number, 0 to 1000000"][..]),
        ("topology.hops", &["chain: whole number, 1 to 65534 (hops)", "parallel: whole number, 1 to 32766 (hops)"]),
        ("link.queue.limit", &["llap: \"per-queue\"", "fq-codel, fq-codel-airtime: whole number, 1 to 1000000"]),
        ("flow.transport.window", &["TCP: \"newreno\"", "TPA: whole number, 1 to 12 (segments)"]),
    ] {
        for words in own {
            assert!(takes(name).contains(words), "{name}: {}", takes(name));
        }
    }
    // The parser uses the listed bounds. Both sides of each bound are tested.
    let with = |pacing: &str| read(&format!("[[flow]]\ntransport = {{ pacing = {{ {pacing} }} }}\n"), Vec::new());
    assert!(with("kind = 'adaptive', alpha = 1.5").is_err() && with("kind = 'dcc', alpha = 1.5").is_ok());
    let of =
        |kind: &str, hops: u64| read(&format!("[topology]\nkind = '{kind}'\nhops = {hops}\n[[flow]]\n"), Vec::new());
    assert!(of("parallel", 40_000).is_err());
    // A range that all kinds share is listed once.
    assert_eq!(takes("topology.spacing"), "length, above zero, at most 100000 m, as \"200 m\" (m, km, cm, mm)");
}

#[test]
fn a_key_has_the_source_of_its_row_or_of_its_declaration() {
    let all = keys::all();
    let source = |name: &str| all.iter().find(|key| key.name == name).map(|key| key.source.as_str());
    assert_eq!(source("flow.transport.limited_transmit"), Some("RFC 3042"));
    assert_eq!(
        source("flow.transport.pacing.alpha"),
        Some("adaptive: AP05, section 4.5; dcc: DCC, algorithm 2 and section V")
    );
    assert_eq!(source("plot.x"), Some(""), "this program's own");
    assert_eq!(source("flow.transport.near_floor"), Some(""), "this program's own");
}

#[test]
fn seeds_are_a_key() {
    let with = |line: &str| read(&format!("[[flow]]\n[sweep]\n{line}\n"), Vec::new());
    assert!(with("seeds = 3").is_ok());
    assert!(with("seedz = 3").is_err());
}

/// Published results are beside the scenarios, in files of their own.
fn is_scenario(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".toml") && !name.ends_with("published.toml") && name != "register.toml"
}

fn scenarios(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            scenarios(&path, found);
        } else if is_scenario(&path) {
            found.push(path);
        }
    }
}

/// Dotted names of all keys that a file sets, without numbers, with their values.
fn names(value: &toml::Value, path: &str, found: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                found.push(path.clone());
                names(value, &path, found);
            }
        }
        toml::Value::Array(items) => items.iter().for_each(|item| names(item, path, found)),
        _ => {}
    }
}

/// True if the schema accepts a value: types, choices, bounds and names. Patterns are left to
/// editors.
fn fits(schema: &serde_json::Value, value: &toml::Value) -> bool {
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().any(|one| fits(one, value));
    }
    if let Some(choices) = schema["enum"].as_array() {
        return choices.iter().any(|choice| choice.as_str() == value.as_str());
    }
    match (schema["type"].as_str(), value) {
        (Some("object"), toml::Value::Table(table)) => {
            table.iter().all(|(key, value)| match &schema["properties"][key] {
                serde_json::Value::Null => {
                    schema["additionalProperties"].is_object() && fits(&schema["additionalProperties"], value)
                }
                property => fits(property, value),
            })
        }
        (Some("array"), toml::Value::Array(items)) => items.iter().all(|item| fits(&schema["items"], item)),
        (Some("integer" | "number"), toml::Value::Integer(number)) => {
            let bound = |name: &str| schema[name].as_f64();
            bound("minimum").is_none_or(|least| *number as f64 >= least)
                && bound("maximum").is_none_or(|most| *number as f64 <= most)
        }
        (Some("number"), toml::Value::Float(_))
        | (Some("boolean"), toml::Value::Boolean(_))
        | (Some("string"), toml::Value::String(_))
        | (None, _) => true,
        _ => false,
    }
}

#[test]
fn every_scenario_of_the_project_is_made_of_listed_keys_and_fits_the_schema() {
    let mut files = Vec::new();
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios"), &mut files);
    let schema = keys::schema();
    let mut used = BTreeSet::new();
    for path in &files {
        let value: toml::Value = toml::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut found = Vec::new();
        names(&value, "", &mut found);
        // Names in a sweep are already dotted, without "sweep.".
        let found = found.into_iter().map(|name| match name.strip_prefix("sweep.") {
            Some("seeds") | None => name,
            Some(swept) => swept.to_owned(),
        });
        for name in found {
            assert!(keys::is_listed(&name), "{}: {name}", path.display());
            used.insert(name);
        }
        assert!(fits(&schema, &value), "{}", path.display());
    }
    assert!(files.len() > 50 && used.len() > 50, "{} files, {} keys", files.len(), used.len());
    for wrong in ["[radio]\nspeed = 1", "[topology]\nhops = 0", "[topology]\nkind = 'chian'", "[[flow]]\ncount = 'two'"]
    {
        assert!(!fits(&schema, &toml::from_str(wrong).unwrap()), "{wrong}");
    }
}

#[test]
fn a_default_is_what_the_absence_of_its_key_means() {
    let prototypes = asked();
    let unset: BTreeMap<&str, String> =
        prototypes.iter().map(|(text, _)| (text.as_str(), read(text, Vec::new()).unwrap())).collect();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for key in keys::all() {
        let Some(value) = key.default.filter(|value| !value.starts_with('(')) else { continue };
        if key.name == "sweep.seeds" {
            continue;
        }
        let mut seen = 0;
        for (text, asked) in &prototypes {
            let mut there = Vec::new();
            names(&toml::from_str(text).unwrap(), "", &mut there);
            if !asked.contains(&key.name) || there.contains(&key.name) {
                continue;
            }
            // A value that does not fit this prototype (such as AODV's under OLSR) tests nothing.
            if let Ok(set) = read(text, vec![format!("{}={value}", key.name)]) {
                seen += 1;
                if set != unset[text.as_str()] {
                    wrong.push(format!("{} = {value} in\n{text}", key.name));
                }
            }
        }
        if seen == 0 {
            wrong.push(format!("{} = {value}: no prototype takes it", key.name));
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 90, "{checked}");
}

#[test]
fn generated_page_of_keys() {
    meshpace_testing::generated::hold("docs/keys.md", &keys::page());
}

//! Tests of declared parameters: the parser accepts, refuses and sets exactly what is declared.

use meshpace_core::Parameter;
use meshpace_core::parameter::{self, Parameters, Unit, Value};
use meshpace_mesh::config::RoutingConfig;
use meshpace_scenario::keys::{self, Asked, Level};
use meshpace_scenario::{Scenario, Source};
use meshpace_transport::pacing::{self, AdaptiveConfig};
use meshpace_transport::{Config, tcp, tpa, train};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn read(text: &str, sets: Vec<String>) -> Result<String, String> {
    let source = Source { name: "declared.toml".to_owned(), text: text.to_owned(), sets };
    let (_, load) = keys::examples();
    let scenario = Scenario::read_with(source, load, "declared").map_err(|refusal| refusal.to_string())?;
    Ok(format!("{:?} {:?}", scenario.plot, scenario.points.iter().map(|point| &point.config).collect::<Vec<_>>()))
}

/// Every prototype with its configuration, and with the declared parameters that it requests.
fn prototypes() -> Vec<(String, String, BTreeMap<String, Asked>)> {
    let (texts, load) = keys::examples();
    let with = |text: String| (text.clone(), read(&text, Vec::new()).unwrap(), keys::asked(&text, load).unwrap());
    texts.into_iter().map(with).collect()
}

/// The setting of a parameter to a value. The value may be one that cannot exist, such as a
/// negative time.
fn set(name: &str, parameter: &Parameter, value: &Value) -> String {
    let form = &parameter.form;
    match (form.unit, value) {
        (Unit::Time, Value::Number(seconds)) => format!("{name}=\"{seconds} s\""),
        (Unit::Rate, Value::Number(bps)) => format!("{name}=\"{bps} bit/s\""),
        _ => format!("{name}={}", form.write(value)),
    }
}

/// Values in the range that differ from the default.
fn others(parameter: &Parameter) -> Vec<Value> {
    let (form, default) = (&parameter.form, (parameter.default)());
    let range = form.range;
    let candidates: Vec<Value> = match (form.unit, &default) {
        (Unit::Flag, _) => vec![Value::Flag(true), Value::Flag(false)],
        (Unit::Choice(words), _) => words.iter().map(|word| Value::Word(word)).collect(),
        (Unit::Wholes(..), Some(Value::Wholes(numbers))) => {
            vec![Value::Wholes(numbers.iter().map(|number| number + 1).collect())]
        }
        (Unit::Whole(_), Some(Value::Whole(number))) => [number + 1, number / 2].map(Value::Whole).to_vec(),
        (Unit::Whole(_), _) => [range.least, range.least + 1.0].map(|number| Value::Whole(number as u64)).to_vec(),
        (_, Some(Value::Number(number))) => {
            [number * 1.25, number * 0.75, number + 0.5, range.least].map(Value::Number).to_vec()
        }
        (_, Some(Value::Whole(number))) => [*number as f64 - 1.0, *number as f64 + 1.0].map(Value::Number).to_vec(),
        (_, _) => [1.0, 12.0, range.least].map(Value::Number).to_vec(),
    };
    candidates.into_iter().filter(|value| form.accepts(value) && Some(value) != default.as_ref()).collect()
}

/// Parameters that change no configuration by themselves, with the reason.
const OTHERWISE: [(&str, &str); 5] = [
    ("starved_after", "it decides what is called starved when a run has ended"),
    ("topology.allow_partition", "it decides what is refused"),
    ("topology.longest_partition", "it decides what is refused"),
    ("flow.transport.pacing.interference.link_delay_data", "only together with the other"),
    ("flow.transport.pacing.interference.link_delay_ack", "only together with the other"),
];

#[test]
fn every_declared_parameter_reaches_its_field() {
    let prototypes = prototypes();
    let mut reached: BTreeMap<(String, &str), bool> = BTreeMap::new();
    for (text, unset, asked) in &prototypes {
        for (name, asked) in asked {
            for (kind, parameter) in asked.declarations() {
                let is_reached = reached.entry((name.clone(), kind.unwrap_or_default())).or_default();
                let has_effect =
                    |value: &Value| read(text, vec![set(name, parameter, value)]).is_ok_and(|with| with != *unset);
                *is_reached = *is_reached || others(parameter).iter().any(has_effect);
            }
        }
    }
    reached.retain(|(name, _), _| !OTHERWISE.iter().any(|(other, _)| other == name));
    let lost: Vec<_> = reached.iter().filter(|(_, is_reached)| !**is_reached).map(|(name, _)| name).collect();
    assert!(lost.is_empty(), "no value in their ranges changes a configuration: {lost:?}");
    assert!(reached.len() > 150, "{}", reached.len());
}

/// Tests every parameter of every routing protocol in the table by itself: no declared key is
/// accepted and then ignored.
#[test]
fn every_parameter_of_every_routing_protocol_is_what_the_scenario_says() {
    let read = |text: String| {
        let source = Source { name: "routing.toml".to_owned(), text, sets: Vec::new() };
        let scenario = Scenario::read(source, Path::new("."), "routing").unwrap_or_else(|refusal| panic!("{refusal}"));
        scenario.points[0].config.mesh.routing
    };
    let mut tried = BTreeSet::new();
    for (name, mut usual) in RoutingConfig::all() {
        let mut declared: Vec<&Parameter> = Vec::new();
        if let Some(piece) = usual.parameters() {
            declared.extend(piece.slots().iter().map(|slot| slot.parameter));
        }
        for parameter in declared {
            for value in others(parameter) {
                let setting = parameter.form.write(&value);
                let text = format!(
                    "[topology]\nhops = 4\n[[flow]]\n[routing]\nprotocol = '{name}'\n{} = {setting}\n",
                    parameter.key
                );
                let mut routing = read(text);
                let slots = routing.parameters().unwrap().slots();
                let slot = slots.iter().find(|slot| slot.parameter.key == parameter.key).unwrap();
                assert_eq!(slot.setting.get(), Some(value), "{name}: {} = {setting}", parameter.key);
                tried.insert((name, parameter.key));
            }
        }
    }
    assert!(tried.len() >= 4, "{tried:?}");
}

#[test]
fn what_is_outside_of_a_declared_range_is_refused_by_its_name() {
    let mut tried = BTreeSet::new();
    for (text, _, asked) in prototypes() {
        for (name, asked) in asked {
            for (kind, parameter) in asked.declarations() {
                let range = parameter.form.range;
                if !tried.insert((name.clone(), kind)) {
                    continue;
                }
                let number = |number: f64| match parameter.form.unit {
                    Unit::Whole(_) => Some(Value::Whole(number as u64)).filter(|_| number >= 0.0),
                    Unit::Flag | Unit::Choice(_) | Unit::Wholes(..) => None,
                    _ => Some(Value::Number(number)),
                };
                let beyond =
                    |end: f64, step: f64| if end.is_finite() { number(end + step * end.abs().max(1.0)) } else { None };
                let (low, high) = (beyond(range.least, -1.0), beyond(range.most, 1.0));
                let ends = [
                    range.excludes_least.then(|| number(range.least)).flatten(),
                    range.excludes_most.then(|| number(range.most)).flatten(),
                ];
                for value in [low, high].into_iter().chain(ends).flatten() {
                    let written = set(&name, parameter, &value);
                    let refused =
                        read(&text, vec![written.clone()]).err().unwrap_or_else(|| panic!("{written} in\n{text}"));
                    assert!(refused.contains(parameter.key), "{written}: {refused}");
                }
            }
        }
    }
    assert!(tried.len() > 150, "{}", tried.len());
}

/// Text of a scenario for `piece` in which every parameter is changed.
fn all_changed(piece: &mut dyn Parameters, usual: &mut dyn Parameters) -> String {
    for slot in piece.slots() {
        if let Some(value) = others(slot.parameter).first() {
            slot.setting.set(value);
        }
    }
    let changes = parameter::changes(piece, usual);
    assert!(changes.len() + 1 >= piece.slots().len(), "{changes:?}");
    changes.join(", ")
}

#[test]
fn what_is_written_of_a_configuration_is_read_as_that_configuration() {
    let transport = |text: String| {
        let text = format!("[topology]\nhops = 4\n[[flow]]\ntransport = {{ {text} }}\n");
        let source = Source { name: "back.toml".to_owned(), text, sets: Vec::new() };
        let scenario = Scenario::read(source, Path::new("."), "back").unwrap_or_else(|refusal| panic!("{refusal}"));
        scenario.points[0].config.flows[0].transport.clone()
    };
    let mut train = train::Config::default();
    let text = all_changed(&mut train, &mut train::Config::default());
    assert!(text.contains("hop_noise = \"375 us\"") && text.contains("rto.initial = \"1.25 s\""), "{text}");
    assert_eq!(transport(format!("name = 'quiet-train', {text}")), Config::Train(train));
    let mut tpa = tpa::Config::default();
    let text = all_changed(&mut tpa, &mut tpa::Config::default());
    assert_eq!(transport(format!("name = 'tpa-2', {text}")), Config::Tpa(tpa));
    let mut tcp = tcp::Config::default();
    let text = all_changed(&mut tcp, &mut tcp::Config::default());
    let mut adaptive = AdaptiveConfig::default();
    let pacing = all_changed(&mut adaptive, &mut AdaptiveConfig::default());
    tcp.pacing = pacing::Config::Adaptive(adaptive);
    assert_eq!(transport(format!("{text}, pacing = {{ kind = 'adaptive', {pacing} }}")), Config::Tcp(tcp));
}

/// Dotted names of all keys that a scenario sets, without numbers, and including the keys that it
/// sweeps.
fn names(value: &toml::Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let path = match path {
                    "" => key.clone(),
                    "sweep" if key != "seeds" => key.clone(),
                    _ => format!("{path}.{key}"),
                };
                found.insert(path.clone());
                names(value, &path, found);
            }
        }
        toml::Value::Array(items) => items.iter().for_each(|item| names(item, path, found)),
        _ => {}
    }
}

/// Texts of scenarios below `directory`: files, and examples in pages.
fn scenarios(directory: &Path, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => scenarios(&path, texts),
            Some("toml") => texts.push(std::fs::read_to_string(&path).unwrap()),
            Some("md") => {
                let page = std::fs::read_to_string(&path).unwrap();
                let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("\n```").next());
                texts.extend(blocks.map(str::to_owned));
            }
            _ => {}
        }
    }
}

#[test]
fn a_key_for_everybody_stands_in_a_scenario_or_an_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut texts = Vec::new();
    ["scenarios", "examples", "docs"].iter().for_each(|directory| scenarios(&root.join(directory), &mut texts));
    let mut used = BTreeSet::new();
    texts.iter().filter_map(|text| text.parse::<toml::Table>().ok()).for_each(|table| {
        names(&toml::Value::Table(table), "", &mut used);
    });
    // A kind is mostly written without a table: `queue = "llap"`. Trains as a transport and as a
    // pacing rule share their declarations.
    let is_written =
        |name: &str| used.contains(name) || name.strip_suffix(".kind").is_some_and(|name| used.contains(name));
    let is_used = |name: &str| is_written(name) || is_written(&name.replace(".pacing.", "."));
    let all = keys::all();
    let unused: Vec<&str> = all
        .iter()
        .filter(|key| key.level == Level::Basic)
        .map(|key| key.name.as_str())
        .filter(|name| !is_used(name))
        .collect();
    assert!(unused.is_empty(), "neither in a scenario nor in an example, so for experts: {unused:?}");
    let experts = all.iter().filter(|key| key.level == Level::Expert).count();
    assert!(experts > 50 && experts < all.len() / 2 + 50, "{experts} of {}", all.len());
}

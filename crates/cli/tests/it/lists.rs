//! `meshpace transports` and `meshpace scenarios`.

use assert_cmd::Command;
use serde_json::Value;

fn lines(arguments: &[&str], directory: &std::path::Path) -> Vec<Value> {
    let output = Command::cargo_bin("meshpace").unwrap().args(arguments).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_transport_that_is_listed_runs() {
    let here = std::env::current_dir().unwrap();
    let names: Vec<_> = lines(&["transports", "--format", "json"], &here)
        .iter()
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect();
    for name in ["newreno", "tcp-ap", "tcp-ap-released", "udp"] {
        assert!(names.iter().any(|listed| listed == name), "{name} is not in {names:?}");
    }
    for name in names {
        let text = format!(
            "duration = '3 s'\n[topology]\nhops = 2\n[[flow]]\ntransport = '{name}'\ntraffic = 'cbr'\nrate = '50 kbit/s'\n"
        );
        let mut command = Command::cargo_bin("meshpace").unwrap();
        let output = command.args(["run", "-", "--format", "json"]).write_stdin(text).output().unwrap();
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(record["flows"][0]["transport"], name.as_str());
        assert!(record["flows"][0]["delivered_bytes"].as_u64().unwrap() > 0, "{name}");
    }
}

#[test]
fn keys_are_found_by_their_words_and_by_those_of_other_programs() {
    let here = std::env::current_dir().unwrap();
    let found = |word: &str| -> Vec<String> {
        let listed = lines(&["keys", "--search", word, "--format", "json"], &here);
        listed.iter().map(|key| key["key"].as_str().unwrap().to_owned()).collect()
    };
    // Keys with the word in their name come first, followed by keys with the word in their
    // description.
    let sense = found("carrier_sense");
    assert_eq!(sense[0], "radio.carrier_sense_threshold");
    assert!(found("medium is busy").contains(&"radio.carrier_sense_threshold".to_owned()));
    assert!(found("RFC 3561").contains(&"routing.local_repair".to_owned()));
    for (word, key) in
        [("reno", "flow.transport"), ("802.11n", "mac.profile"), ("bulk", "flow.traffic"), ("buffer", "radio.queue")]
    {
        assert_eq!(found(word)[0], key, "{word}");
    }
    let search = |word: &str| {
        let output = Command::cargo_bin("meshpace").unwrap().args(["keys", "--search", word]).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, told) = search("Mbps");
    assert!(status == Some(0) && told.contains("Mbit/s"), "{told}");
    let (status, told) = search("zeppelin");
    assert!(status == Some(2) && told.contains("zeppelin"), "{told}");
}

#[test]
fn scenarios_are_found_from_below_with_what_is_wrong_with_them() {
    let directory = tempfile::tempdir().unwrap();
    let scenarios = directory.path().join("scenarios");
    let below = scenarios.join("mine");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(
        scenarios.join("good.toml"),
        "title = 'Good'\n[[flow]]\n[sweep]\n'topology.hops' = [1, 2]\nseeds = 3\n",
    )
    .unwrap();
    std::fs::write(below.join("bad.toml"), "duration = 3\n[[flow]]\n").unwrap();
    std::fs::write(scenarios.join("map.csv"), "x_m,y_m\n").unwrap();
    let listed = lines(&["scenarios", "--format", "json"], &below);
    assert_eq!(listed.len(), 2);
    assert_eq!((&listed[0]["title"], &listed[0]["runs"]), (&"Good".into(), &6.into()));
    assert!(listed[1]["file"].as_str().unwrap().ends_with("bad.toml"));
    assert!(listed[1]["title"].as_str().unwrap().starts_with("refused: duration"));
}

#[test]
fn every_published_experiment_is_listed_from_anywhere() {
    let elsewhere = tempfile::tempdir().unwrap();
    let here = std::env::current_dir().unwrap();
    for directory in [elsewhere.path(), &here] {
        let listed = lines(&["scenarios", "--format", "json"], directory);
        let ids: Vec<&str> = listed.iter().filter_map(|row| row["experiment"].as_str()).collect();
        // The list has the experiments of the five papers, and the studies of quiet trains and of
        // 802.11n.
        let (own, published): (Vec<&str>, Vec<&str>) =
            ids.iter().partition(|id| id.starts_with("QT-") || id.starts_with("HT-"));
        assert_eq!((published.len(), own.len()), (110, 31));
        let of = |id: &str| listed.iter().find(|row| row["experiment"] == id).unwrap().clone();
        // The number of runs is a multiple of 3 kinds of routes, 3 variants of NewReno and 6 of
        // TCP-AP, and 10 hop counts. A table that shares the runs of another has no runs of its
        // own.
        assert_eq!(of("AP05-F14")["runs"].as_u64().unwrap() % (3 * 9 * 10), 0);
        assert!(
            of("TPA-T5")["title"].as_str().unwrap().contains("the runs of TPA-T4") && of("TPA-T5")["runs"].is_null()
        );
    }
}

#[test]
fn without_scenarios_there_is_nothing_to_list() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::cargo_bin("meshpace").unwrap();
    let output = command.args(["scenarios", "nowhere"]).current_dir(&directory).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

fn run_keys(arguments: &[&str]) -> String {
    String::from_utf8(Command::cargo_bin("meshpace").unwrap().args(arguments).output().unwrap().stdout).unwrap()
}

#[test]
fn keys_are_listed_by_section_and_an_unknown_one_names_those_there_are() {
    let here = std::env::current_dir().unwrap();
    let all = lines(&["keys", "--format", "json"], &here);
    let hops = all.iter().find(|key| key["key"] == "topology.hops").unwrap();
    assert_eq!(hops["forms"][0]["min"], 1);
    // Keys for all users come before keys for experts.
    let is_expert = |key: &Value| key["level"] == "expert";
    let basic = all.iter().position(is_expert).unwrap();
    assert!(basic > 50 && all[basic..].iter().all(is_expert) && all[..basic].iter().all(|key| key["level"] == "basic"));
    let table = run_keys(&["keys", "mac"]);
    let (first, second) = table.split_once("For experts:").unwrap();
    assert!(first.contains("mac.profile") && second.contains("mac.ampdu_size"), "{table}");
    let radio = lines(&["keys", "radio", "--format", "json"], &here);
    assert!(radio.len() > 10 && radio.len() < all.len());
    assert!(radio.iter().all(|key| key["key"].as_str().unwrap().split('.').next() == Some("radio")));
    assert_eq!(lines(&["keys", "flow.0.transport.window.beta", "--format", "json"], &here).len(), 1);
    let run = |arguments: &[&str]| Command::cargo_bin("meshpace").unwrap().args(arguments).output().unwrap();
    let refused = run(&["keys", "radoi"]);
    assert_eq!(refused.status.code(), Some(2));
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(message.contains("Did you mean radio?") && message.contains("topology"), "{message}");
    let schema: Value = serde_json::from_slice(&run(&["keys", "--schema"]).stdout).unwrap();
    assert_eq!(schema["properties"]["topology"]["properties"]["hops"]["type"], "integer");
}

#[test]
fn a_list_in_a_pipe_is_read_in_80_columns_and_searched_line_by_line() {
    let here = std::env::current_dir().unwrap();
    let listed = run_keys(&["keys"]);
    let heads: Vec<&str> = listed.lines().filter(|line| !line.starts_with(' ')).collect();
    for key in lines(&["keys", "--format", "json"], &here) {
        let name = key["key"].as_str().unwrap();
        let own: Vec<&str> = heads.iter().copied().filter(|head| head.split(' ').next() == Some(name)).collect();
        let [head] = own[..] else { panic!("{name} has one line, not {own:?}") };
        let default = key["default"].as_str().map(|default| format!("{name} = {default}  ")).unwrap_or_default();
        assert!(head.starts_with(&default) || head == default.trim_end(), "{head}");
        let takes = key["takes"].as_str().unwrap();
        // The permitted values, or at least the unit, are on the first line. The rest is below it.
        for form in key["forms"].as_array().unwrap().iter().filter(|_| !head.ends_with(takes)) {
            let units = form.get("units").and_then(|units| units[0].as_str()).or(form["unit"].as_str());
            assert!(units.is_none_or(|unit| head.contains(unit)), "{head}: {form}");
        }
        // The permitted values are complete, either on the first line or below.
        let at = listed.find(&format!("\n{head}\n")).map_or(0, |at| at + 1);
        let block: Vec<&str> =
            listed[at + head.len()..].lines().skip(1).take_while(|line| line.starts_with(' ')).collect();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
        let told = words(&format!("{head} {}", block.join(" ")));
        assert!(told.contains(&words(takes)) && told.contains(&words(key["meaning"].as_str().unwrap())), "{told}");
    }
    let wide = |text: &str, most: usize| text.lines().filter(|line| line.chars().count() > most).count();
    let wrapped: String = listed.lines().filter(|line| line.starts_with(' ')).map(|line| format!("{line}\n")).collect();
    assert_eq!(wide(&wrapped, 80), 0);
    // First lines are never broken. Some of them are long because of a long default.
    assert!(wide(&listed, 80) < 8 && wide(&listed, 110) == 0, "{} over 80", wide(&listed, 80));
    let transports = run_keys(&["transports"]);
    assert_eq!(wide(&transports, 80), 0);
    for entry in lines(&["transports", "--format", "json"], &here) {
        let name = entry["name"].as_str().unwrap();
        assert!(transports.lines().any(|line| line == name), "{name}");
    }
}

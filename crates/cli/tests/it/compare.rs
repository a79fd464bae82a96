//! `meshpace compare` as other programs and people see it.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Two transfers that cross, in which TCP-AP's fairness over NewReno's is the papers' own subject.
const SCENARIO: &str = "duration = '30 s'\nwarmup = '5 s'\n[topology]\nkind = 'cross'\n[[flow]]\n[[flow]]\n";

fn meshpace(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(cargo_bin("meshpace")).args(arguments).current_dir(directory).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn variants_files_and_directories_say_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    for name in ["newreno", "tcp-ap"] {
        let text = SCENARIO.replace("[[flow]]\n", &format!("[[flow]]\ntransport = '{name}'\n"));
        fs::write(place.join(format!("{name}.toml")), text).unwrap();
        let (status, _, stderr) = meshpace(place, &["run", &format!("{name}.toml"), "--seeds", "4", "--out", name]);
        assert_eq!(status, 0, "{stderr}");
    }
    fs::write(place.join("cross.toml"), SCENARIO).unwrap();
    let sets = ["--set", "flow.transport=newreno", "--set", "flow.transport=tcp-ap"];
    let variants = [&["compare", "cross.toml", "--seeds", "4", "--format", "json"][..], &sets].concat();
    let (status, by_sets, stderr) = meshpace(place, &variants);
    assert_eq!(status, 0, "{stderr}");
    for sides in [&["newreno.toml", "tcp-ap.toml", "--seeds", "4"][..], &["newreno", "tcp-ap"]] {
        let (status, text, stderr) = meshpace(place, &[&["compare", "--format", "json"], sides].concat());
        assert_eq!((status, text.as_str()), (0, by_sets.as_str()), "{stderr}");
    }
    let compared = lines(&by_sets);
    let metrics: Vec<&str> = compared.iter().map(|line| line["metric"].as_str().unwrap()).collect();
    assert!(metrics.contains(&"aggregate_goodput_bps") && metrics.contains(&"jain"), "{metrics:?}");
    // By the records themselves: the difference of the means.
    let mean = |name: &str| {
        let text = fs::read_to_string(place.join(name).join("records.jsonl")).unwrap();
        let values: Vec<f64> = lines(&text).iter().map(|record| record["jain"].as_f64().unwrap()).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let jain = compared.iter().find(|line| line["metric"] == "jain").unwrap();
    assert!((jain["difference"].as_f64().unwrap() - (mean("tcp-ap") - mean("newreno"))).abs() < 1e-9);
    assert_eq!(jain["seeds"], 4);
    for key in ["metric", "a", "b", "difference", "interval", "seeds", "better"] {
        assert!(jain.get(key).is_some(), "{key}");
    }
    let (status, table, _) = meshpace(place, &["compare", "newreno", "tcp-ap", "--format", "csv"]);
    assert_eq!((status, table.lines().count()), (0, 1 + compared.len()));
    let (status, told, _) = meshpace(place, &["compare", "newreno", "tcp-ap"]);
    assert!(status == 0 && told.contains("seeds") && told.contains("Transports, the best first"), "{told}");
}

#[test]
fn what_cannot_be_compared_says_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    fs::write(place.join("one.toml"), format!("{SCENARIO}[sweep]\n'flow.max_window' = [2, 4]\n")).unwrap();
    fs::write(place.join("other.toml"), format!("{SCENARIO}[sweep]\n'flow.max_window' = [6, 8]\n")).unwrap();
    fs::create_dir(place.join("empty")).unwrap();
    for (arguments, told) in [
        (&["compare", "one.toml"][..], "--set twice"),
        (&["compare", "one.toml", "nothing.toml"], "nothing.toml"),
        (&["compare", "one.toml", "other.toml", "--seeds", "1", "--set", "duration=6 s"], "different values"),
        (&["compare", "empty", "one.toml"], "manifest.json"),
    ] {
        let (status, stdout, stderr) = meshpace(place, arguments);
        assert!(status == 2 && stdout.is_empty() && stderr.contains(told), "{told}: {status} {stderr}");
    }
}

/// A sweep of transports against one of them says the same as each pair of them does.
#[test]
fn one_value_of_a_key_is_compared_with_all_others() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let sweep = "[sweep]\n'flow.transport' = ['newreno', 'tcp-ap', 'few']\n'flow.max_window' = [8, 16]\n";
    fs::write(place.join("sweep.toml"), format!("{SCENARIO}{sweep}")).unwrap();
    let (status, _, stderr) = meshpace(place, &["run", "sweep.toml", "--seeds", "3", "--out", "records"]);
    assert_eq!(status, 0, "{stderr}");
    let against = |more: &[&str]| meshpace(place, &[&["compare", "records", "--against"], more].concat());
    let (status, text, stderr) = against(&["flow.transport=newreno", "--format", "json"]);
    assert_eq!(status, 0, "{stderr}");
    let goodput = lines(&text).into_iter().find(|line| {
        line["metric"] == "aggregate_goodput_bps"
            && line["value"] == "tcp-ap"
            && line["point"] == "{\"flow.max_window\":16}"
    });
    fs::write(place.join("one.toml"), format!("{SCENARIO}[sweep]\n'flow.max_window' = [16]\n")).unwrap();
    let pair = ["--set", "flow.transport=newreno", "--set", "flow.transport=tcp-ap"];
    let (_, text, stderr) =
        meshpace(place, &[&["compare", "one.toml", "--seeds", "3", "--format", "json"][..], &pair].concat());
    let by_pair = lines(&text).into_iter().find(|line| line["metric"] == "aggregate_goodput_bps");
    let (goodput, by_pair) = (goodput.unwrap(), by_pair.unwrap_or_else(|| panic!("{stderr}")));
    for field in ["a", "b", "difference", "interval", "seeds", "better"] {
        assert_eq!(goodput[field], by_pair[field], "{field}");
    }
    let (status, told, _) = against(&["flow.transport=newreno"]);
    assert!(status == 0 && told.contains("of 4 comparisons at 2 points"), "{told}");
    // As it is written in the scenario: 8 before 16, though "16" is the smaller text.
    let rows: Vec<&str> = told.lines().filter(|line| line.starts_with("| flow.max_window")).collect();
    let starts = ["8 | tcp-ap |", "8 | few |", "16 | tcp-ap |", "16 | few |"];
    for (row, start) in rows.iter().zip(starts) {
        assert!(row.starts_with(&format!("| flow.max_window = {start}")), "{told}");
    }
    assert_eq!(rows.len(), starts.len(), "{told}");
    let (status, table, _) = against(&["flow.transport=newreno", "--format", "csv"]);
    assert!(
        status == 0 && table.starts_with("point,value,metric,") && table.contains("{\"\"flow.max_window\"\":8}"),
        "{table}"
    );
    for (given, why) in [
        ("flow.transport=nobody", "they have newreno, tcp-ap, few"),
        ("flow.queue=4", "they sweep"),
        ("x", "a key and a value"),
    ] {
        let (status, stdout, stderr) = against(&[given]);
        assert!(status == 2 && stdout.is_empty() && stderr.contains(why), "{given}: {status} {stderr}");
    }
}

#[test]
fn one_flow_alone_has_no_index_of_fairness() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let text =
        "duration = '10 s'\n[[flow]]\n[sweep]\n'flow.transport' = ['newreno', 'tcp-ap']\n'topology.hops' = [10, 2]\n";
    fs::write(place.join("chain.toml"), text).unwrap();
    let (status, told, stderr) = meshpace(place, &["compare", "chain.toml", "--against", "flow.transport=newreno"]);
    assert_eq!(status, 0, "{stderr}");
    assert!(!told.contains("Jain") && told.contains("goodput"), "{told}");
    let rows: Vec<&str> = told.lines().filter(|line| line.starts_with("| topology.hops = ")).collect();
    assert!(rows.len() == 2 && rows[0].starts_with("| topology.hops = 10 | tcp-ap |"), "{told}");
}

/// Of two variants the second sends its other flow out of every range: the first flow has all the air, and is faster and quicker.
#[test]
fn a_variant_that_starves_a_flow_is_better_in_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let text = "duration = '10 s'\n[topology]\nkind = 'nodes'\nallow_partition = true\npositions = [['0 m', '0 m'], ['200 m', '0 m'],\n\
        ['400 m', '0 m'], ['600 m', '0 m'], ['9000 m', '0 m']]\n[[flow]]\nfrom = 0\nto = 1\n[[flow]]\nfrom = 2\nto = 3\n";
    fs::write(place.join("two.toml"), text).unwrap();
    let compare = |more: &[&str]| {
        let variants = ["-q", "compare", "two.toml", "--set", "flow.1.to=3", "--set", "flow.1.to=4"];
        let (status, stdout, stderr) = meshpace(place, &[&variants[..], more].concat());
        assert_eq!(status, 0, "{stderr}");
        (stdout, stderr)
    };
    let (told, _) = compare(&[]);
    assert!(told.starts_with("> STARVED: a flow was starved in ") && told.contains("b 3 of 3"), "{told}");
    assert!(told.contains("none (a flow was starved in 3 of 3 runs) for b"), "{told}");
    assert!(!told.lines().any(|line| line.starts_with("- b is ")), "{told}");
    let (text, stderr) = compare(&["--format", "json"]);
    assert!(stderr.contains("STARVED"), "{stderr}");
    for line in lines(&text) {
        assert!(line["better"] != "b" && line["counts"][1]["starved_runs"] == 3, "{line}");
    }
    let (table, _) = compare(&["--format", "csv"]);
    assert!(table.lines().next().unwrap().ends_with(",better,a_starved_runs,b_starved_runs"), "{table}");
    assert!(table.lines().any(|row| row.starts_with("delay_p95_s,") && row.contains(",inf,")), "{table}");
}

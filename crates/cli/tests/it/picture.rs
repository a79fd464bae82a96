//! `meshpace run --report`, and `report` for records of a user's own scenario.

use assert_cmd::cargo::cargo_bin;
use std::fs;
use std::process::Command;

fn read_map(path: &std::path::Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_sweep_becomes_a_page_with_plots_in_one_command() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let text = "title = 'My chain'\nduration = '6 s'\nseries = '1 s'\n[[flow]]\n[sweep]\n'flow.transport' = ['newreno', 'tcp-ap']\n\
        'topology.hops' = [2, 4]\nseeds = 3\n";
    fs::write(place.join("mine.toml"), text).unwrap();
    let meshpace = |arguments: &[&str]| {
        let output = Command::new(cargo_bin("meshpace")).args(arguments).current_dir(place).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    meshpace(&["run", "mine.toml", "--out", "kept", "--report", "out.html", "--set", "flow.segment=1000"]);
    let page = fs::read_to_string(place.join("out.html")).unwrap();
    assert!(
        page.contains("My chain")
            && page.contains("goodput of all flows, kbit/s against topology.hops")
            && !page.contains("<script")
    );
    // The page shows the command that repeats these runs.
    assert!(page.contains("meshpace run mine.toml --seed 1 --seeds 3 --set flow.segment=1000"), "{page}");
    for name in ["out-goodput.svg", "out-goodput.csv", "out-time.svg", "out-map.svg"] {
        assert!(place.join(name).exists(), "{name}");
    }
    // The numbers are computed from the records: the mean of three seeds in kbit/s.
    let goodput: Vec<f64> = fs::read_to_string(place.join("kept/records.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .filter(|record| record["point"] == serde_json::json!({"flow.transport": "newreno", "topology.hops": 4}))
        .map(|record| record["aggregate_goodput_bps"].as_f64().unwrap() / 1e3)
        .collect();
    let table = fs::read_to_string(place.join("out-goodput.csv")).unwrap();
    let row = table.lines().find(|row| row.starts_with("newreno,4,")).unwrap();
    let mean: f64 = row.split(',').nth(2).unwrap().parse().unwrap();
    assert_eq!(goodput.len(), 3);
    assert!((mean - goodput.iter().sum::<f64>() / 3.0).abs() < 1e-6, "{row}");
    // The map shows the hops that packets took.
    assert!(read_map(&place.join("out-map.svg")).contains("thicker hops carried more frames"));
    // A report that is made from the records alone is the same, except that it has no map.
    meshpace(&["report", "kept"]);
    let read = |name: &str| fs::read_to_string(place.join(name)).unwrap();
    assert_eq!(read("kept/index-goodput.csv"), read("out-goodput.csv"));
    assert!(read("kept/index.html").contains("<svg"));
}

#[test]
fn a_summary_is_a_line_per_point_and_a_page_where_none_can_be_is_refused_before_the_run() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let text = "duration = '4 s'\n[plot]\nmetrics = ['rtt']\n[[flow]]\nstart = '0 s'\n[sweep]\n'topology.hops' = [1, 2]\nseeds = 3\n";
    fs::write(place.join("mine.toml"), text).unwrap();
    let meshpace =
        |arguments: &[&str]| Command::new(cargo_bin("meshpace")).args(arguments).current_dir(place).output().unwrap();
    let output = meshpace(&["run", "mine.toml", "--format", "summary", "--report", "out.html"]);
    let lines: Vec<serde_json::Value> =
        String::from_utf8(output.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[1]["point"]["topology.hops"], &lines[1]["seeds"]), (&2.into(), &3.into()));
    let goodput = &lines[0]["metrics"]["aggregate_goodput_bps"];
    assert!(goodput["interval"][0].as_f64().unwrap() <= goodput["mean"].as_f64().unwrap());
    assert!(place.join("out-rtt.svg").exists() && !place.join("out-goodput.svg").exists(), "what the scenario chose");
    for (page, word) in [("nowhere/out.html", "does not exist"), (".", "is a directory")] {
        let output = meshpace(&["run", "mine.toml", "--report", page]);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty() && String::from_utf8_lossy(&output.stderr).contains(word), "{page}");
    }
}

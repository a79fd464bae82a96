//! `meshpace bench` as users see it, on the smallest work there is.

use assert_cmd::Command;
use serde_json::Value;

fn bench(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("meshpace").unwrap().arg("bench").args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_workload_that_is_not_there_is_named_with_those_that_are() {
    let (status, stdout, stderr) = bench(&["grid-26"]);
    assert_eq!(status, Some(2));
    assert!(stdout.is_empty());
    assert!(stderr.contains("grid-26") && stderr.contains("grid-25"), "{stderr}");
    let (status, list, _) = bench(&["--list"]);
    assert_eq!(status, Some(0));
    for name in list.lines() {
        assert!(stderr.contains(name), "{name} is not in:\n{stderr}");
    }
}

#[test]
fn what_is_measured_is_what_run_simulates() {
    let (status, stdout, stderr) = bench(&["grid-25", "--pairs", "2", "--alone", "--json"]);
    assert_eq!(status, Some(0), "{stderr}");
    let measured: Value = serde_json::from_str(&stdout).unwrap();
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bench/grid-25.toml");
    let mut run = Command::cargo_bin("meshpace").unwrap();
    let output = run.args(["run", scenario, "--format", "json"]).output().unwrap();
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(measured["frames"], record["frames"]);
    assert_eq!(measured["fingerprint"], record["fingerprint"]);
    assert_eq!(measured["goodput_bps"], record["aggregate_goodput_bps"]);
    for key in ["cpu_s", "frames_per_cpu_s", "simulated_s_per_cpu_s", "peak_kib"] {
        assert!(measured[key].as_f64().unwrap() > 0.0, "{key}");
    }
    assert!(measured.get("ns2_ratio").is_none());
}

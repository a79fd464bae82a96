//! `meshpace dev bench` as users see it, with the smallest workload.

use assert_cmd::Command;
use serde_json::Value;

fn bench(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::cargo_bin("meshpace").unwrap().args(["dev", "bench"]).args(arguments).output().unwrap();
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

#[test]
fn a_key_that_is_set_counts_and_what_was_sent_is_told() {
    let sets = ["--set", "duration=5 s", "--set", "warmup=1 s", "--set", "routing.protocol=static"];
    let (status, stdout, stderr) = bench(&[&["chain-1", "--pairs", "1", "--json"], &sets[..]].concat());
    assert_eq!(status, Some(0), "{stderr}");
    let measured: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(measured["simulated_s"], 5.0);
    // There are two stations, so each frame is sensed by one other station. The only broadcast is
    // an ARP request.
    assert_eq!(measured["sensed"], measured["frames"]);
    assert_eq!(measured["broadcasts"], 1);
    assert!(measured.get("ns2_ratio").is_none());
    let (status, stdout, stderr) = bench(&["chain-1", "--set", "routing.protocoll=static"]);
    assert_eq!((status, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("protocoll"), "{stderr}");
}

/// Runs `bench` with an empty search path and with `MESHPACE_NS3` set to `ns3`.
fn bench_without(ns3: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::cargo_bin("meshpace").unwrap();
    let output = command
        .args(["dev", "bench"])
        .args(arguments)
        .env("PATH", "")
        .env("MESHPACE_NS3", ns3)
        .env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn simulators_that_are_not_there_are_left_out_and_that_is_said() {
    let (status, stdout, stderr) = bench_without("", &["grid-25", "--pairs", "1"]);
    assert_eq!(status, Some(0), "{stderr}");
    for missing in ["ns-2 is not installed (apt-get install ns2)", "ns-3 is not installed (pip install ns3"] {
        assert!(stdout.contains(missing), "{stdout}");
    }
}

#[test]
fn a_simulator_that_was_asked_for_must_be_there() {
    for (simulator, message) in [("ns-2", "apt-get install ns2"), ("ns-3", "pip install ns3")] {
        let (status, stdout, stderr) = bench_without("", &["grid-25", "--beside", simulator]);
        assert_eq!(status, Some(2));
        assert!(stdout.is_empty());
        assert!(stderr.contains(message), "{stderr}");
    }
}

#[test]
fn an_ns3_that_does_not_serve_is_refused_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let named = directory.path().to_str().unwrap();
    let refused = || {
        let (status, _, stderr) = bench_without(named, &["grid-25", "--beside", "ns-3"]);
        assert_eq!(status, Some(2));
        assert!(stderr.contains(named), "{stderr}");
        stderr
    };
    assert!(refused().contains("no include/ns3/core-module.h"));
    std::fs::create_dir_all(directory.path().join("include/ns3")).unwrap();
    std::fs::write(directory.path().join("include/ns3/core-module.h"), "").unwrap();
    assert!(refused().contains("no lib or lib64"));
    std::fs::create_dir(directory.path().join("lib")).unwrap();
    std::fs::write(directory.path().join("lib/libns3.37-core.so"), "").unwrap();
    assert!(refused().contains("ns-3.37"));
    // The release is right, but the file is not a library. The next failure is that of the
    // compiler, which is not in the search path.
    std::fs::rename(directory.path().join("lib/libns3.37-core.so"), directory.path().join("lib/libns3.44-core.so"))
        .unwrap();
    let (status, _, stderr) = bench_without(named, &["grid-25", "--beside", "ns-3"]);
    assert_eq!(status, Some(2));
    assert!(stderr.contains("cannot run"), "{stderr}");
}

//! `meshpace run --until`: runs as many seeds as the precision of a quantity needs.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Scenario with a point of one hop, which varies little, and a point of four hops, which varies
/// more.
const SCENARIO: &str = "duration = '4 s'\n[[flow]]\n[sweep]\n'topology.hops' = [1, 4]\n";

fn run(place: &Path, arguments: &[&str]) -> (i32, String, String) {
    fs::write(place.join("s.toml"), SCENARIO).unwrap();
    let arguments = [&["run", "s.toml", "--format", "json"][..], arguments].concat();
    let output = Command::new(cargo_bin("meshpace")).args(arguments).current_dir(place).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Returns the goodputs of each point, in the order of the seeds.
fn goodputs(text: &str) -> BTreeMap<u64, Vec<f64>> {
    let mut found: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let of = found.entry(record["point"]["topology.hops"].as_u64().unwrap()).or_default();
        of.push(record["aggregate_goodput_bps"].as_f64().unwrap());
        assert_eq!(record["seed"].as_u64(), Some(of.len() as u64), "seeds from 1 on, without gaps");
    }
    found
}

#[test]
fn every_point_gets_the_seeds_that_its_interval_needs_whatever_makes_them() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let rule = ["--until", "goodput 6 %", "--most", "60"];
    let with = |more: &[&str]| {
        let (status, text, stderr) = run(place, &[&rule[..], more].concat());
        assert_eq!(status, 0, "{stderr}");
        assert!(!stderr.contains("not reached"), "{stderr}");
        text
    };
    let one = with(&["--jobs", "1"]);
    let found = goodputs(&one);
    assert_eq!(found[&1].len(), 20);
    assert!((21..60).contains(&found[&4].len()), "{} seeds", found[&4].len());
    for values in found.values() {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error = (squares / (values.len() as f64 - 1.0) / values.len() as f64).sqrt();
        // The quantile of Student's t is 2.09 for 20 values. It is smaller for more values, but at
        // least 1.96.
        assert!(1.96 * error <= 0.06 * mean, "{error} of {mean}");
    }
    assert_eq!(with(&["--jobs", "2"]), one);
    // Runs that an earlier start has made are not repeated, and do not change the results.
    let (status, _, stderr) = run(place, &["--seeds", "7", "--out", "kept"]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(with(&["--out", "kept"]), one);
    assert_eq!(fs::read_to_string(place.join("kept/records.jsonl")).unwrap(), one);
    assert_eq!(with(&["--out", "kept"]), one, "nothing is missing");
}

/// If the program is killed while points get more seeds, the next start runs the same seeds.
#[test]
#[expect(clippy::disallowed_methods, reason = "another process works meanwhile")]
fn after_kills_the_seeds_are_those_of_an_undisturbed_run() {
    let scratch = tempfile::tempdir().unwrap();
    let place = scratch.path();
    let rule = ["--until", "goodput 6 %", "--most", "60", "--jobs", "2"];
    let (status, undisturbed, stderr) = run(place, &rule);
    assert_eq!(status, 0, "{stderr}");
    let mut killed = Vec::new();
    for attempt in 0..200 {
        let out = place.join("out");
        let mut child = Command::new(cargo_bin("meshpace"))
            .args(["run", "s.toml", "--quiet", "--out", "out"])
            .args(rule)
            .current_dir(place)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Each start is killed once it has kept three more records. The first line of the file is
        // its head.
        let kept = || fs::read_to_string(out.join("unfinished.jsonl")).map_or(0, |text| text.lines().count());
        let before = killed.last().copied().unwrap_or(1);
        while kept() < before + 3 && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            break;
        }
        assert!(attempt < 199, "it does not come to its end");
        killed.push(kept());
    }
    // Two points with 20 seeds each make forty runs. At least one start was killed while these were
    // made.
    assert!(killed.iter().any(|kept| (2..41).contains(kept)), "{killed:?}");
    let (status, again, stderr) = run(place, &[&rule[..], &["--out", "out"]].concat());
    assert_eq!((status, &again), (0, &undisturbed), "{stderr}");
    assert_eq!(fs::read_to_string(place.join("out/records.jsonl")).unwrap(), undisturbed);
}

#[test]
fn a_precision_that_is_not_reached_is_told_and_a_wrong_rule_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let (status, text, stderr) = run(scratch.path(), &["--until", "goodput 0.5 %", "--most", "22", "--quiet"]);
    assert_eq!((status, goodputs(&text)[&4].len()), (0, 22), "{stderr}");
    assert!(stderr.contains("0.5 % was not reached at topology.hops = 4: after 22 seeds"), "{stderr}");
    for (arguments, why) in [
        (&["--until", "speed 2 %"][..], "there is no quantity \"speed\""),
        (&["--until", "goodput"], "'goodput 2 %'"),
        (&["--until", "goodput 2 %", "--most", "5"], "less than the 20"),
        (&["--most", "30"], "--until"),
        (&["--until", "goodput 2 %", "--pcap", "air"], "--pcap"),
    ] {
        let (status, stdout, stderr) = run(scratch.path(), arguments);
        assert!(status == 2 && stdout.is_empty() && stderr.contains(why), "{why}: {status} {stderr}");
    }
}

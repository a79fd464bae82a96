//! `meshpace reproduce`, `report` and `validate` as a user meets them.

use assert_cmd::Command;
use std::fs;
use std::path::Path;

fn meshpace(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("meshpace").unwrap().args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn an_experiment_is_run_reported_and_not_run_twice() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("f14");
    let out = directory.to_str().unwrap();
    let (status, stdout, stderr) = meshpace(&["reproduce", "ap05-f14", "--seeds", "1", "--out", out]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(stdout.trim(), directory.join("index.html").to_str().unwrap());
    let records = read(&directory, "records.jsonl");
    assert_eq!(records.lines().count(), 150, "3 kinds of routes, 5 transports, 10 hop counts");
    assert_eq!(read(&directory, "records.csv").lines().count(), 151, "a header and one flow per run");
    let page = read(&directory, "index.html");
    assert!(page.contains("cannot be judged"), "one seed has no interval");
    assert!(page.contains("meshpace reproduce AP05-F14 --seeds 1"));

    // The same again: nothing is run, the page comes back to the byte.
    fs::remove_file(directory.join("index.html")).unwrap();
    let written = fs::metadata(directory.join("records.jsonl")).unwrap().modified().unwrap();
    let (status, _, stderr) = meshpace(&["reproduce", "AP05-F14", "--seeds", "1", "--out", out]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("complete"), "{stderr}");
    assert_eq!(fs::metadata(directory.join("records.jsonl")).unwrap().modified().unwrap(), written);
    assert_eq!(read(&directory, "index.html"), page);

    // Other seeds would replace what is there: refused, and nothing is touched.
    let (status, _, stderr) = meshpace(&["reproduce", "AP05-F14", "--seeds", "2", "--out", out]);
    assert_eq!(status, 2);
    assert!(stderr.contains("1 seeds") && stderr.contains("--force"), "{stderr}");
    assert_eq!(read(&directory, "records.jsonl"), records);

    // The report alone, from the records on disk: falsified ones show in it.
    let first = "\"aggregate_goodput_bps\":";
    let falsified = records.replacen(first, "\"aggregate_goodput_bps\":1", 1);
    fs::write(directory.join("records.jsonl"), falsified).unwrap();
    let (status, _, stderr) = meshpace(&["report", out]);
    assert_eq!(status, 0, "{stderr}");
    assert_ne!(read(&directory, "index.html"), page);
    let leftovers = fs::read_dir(&directory)
        .unwrap()
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with('.')));
    assert_eq!(leftovers.count(), 0, "no temporary files stay");
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let (status, _, stderr) = meshpace(&["reproduce", "AP05-F99"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("AP05-F99") && stderr.contains("AP05-F14"), "{stderr}");

    let scratch = tempfile::tempdir().unwrap();
    let (status, _, stderr) = meshpace(&["report", scratch.path().to_str().unwrap()]);
    assert_eq!(status, 2);
    assert!(stderr.contains("manifest.json"), "{stderr}");

    let (status, _, stderr) = meshpace(&["validate", "macro"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("macro") && stderr.contains("chain_static_routes"), "{stderr}");
}

#[test]
fn a_comparison_prints_every_point_and_writes_its_page() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().to_str().unwrap();
    let (status, stdout, stderr) = meshpace(&["validate", "chain_static_routes", "--seeds", "2", "--out", out]);
    assert_eq!(status, 0, "{stdout}{stderr}");
    let page = read(scratch.path(), "results.md");
    for hops in 1..=10 {
        for window in [1, 64] {
            assert!(page.contains(&format!("| {hops} hops, window {window} |")), "{hops} hops, window {window}");
        }
    }
    assert!(page.contains("meshpace validate chain_static_routes --seeds 2"));
    assert!(page.contains("| 20 of 20 |"), "{page}");
}

//! `meshpace run --pcap`: the places of the files, and that nothing is overwritten without
//! `--force`.

use assert_cmd::Command;
use std::path::Path;

const SCENARIO: &str =
    "duration = \"3 s\"\nwarmup = \"1.1 s\"\n[topology]\nhops = 2\n[[flow]]\ntransport = \"newreno\"\n";

/// Runs `SCENARIO` from standard input. Returns the exit status, standard output and standard
/// error.
fn run(pcap: &Path, more: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("meshpace").expect("the binary");
    command.args(["run", "-", "--format", "json", "--pcap"]).arg(pcap).args(more).write_stdin(SCENARIO);
    let output = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code().expect("no signal"), text(output.stdout), text(output.stderr))
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn one_run_fills_the_directory_and_is_not_overwritten_unasked() {
    let dir = tempfile::tempdir().unwrap();
    let pcap = dir.path().join("new");
    let (status, first, _) = run(&pcap, &[]);
    assert_eq!(status, 0);
    let files = ["n0-ip", "n0-radio", "n1-ip", "n1-radio", "n2-ip", "n2-radio"].map(|name| format!("{name}.pcapng"));
    assert_eq!(names(&pcap), files);
    // The capture of an interface without packets has only its two headers; a capture with packets
    // is larger.
    let size = |name: &str| std::fs::metadata(pcap.join(name)).unwrap().len();
    assert!(size("n1-ip.pcapng") < 100 && size("n1-radio.pcapng") > 10_000 && size("n2-ip.pcapng") > 1_000);

    std::fs::write(pcap.join("n1-ip.pcapng"), "mine").unwrap();
    let (status, out, error) = run(&pcap, &[]);
    assert_eq!((status, out.as_str()), (2, ""), "refused before anything is run");
    assert!(error.contains("n0-radio.pcapng") && error.contains("--force"), "{error}");
    let (status, again, _) = run(&pcap, &["--force"]);
    assert_eq!((status, again), (0, first), "the record does not depend on captures");
    assert!(size("n1-ip.pcapng") > 4);
}

#[test]
fn several_runs_get_a_directory_each() {
    let dir = tempfile::tempdir().unwrap();
    let (status, ..) = run(dir.path(), &["--seed", "5", "--seeds", "2", "--jobs", "2"]);
    assert_eq!(status, 0);
    assert_eq!(names(dir.path()), ["0001_seed=5", "0002_seed=6"]);
    assert_eq!(names(&dir.path().join("0002_seed=6")).len(), 6);
    // A single existing file of one run is enough to refuse all runs.
    std::fs::remove_dir_all(dir.path().join("0001_seed=5")).unwrap();
    let (status, _, error) = run(dir.path(), &["--seed", "5", "--seeds", "2"]);
    assert_eq!(status, 2);
    assert!(error.contains("0002_seed=6") && !dir.path().join("0001_seed=5").exists(), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one_error_and_status_1() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["n0-radio.pcapng", "n1-radio.pcapng"] {
        std::os::unix::fs::symlink("/dev/full", dir.path().join(name)).unwrap();
    }
    let (status, _, error) = run(dir.path(), &["--force"]);
    assert_eq!(status, 1);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains("radio.pcapng") && error.contains("No space left"), "{error}");
}

/// Frames of 802.11n are captured like others: each node has a capture of its radio and one of its
/// interface.
#[test]
fn frames_of_802_11n_are_captured() {
    let scratch = tempfile::tempdir().expect("a directory");
    let into = scratch.path().join("captures");
    let ht = [
        "--set",
        "mac.profile=ht",
        "--set",
        "mac.ampdu_mpdus=16",
        "--set",
        "radio.rate=MCS 7",
        "--set",
        "topology={ hops = 2 }",
    ];
    let (code, _, told) = run(&into, &ht);
    assert_eq!(code, 0, "{told}");
    assert_eq!(names(&into).len(), 6);
    // 3 s at MCS 7 over two hops are megabytes.
    let size = std::fs::metadata(into.join("n1-radio.pcapng")).expect("a capture").len();
    assert!(size > 1_000_000, "{size}");
}

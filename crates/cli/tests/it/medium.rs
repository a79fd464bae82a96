//! `meshpace dev medium`: radios of mac80211_hwsim in a guest machine with instruction counting.

use assert_cmd::cargo::cargo_bin;
use meshpace_testing::{Class, has, is_slow_run, skipped};
use std::path::Path;
use std::process::Command;

fn medium(script: &str) -> Command {
    Command::new(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/medium")).join(script))
}

fn said(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&done.stderr));
    text
}

#[test]
fn a_hidden_pair_of_the_kernels_radios_repeats_itself_and_has_the_simulators_goodput() {
    if !is_slow_run(
        "boots Debian's kernel in qemu twice, with three radios of mac80211_hwsim and our medium between them",
    ) {
        return;
    }
    let tools = [
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("busybox", "busybox-static"),
        ("cpio", "cpio"),
        ("modprobe", "kmod"),
        ("iw", "iw"),
        ("ip", "iproute2"),
        ("iperf3", "iperf3"),
        ("tcpdump", "tcpdump"),
        ("bc", "bc"),
        ("gcc", "gcc"),
    ];
    if !tools.iter().all(|(program, package)| has(program, package)) {
        return;
    }
    let (directory, command) = (concat!(env!("CARGO_TARGET_TMPDIR"), "/medium"), cargo_bin("meshpace"));
    let built = medium("guest").arg(directory).arg(&command).output().unwrap();
    if built.status.code() == Some(77) {
        skipped(Class::Tools, format_args!("no kernel from apt-get: {}", String::from_utf8_lossy(&built.stdout)));
        return;
    }
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // All output of the consoles is the same in both runs, including times and counts.
    let runs = ["2", "goodput", "topology=hidden", "medium=ours", "seconds=20"];
    let repeated = medium("repeat").env("LIMIT", "1800").arg(directory).args(runs).output().unwrap();
    let text = String::from_utf8_lossy(&repeated.stdout);
    if text.contains("2 runs, 2 different") {
        // This happened beside busy loops, and the cause is not known: docs/notes/medium.md. The
        // goodput must be right even then.
        skipped(Class::Rights, "two runs of the guest are not equal, as may be on a busy machine");
    } else {
        assert!(text.contains("2 runs, 1 different"), "{text}{}", String::from_utf8_lossy(&repeated.stderr));
    }
    let console = std::fs::read_to_string(format!("{directory}/repeat/1.txt")).unwrap();
    let goodput = |line: &str| line.split("goodput of").nth(1)?.split_whitespace().nth(1)?.parse::<f64>().ok();
    let total: f64 = console.lines().filter_map(goodput).sum();
    let scenario = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../validation/medium/hidden.toml"));
    let record = said(Command::new(command).arg("run").arg(scenario).args(["--format", "json"]));
    let record: serde_json::Value = serde_json::from_str(record.trim()).unwrap();
    let expected = record["aggregate_goodput_bps"].as_f64().unwrap();
    assert!((total / expected - 1.0).abs() < 0.05, "{total} beside {expected}: {console}");
}

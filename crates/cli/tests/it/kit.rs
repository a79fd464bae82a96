//! `kit/meshpace-kit`, run in the nodes of an emulated mesh. Its measurements are read by `advise`
//! and `dev validate field`.

use assert_cmd::cargo::cargo_bin;
use meshpace_testing::{Class, has, skipped};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn kit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kit/meshpace-kit")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Chain of nodes that hear only their neighbours; their kernels route.
const CHAIN: &str = "title = 'kit'\nduration = '120 s'\n[topology]\nhops = 2\n[radio]\nrate = '11 Mbit/s'\nbasic_rate = '11 Mbit/s'\n\
                     rts_cts = false\n[[flow]]\nfrom = 0\nto = 2\n";

#[test]
fn it_speaks_the_shell_of_small_routers() {
    for (shell, arguments, package) in [
        ("busybox", &["sh", "-n"][..], "busybox"),
        ("dash", &["-n"], "dash"),
        ("shellcheck", &["-s", "sh"], "shellcheck"),
    ] {
        if !has(shell, package) {
            continue;
        }
        let output = Command::new(shell).args(arguments).arg(kit()).output().unwrap();
        assert!(output.status.success(), "{shell}: {}{}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn what_it_cannot_use_is_refused_before_anything_is_written() {
    if !has("iperf3", "iperf3") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| -> Output {
        Command::new("sh").arg(kit()).args(arguments).current_dir(scratch.path()).stdin(Stdio::null()).output().unwrap()
    };
    for (arguments, why) in [
        (&[][..], "usage: meshpace-kit"),
        (&["-n", "../roof", "10.0.0.2"], "a name has letters"),
        (&["-t", "ten", "10.0.0.2"], "expected a whole number above 0, found \"ten\""),
        (&["-x"], "usage: meshpace-kit"),
    ] {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{arguments:?}: {said}");
    }
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

/// Measures the chain with the kit: in the middle node towards the last node, and then in the first
/// node towards both others.
fn measure(scratch: &Path) -> Output {
    let scenario = scratch.join("chain.toml");
    fs::write(&scenario, CHAIN).unwrap();
    let (kit, out) = (kit(), scratch.join("mesh"));
    let (kit, out) = (kit.display(), out.display());
    let mut command = Command::new(cargo_bin("meshpace"));
    command.arg("emulate").arg(&scenario).args(["--mode", "kernel"]).stdin(Stdio::null());
    for node in ["n1", "n2"] {
        command.args(["--exec", &format!("{node}: sh {kit} -s")]);
    }
    // The measurements run one after the other, because simultaneous ones would disturb each other.
    let end = format!("grep -qx end {out}/mill/kit 2>/dev/null");
    command.args(["--exec", &format!("n1: sleep 2; busybox sh {kit} -n mill -o {out} -t 2 10.99.0.3")]);
    command.args([
        "--exec",
        &format!("n0: until {end}; do sleep 0.2; done; sh {kit} -n roof -o {out} -t 2 10.99.0.2 10.99.0.3"),
    ]);
    command.output().unwrap()
}

#[test]
fn a_mesh_measured_by_it_is_predicted_beside_the_measurement() {
    let root = fs::read_to_string("/proc/self/status").is_ok_and(|text| text.contains("\nUid:\t0\t"));
    let can = root && Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|status| status.success());
    if !(can && Path::new("/dev/net/tun").exists()) {
        skipped(Class::Rights, "no network namespaces or no /dev/net/tun");
        return;
    }
    if !has("iperf3", "iperf3") || !has("busybox", "busybox") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let output = measure(scratch.path());
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let meshpace = |arguments: &[&str]| {
        Command::new(cargo_bin("meshpace")).args(arguments).current_dir(scratch.path()).output().unwrap()
    };
    let judged = meshpace(&["dev", "validate", "field", "mesh"]);
    let table = text(&judged.stdout);
    assert!(judged.status.success() && table.contains("roof-mill-10.99.0.3"), "{table}{}", text(&judged.stderr));
    assert!(table.contains("within ") || table.contains("outside of "), "{table}");
    let flow = ["--flow", "roof,10.99.0.3", "--seconds", "1 s", "--seeds", "3", "--mcs", "0", "--json"];
    let advised = meshpace(&[&["advise", "mesh"][..], &flow].concat());
    let lines: Vec<Value> = text(&advised.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let path = lines.iter().find(|line| line["predicted_kbps"].is_number());
    let path = path.unwrap_or_else(|| panic!("{lines:?}{}", text(&advised.stderr)));
    let number = |key: &str| path[key].as_f64().unwrap();
    assert_eq!(path["path"].as_array().unwrap().len(), 3, "{path}");
    // The channel allows 11 Mbit/s, and less than half of that over two hops, whatever else the
    // machine does.
    assert!(number("measured_kbps") > 0.0 && number("measured_kbps") < 5500.0, "{path}");
    assert!(number("predicted_kbps") > 0.0 && number("predicted_kbps") < 5500.0, "{path}");
    assert!(path["interval_kbps"][1].as_f64().unwrap() > number("predicted_kbps"), "{path}");
}

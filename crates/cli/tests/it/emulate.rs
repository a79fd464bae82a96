//! `meshpace emulate` as people and scripts use it: output, exit statuses, files, and the remains
//! of a killed emulation.

use assert_cmd::cargo::cargo_bin;
use meshpace_testing::{Class, skipped};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const SCENARIO: &str = "duration = '30 s'\n[topology]\nhops = 2\n[[flow]]\nfrom = 0\nto = 2\n";

fn is_possible() -> bool {
    let root = fs::read_to_string("/proc/self/status").is_ok_and(|text| text.contains("\nUid:\t0\t"));
    let can = root && Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|status| status.success());
    let can = can && Path::new("/dev/net/tun").exists();
    if !can {
        skipped(Class::Rights, "no network namespaces or no /dev/net/tun");
    }
    can
}

fn meshpace(scenario: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(cargo_bin("meshpace"));
    command.arg("emulate").arg(scenario).args(arguments).stdin(Stdio::null());
    command
}

fn scenario(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("test.toml");
    fs::write(&path, SCENARIO).unwrap();
    path
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn output_status_verdict_and_record() {
    if !is_possible() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scenario(scratch.path());
    let out = scratch.path().join("out");
    let programs = ["--exec", "n1: cat /etc/hosts", "--exec", "n2: echo done; exit 5", "--out", out.to_str().unwrap()];
    let output = meshpace(&file, &programs).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.contains("10.99.0.3 n2\n") && text.ends_with("done\n"), "{text}");
    let complaints = stderr(&output);
    let last = complaints.lines().last().unwrap();
    let verdict = last.strip_prefix("real time: ").unwrap();
    assert!(["held", "held within the budget", "not valid"].contains(&verdict), "{complaints}");
    let record: Value = serde_json::from_str(&fs::read_to_string(out.join("records.jsonl")).unwrap()).unwrap();
    assert_eq!(record["real_time"]["verdict"], verdict);
    assert_eq!(record["real_time"]["programs"][1]["status"], 5);
    assert!(out.join("manifest.json").exists());
    let again = meshpace(&file, &programs).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("--force"), "{}", stderr(&again));
}

#[test]
fn a_refused_emulation_leaves_recordings_as_they_are() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scenario(scratch.path());
    let (old, new) = (scratch.path().join("old.jsonl"), scratch.path().join("new.jsonl"));
    fs::write(&old, "an older one").unwrap();
    let refused = |record: &Path, more: &[&str]| {
        let output = meshpace(&file, more).arg("--record").arg(record).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let nobody = ["--exec", "n0: no-such-program"];
    assert!(refused(&old, &nobody).contains("old.jsonl already exists; --force replaces it"));
    assert!(refused(&old, &[&nobody[..], &["--force"]].concat()).contains("no program"));
    assert!(refused(&new, &nobody).contains("no program"));
    assert_eq!(fs::read_to_string(&old).unwrap(), "an older one");
    assert!(!new.exists());
}

#[test]
fn the_verdict_follows_injected_lateness() {
    if !is_possible() || !meshpace_testing::has("ping", "iputils-ping") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scenario(scratch.path());
    let ping = ["--exec", "n2: ping -c 20 -i 0.05 -q n0", "--inject-lateness", "20/2"];
    let output = meshpace(&file, &ping).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).ends_with("real time: not valid\n"), "{}", stderr(&output));
    let hard = meshpace(&file, &ping).args(["--hard", "--exec", "n0: sleep 25"]).output().unwrap();
    assert_eq!(hard.status.code(), Some(1));
    assert!(stderr(&hard).ends_with("real time: not valid\n"), "{}", stderr(&hard));
    let forgiving = meshpace(&file, &ping).args(["--budget", "100"]).output().unwrap();
    assert!(!stderr(&forgiving).ends_with("real time: held\n"), "{}", stderr(&forgiving));
}

#[test]
fn a_scenario_holds_programs_and_integration_gets_a_report() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("programs.toml");
    let program = |node: u32, command: &str| format!("[[program]]\nnode = {node}\ncommand = '{command}'\n");
    fs::write(&file, program(0, "sleep 60") + &program(1, "echo a \"b\" < /dev/null; exit 3")).unwrap();
    let simulated = Command::new(cargo_bin("meshpace")).arg("run").arg(&file).output().unwrap();
    assert_eq!(simulated.status.code(), Some(2));
    assert!(stderr(&simulated).contains("meshpace emulate"), "{}", stderr(&simulated));
    if !is_possible() {
        return;
    }
    let junit = scratch.path().join("junit.xml");
    let output = meshpace(&file, &["--junit", junit.to_str().unwrap()]).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(3), &b"a b\n"[..]), "{}", stderr(&output));
    let report = fs::read_to_string(junit).unwrap();
    let case = |name: &str| report.lines().find(|line| line.contains(name)).unwrap();
    assert!(report.contains("tests=\"3\""), "{report}");
    assert!(case("name=\"n0: sleep 60\"").ends_with("/>"), "ended because it had to: {report}");
    assert!(case("name=\"n1: echo a &quot;b&quot; &lt; /dev/null; exit 3\"").ends_with("\">"), "{report}");
    assert!(report.contains("<failure message=\"ended with status 3\"/>"), "{report}");
}

#[test]
fn flows_run_beside_programs() {
    if !is_possible() || !meshpace_testing::has("nft", "nftables") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("flows.toml");
    let udp = "[[flow]]\nfrom = 2\nto = 1\ntransport = 'udp'\ntraffic = 'cbr'\nrate = '40 kbit/s'\nsegment = 500\nstart = '0 s'\n";
    fs::write(&file, SCENARIO.replace("to = 2\n", "to = 2\nstart = '0 s'\n") + udp).unwrap();
    let out = scratch.path().join("out");
    let arguments = ["--with-flows", "--exec", "n1: sleep 3; echo here", "--out", out.to_str().unwrap()];
    let output = meshpace(&file, &arguments).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"here\n"[..]), "{}", stderr(&output));
    let record: Value = serde_json::from_str(&fs::read_to_string(out.join("records.jsonl")).unwrap()).unwrap();
    let flows = record["flows"].as_array().unwrap();
    let between = |from: u64, to: u64, transport: &str| {
        flows.iter().find(|flow| flow["from"] == from && flow["to"] == to && flow["transport"] == transport)
    };
    let tcp = between(0, 2, "emulated-tcp").expect("the first flow");
    assert_eq!((&tcp["hops"], &tcp["timeouts"]), (&2.into(), &Value::Null));
    assert!(tcp["delivered_bytes"].as_u64() > Some(20_000), "{record}");
    let udp = between(2, 1, "emulated-udp").expect("the second flow");
    assert!((0.0..=1.0).contains(&udp["loss_ratio"].as_f64().unwrap()) && tcp.get("loss_ratio").is_none(), "{record}");
}

#[test]
fn what_comes_before_the_warmup_is_not_measured() {
    if !is_possible() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scenario(scratch.path());
    let record = |name: &str, warmup: &str| -> (Value, String) {
        let out = scratch.path().join(name);
        let arguments = ["--set", warmup, "--exec", "n0: ping -c 6 -i 0.5 -s 1000 n2", "--out", out.to_str().unwrap()];
        let output = meshpace(&file, &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = fs::read_to_string(out.join("records.jsonl")).unwrap();
        (serde_json::from_str(&text).unwrap(), stderr(&output))
    };
    // The six pings are half a second apart. Some of them are before the end of the warm-up and
    // some after it, however busy the machine is.
    let (whole, _) = record("whole", "warmup='0 s'");
    let (warm, said) = record("warm", "warmup='1.2 s'");
    let there = |record: &Value| record["flows"][0]["delivered_bytes"].as_u64().unwrap();
    assert_eq!((&whole["warmup_s"], &warm["warmup_s"]), (&0.0.into(), &1.2.into()), "{said}");
    assert!(there(&warm) > 0 && there(&warm) < there(&whole), "{whole}\n{warm}");
    assert_eq!(whole["flows"][0]["segments_sent"], warm["flows"][0]["segments_sent"], "those of the whole run");
    assert!(!said.contains("warmup"), "{said}");
    // An emulation that ends within the warm-up is measured as a whole, and reports that.
    let (early, said) = record("early", "warmup='15 s'");
    assert_eq!((there(&early), &early["warmup_s"]), (there(&whole), &0.0.into()));
    assert!(said.contains("--out: the emulation ended within the scenario's warm-up of 15 s"), "{said}");
}

/// Returns the command of an example's script, which uses this build of the program.
fn example(script: &str) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(script));
    command.env("MESHPACE", cargo_bin("meshpace")).stdin(Stdio::null());
    command
}

#[test]
fn a_file_comes_intact_through_a_tunnel_while_its_client_walks() {
    let tools = [("curl", "curl"), ("python3", "python3-minimal")];
    if !is_possible() || !tools.iter().all(|(program, package)| meshpace_testing::has(program, package)) {
        return;
    }
    let moves = "topology.moves=[{ node = 0, start = '1 s', end = '20 s', to = ['500 m', '50 m'] }]";
    let output = example("tunnel-over-a-mesh/run.sh").env("SIZE", "300000").args(["--set", moves]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("300000 bytes in") && text.ends_with("intact\n"),
        "{text}{}",
        stderr(&output)
    );
}

#[test]
fn small_messages_go_beside_bulk_through_a_tunnel_of_quiet_trains() {
    if !is_possible() || !meshpace_testing::has("python3", "python3-minimal") {
        return;
    }
    let output = example("tunnel-over-a-mesh/beside.sh")
        .env("SECONDS_LONG", "5")
        .args(["quiet-train", "messages"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let told =
        text.lines().find_map(|line| line.split_once("bulk ")).unwrap_or_else(|| panic!("{text}{}", stderr(&output))).1;
    let rate: f64 = told.split_once(" kbit/s; messages: ").and_then(|(rate, _)| rate.parse().ok()).unwrap_or(0.0);
    // The latency depends on the machine, too, so only the arrival of both is tested.
    assert!(output.status.success() && rate > 10.0 && told.contains(", p50 "), "{text}{}", stderr(&output));
}

#[test]
fn commands_reach_a_robot_beside_its_images() {
    if !is_possible() || !meshpace_testing::has("python3", "python3-minimal") {
        return;
    }
    let output = example("robot-commands/run.sh").env("SECONDS_LONG", "2").arg("reno").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    // There are twenty commands in two seconds, once without bulk traffic and once beside it. The
    // last one may not be due before the end.
    let told: Vec<&str> = text.lines().filter(|line| line.starts_with("commands: ")).collect();
    assert!(output.status.success() && told.len() == 2, "{text}{}", stderr(&output));
    assert!(told.iter().all(|line| line.starts_with("commands: 20 ") || line.starts_with("commands: 21 ")), "{text}");
    assert!(text.contains("\nbulk: "), "{text}");
}

#[test]
fn what_is_wrong_is_named() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scenario(scratch.path());
    for (arguments, says) in [
        (vec!["--exec", "n3: true"], "n0 to n2"),
        (vec!["--exec", "true"], "expected a node"),
        (vec!["--exec", "n0: no-such-program-at-all"], "no program `no-such-program-at-all`"),
        (vec!["--sysctl", "kernel.panic=1"], "parameter of the network"),
        (vec!["--link", "n0 n1 down"], "expected a time"),
        (vec!["--link", "1 s: n0 n9 down"], "n0 to n2"),
        (vec!["--set", "topology.hopps=4"], "hopps"),
        (vec!["--slowdown", "0"], "--slowdown"),
        (
            vec!["--with-flows", "--set", "flow.transport={ name = 'tcp-ap', initial_window = 3 }"],
            "does not take the parameters",
        ),
        (
            vec!["--with-flows", "--set", "flow.traffic=http", "--set", "flow.pause='10 s'"],
            "flow.0: this kind of traffic",
        ),
        (vec!["--mode", "kernel", "--set", "routing.protocol=aodv"], "routing.protocol"),
    ] {
        let output = meshpace(&file, &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
    let nowhere = meshpace(&scratch.path().join("none.toml"), &[]).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
}

#[test]
fn a_killed_emulation_leaves_nothing_that_the_next_does_not_remove() {
    if !is_possible() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scenario(scratch.path());
    // The program has a child process, which the kernel does not end together with us. The child
    // writes its process id into a file.
    let mark = scratch.path().join("child");
    let program = format!("n1: sh -c 'echo $$ > {}.new; mv {0}.new {0}; exec sleep 1000' & wait", mark.display());
    let mut emulation =
        meshpace(&file, &["--exec", &program]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let child = loop {
        if let Ok(text) = fs::read_to_string(&mark) {
            break text.trim().to_owned();
        }
        assert!(emulation.try_wait().unwrap().is_none(), "it ended by itself");
        pause();
    };
    let token = fs::read_dir("/run/meshpace")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(|name| name.starts_with(&format!("{}-", emulation.id())))
        .unwrap();
    // While the emulation runs, a shell can enter a node, and links can be cut.
    let inside = Command::new(cargo_bin("meshpace"))
        .args(["emulate", "shell", "--run", &token, "n1", "ip", "-4", "-o", "address", "show", "mesh0"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&inside.stdout).contains("10.99.0.2/16"), "{}", stderr(&inside));
    let link = |arguments: [&str; 3]| {
        Command::new(cargo_bin("meshpace")).args(["emulate", "link", "--run", &token]).args(arguments).output().unwrap()
    };
    assert!(link(["n1", "n2", "down"]).status.success() && link(["n1", "n2", "up"]).status.success());
    assert!(stderr(&link(["n1", "n9", "down"])).contains("n0 to n2"));
    let top = |form: &[&str]| {
        let output = Command::new(cargo_bin("meshpace"))
            .args(["emulate", "top", "--run", &token, "--count", "1"])
            .args(form)
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    let state: Value = serde_json::from_str(&top(&["--json"])).unwrap();
    assert_eq!(state["queues"].as_array().map(Vec::len), Some(3), "{state}");
    assert!(state["time_s"].as_f64().unwrap() > 0.0);
    assert!(top(&[]).contains("packets waiting: "), "{}", top(&[]));
    emulation.kill().unwrap();
    emulation.wait().unwrap();
    let is_there = || fs::read_to_string(format!("/proc/{child}/cmdline")).is_ok_and(|text| text.contains("sleep"));
    let cleaned = Command::new(cargo_bin("meshpace")).args(["emulate", "--clean"]).output().unwrap();
    assert!(cleaned.status.success(), "{}", stderr(&cleaned));
    for _ in 0..500 {
        if !is_there() {
            break;
        }
        pause();
    }
    assert!(!is_there(), "the program's child is still there");
    assert!(!Path::new("/run/meshpace").join(&token).exists());
}

#[expect(clippy::disallowed_methods, reason = "waiting for another process")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

//! `meshpace run` as other programs see it: bytes, exit statuses and files.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// Scenario that is small enough for a test, with losses and a sweep: 2 points with 3 seeds each.
const SCENARIO: &str = "title = 'Test'\nduration = '6 s'\nwarmup = '1 s'\n[topology]\nhops = 4\n[routing]\nprotocol = 'aodv'\n\
    [[flow]]\nfrom = 0\nto = 4\n[sweep]\n'flow.transport' = ['newreno', 'tcp-ap']\nseeds = 3\n";

fn meshpace(arguments: &[&str], stdin: &str) -> Output {
    let mut command = Command::cargo_bin("meshpace").unwrap();
    command.args(arguments).write_stdin(stdin).output().unwrap()
}

fn json(arguments: &[&str]) -> String {
    let mut all = vec!["run", "-", "--format", "json"];
    all.extend(arguments);
    let output = meshpace(&all, SCENARIO);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_silent(&output.stderr);
    String::from_utf8(output.stdout).unwrap()
}

/// Asserts that standard error has only reports of starved flows. They occur because a timeout is a
/// tenth of the time in such short runs.
#[track_caller]
fn assert_silent(stderr: &[u8]) {
    let text = String::from_utf8_lossy(stderr);
    let is_alarm = |line: &str| {
        line.starts_with("meshpace: STARVED: ") || line.starts_with("meshpace: flow 0 (node 0 to node 4) was silent")
    };
    assert!(text.lines().all(is_alarm), "{text}");
}

fn records(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn assert_refused(arguments: &[&str], stdin: &str, words: &[&str]) {
    let output = meshpace(arguments, stdin);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(output.stdout.is_empty());
    for word in words {
        assert!(message.contains(word), "no {word:?} in:\n{message}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_whatever_the_number_of_threads() {
    let once = json(&["--jobs", "1"]);
    assert_eq!(once, json(&["--jobs", "1"]));
    assert_eq!(once, json(&["--jobs", "2"]));
}

#[test]
fn a_sweep_of_the_command_line_is_that_of_the_file() {
    // The sweep is combined with that of the file, and replaces its values of the same key.
    let values = |arguments: &[&str]| -> Vec<String> {
        let more = [arguments, &["--seeds", "1", "--set", "duration=2 s"]].concat();
        records(&json(&more)).iter().map(|record| record["point"].to_string()).collect()
    };
    let swept =
        values(&["--sweep", "flow.transport=newreno", "--sweep", "topology.hops=1,2", "--sweep", "flow.segment=500"]);
    let point = |hops: u8| format!("{{\"flow.transport\":\"newreno\",\"topology.hops\":{hops},\"flow.segment\":500}}");
    assert_eq!(swept, [point(1), point(2)]);
    assert_refused(
        &["run", "-", "--sweep", "topology.hops"],
        SCENARIO,
        &["the = is missing", "--sweep topology.hops=2,4,6"],
    );
    assert_refused(&["run", "-", "--sweep", "topology.hops=2,x"], SCENARIO, &["topology.hops", "found the string"]);
}

#[test]
fn words_of_other_programs_are_answered_with_what_to_write() {
    assert_refused(&["run", "-", "--set", "flow.transport=Reno"], SCENARIO, &["write flow.transport = \"newreno\""]);
    assert_refused(&["run", "-", "--set", "radio.rate=2 Mbps"], SCENARIO, &["Mbit/s"]);
}

#[test]
fn another_seed_gives_another_run() {
    let first = records(&json(&["--seed", "1", "--seeds", "1"]));
    let second = records(&json(&["--seed", "2", "--seeds", "1"]));
    for (first, second) in first.iter().zip(&second) {
        assert_ne!(first["fingerprint"], second["fingerprint"]);
    }
}

#[test]
fn lines_come_by_point_then_seed_and_a_seed_means_the_same_wherever_it_stands() {
    let all = records(&json(&["--seed", "5"]));
    let order: Vec<_> = all.iter().map(|r| (r["point"]["flow.transport"].clone(), r["seed"].clone())).collect();
    let expected: Vec<_> = ["newreno", "tcp-ap"]
        .iter()
        .flat_map(|transport| (5..8).map(move |seed| (Value::from(*transport), Value::from(seed))))
        .collect();
    assert_eq!(order, expected);
    assert_eq!(records(&json(&["--seed", "6", "--seeds", "1"]))[0], all[1]);
}

#[test]
fn a_line_has_the_fields_of_the_contract_in_order() {
    let text = json(&["--seeds", "1"]);
    let line = text.lines().next().unwrap();
    let fields = [
        "scenario",
        "seed",
        "point",
        "duration_s",
        "aggregate_goodput_bps",
        "jain",
        "jain_2s",
        "idle_windows",
        "retransmission_index",
        "frames",
        "flows",
        "id",
        "from",
        "to",
        "hops",
        "transport",
        "goodput_bps",
        "delivered_bytes",
        "segments_sent",
        "retransmissions",
        "timeouts",
        "acks_sent",
        "rtt_mean_s",
        "cov_rtt",
        "delay_mean_s",
        "delay_p50_s",
        "delay_p95_s",
        "delay_p99_s",
        "jitter_s",
        "mac_drops",
        "collisions",
        "queue_drops",
        "route_requests",
        "route_replies",
        "route_errors",
        "discoveries",
    ];
    let places: Vec<_> = fields.map(|field| line.find(&format!("\"{field}\":"))).into();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{line}");

    let record: Value = serde_json::from_str(line).unwrap();
    assert_eq!((&record["scenario"], &record["duration_s"]), (&"Test".into(), &6.0.into()));
    let flow = &record["flows"][0];
    // The measured interval is 5 s, so goodput and bytes must agree.
    let bytes = flow["delivered_bytes"].as_f64().unwrap();
    assert!(bytes > 0.0);
    assert!((flow["goodput_bps"].as_f64().unwrap() - bytes * 8.0 / 5.0).abs() < 1e-6);
    assert_eq!(record["aggregate_goodput_bps"], flow["goodput_bps"]);
}

#[test]
fn what_was_not_measured_is_null() {
    let text = "duration = '3 s'\n[[flow]]\ntransport = 'udp'\ntraffic = 'cbr'\nrate = '50 kbit/s'\n";
    let output = meshpace(&["run", "-", "--format", "json"], text);
    let record = &records(std::str::from_utf8(&output.stdout).unwrap())[0];
    assert_eq!(record["flows"][0]["rtt_mean_s"], Value::Null);
    assert_eq!(record["scenario"], "stdin");
}

/// TCP flow, and a UDP flow that offers more than the chain carries.
const MIXED: &str = "duration = '8 s'\n[topology]\nhops = 3\n[[flow]]\ntransport = 'newreno'\n[[flow]]\n\
    transport = 'udp'\ntraffic = 'cbr'\nrate = '900 kbit/s'\nsegment = 1000\n";

#[test]
fn a_flow_of_udp_tells_the_share_that_is_lost_and_no_other_does() {
    let run = |arguments: &[&str], text: &str| -> String {
        let output = meshpace(&[&["run", "-"], arguments].concat(), text);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let of = |text: &str, sets: &[&str]| records(&run(&[&["--format", "json"], sets].concat(), text)).remove(0);
    let record = of(MIXED, &[]);
    assert!(record["flows"][0].get("loss_ratio").is_none(), "TCP sends again: {record}");
    // The measurement covers the whole run, so the sent and arrived datagrams are those that the
    // sender and the receiver counted.
    let udp = &record["flows"][1];
    let arrived = udp["delivered_bytes"].as_f64().unwrap() / 1000.0;
    let lost = 1.0 - arrived / udp["segments_sent"].as_f64().unwrap();
    assert!((udp["loss_ratio"].as_f64().unwrap() - lost).abs() < 1e-9 && lost > 0.2, "{udp}");
    // The loss ratio covers the measured interval only. In the first case the flow ends before that
    // interval. In the second, the interval begins after most of the queue has filled.
    let ended = of(MIXED, &["--set", "flow.stop='2 s'", "--set", "warmup='7 s'"]);
    assert!(ended["flows"][1].get("loss_ratio").is_none(), "nothing was sent: {ended}");
    let warm = of(MIXED, &["--set", "warmup='6 s'"])["flows"][1]["loss_ratio"].as_f64().unwrap();
    assert!(warm > 0.0 && warm < 1.0 && (warm - lost).abs() > 1e-9, "{warm} {lost}");
    // At a rate that the chain carries, all datagrams arrive, except those in flight at the end.
    // Without a path, none arrive.
    let slow = of(MIXED, &["--set", "flow.1.rate='8 kbit/s'", "--set", "flow.0.stop='1.5 s'"]);
    assert!(slow["flows"][1]["loss_ratio"].as_f64().unwrap() < 0.15, "{slow}");
    let apart = ["--set", "topology.spacing='900 m'", "--set", "topology.allow_partition=true"];
    assert_eq!(of(MIXED, &apart)["flows"][1]["loss_ratio"], 1.0);
    // The tables for people and for spreadsheets have the same value. The table for people has no
    // such column in a run without UDP.
    let csv = run(&["--format", "csv"], MIXED);
    let column = csv.lines().next().unwrap().split(',').position(|name| name == "loss_ratio").unwrap();
    let cell = |line: &str| line.split(',').nth(column).unwrap_or_default().to_owned();
    let cells: Vec<String> = csv.lines().map(cell).collect();
    assert_eq!(cells, ["loss_ratio", "", &udp["loss_ratio"].as_f64().unwrap().to_string()]);
    assert!(run(&[], MIXED).contains("lost %") && !run(&[], SCENARIO).contains("lost %"));
}

#[test]
fn keys_of_pacing_that_make_another_transport_are_told() {
    let told = |transport: &str| {
        let text =
            format!("duration = '2 s'\nwarmup = '1.1 s'\n[topology]\nhops = 1\n[[flow]]\ntransport = {transport}\n");
        let output = meshpace(&["run", "-"], &text);
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let warned = told("{ name = 'newreno', pacing = { alpha = 0.5 } }");
    for word in ["flow.0.transport.pacing", "newreno has no pacing", "adaptive", "pacing = \"none\""] {
        assert!(warned.contains(word), "no {word} in: {warned}");
    }
    assert!(told("{ name = 'tpa-3', pacing = { history = 20 } }").contains("tpa-3 has no pacing"));
    for meant in [
        "{ name = 'newreno', pacing = { kind = 'adaptive', alpha = 0.5 } }",
        "{ name = 'newreno', pacing = { profile = 'released' } }",
        "{ name = 'newreno', pacing = 'adaptive' }",
        "{ name = 'tcp-ap', pacing = { alpha = 0.5 } }",
    ] {
        assert_eq!(told(meant), "", "{meant}");
    }
}

#[test]
fn set_changes_one_key() {
    let changed = records(&json(&["--seeds", "1", "--set", "flow.transport=cwl", "--set", "duration=4 s"]));
    assert_eq!(changed.len(), 1);
    assert_eq!((&changed[0]["flows"][0]["transport"], &changed[0]["duration_s"]), (&"cwl".into(), &4.0.into()));
}

#[test]
fn csv_has_a_header_and_a_row_per_flow_and_run() {
    let output = meshpace(&["run", "-", "--format", "csv", "--seeds", "2"], SCENARIO);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * 2);
    assert!(lines[0].starts_with("scenario,seed,flow.transport,duration_s,"));
    assert!(lines[1].starts_with("Test,1,newreno,6,") && lines[4].starts_with("Test,2,tcp-ap,6,"));
    let width = lines[0].split(',').count();
    assert!(lines.iter().all(|line| line.split(',').count() == width));
}

#[test]
fn the_table_has_a_row_per_point() {
    let output = meshpace(&["run", "-"], SCENARIO);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Test, 3 seeds\n"), "{text}");
    for transport in ["newreno", "tcp-ap"] {
        let row = text.lines().find(|line| line.starts_with(transport)).unwrap_or_else(|| panic!("{text}"));
        assert!(row.contains('±') && row.contains("0→4"), "{row}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "as wide as a terminal: {text}");
}

/// Scenario in which the first flow starves the second one. Node 2 does not sense node 0, whose
/// frames collide at node 3 with all frames of node 2.
const STARVING: &str = "title = 'Hidden'\nduration = '8 s'\nwarmup = '3 s'\n[topology]\nkind = 'nodes'\nallow_partition = true\n\
    positions = [['600 m', '0 m'], ['800 m', '0 m'], ['0 m', '0 m'], ['240 m', '0 m']]\n[[flow]]\nfrom = 0\nto = 1\n\
    [[flow]]\nfrom = 2\nto = 3\n[sweep]\n'flow.transport' = ['newreno', 'tcp-ap']\nseeds = 3\n";

#[test]
fn who_starved_comes_first_and_quiet_does_not_hide_it() {
    let told = "STARVED: a flow was starved in every one of 6 runs";
    let of = |format: &str| {
        let output = meshpace(&["-q", "run", "-", "--format", format], STARVING);
        assert!(output.status.success());
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap())
    };
    let [table, stderr] = of("table");
    assert!(table.lines().nth(1).unwrap().starts_with(&format!("! {told}")) && stderr.is_empty(), "{table}{stderr}");
    assert!(table.contains("flow 1 (node 2 to node 3) delivered nothing in 6 of 6 runs: newreno 3 of 3,"), "{table}");
    let total: Vec<&str> = table.lines().filter(|line| line.trim_start().starts_with("total")).collect();
    assert!(total.len() == 2 && total.iter().all(|row| row.contains("none")), "the delay of both flows: {table}");
    // The output for programs is unchanged, with new fields after the others. The report for people
    // goes to standard error.
    let [csv, stderr] = of("csv");
    assert!(stderr.contains(told) && !csv.contains("STARVED"), "{stderr}");
    let rows: Vec<&str> = csv.lines().collect();
    let place = |name: &str| rows[0].split(',').position(|column| column == name);
    assert_eq!(place("starved"), Some(25), "columns keep their places: {}", rows[0]);
    let ends = |row: usize| rows[row].split(',').skip(25).take(3).collect::<Vec<_>>();
    assert_eq!((ends(0), ends(1)), (vec!["starved", "starved_flows", "name"], vec!["", "1", ""]), "{csv}");
    assert_eq!(ends(2), ["nothing", "1", ""], "{csv}");
    let [lines, stderr] = of("json");
    assert!(stderr.contains(told), "{stderr}");
    let gap = |flow: usize| records(&lines)[0]["flows"][flow]["longest_gap_s"].as_f64().unwrap();
    assert!(gap(1) == 5.0 && gap(0) < 0.5, "{} {}", gap(0), gap(1));
    let [summary, stderr] = of("summary");
    assert!(stderr.contains(told), "{stderr}");
    let point = &records(&summary)[0];
    assert_eq!((&point["starved_runs"], &point["flows"][1]["nothing_runs"]), (&3.into(), &3.into()));
}

/// No other flow starves a flow to a node that no radio reaches.
#[test]
fn a_flow_of_standing_nodes_without_a_path_is_told_apart_from_a_starved_one() {
    let apart = STARVING.replace("['240 m', '0 m']", "['5000 m', '0 m']");
    let of = |format: &str| {
        let output = meshpace(&["-q", "run", "-", "--format", format], &apart);
        assert!(output.status.success());
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap())
    };
    let [table, _] = of("table");
    assert!(table.contains("NO PATH") && !table.contains("STARVED"), "{table}");
    let [lines, stderr] = of("json");
    assert!(stderr.contains("NO PATH") && !stderr.contains("STARVED"), "{stderr}");
    for record in records(&lines) {
        let [first, second] = [0, 1].map(|flow| &record["flows"][flow]);
        assert_eq!((&record["starved_flows"], &record["flows_without_path"]), (&0.into(), &1.into()), "{record}");
        assert!(first.get("time_without_path_s").is_none() && first.get("without_path").is_none(), "{first}");
        assert_eq!((&second["time_without_path_s"], &second["without_path"]), (&5.0.into(), &"nothing".into()));
        assert!(second.get("starved").is_none(), "{second}");
    }
}

#[test]
fn refusals_end_with_status_2_and_nothing_on_standard_output() {
    assert_refused(&["run", "-"], "duration = 20\n", &["<stdin>:1:12", "duration"]);
    assert_refused(&["run", "-", "--set", "topology.hops=0"], SCENARIO, &["--set 'topology.hops=0'"]);
    assert_refused(&["run", "not-there.toml"], "", &["not-there.toml"]);
    assert_refused(&["run"], "", &["FILE"]);
    assert_refused(&["run", "-", "--seeds", "0"], SCENARIO, &["--seeds"]);
    assert_refused(&["run", "-", "--jobs", "0"], SCENARIO, &["--jobs"]);
    assert_refused(&["run", "-", "--seed", "18446744073709551615"], SCENARIO, &["seeds"]);
    assert_refused(&["run", "-", "--format", "xml"], SCENARIO, &["xml"]);
    assert_refused(&["run", "-", "--force"], SCENARIO, &["--out"]);
    assert_refused(&["fly"], "", &["fly"]);
}

fn directory_of(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = entries.collect();
    names.sort();
    names
}

#[test]
fn out_writes_records_and_manifest_and_nothing_is_written_over() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a/b");
    let out = directory.to_str().unwrap();
    let printed = json(&["--out", out]);
    assert_eq!(directory_of(&directory), ["manifest.json", "records.jsonl"]);
    assert_eq!(std::fs::read_to_string(directory.join("records.jsonl")).unwrap(), printed);
    let manifest: Value = serde_json::from_slice(&std::fs::read(directory.join("manifest.json")).unwrap()).unwrap();
    assert_eq!((&manifest["first_seed"], &manifest["seeds"], &manifest["points"]), (&1.into(), &3.into(), &2.into()));
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["scenario_sha256"].as_str().unwrap().len(), 64);

    assert_eq!(manifest["records"], 6);

    // The same command again runs nothing and prints the same. Other seeds are added in the order
    // of the campaign.
    assert_eq!(json(&["--out", out]), printed);
    let sixth = json(&["--out", out, "--seed", "6", "--seeds", "1"]);
    let all = std::fs::read_to_string(directory.join("records.jsonl")).unwrap();
    let seeds: Vec<u64> = records(&all).iter().map(|record| record["seed"].as_u64().unwrap()).collect();
    assert_eq!(seeds, [1, 2, 3, 6, 1, 2, 3, 6]);
    assert!(sixth.lines().all(|line| all.contains(line)) && printed.lines().all(|line| all.contains(line)));

    // A scenario with other settings must not change the records.
    assert_refused(&["run", "-", "--out", out, "--set", "duration=7 s"], SCENARIO, &["duration: 6 s → 7 s", "--force"]);
    assert_eq!(std::fs::read_to_string(directory.join("records.jsonl")).unwrap(), all);
    let replaced = json(&["--out", out, "--force", "--seed", "9"]);
    assert_eq!(std::fs::read_to_string(directory.join("records.jsonl")).unwrap(), replaced);
    assert_eq!(directory_of(&directory), ["manifest.json", "records.jsonl"]);
}

#[test]
fn a_manifest_alone_is_not_written_over_either() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("manifest.json"), "mine").unwrap();
    assert_refused(&["run", "-", "--out", directory.path().to_str().unwrap()], SCENARIO, &["manifest.json"]);
    assert_eq!(std::fs::read_to_string(directory.path().join("manifest.json")).unwrap(), "mine");
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::Stdio;
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("meshpace"))
        .args(["run", "-", "--format", "json", "--seeds", "20"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(SCENARIO.as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // The pipe is closed now, while 39 lines are not yet written.
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_silent(&output.stderr);
    assert!(line.ends_with("}\n"));
}

#[cfg(unix)]
#[test]
fn files_are_written_to_the_end_when_nobody_reads_the_output_any_more() {
    use std::process::{Command, Stdio};
    let scratch = tempfile::tempdir().unwrap();
    std::fs::write(scratch.path().join("mine.toml"), SCENARIO).unwrap();
    for stderr_too in [false, true] {
        // The reader of the pipe has closed it before the first run ends.
        let (reader, writer) = std::io::pipe().unwrap();
        let stderr = if stderr_too { Stdio::from(writer.try_clone().unwrap()) } else { Stdio::piped() };
        let child = Command::new(assert_cmd::cargo::cargo_bin!("meshpace"))
            .args([
                "run",
                "mine.toml",
                "--format",
                "csv",
                "--seeds",
                "3",
                "--force",
                "--out",
                "kept",
                "--report",
                "page.html",
            ])
            .current_dir(scratch.path())
            .stdout(writer)
            .stderr(stderr)
            .spawn()
            .unwrap();
        drop(reader);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stderr));
        assert_eq!(directory_of(&scratch.path().join("kept")), ["manifest.json", "records.jsonl"]);
        assert!(scratch.path().join("page.html").exists());
        std::fs::remove_file(scratch.path().join("page.html")).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn an_interruption_leaves_whole_lines_and_keeps_them() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::Stdio;
    let directory = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("meshpace"))
        .args(["run", "-", "--format", "json", "--seeds", "100000", "--out", directory.path().to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(SCENARIO.as_bytes()).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    stdout.read_line(&mut text).unwrap();
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    stdout.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(text.ends_with("}\n"));
    assert!(!records(&text).is_empty());
    assert_eq!(directory_of(directory.path()), ["manifest.json", "unfinished.jsonl"]);
    let kept = std::fs::read_to_string(directory.path().join("unfinished.jsonl")).unwrap();
    assert!(text.lines().all(|line| kept.contains(line)), "what was printed is kept");
}

/// Thirty simulated years of a chain, which take days of real time.
const ENDLESS: &str = "duration = '1000000000 s'\n[topology]\nhops = 1\n[[flow]]\n";

#[test]
fn what_takes_days_or_too_much_memory_says_so_before_it_starts() {
    assert_refused(&["run", "-", "--jobs", "1"], ENDLESS, &["days", "1 run at a time", "--anyway"]);
    // All nodes sense each other: 3.6 thousand million pairs, and as many receivers of each frame
    // as there are nodes.
    let crowd = "duration = '100000 s'\n[topology]\nkind = 'random'\nnodes = 60000\nwidth = '400 m'\nheight = '400 m'\n\
        allow_partition = true\nflows = { count = 1 }\n[[flow]]\n";
    assert_refused(&["run", "-"], crowd, &["this ", "about", "--anyway"]);
}

#[test]
fn what_takes_days_starts_when_told_to() {
    let mut command = Command::cargo_bin("meshpace").unwrap();
    command.args(["run", "-", "--anyway"]).write_stdin(ENDLESS).timeout(std::time::Duration::from_secs(3));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), None, "still running when it was ended");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("--anyway"));
}

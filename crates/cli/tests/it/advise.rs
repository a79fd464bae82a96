//! `meshpace advise` as other programs and people see it.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn advise(directory: &Path, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(cargo_bin("meshpace"));
    command.arg("advise").args(arguments).args(["--seconds", "1", "--seeds", "3"]).current_dir(directory);
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

#[test]
fn every_choice_is_ranked_with_its_intervals() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("links.csv"), "from,to,snr_db\n0,1,30\n1,2,30\n").unwrap();
    let (status, text, stderr) = advise(scratch.path(), &["links.csv", "--flow", "0,2", "--json"]);
    assert_eq!(status, 0, "{stderr}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |question: &str| lines.iter().filter(|line| line["question"] == question).collect::<Vec<_>>();
    let counts = ["retry limit", "RTS threshold", "congestion control", "pacing"].map(|question| of(question).len());
    // What is usual is among them.
    assert_eq!(counts, [3, 3, 3, 4]);
    // Before them the flow, behind them what helps, and how sure that is.
    assert_eq!((lines.len(), &lines[0]["flow"], &lines[0]["ends"][1]), (15, &Value::from(0), &Value::from("2")));
    assert!(lines[14]["helps"].is_string() && lines[14]["error"].as_str().unwrap().contains("+31 %"), "{}", lines[14]);
    let lines = &lines[1..14];
    for question in ["retry limit", "RTS threshold", "congestion control", "pacing"] {
        let usual = of(question).into_iter().find(|line| line["choice"] == line["usual"]).unwrap();
        assert_eq!(usual["lines"][0]["difference"], 0.0, "{usual}");
        let ranks: Vec<u64> = of(question).iter().map(|line| line["rank"].as_u64().unwrap()).collect();
        assert!(ranks[0] == 1 && ranks.is_sorted(), "{question}: {ranks:?}");
    }
    for line in lines {
        assert_eq!(line["lines"][0]["metric"], "aggregate_goodput_bps");
        assert!(line["lines"][0]["paired"] == true && line["lines"][0]["interval"].is_array(), "{line}");
    }
    let pacing = of("pacing");
    let place = |choice: &str| pacing.iter().position(|line| line["choice"] == choice).unwrap();
    assert!(place("trains that leave at once") < place("adaptive pacing (TCP-AP)"), "aggregates: docs/ht-study.md");
    let (status, told, _) = advise(scratch.path(), &["links.csv", "--flow", "0,2"]);
    assert!(
        status == 0 && told.contains("# pacing (usual: no pacing)") && told.contains("rates are not adapted"),
        "{told}"
    );
    for usual in ["7 attempts", "no RTS", "CUBIC", "no pacing"] {
        assert!(told.contains(&format!(". {usual}, which is usual: goodput ")), "{usual} has no place in:\n{told}");
    }
}

#[test]
fn a_dump_tells_of_paths_and_measurements_stand_beside() {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(scratch.path().join(name), text).unwrap();
    write(
        "olsr.json",
        r#"{"type":"NetworkGraph","metric":"etx","links":[{"source":"a","target":"b","cost":1.0},{"source":"b","target":"c","cost":1.25}]}"#,
    );
    write("run.json", r#"{"end":{"sum_received":{"bits_per_second":4.0e6}}}"#);
    let arguments = ["olsr.json", "--flow", "a,c", "--hop-goodput", "18 Mbit/s", "--measured", "run.json", "--json"];
    let (status, text, stderr) = advise(scratch.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    let path = text.lines().find(|line| line.contains("alone_kbps")).unwrap();
    let path: Value = serde_json::from_str(path).unwrap();
    // A goodput by the metric is no measurement: no bar.
    assert!(path["predicted_kbps"].as_f64().unwrap() < 8000.0 && path["interval_kbps"].is_null(), "{path}");
    // 1 over 1/18 and 1.25/18.
    assert_eq!((path["alone_kbps"].as_f64(), path["measured_kbps"].as_f64()), (Some(8000.0), Some(4000.0)));
}

#[test]
fn it_refuses_beyond_what_was_looked_into() {
    let scratch = tempfile::tempdir().unwrap();
    let chain: String = (0..6).map(|node| format!("{node},{},30\n", node + 1)).collect();
    fs::write(scratch.path().join("long.csv"), format!("from,to,snr_db\n{chain}")).unwrap();
    fs::write(scratch.path().join("bad.txt"), "nothing of that kind\n").unwrap();
    let mac = |node: u8| format!("02:00:00:00:00:0{node}");
    // Of a node that knows another only behind a neighbour.
    let one = format!(
        "[B.A.T.M.A.N. adv 2023.0, MainIF/MAC: mesh0/{0} (bat0/{0} BATMAN_IV)]\n * {1}    0.5s   (250) {1} [     mesh0]\n * {2}    0.5s   (200) {1} [     mesh0]\n",
        mac(1),
        mac(2),
        mac(3)
    );
    fs::write(scratch.path().join("one.txt"), one).unwrap();
    for (arguments, why) in [
        (&["long.csv", "--flow", "0,6"][..], "6 hops"),
        (&["long.csv", "--flow", "0,1", "--mcs", "8"], "MCS 8"),
        (&["long.csv", "--flow", "0"], "FROM,TO"),
        (&["long.csv", "--flow", "0,9"], "9"),
        (&["long.csv", "--flow", "0,1", "--hop-goodput", "1000"], "no metric"),
        (&["long.csv", "--flow", "0,1", "--hop-goodput", "fast"], "such as \"2 Mbit/s\""),
        (&["bad.txt", "--flow", "0,1"], "expected NetJSON"),
        (&[".", "--flow", "0,1"], "expected DIR/NODE/kit"),
        (&["none.csv", "--flow", "0,1"], "none.csv"),
        (&["one.txt", "--flow", "02:00:00:00:00:01,02:00:00:00:00:03"], "batctl's of one node (02:00:00:00:00:01)"),
        (&["one.txt", "--flow", "roof,0"], "there is no node \"roof\" among 02:00:00:00:00:01, "),
    ] {
        let (status, text, stderr) = advise(scratch.path(), arguments);
        assert!(status == 2 && text.is_empty() && stderr.contains(why), "{arguments:?}: {status} {stderr}");
    }
}

/// A chain: a flow over one hop in its middle starves one over all five.
const TWO_FLOWS: &str = "from,to,snr_db\n0,1,30\n1,2,30\n2,3,30\n3,4,30\n4,5,30\n";

#[test]
fn who_starves_is_named_first_and_a_run_of_the_kept_scenario_agrees() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("links.csv"), TWO_FLOWS).unwrap();
    let arguments = ["links.csv", "--flow", "2,3", "--flow", "5,0", "--keep", "kept"];
    let (status, text, stderr) = advise(scratch.path(), &[&arguments[..], &["--json"]].concat());
    assert_eq!(status, 0, "{stderr}");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // The long flow, although it is the second.
    assert_eq!((&lines[0]["flow"], &lines[1]["flow"]), (&Value::from(1), &Value::from(0)), "{text}");
    assert!(
        lines[0]["nothing_runs"].as_u64().unwrap() + lines[0]["silent_runs"].as_u64().unwrap() >= 1,
        "{}",
        lines[0]
    );
    assert!(lines[0]["alone_bps"].as_f64().unwrap() > 10.0 * lines[0]["goodput_bps"].as_f64().unwrap(), "{}", lines[0]);
    assert!(lines[0]["back_alone_bps"].as_f64().unwrap() > 1e5, "{}", lines[0]);
    let mut run = Command::new(cargo_bin("meshpace"));
    run.args(["run", "kept/advice.toml", "--seeds", "3", "--format", "json"]).current_dir(scratch.path());
    let output = run.output().unwrap();
    let records: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 3, "{}", String::from_utf8_lossy(&output.stderr));
    for told in &lines[..2] {
        let flow = told["flow"].as_u64().unwrap() as usize;
        let mean =
            records.iter().map(|record| record["flows"][flow]["goodput_bps"].as_f64().unwrap()).sum::<f64>() / 3.0;
        assert!((told["goodput_bps"].as_f64().unwrap() - mean).abs() < 1e-6 * mean.max(1.0), "{told}: {mean}");
    }
    let (_, told, _) = advise(scratch.path(), &arguments);
    let (heading, help, first) =
        (told.find("# Who gets what"), told.find("# What helps"), told.find("STARVED: flow 1 (5→0)"));
    assert!(heading < first && first < help && help < told.find("# retry limit") && heading.is_some(), "{told}");
}

#[test]
fn a_dump_is_routed_as_its_mesh_routes() {
    let scratch = tempfile::tempdir().unwrap();
    // One bad hop or two good ones: fewest hops would take the first.
    fs::write(scratch.path().join("mesh.csv"), "from,to,etx\nroof,barn,1.9\nroof,mill,1.0\nmill,barn,1.0\n").unwrap();
    let (_, text, _) = advise(scratch.path(), &["mesh.csv", "--flow", "roof,barn"]);
    assert!(text.contains("over roof-barn\n"), "1.9 is less than two hops of 1.0:\n{text}");
    fs::write(scratch.path().join("mesh.csv"), "from,to,etx\nroof,barn,2.5\nroof,mill,1.0\nmill,barn,1.0\n").unwrap();
    let (status, text, stderr) = advise(scratch.path(), &["mesh.csv", "--flow", "roof,barn"]);
    assert!(
        status == 0 && text.contains("flow 0 (roof→barn) carries ") && text.contains("over roof-mill-barn\n"),
        "{text}{stderr}"
    );
}

#[test]
fn what_each_hop_carries_tells_what_a_path_carries() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("mesh.csv"), "from,to,hop_mbps\na,b,12\nb,c,4\n").unwrap();
    let (status, text, stderr) = advise(scratch.path(), &["mesh.csv", "--flow", "a,c", "--json"]);
    assert_eq!(status, 0, "{stderr}");
    let path = text.lines().find(|line| line.contains("alone_kbps")).unwrap();
    let path: Value = serde_json::from_str(path).unwrap();
    // 1 over 1/12 and 1/4.
    assert!((path["alone_kbps"].as_f64().unwrap() - 3000.0).abs() < 1e-6, "{path}");
    let (low, high) = (path["interval_kbps"][0].as_f64().unwrap(), path["interval_kbps"][1].as_f64().unwrap());
    let predicted = path["predicted_kbps"].as_f64().unwrap();
    assert!(low < predicted && predicted < 3000.0 && high > 3000.0, "{path}");
    let (_, told, _) = advise(scratch.path(), &["mesh.csv", "--flow", "a,c"]);
    assert!(told.contains("flow 0, a-b-c: predicted by what its hops carry") && told.contains("nine of ten"), "{told}");
}

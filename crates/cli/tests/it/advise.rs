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
    assert_eq!((counts, lines.len()), ([3, 3, 3, 4], 13));
    for question in ["retry limit", "RTS threshold", "congestion control", "pacing"] {
        let usual = of(question).into_iter().find(|line| line["choice"] == line["usual"]).unwrap();
        assert_eq!(usual["lines"][0]["difference"], 0.0, "{usual}");
        let ranks: Vec<u64> = of(question).iter().map(|line| line["rank"].as_u64().unwrap()).collect();
        assert!(ranks[0] == 1 && ranks.is_sorted(), "{question}: {ranks:?}");
    }
    for line in &lines {
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
    let arguments = ["olsr.json", "--flow", "a,c", "--hop-goodput", "18000", "--measured", "run.json", "--json"];
    let (status, text, stderr) = advise(scratch.path(), &arguments);
    assert_eq!(status, 0, "{stderr}");
    let path: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    // 1 over 1/18 and 1.25/18.
    assert_eq!((path["alone_kbps"].as_f64(), path["measured_kbps"].as_f64()), (Some(8000.0), Some(4000.0)));
}

#[test]
fn it_refuses_beyond_what_was_looked_into() {
    let scratch = tempfile::tempdir().unwrap();
    let chain: String = (0..6).map(|node| format!("{node},{},30\n", node + 1)).collect();
    fs::write(scratch.path().join("long.csv"), format!("from,to,snr_db\n{chain}")).unwrap();
    fs::write(scratch.path().join("bad.txt"), "nothing of that kind\n").unwrap();
    for (arguments, why) in [
        (&["long.csv", "--flow", "0,6"][..], "6 hops"),
        (&["long.csv", "--flow", "0,1", "--mcs", "8"], "MCS 8"),
        (&["long.csv", "--flow", "0"], "FROM,TO"),
        (&["long.csv", "--flow", "0,9"], "9"),
        (&["long.csv", "--flow", "0,1", "--hop-goodput", "1000"], "no metric"),
        (&["bad.txt", "--flow", "0,1"], "expected NetJSON"),
        (&["none.csv", "--flow", "0,1"], "none.csv"),
    ] {
        let (status, text, stderr) = advise(scratch.path(), arguments);
        assert!(status == 2 && text.is_empty() && stderr.contains(why), "{arguments:?}: {status} {stderr}");
    }
}

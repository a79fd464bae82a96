//! Campaigns that grow in one directory: in steps of every kind, from a directory of an older
//! version, and by `merge`.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

fn meshpace(here: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(cargo_bin("meshpace")).args(arguments).current_dir(here).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Runs a command that must succeed, and returns what it prints.
#[track_caller]
fn well(here: &Path, arguments: &[&str]) -> String {
    let (status, printed, stderr) = meshpace(here, arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {stderr}");
    printed
}

fn records(directory: &Path) -> String {
    fs::read_to_string(directory.join("records.jsonl")).unwrap()
}

fn manifest(directory: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(directory.join("manifest.json")).unwrap()).unwrap()
}

/// Writes a scenario with these sweeps.
fn scenario(here: &Path, name: &str, title: &str, sweeps: &str) {
    let text = format!("title = '{title}'\nduration = '3 s'\n[topology]\nkind = 'chain'\n[[flow]]\n{sweeps}");
    fs::write(here.join(name), text).unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process works meanwhile")]
fn a_campaign_that_grew_in_six_steps_is_the_one_that_was_run_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let grow = |name: &str, more: &[&str]| {
        let arguments = [&["run", name, "--out", "grown", "--format", "json", "--jobs", "2"], more].concat();
        well(here, &arguments)
    };
    scenario(here, "a.toml", "First", "[sweep]\n'topology.hops' = [1, 4]\n");
    grow("a.toml", &["--seeds", "2"]);
    // Step 1 adds seeds. Only the seeds of the command are printed.
    assert_eq!(grow("a.toml", &["--seed", "3", "--seeds", "2"]).lines().count(), 4);
    // Step 2 adds points.
    scenario(here, "a.toml", "Second", "[sweep]\n'topology.hops' = [1, 4, 5]\n");
    assert_eq!(grow("a.toml", &["--seeds", "4"]).lines().count(), 12);
    // Step 3 adds a value in the middle, with a scenario that has no other value.
    scenario(here, "b.toml", "Third", "[sweep]\n'topology.hops' = [2]\n");
    assert_eq!(grow("b.toml", &["--seeds", "4"]).lines().count(), 4);
    assert_eq!(records(&here.join("grown")).lines().count(), 16);
    // Step 4 adds a second topology, and a key that was not part of the points.
    let other = "[sweep]\n'topology.kind' = ['parallel']\n'topology.hops' = [2, 3]\n";
    scenario(here, "c.toml", "Fourth", other);
    grow("c.toml", &["--seeds", "4"]);
    assert_eq!(records(&here.join("grown")).lines().count(), 24);
    // In step 5, another machine has run other seeds and one more point.
    let whole = "[[sweep]]\n'topology.kind' = ['chain']\n'topology.hops' = [1, 2, 3, 4, 5]\n[[sweep]]\n'topology.kind' = \
                 ['parallel']\n'topology.hops' = [2, 3]\n";
    scenario(here, "whole.toml", "The whole", whole);
    well(here, &["run", "whole.toml", "--out", "elsewhere", "--seed", "4", "--seeds", "3"]);
    well(here, &["campaign", "merge", "grown", "elsewhere", "--out", "merged"]);
    assert_eq!(records(&here.join("merged")).lines().count(), 24 + 3 + 6 * 2);
    // The last step names the whole campaign, and is interrupted.
    let last = ["run", "whole.toml", "--out", "merged", "--format", "json", "--seeds", "40"];
    let mut child = Command::new(cargo_bin("meshpace"));
    let mut child = child.args(last).current_dir(here).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !here.join("merged/unfinished.jsonl").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let printed = well(here, &last);
    let fresh = well(here, &["run", "whole.toml", "--out", "fresh", "--format", "json", "--seeds", "40"]);
    assert!(printed == fresh, "what is printed is that of a fresh run");
    assert!(records(&here.join("merged")) == fresh, "and so is the directory");
    let made = manifest(&here.join("merged"));
    let titles: Vec<&str> =
        made["sources"].as_array().unwrap().iter().filter_map(|it| it["scenario"].as_str()).collect();
    assert_eq!(titles, ["First", "Second", "Third", "Fourth", "The whole"]);
    assert_eq!((&made["points"], &made["seeds"], &made["records"]), (&7.into(), &40.into(), &280.into()));
}

/// Writes the scenarios of a chain and of a grid, which sweep different keys, and a campaign that
/// joins both.
fn topologies(here: &Path, hops: &str) {
    scenario(here, "chain.toml", "A chain", &format!("[sweep]\n'topology.hops' = [{hops}]\n"));
    let grid = "duration = '3 s'\n[topology]\nkind = 'grid'\ncolumns = 2\n[[flow]]\nfrom = 0\nto = 3\n[sweep]\n'topology.rows' = [2, 3]\n";
    fs::create_dir_all(here.join("grids")).unwrap();
    fs::write(here.join("grids/grid.toml"), grid).unwrap();
    let joint =
        "title = 'Both'\n[[part]]\nfile = 'chain.toml'\n[[part]]\nfile = 'grids/grid.toml'\nset = ['duration=2 s']\n";
    fs::write(here.join("both.toml"), joint).unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process works meanwhile")]
fn a_campaign_of_two_topologies_grows_in_six_steps_to_the_one_that_was_run_at_once() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let grow = |name: &str, more: &[&str]| {
        well(here, &[&["run", name, "--out", "grown", "--format", "json", "--jobs", "2"], more].concat())
    };
    topologies(here, "1, 4");
    grow("chain.toml", &[]);
    // The first steps add seeds, points, and a value in the middle.
    grow("chain.toml", &["--seeds", "2"]);
    topologies(here, "1, 4, 5");
    grow("chain.toml", &["--seeds", "2"]);
    topologies(here, "1, 2, 4, 5");
    grow("chain.toml", &["--seeds", "2"]);
    // The next step adds the second topology. The existing runs of the first one are kept.
    let before: Value = serde_json::from_str(records(&here.join("grown")).lines().next().unwrap()).unwrap();
    assert_eq!(grow("both.toml", &["--seeds", "2"]).lines().count(), 12);
    let grown = records(&here.join("grown"));
    let after: Value = serde_json::from_str(grown.lines().next().unwrap()).unwrap();
    assert_eq!(grown.lines().count(), 12);
    assert_eq!(before["fingerprint"], after["fingerprint"]);
    assert_eq!(after["point"].to_string(), "{\"part\":\"chain\",\"topology.hops\":1}");
    // Runs of two machines are merged.
    well(here, &["run", "both.toml", "--out", "elsewhere", "--seed", "3", "--seeds", "2"]);
    well(here, &["campaign", "merge", "grown", "elsewhere", "--out", "merged"]);
    assert_eq!(records(&here.join("merged")).lines().count(), 24);
    // The last step names the whole campaign, and is interrupted.
    let last = ["run", "both.toml", "--out", "merged", "--format", "json", "--seeds", "30"];
    let mut child = Command::new(cargo_bin("meshpace"));
    let mut child = child.args(last).current_dir(here).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !here.join("merged/unfinished.jsonl").exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let printed = well(here, &last);
    let fresh = well(here, &["run", "both.toml", "--out", "fresh", "--format", "json", "--seeds", "30"]);
    assert!(printed == fresh, "what is printed is that of a fresh run");
    assert!(records(&here.join("merged")) == fresh, "and so is the directory");
    // All commands can read the campaign of two topologies.
    let grids = well(here, &["compare", "merged", "--by", "topology.rows", "--where", "part=grid"]);
    assert!(grids.contains("rows 2 and rows 3"), "{grids}");
    let table = well(here, &["run", "both.toml", "--out", "merged", "--seeds", "30", "--format", "csv"]);
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("scenario,seed,part,topology.hops,topology.rows,duration_s"), "{}", rows[0]);
    assert!(rows[1].starts_with("Both,1,chain,1,,3,") && rows[180].starts_with("Both,30,grid,,3,2,"), "{}", rows[180]);
    assert!(well(here, &["report", "merged"]).contains("index.html"));
    // One run of the second topology is repeated after the files of the scenarios were deleted.
    for file in ["chain.toml", "grids/grid.toml", "both.toml"] {
        fs::remove_file(here.join(file)).unwrap();
    }
    let again = ["rerun", "merged", "--point", "part=grid", "--point", "topology.rows=3", "--seed", "30"];
    assert!(well(here, &again).contains("and same results as in the record"));
}

/// Copies a directory that version 0.1.0 wrote at revision 11, with its scenario. If the current
/// revision differs, the records come from a fresh run, because the old directory could only be
/// read.
fn older(here: &Path, name: &str, sets: &[&str]) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/older");
    for file in ["map.csv".to_owned(), format!("{name}.toml")] {
        fs::copy(from.join(&file), here.join(&file)).unwrap();
    }
    let directory = here.join(name);
    let file = format!("{name}.toml");
    well(here, &[&["run", &file, "--out", name], sets].concat());
    let today = manifest(&directory)["model"].clone();
    let mut written = manifest(&from.join(name));
    assert!(written.get("sources").is_none());
    if written["model"] == today {
        assert_eq!(records(&directory), records(&from.join(name)), "the records of that version");
    }
    written["model"] = today;
    fs::write(directory.join("manifest.json"), written.to_string()).unwrap();
    directory
}

#[test]
fn a_directory_of_an_older_version_is_extended() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let directory = older(here, "plain", &["--set", "flow.segment=512"]);
    let before = records(&directory);
    let compared = well(here, &["compare", "plain", "--by", "topology.hops"]);
    assert!(compared.contains("hops 1 and hops 2"), "{compared}");
    // The new scenario has another title, a comment, one more point and one more seed.
    let text = fs::read_to_string(here.join("plain.toml")).unwrap();
    let text =
        text.replace("Older", "Newer").replace("[1, 2]", "[3, 1, 2] # One more.").replace("\"2 s\"", "\"2000 ms\"");
    fs::write(here.join("plain.toml"), text).unwrap();
    let grow = ["run", "plain.toml", "--set", "flow.segment=512", "--seeds", "3", "--format", "json"];
    let grown = well(here, &[&grow[..], &["--out", "plain"]].concat());
    assert_eq!(grown, well(here, &[&grow[..], &["--out", "fresh"]].concat()));
    assert_eq!((records(&directory) == grown, grown.lines().count()), (true, 9));
    assert!(grown.contains("\"scenario\":\"Newer\"") && !before.contains("Newer"));
    let sources = manifest(&directory)["sources"].as_array().unwrap().clone();
    assert_eq!(
        (sources.len(), &sources[0]["scenario"], &sources[1]["set"][0]),
        (2, &"Older".into(), &"flow.segment=512".into())
    );
    let (status, _, stderr) = meshpace(here, &["run", "plain.toml", "--out", "plain"]);
    assert!(status == Some(2) && stderr.contains("flow.0.segment: 512 → not written"), "{stderr}");
    // A key that is written with its default is none of those that differ.
    let defaults = ["--set", "radio.queue=50", "--set", "mac.profile=ns2"];
    let (status, _, stderr) = meshpace(here, &[&["run", "plain.toml", "--out", "plain"], &defaults[..]].concat());
    assert!(status == Some(2) && stderr.contains("other values (flow.0.segment: 512 → not written)"), "{stderr}");
}

#[test]
fn a_directory_of_an_older_version_is_extended_only_if_its_files_are_shown_to_be_unchanged() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    let directory = older(here, "mapped", &[]);
    let before = records(&directory);
    let map = fs::read_to_string(here.join("map.csv")).unwrap();
    let text = fs::read_to_string(here.join("mapped.toml")).unwrap();
    fs::write(here.join("mapped.toml"), text.replace("[\"newreno\"", "[\"cubic\", \"newreno\"")).unwrap();
    // A node has another position. Nothing proves which map the older records were made with.
    fs::write(here.join("map.csv"), map.replace("300,0", "290,0")).unwrap();
    let (status, _, stderr) = meshpace(here, &["run", "mapped.toml", "--out", "mapped"]);
    assert!(status == Some(2) && stderr.contains("the content of the files that it names"), "{stderr}");
    assert_eq!(records(&directory), before);
    fs::write(here.join("map.csv"), map).unwrap();
    let grown = well(here, &["run", "mapped.toml", "--out", "mapped", "--format", "json"]);
    assert_eq!((records(&directory) == grown, grown.lines().count()), (true, 3));
    assert!(grown.ends_with(&before), "the older records are as they were");
}

#[test]
fn what_is_observed_comes_on_top_and_is_told_before() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    // The flow starts at 0 s, so that no other message is printed: the measured time begins with
    // the flow.
    scenario(here, "s.toml", "Observed", "start = '0 s'\n");
    let run = |more: &[&str]| meshpace(here, &[&["run", "s.toml", "--out", "out", "--format", "json"], more].concat());
    run(&["--seeds", "2"]);
    let (status, printed, stderr) = run(&["--per-node"]);
    assert!(status == Some(0) && stderr.contains("1 existing records lack"), "{stderr}");
    assert!(printed.contains("\"nodes\":["), "{printed}");
    let kept = records(&here.join("out"));
    let nodes: Vec<bool> = kept.lines().map(|line| line.contains("\"nodes\":[")).collect();
    assert_eq!(nodes, [true, false]);
    // Additional data in existing records is kept, even if it is not requested.
    assert_eq!(run(&["--seeds", "2"]), (Some(0), kept.clone(), String::new()));
    let (status, printed, stderr) = run(&["--set", "series=1 s"]);
    assert!(status == Some(0) && stderr.contains("1 existing records lack"), "{stderr}");
    assert!(printed.contains("\"series\":{"), "{printed}");
    let (status, _, stderr) = run(&[]);
    assert!(status == Some(2) && stderr.contains("series: 1 s → not written"), "{stderr}");
    // Records with and without the additional data can be read together. Cells of a table are empty
    // if a record lacks the column.
    assert!(well(here, &["report", "out"]).contains("index.html"));
}

#[test]
fn halves_of_a_sweep_are_merged_and_other_values_are_not() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    for (name, hops) in [("a", "1, 2"), ("b", "3, 4"), ("whole", "1, 2, 3, 4")] {
        let file = format!("{name}.toml");
        scenario(here, &file, "Halves", &format!("[sweep]\n'topology.hops' = [{hops}]\n"));
        well(here, &["run", &file, "--out", name, "--seeds", "2"]);
    }
    well(here, &["campaign", "merge", "b", "a", "--out", "merged"]);
    let (whole, merged) = (records(&here.join("whole")), records(&here.join("merged")));
    let (first, second) = whole.split_at(records(&here.join("a")).len());
    assert_eq!(merged, format!("{first}{second}"), "the points of the part that comes last are first");
    well(here, &["run", "b.toml", "--set", "duration=4 s", "--out", "c", "--seed", "3"]);
    let (status, _, stderr) = meshpace(here, &["campaign", "merge", "a", "b", "c", "--out", "other"]);
    assert!(status == Some(2) && stderr.contains("duration: 3 s → 4 s"), "{stderr}");
    assert!(!here.join("other").exists());
}

#[test]
fn an_unfinished_directory_and_one_of_another_revision_are_compared_and_plotted() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    scenario(here, "s.toml", "Read", "[sweep]\n'topology.hops' = [1, 2]\n");
    for name in ["now", "before", "open"] {
        well(here, &["run", "s.toml", "--out", name, "--seeds", "3"]);
    }
    // The directory is changed into one of an earlier revision: each line and the manifest have
    // that revision.
    let now = manifest(&here.join("before"))["model"].as_u64().unwrap();
    let older = |text: &str| text.replace(&format!("\"model\":{now}"), &format!("\"model\":{}", now - 1));
    let line = |line: &str| {
        let object = older(line.rsplit_once(",\"check\"").unwrap().0) + "}";
        meshpace_lab::record::line::seal(&object)
    };
    let lines: String = records(&here.join("before")).lines().map(line).collect();
    fs::write(here.join("before/records.jsonl"), lines).unwrap();
    let made = fs::read_to_string(here.join("before/manifest.json")).unwrap();
    let made = made.replace(&format!("\"model\": {now}"), &format!("\"model\": {}", now - 1));
    fs::write(here.join("before/manifest.json"), made).unwrap();
    // The directory is changed into one of an interrupted campaign: a head, some lines in any
    // order, and half a line.
    let mut head = manifest(&here.join("open"));
    (head["complete"], head["records"]) = (false.into(), 0.into());
    let (first, rest) =
        records(&here.join("open")).split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    fs::write(here.join("open/unfinished.jsonl"), format!("{head}\n{rest}{first}\n{}", &first[..50])).unwrap();
    fs::remove_file(here.join("open/records.jsonl")).unwrap();
    fs::write(here.join("open/manifest.json"), head.to_string()).unwrap();

    for (name, note) in
        [("before", format!("revision {} of the model", now - 1)), ("open", "incomplete: 6 runs".to_owned())]
    {
        let (status, printed, stderr) = meshpace(here, &["compare", "now", name]);
        assert!(status == Some(0) && stderr.contains(&note) && printed.contains("goodput"), "{name}: {stderr}");
        let (status, printed, stderr) = meshpace(here, &["report", name]);
        assert!(status == Some(0) && stderr.contains(&note) && printed.contains("index.html"), "{name}: {stderr}");
    }
    for command in [&["run", "s.toml", "--out", "before"][..], &["campaign", "merge", "now", "before", "--out", "out"]]
    {
        let (status, _, stderr) = meshpace(here, command);
        assert!(status == Some(2) && stderr.contains(&format!("revision {} of the model", now - 1)), "{stderr}");
    }
    // The unfinished campaign resumes.
    assert_eq!(
        well(here, &["run", "s.toml", "--out", "open", "--seeds", "3", "--format", "json"]),
        records(&here.join("now"))
    );
}

//! Archives of directories of records, checks of unpacked archives, and repeated runs after the
//! original files were deleted.

use assert_cmd::cargo::cargo_bin;
use meshpace_core::rng::{Purpose, Rng};
use meshpace_lab::record::line;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn run(program: impl AsRef<std::ffi::OsStr>, here: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(program).args(arguments).current_dir(here).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn meshpace(here: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    run(cargo_bin("meshpace"), here, arguments)
}

/// Runs a command that must succeed, and returns what it prints.
#[track_caller]
fn well(here: &Path, arguments: &[&str]) -> String {
    let (status, printed, stderr) = meshpace(here, arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {stderr}");
    printed
}

const MAP: &str = "x_m,y_m\n0,0\n150,0\n300,0\n450,0\n580,0\n";
const SCENARIO: &str = "duration = '1.5 s'\n[topology]\nkind = 'nodes'\nfile = 'map.csv'\n[[flow]]\nfrom = 0\nto = 1\n[sweep]\n\
                        'flow.transport' = ['newreno', { name = 'cubic', sack = true }]\n'flow.to' = [1, 2, 3, 4]\n\
                        'flow.segment' = [500, 900]\n";

/// Creates a directory in `here` with 52 records of two scenarios, which have two maps.
fn campaign(here: &Path) {
    fs::write(here.join("map.csv"), MAP).unwrap();
    fs::write(here.join("a.toml"), format!("title = 'Both'\n{SCENARIO}")).unwrap();
    well(here, &["run", "a.toml", "--out", "records", "--seeds", "3"]);
    fs::write(here.join("other.csv"), MAP.replace("580", "600")).unwrap();
    let other = SCENARIO.replace("map.csv", "other.csv").replace("[1, 2, 3, 4]", "[4]");
    let other = format!("title = 'Both'\n{other}'flow.start' = ['0.5 s']\n");
    fs::write(here.join("b.toml"), other).unwrap();
    well(here, &["run", "b.toml", "--out", "records", "--per-node"]);
}

/// Deletes all files of a campaign except its archive, and unpacks the archive.
fn unpack(here: &Path) {
    for file in ["a.toml", "b.toml", "map.csv", "other.csv"] {
        fs::remove_file(here.join(file)).unwrap();
    }
    fs::remove_dir_all(here.join("records")).unwrap();
    let (status, _, stderr) = run("tar", here, &["xf", "shared.tar.gz"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
}

/// Returns the arguments of `rerun` for a record.
fn arguments(record: &Value) -> Vec<String> {
    let mut arguments = vec!["rerun".to_owned(), "records".to_owned(), "--seed".to_owned(), record["seed"].to_string()];
    for (key, value) in record["point"].as_object().unwrap() {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Object(_) => "{ name = 'cubic', sack = true }".to_owned(),
            value => value.to_string(),
        };
        arguments.extend(["--point".to_owned(), format!("{key}={value}")]);
    }
    arguments
}

#[test]
fn twenty_runs_from_an_archive_have_the_fingerprints_of_their_records() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    campaign(here);
    let packed = well(here, &["campaign", "archive", "records", "--out", "shared.tar.gz"]);
    assert!(packed.starts_with("shared.tar.gz: 52 runs and 2 files\n"), "{packed}");
    unpack(here);
    let text = fs::read_to_string(here.join("records/records.jsonl")).unwrap();
    let mut records: Vec<Value> = text.lines().map(|record| line::open(record).unwrap()).collect();
    let seed = std::env::var("MESHPACE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20);
    println!("MESHPACE_SEED={seed}");
    let mut random = Rng::stream(seed, Purpose::Test, 0);
    for _ in 0..20 {
        let record = records.swap_remove(random.below(records.len() as u64) as usize);
        let arguments = arguments(&record);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let told = well(here, &arguments);
        let expected =
            format!("same fingerprint {} and same results as in the record\n", record["fingerprint"].as_str().unwrap());
        assert!(told.ends_with(&expected), "{told}");
    }
    let checked = well(here, &["campaign", "check", "records", "--runs", "3"]);
    assert_eq!(
        checked,
        "records: 52 records and 2 files are complete; 3 runs were repeated and gave the same results\n"
    );
}

#[test]
fn an_archive_is_its_content_and_says_nothing_else_if_asked() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    campaign(here);
    let archive = |name: &str, more: &[&str]| {
        well(here, &[&["campaign", "archive", "records", "--out", name], more].concat());
        fs::read(here.join(name)).unwrap()
    };
    assert!(archive("one.tar.gz", &[]) == archive("two.tar.gz", &[]));
    let (status, _, stderr) = meshpace(here, &["campaign", "archive", "records", "--out", "one.tar.gz"]);
    assert!(status == Some(2) && stderr.contains("--force"), "{stderr}");
    archive("shared.tar.gz", &["--anonymous"]);
    let before = fs::read_to_string(here.join("records/manifest.json")).unwrap();
    unpack(here);
    let [before, after]: [Value; 2] = [before, fs::read_to_string(here.join("records/manifest.json")).unwrap()]
        .map(|text| serde_json::from_str(&text).unwrap());
    assert!(before["host"] != "" && before["jobs"] != 0 && before["wall_time_s"] != 0.0);
    assert_eq!((&after["host"], &after["jobs"], &after["wall_time_s"]), (&"".into(), &0.into(), &0.0.into()));
    assert_eq!(after["sources"], before["sources"]);
    assert!(well(here, &["campaign", "check", "records", "--runs", "1"]).contains("1 runs were repeated"));
    assert!(well(here, &["compare", "records", "--by", "flow.segment", "--where", "flow.to=4"]).contains("goodput"));
}

#[test]
fn what_was_changed_or_is_missing_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path();
    campaign(here);
    let refused = |arguments: &[&str], expected: i32, told: &str| {
        let (status, _, stderr) = meshpace(here, arguments);
        assert!(status == Some(expected) && stderr.contains(told), "{arguments:?}: {status:?} {stderr}");
    };
    refused(&["rerun", "records", "--seed", "4"], 2, "no record has the seed 4");
    refused(&["rerun", "records", "--seed", "2", "--point", "flow.to=3"], 2, "4 points have the seed 2");
    // The refusal lists points as options, and each of them chooses its point.
    let cubic =
        "--point 'flow.transport={\"name\":\"cubic\",\"sack\":true}' --point flow.to=3 --point flow.segment=900";
    refused(&["rerun", "records", "--seed", "2", "--point", "flow.to=3"], 2, cubic);
    refused(&["rerun", "records", "--seed", "2"], 2, "; and 4 more\n");
    let transport = "flow.transport={\"name\":\"cubic\",\"sack\":true}";
    let chosen = ["--point", transport, "--point", "flow.to=3", "--point", "flow.segment=900"];
    well(here, &[&["rerun", "records", "--seed", "2"][..], &chosen].concat());
    refused(&["rerun", "records", "--point", "flow.to=9"], 2, "there are 4, 1, 2, 3");
    // The record has results that no run gives, and a valid checksum.
    let path = here.join("records/records.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let last = whole.lines().last().unwrap();
    let Value::Object(mut record) = line::open(last).unwrap() else { panic!("{last}") };
    record.shift_remove("check");
    record["frames"] = 1.into();
    let changed = line::seal(&Value::Object(record.clone()).to_string());
    fs::write(&path, whole.replace(&format!("{last}\n"), &changed)).unwrap();
    let arguments = arguments(&Value::Object(record));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    refused(&arguments, 1, "as in the record, but different values of frames");
    refused(&["campaign", "check", "records", "--runs", "52"], 1, "but different values of frames");
    fs::write(&path, whole.replacen("\"frames\":", "\"frames\":1", 1)).unwrap();
    refused(&["campaign", "check", "records"], 1, "records.jsonl:1: the record is damaged");
    fs::write(&path, &whole).unwrap();
    // One kept file gets another content, and another file is deleted.
    let files: Vec<_> = fs::read_dir(here.join("records/files")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 2);
    fs::write(&files[0], MAP.replace("150", "151")).unwrap();
    refused(&["campaign", "check", "records"], 1, "does not match the SHA-256");
    refused(&["campaign", "archive", "records", "--out", "x.tar.gz"], 2, "is not kept");
    fs::remove_file(&files[0]).unwrap();
    refused(&["campaign", "archive", "records", "--out", "x.tar.gz"], 2, "is not kept");
    // The original commands make no run, and store the files again.
    well(here, &["run", "a.toml", "--out", "records", "--seeds", "3"]);
    well(here, &["run", "b.toml", "--out", "records", "--per-node"]);
    assert!(files.iter().all(|file| file.is_file()) && fs::read_to_string(&path).unwrap() == whole);
}

//! Campaigns of many points: what is checked before the first run, what is printed and written, and
//! how much memory they need.

use crate::compare::{lines, meshpace};
use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::fs;
#[cfg(target_os = "linux")]
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Command;
#[cfg(target_os = "linux")]
use std::process::{Child, Stdio};

/// Scenario of one short run at each pair of a window and a segment size.
fn sweep(windows: usize, segments: usize) -> String {
    let list = |from: usize, count: usize| (from..from + count).map(|value| value.to_string()).collect::<Vec<_>>();
    let (windows, segments) = (list(1, windows).join(", "), list(500, segments).join(", "));
    format!(
        "duration = '2 s'\nwarmup = '1 s'\ntopology.hops = 1\n[[flow]]\n[sweep]\n\
         'flow.max_window' = [{windows}]\n'flow.segment' = [{segments}]\n"
    )
}

#[test]
fn a_table_has_200_points_and_says_so() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("sweep.toml"), sweep(21, 10)).unwrap();
    let (status, table, stderr) = meshpace(scratch.path(), &["run", "sweep.toml", "--format", "table"]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(table.lines().filter(|line| line.contains("0→1  ")).count(), 200, "{table}");
    assert!(table.contains("These are the first 200 of 210 points."), "{table}");
    // A table of 200 points has no such sentence.
    fs::write(scratch.path().join("sweep.toml"), sweep(20, 10)).unwrap();
    let (status, table, stderr) = meshpace(scratch.path(), &["run", "sweep.toml", "--format", "table"]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(table.lines().filter(|line| line.contains("0→1  ")).count(), 200, "{table}");
    assert!(!table.contains("the first 200"), "{table}");
}

/// Number of rows of a page's table of points, and the sentence about rows that are left out.
fn listed(page: &str) -> (usize, Option<&str>) {
    let table = page.split("Numbers of every point").nth(1).unwrap();
    let sentence = table.find("<p>").map(|at| table[at + 3..].split("</p>").next().unwrap());
    (table.matches("<tr>").count() - 1, sentence)
}

#[test]
fn a_page_lists_1000_points_and_the_files_beside_it_have_all() {
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("sweep.toml"), sweep(51, 20)).unwrap();
    let run = ["run", "sweep.toml", "--format", "json", "--report", "page.html"];
    let (status, records, stderr) = meshpace(scratch.path(), &run);
    assert_eq!((status, records.lines().count()), (0, 1_020), "{stderr}");
    let page = fs::read_to_string(scratch.path().join("page.html")).unwrap();
    let sentence = "Of 1020 points the first 1000 are listed; the CSV of each plot has all.";
    assert_eq!(listed(&page), (1_000, Some(sentence)));
    // Each record has its row: a line for each segment size, over the windows.
    let csv = fs::read_to_string(scratch.path().join("page-goodput.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert_eq!(rows.len(), 1_020);
    for (record, row) in lines(&records).iter().zip(rows) {
        let point = &record["point"];
        assert_eq!(
            (row[0], row[1]),
            (format!("segment {}", point["flow.segment"]).as_str(), point["flow.max_window"].to_string().as_str())
        );
        let goodput = record["aggregate_goodput_bps"].as_f64().unwrap() * 1e-3;
        assert!((row[2].parse::<f64>().unwrap() - goodput).abs() < 1e-6, "{row:?}");
    }
}

#[test]
fn a_wrong_value_of_a_large_sweep_is_named_before_the_first_run() {
    let scratch = tempfile::tempdir().unwrap();
    let wrong = sweep(40, 40).replace(" 520,", " 0,");
    fs::write(scratch.path().join("sweep.toml"), wrong).unwrap();
    let run = ["run", "sweep.toml", "--format", "json", "--out", "records"];
    let (status, records, stderr) = meshpace(scratch.path(), &run);
    assert_eq!((status, records.as_str()), (2, ""), "{stderr}");
    assert!(stderr.contains("flow.0.segment") && stderr.contains("found 0"), "{stderr}");
    assert_eq!(stderr.matches("error:").count(), 1, "the value is named once: {stderr}");
    assert!(!scratch.path().join("records").exists());
}

/// Values that do not go together are found when their point is built, and reported then. So a
/// record that is printed before such a report did not wait until all points were built.
#[test]
fn the_first_record_of_a_large_sweep_does_not_wait_for_the_other_points() {
    let scratch = tempfile::tempdir().unwrap();
    // A warm-up must be shorter than the run: 3 s and 2.5 s are possible beside the first and the
    // last values, but not together.
    let windows: Vec<String> = (1..=120).map(|window| window.to_string()).collect();
    let text = format!(
        "[[flow]]\n[sweep]\nwarmup = ['1 s', '3 s', '1.5 s']\nduration = ['4 s', '2.5 s', '5 s']\n\
         'flow.max_window' = [{}]\n",
        windows.join(", ")
    );
    fs::write(scratch.path().join("sweep.toml"), text).unwrap();
    // Both streams go into one file, which has their lines in the order in which they were written.
    let both = fs::File::create(scratch.path().join("both")).unwrap();
    let mut command = Command::new(cargo_bin("meshpace"));
    command.args(["run", "sweep.toml", "--format", "json", "--jobs", "1", "--out", "records"]);
    command.current_dir(scratch.path()).stdout(both.try_clone().unwrap()).stderr(both);
    assert_eq!(command.status().unwrap().code(), Some(1));
    let told = fs::read_to_string(scratch.path().join("both")).unwrap();
    let is_record = |line: &&str| line.starts_with('{');
    let failure = r#"warmup = "3 s", duration = "2.5 s", flow.max_window = 1, seed 1 failed: warmup: there is nothing to measure"#;
    let before = told.lines().take_while(|line| !line.contains(failure)).filter(is_record).count();
    assert!(before > 0, "{told}");
    assert_eq!(told.lines().filter(is_record).count(), 8 * 120);
    assert_eq!(told.matches("there is nothing to measure").count(), 120, "{told}");
}

/// Page of 10^4 points.
#[test]
fn a_page_of_10000_points_has_at_most_10_mb() {
    if !meshpace_testing::is_slow_run("report of 10,000 points: the size of its page") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("sweep.toml"), sweep(100, 100)).unwrap();
    let run = ["run", "sweep.toml", "--format", "json", "--out", "records"];
    let (status, _, stderr) = meshpace(scratch.path(), &run);
    assert_eq!(status, 0, "{stderr}");
    let (status, _, stderr) = meshpace(scratch.path(), &["report", "records", "--page", "page.html"]);
    assert_eq!(status, 0, "{stderr}");
    let page = fs::metadata(scratch.path().join("page.html")).unwrap();
    assert!(page.len() <= 10_000_000, "{} bytes", page.len());
    let csv = fs::read_to_string(scratch.path().join("page-goodput.csv")).unwrap();
    assert_eq!(csv.lines().count(), 10_001);
}

/// Starts the command with its standard output in a pipe.
#[cfg(target_os = "linux")]
fn started(directory: &Path, arguments: &[&str]) -> Child {
    let mut command = Command::new(cargo_bin("meshpace"));
    command.args(arguments).current_dir(directory).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// Largest memory of a running process so far, bytes.
#[cfg(target_os = "linux")]
fn peak(child: &Child) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
    1024 * line.and_then(|kib| kib.parse::<u64>().ok()).expect("the process runs")
}

/// A campaign whose records are all there reads the places of its lines, and not the lines.
#[test]
#[cfg(target_os = "linux")]
fn a_hundred_thousand_points_with_nothing_to_do_need_120_mb() {
    if !meshpace_testing::is_slow_run("run of 100,000 points, again with nothing to do: its memory") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    fs::write(scratch.path().join("sweep.toml"), sweep(250, 400)).unwrap();
    let run = ["run", "sweep.toml", "--format", "json", "--out", "records"];
    let (status, once, stderr) = meshpace(scratch.path(), &run);
    assert_eq!((status, once.lines().count()), (0, 100_000), "{stderr}");
    let mut child = started(scratch.path(), &run);
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut again = String::new();
    for _ in 0..99_000 {
        output.read_line(&mut again).unwrap();
    }
    // The process waits for us: the pipe does not hold the last thousand lines.
    let peak = peak(&child);
    output.read_to_string(&mut again).unwrap();
    assert!(child.wait().unwrap().success() && again == once);
    assert!(peak <= 120_000_000, "{peak} bytes");
}

/// Writes a directory with `points` values of a key for each of two transports, and ten seeds. Its lines are those of one
/// run with other values.
#[cfg(target_os = "linux")]
fn directory(place: &Path, points: u64) {
    use std::io::Write;
    let text = "duration = '2 s'\ntopology.hops = 1\n[[flow]]\n[sweep]\n'flow.transport' = ['newreno', 'tcp-ap']\n";
    fs::write(place.join("one.toml"), text).unwrap();
    let (status, _, stderr) = meshpace(place, &["run", "one.toml", "--out", "all"]);
    assert_eq!(status, 0, "{stderr}");
    let made = fs::read_to_string(place.join("all/records.jsonl")).unwrap();
    let mut file = std::io::BufWriter::new(fs::File::create(place.join("all/records.jsonl")).unwrap());
    for line in made.lines() {
        let mut record: serde_json::Map<String, Value> = serde_json::from_str(line).unwrap();
        record.remove("check");
        let goodput = record["aggregate_goodput_bps"].as_f64().unwrap();
        for point in 0..points {
            record["point"]["flow.max_window"] = point.into();
            for seed in 1..=10 {
                record["seed"] = seed.into();
                record["aggregate_goodput_bps"] = (goodput + (seed * (point + 7) % 97) as f64).into();
                record["fingerprint"] = format!("{:016x}", point * 10 + seed).into();
                let text = serde_json::to_string(&record).unwrap();
                file.write_all(meshpace_lab::record::line::seal(&text).as_bytes()).unwrap();
            }
        }
    }
    file.into_inner().unwrap();
    let mut manifest: Value =
        serde_json::from_str(&fs::read_to_string(place.join("all/manifest.json")).unwrap()).unwrap();
    manifest["records"] = (20 * points).into();
    fs::write(place.join("all/manifest.json"), manifest.to_string()).unwrap();
}

/// A comparison keeps of each record only what it compares.
#[test]
#[cfg(target_os = "linux")]
fn a_hundred_thousand_records_are_compared_in_150_mb() {
    if !meshpace_testing::is_slow_run("compare of 100,000 records: its memory") {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    directory(scratch.path(), 5_000);
    let arguments = ["compare", "all", "--by", "flow.transport", "--format", "json"];
    let mut child = started(scratch.path(), &arguments);
    let mut output = child.stdout.take().unwrap();
    let mut first = [0];
    output.read_exact(&mut first).unwrap();
    // The process waits for us: the pipe does not hold the first line, which has all points.
    let peak = peak(&child);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
    let goodput = &lines(&format!("{}{rest}", char::from(first[0])))[0];
    assert_eq!(goodput["points"].as_array().map(Vec::len), Some(5_000));
    assert!(peak < 150_000_000, "{peak} bytes");
}

//! `meshpace reproduce`, `report` and `validate` as users see them.

use assert_cmd::Command;
use meshpace_testing::{Class, skipped};
use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::time::Duration;

fn meshpace(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::cargo_bin("meshpace").unwrap().args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Writes a register of one experiment: `seconds` of NewReno and TCP-AP over 2 and 4 hops, with the
/// claims `claim`.
fn register(directory: &Path, seconds: u32, seeds: u32, claim: &str) -> String {
    fs::create_dir_all(directory.join("ap05")).unwrap();
    fs::write(directory.join("register.toml"), "AP05 = [\"F3\", \"F4\"]\n").unwrap();
    let scenario = format!(
        "title = \"small\"\nduration = \"{seconds} s\"\n[[flow]]\n[sweep]\n\"flow.transport\" = [\"newreno\", \"tcp-ap\"]\n\
         \"topology.hops\" = [2, 4]\nseeds = {seeds}\n"
    );
    fs::write(directory.join("ap05/F3.toml"), scenario).unwrap();
    let published = format!(
        "id = \"AP05-F3\"\ntitle = \"t\"\nsource = \"s\"\nfinding = \"what was tried\"\n\
         x = {{ key = \"topology.hops\", title = \"hops\" }}\ncurve = [{{ id = \"newreno\" }}, {{ id = \"tcp-ap\" }}]\n\
         figure = [{{ kind = \"curves\", metrics = [\"goodput\"] }}]\n{claim}\n"
    );
    fs::write(directory.join("ap05/F3.published.toml"), published).unwrap();
    directory.to_str().unwrap().to_owned()
}

const FALLS: &str =
    "[[claim]]\ntext = \"it falls\"\ncheck = { kind = \"falls\", of = [\"newreno\"], tolerance_pct = 5.0 }";
const RISES: &str =
    "[[claim]]\ntext = \"it rises\"\ncheck = { kind = \"rises\", of = [\"newreno\"], tolerance_pct = 5.0 }";

#[test]
fn an_experiment_is_run_reported_and_not_run_twice() {
    let scratch = tempfile::tempdir().unwrap();
    let register = register(&scratch.path().join("register"), 20, 3, FALLS);
    let out = scratch.path().join("out");
    let reproduce = |seeds: &[&str]| {
        let common = ["reproduce", "ap05-f3", "--register", &register, "--out", out.to_str().unwrap()];
        meshpace(&common.iter().chain(seeds).copied().collect::<Vec<_>>())
    };
    let (status, stdout, stderr) = reproduce(&[]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(stdout.trim(), out.join("index.html").to_str().unwrap());
    let runs = out.join("AP05-F3");
    let records = read(&runs, "records.jsonl");
    assert_eq!(records.lines().count(), 12, "2 transports, 2 hop counts, 3 seeds");
    assert_eq!(read(&runs, "records.csv").lines().count(), 13, "a header and one flow per run");
    let page = read(&out, "index.html");
    assert!(page.contains("class=\"chip reproduced\"") && page.contains("meshpace reproduce AP05-F3 --quality quick"));
    let again = format!("meshpace reproduce AP05-F3 --quality quick --register {register}");
    assert!(page.contains(&again) && read(&out, "verdicts.json").contains(&again), "a register of one's own");
    assert!(!page.contains("what was tried"), "a finding is for what differs");

    // The same command again runs nothing, and creates the same page byte for byte.
    fs::remove_file(out.join("index.html")).unwrap();
    let written = fs::metadata(runs.join("records.jsonl")).unwrap().modified().unwrap();
    let (status, _, stderr) = reproduce(&[]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("complete"), "{stderr}");
    assert_eq!(fs::metadata(runs.join("records.jsonl")).unwrap().modified().unwrap(), written);
    assert_eq!(read(&out, "index.html"), page);

    // With more seeds, the existing records are kept, and all have the order of the campaign.
    let (status, _, stderr) = reproduce(&["--seeds", "4"]);
    assert_eq!(status, 0, "{stderr}");
    let more = read(&runs, "records.jsonl");
    assert_eq!(more.lines().count(), 16);
    let fewer: Vec<&str> = more.lines().filter(|line| !line.contains("\"seed\":4,")).collect();
    assert_eq!(fewer, records.lines().collect::<Vec<_>>());

    // A report of falsified records is refused, and the message names the place.
    let falsified = more.replace(
        "\"topology.hops\":4},\"duration_s\":20.0,\"aggregate_goodput_bps\":",
        "\"topology.hops\":4},\"duration_s\":20.0,\"aggregate_goodput_bps\":1",
    );
    assert_ne!(falsified, more);
    fs::write(runs.join("records.jsonl"), falsified).unwrap();
    let (status, _, stderr) = meshpace(&["report", out.to_str().unwrap(), "--register", &register]);
    assert!(status == 2 && stderr.contains("records.jsonl:5: the record is damaged"), "{stderr}");
    fs::write(runs.join("records.jsonl"), more).unwrap();

    // The same records are judged by another claim.
    let register = self::register(&scratch.path().join("other"), 20, 3, RISES);
    let (status, _, stderr) = meshpace(&["report", out.to_str().unwrap(), "--register", &register]);
    assert_eq!(status, 0, "{stderr}");
    assert!(read(&out, "index.html").contains("class=\"chip differs\""));

    // A page that is written alone, to be sent to somebody, has no links to other files.
    let alone = scratch.path().join("alone.html");
    let arguments = ["report", out.to_str().unwrap(), "--register", &register, "--page", alone.to_str().unwrap()];
    let (status, stdout, stderr) = meshpace(&arguments);
    assert_eq!((status, stdout.trim()), (0, alone.to_str().unwrap()), "{stderr}");
    let (beside, alone) = (read(&out, "index.html"), read(scratch.path(), "alone.html"));
    assert!(beside.contains("records.jsonl") && !alone.contains("records.jsonl"));
    assert!(alone.contains("class=\"chip differs\""));

    let left = fs::read_dir(&runs).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(
        left.into_iter().all(|name| !name.starts_with('.') && name != "unfinished.jsonl"),
        "nothing temporary stays"
    );
}

#[test]
fn a_claim_that_cannot_hold_is_reported_as_different() {
    let scratch = tempfile::tempdir().unwrap();
    let register = register(&scratch.path().join("register"), 20, 3, RISES);
    let out = scratch.path().join("out");
    let (status, _, stderr) = meshpace(&["reproduce", "all", "--register", &register, "--out", out.to_str().unwrap()]);
    assert_eq!(status, 0, "{stderr}");
    let page = read(&out, "index.html");
    assert!(page.contains("class=\"chip differs\"") && page.contains("what was tried"), "with what was found");
    // The summary is in sentences at the end of the output, and at the top of the page.
    let told = "0 of 1 published claims hold; 1 not.";
    let last: Vec<&str> = stderr.trim_end().lines().rev().take(2).collect();
    assert!(last[0].starts_with("Does not hold: \u{201c}it rises\u{201d}") && last[1] == told, "{stderr}");
    let (sentence, claims) = (page.find(told).unwrap(), page.find("class=\"claims\"").unwrap());
    assert!(sentence < page.find("<svg").unwrap() && sentence < claims);
    assert!(!page.contains("1 claims: 1 reproduced"));
}

/// A claim that can never be decided: it compares a quantity with itself within a tiny tolerance,
/// so the interval always contains both answers.
const OPEN: &str = "[[claim]]\ntext = \"it is as it is\"\n\
                    check = { kind = \"same\", of = \"newreno@2\", over = \"newreno@2\", within_pct = 0.0001 }";

#[test]
fn what_cannot_be_told_is_given_only_after_four_times_the_seeds() {
    let scratch = tempfile::tempdir().unwrap();
    let register = register(&scratch.path().join("register"), 20, 3, OPEN);
    let reproduce = |name: &str, more: &[&str]| {
        let out = scratch.path().join(name);
        let common = ["reproduce", "all", "--register", &register, "--out", out.to_str().unwrap()];
        let (status, _, stderr) = meshpace(&common.iter().chain(more).copied().collect::<Vec<_>>());
        assert_eq!(status, 0, "{stderr}");
        let verdicts: serde_json::Value = serde_json::from_str(&read(&out, "verdicts.json")).unwrap();
        assert_eq!(
            (&verdicts[0]["verdict"], &verdicts[0]["cause"]),
            (&"cannot be told".into(), &serde_json::Value::Null)
        );
        assert_eq!(verdicts[0]["model"], meshpace_sim::MODEL_REVISION);
        let records = read(&out.join("AP05-F3"), "records.jsonl").lines().count();
        (records, verdicts[0]["evidence"].as_str().unwrap().to_owned(), stderr)
    };
    // There are four points with three seeds each. The point of the claim has twelve.
    let (records, evidence, _) = reproduce("paper", &["--quality", "paper"]);
    assert!(records == 21 && evidence.ends_with("12 seeds do not tell"), "{records}: {evidence}");
    for (name, more) in
        [("quick", &[][..]), ("first", &["--quality", "paper", "--first-seeds"]), ("own", &["--seeds", "3"])]
    {
        let (records, evidence, stderr) = reproduce(name, more);
        assert!(records == 12 && evidence.ends_with("3 seeds do not tell"), "{name}: {records}: {evidence}");
        assert!(stderr.contains("Cannot be told: \u{201c}it is as it is\u{201d}"), "{stderr}");
    }
    // Repeating the command does not extend a complete campaign.
    assert_eq!(reproduce("paper", &["--quality", "paper"]).0, 21);
    // Quick quality does the same if the experiment asks for it: one point has six seeds.
    self::register(&scratch.path().join("register"), 20, 3, &format!("quality.quick.times = 2\n{OPEN}"));
    let (records, evidence, _) = reproduce("twice", &[]);
    assert!(records == 15 && evidence.ends_with("6 seeds do not tell"), "{records}: {evidence}");
    assert_eq!(reproduce("twice-first", &["--first-seeds"]).0, 12);
}

/// NewReno is judged. TCP-AP stands for another reading of the paper.
const BESIDE: &str = "beside = [{ title = \"as elsewhere\", curves = { newreno = \"tcp-ap\" } }]\n";

#[test]
fn other_readings_are_run_when_they_are_asked_for() {
    let scratch = tempfile::tempdir().unwrap();
    let register = register(&scratch.path().join("register"), 20, 3, &format!("{BESIDE}{FALLS}"));
    let place = |name: &str| scratch.path().join(name);
    let reproduce = |name: &str, more: &[&str]| {
        let out = place(name);
        let common = ["reproduce", "all", "--register", &register, "--out", out.to_str().unwrap()];
        let (status, _, stderr) = meshpace(&common.iter().chain(more).copied().collect::<Vec<_>>());
        assert_eq!(status, 0, "{stderr}");
        (records(&out), read(&out, "index.html"), read(&out, "verdicts.json"), stderr)
    };
    let told = format!(
        "Other readings of the paper (as elsewhere) were not run, and do not count for verdicts. To run them: \
         meshpace reproduce AP05-F3 --quality quick --register {register} --readings"
    );
    let (judged, page, verdicts, stderr) = reproduce("out", &[]);
    assert!(judged.lines().count() == 6 && !judged.contains("tcp-ap"), "2 hop counts, 3 seeds");
    assert_eq!(stderr.trim_end().lines().last(), Some(told.as_str()), "{stderr}");
    assert!(
        page.contains(&told) && !page.contains("as elsewhere</em>") && !page.contains("TCP-AP"),
        "not even its name"
    );
    let manifest: serde_json::Value = serde_json::from_str(&read(&place("out/AP05-F3"), "manifest.json")).unwrap();
    assert_eq!((&manifest["points"], &manifest["seeds"], &manifest["records"]), (&2.into(), &3.into(), &6.into()));

    // Existing records are kept. The result is the same as if both readings had been requested from
    // the start.
    let (both, page, with, stderr) = reproduce("out", &["--readings"]);
    assert_eq!(both.lines().filter(|line| judged.lines().any(|other| other == *line)).count(), 6);
    assert!(both.lines().count() == 12 && !stderr.contains("were not run"), "{stderr}");
    assert!(page.contains("as elsewhere</em>") && page.contains("TCP-AP") && !page.contains("were not run"));
    assert_eq!(with, verdicts, "they count for nothing");
    assert_eq!(reproduce("at-once", &["--readings"]).0, both);
    // More seeds are run for the judged reading only. The existing records of the other reading are
    // kept.
    let more = reproduce("out", &["--seeds", "4"]).0;
    assert_eq!(more.lines().count(), 14);
    assert!(both.lines().all(|line| more.lines().any(|other| other == line)));
    // Paper quality includes all readings.
    assert_eq!(reproduce("paper", &["--quality", "paper", "--first-seeds"]).0.lines().count(), 12);
}

#[test]
fn verdicts_are_data_and_one_that_turns_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let claims = register(&scratch.path().join("register"), 20, 3, FALLS);
    let out = scratch.path().join("out").to_str().unwrap().to_owned();
    let (status, _, stderr) = meshpace(&["reproduce", "all", "--register", &claims, "--out", &out]);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("AP05") && stderr.contains("reproduced"), "a scoreboard: {stderr}");
    let text = read(Path::new(&out), "verdicts.json");
    let verdicts: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entry = &verdicts[0];
    assert_eq!((&entry["experiment"], &entry["claim"]), (&"AP05-F3".into(), &"it falls".into()));
    assert_eq!((&entry["verdict"], &entry["cause"]), (&"reproduced".into(), &serde_json::Value::Null));
    let again = format!("meshpace reproduce AP05-F3 --quality quick --register {claims}");
    assert_eq!(entry["command"], again, "by the register that it is of");
    for key in ["published", "measured", "interval"] {
        assert!(entry.get(key).is_some(), "{key}");
    }
    // The claim is falsified, so its verdict differs from the expected one.
    let expected = scratch.path().join("expected.json");
    fs::write(&expected, &text).unwrap();
    let again = |register: &str| {
        meshpace(&["reproduce", "--register", register, "--out", &out, "--expect", expected.to_str().unwrap()])
    };
    let (status, _, stderr) = again(&claims);
    assert_eq!(status, 0, "{stderr}");
    let false_claim = RISES.replace("it rises", "it falls");
    let falsified = register(&scratch.path().join("falsified"), 20, 3, &false_claim);
    let (status, _, stderr) = again(&falsified);
    assert_eq!(status, 1, "{stderr}");
    assert!(stderr.contains("AP05-F3: \"it falls\": expected reproduced, found differs"), "{stderr}");
    fs::write(&expected, "{}").unwrap();
    let (status, _, stderr) = again(&claims);
    assert!(status == 2 && stderr.contains("expected.json") && stderr.contains("verdicts"), "{stderr}");
}

#[test]
fn an_estimate_runs_nothing_and_grows_with_the_work() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let estimate = |seconds: u32, seeds: u32| {
        let place = directory.path().join(format!("register-{seconds}"));
        let register = register(&place, seconds, seeds, FALLS);
        let arguments = ["reproduce", "--estimate", "--json", "--register", &register, "--out", out.to_str().unwrap()];
        let (status, stdout, stderr) = meshpace(&arguments);
        assert_eq!(status, 0, "{stderr}");
        serde_json::from_str::<serde_json::Value>(&stdout).unwrap()
    };
    let (small, large) = (estimate(60, 2), estimate(6000, 3));
    assert_eq!(small["experiments"][0]["runs"], 8);
    assert_eq!(large["experiments"][0]["runs"], 12);
    // The simulated time is 150 times as long. Other load on the machine changes the CPU time, but
    // not by a factor of ten.
    let ratio = large["cpu_s"].as_f64().unwrap() / small["cpu_s"].as_f64().unwrap();
    assert!((15.0..1500.0).contains(&ratio), "{ratio}");
    assert!(!out.exists(), "nothing is run");
}

#[test]
fn a_register_that_does_not_fit_together_is_refused_with_its_place() {
    let scratch = tempfile::tempdir().unwrap();
    let claim = |text: &str| register(&scratch.path().join("register"), 20, 3, text);
    for (text, told) in [
        (FALLS.replace("newreno", "newrino"), "there is no curve \"newrino\""),
        (FALLS.replace("falls\"", "sinks\""), "unknown variant `sinks`"),
        (FALLS.replace("tolerance_pct", "tolerance"), "unknown field `tolerance`"),
        (FALLS.replace("newreno", "newreno:speed"), "there is no metric \"speed\""),
        (FALLS.replace("newreno", "newreno:flow-goodput"), "say which with #0"),
        (FALLS.replace("newreno", "newreno@3"), "there is no x 3"),
        (format!("{FALLS}\n[published.newreno]\ngoodput = {{ 9 = 1.0 }}"), "there is no x \"9\""),
        (format!("{FALLS}\n[quality.quick]\nonly = {{ \"topology.hops\" = [3] }}"), "3 is not in the sweep"),
        (
            "[[metric]]\nid = \"m\"\ntitle = \"m\"\nfield = \"series.goodput_bps\"\nflow = 0".to_owned(),
            "needs a time series",
        ),
        (
            "[[metric]]\nid = \"m\"\ntitle = \"m\"\nfield = \"idle_windowz\"".to_owned(),
            "records have no number called idle_windowz; idle_windows is near",
        ),
    ] {
        let register = claim(&text);
        let (status, _, stderr) = meshpace(&["reproduce", "--register", &register, "--out", "/nowhere/at/all"]);
        assert_eq!(status, 2, "{told}: {stderr}");
        assert!(stderr.contains("F3.published.toml") && stderr.contains(told), "{told}: {stderr}");
    }
}

/// Returns the records. They contain nothing that depends on the host or on the time.
fn records(out: &Path) -> String {
    read(&out.join("AP05-F3"), "records.jsonl")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process works meanwhile")]
fn a_campaign_that_is_killed_again_and_again_ends_as_one_that_is_not() {
    let scratch = tempfile::tempdir().unwrap();
    let register = register(&scratch.path().join("register"), 150, 20, FALLS);
    let arguments = |out: &Path| {
        ["reproduce", "AP05-F3", "--jobs", "2", "--register", &register, "--out", out.to_str().unwrap()]
            .map(str::to_owned)
    };
    let undisturbed = scratch.path().join("undisturbed");
    let begun = std::time::Instant::now();
    let (status, _, stderr) = meshpace(&arguments(&undisturbed).each_ref().map(String::as_str));
    assert_eq!(status, 0, "{stderr}");
    let whole = begun.elapsed();

    let out = scratch.path().join("killed");
    let partial = out.join("AP05-F3/unfinished.jsonl");
    let (mut before, mut kills, mut attempt) = (0, 0, 0u32);
    // Each start is killed within the first tenth of the run time, so that few starts get far. The
    // golden ratio spreads the moments.
    while kills < 20 {
        attempt += 1;
        assert!(attempt < 200, "only {kills} of {attempt} starts were killed while at work");
        let mut child = Process::new(assert_cmd::cargo::cargo_bin("meshpace"))
            .args(arguments(&out))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let fraction = f64::from(attempt) * 0.618 % 1.0;
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() / 10.0 * fraction));
        if child.try_wait().unwrap().is_some() {
            // The campaign ended by itself, because the earlier starts had left little work. The
            // next start begins a new campaign.
            assert_eq!(records(&out), records(&undisturbed));
            fs::remove_dir_all(&out).unwrap();
            before = 0;
            continue;
        }
        kills += 1;
        child.kill().unwrap();
        child.wait().unwrap();
        // No finished run is lost.
        let there = fs::read_to_string(&partial).unwrap_or_default();
        let finished = there.lines().filter(|line| line.ends_with('}')).count();
        assert!(finished >= before || !partial.exists(), "{finished} after {before}");
        before = finished;
    }
    let (status, _, stderr) = meshpace(&arguments(&out).each_ref().map(String::as_str));
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(records(&out), records(&undisturbed));
    assert!(!partial.exists());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process works meanwhile")]
fn an_interrupted_campaign_says_how_it_goes_on() {
    let scratch = tempfile::tempdir().unwrap();
    let register = register(&scratch.path().join("register"), 2000, 50, FALLS);
    let out = scratch.path().join("out");
    let child = Process::new(assert_cmd::cargo::cargo_bin("meshpace"))
        .args(["reproduce", "AP05-F3", "--jobs", "1", "--register", &register, "--out", out.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The test waits until two records follow the head, so that there is something to keep.
    let partial = out.join("AP05-F3/unfinished.jsonl");
    let lines = || fs::read_to_string(&partial).unwrap_or_default().lines().count();
    while lines() < 3 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Process::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130));
    let told = String::from_utf8(ended.stderr).unwrap();
    assert!(told.contains("continues from there") && told.lines().count() == 1, "{told}");
    assert!(lines() >= 3);
}

/// The test needs a file system of a few kilobytes. Only root can create it, in a mount namespace
/// that ends with the test.
#[test]
fn a_full_disk_is_one_clear_error_and_no_half_written_record() {
    let scratch = tempfile::tempdir().unwrap();
    let place = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let register = register(&scratch.path().join("register"), 20, 30, FALLS);
    fs::create_dir(place("disk")).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=48k none '{disk}' || exit 77\n'{meshpace}' reproduce AP05-F3 --register '{register}' --out '{disk}/out'\n\
         status=$?\ncp -r '{disk}/out' '{copy}'\nexit $status",
        disk = place("disk"),
        copy = place("copy"),
        meshpace = assert_cmd::cargo::cargo_bin("meshpace").display(),
    );
    let Ok(ended) = Process::new("unshare").args(["--mount", "sh", "-c", &script]).output() else {
        skipped(Class::Tools, "unshare is not installed (apt-get install util-linux)");
        return;
    };
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    if ended.status.code() == Some(77) || told.contains("unshare") {
        skipped(Class::Rights, format_args!("no file system of its own here ({told}); needs root"));
        return;
    }
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(told.contains("No space left on device") && told.lines().count() == 1, "{told}");
    let copy = Path::new(&place("copy")).to_owned();
    let partial = read(&copy.join("AP05-F3"), "unfinished.jsonl");
    assert!(partial.lines().count() > 5 && partial.ends_with("}\n"), "{partial}");
    assert!(partial.lines().all(|line| line.starts_with('{') && line.ends_with('}')));
    // When there is room again, the campaign resumes and ends with the same records as an
    // undisturbed one.
    let (status, _, stderr) =
        meshpace(&["reproduce", "AP05-F3", "--register", &register, "--out", copy.to_str().unwrap()]);
    assert_eq!(status, 0, "{stderr}");
    let (status, _, stderr) = meshpace(&["reproduce", "AP05-F3", "--register", &register, "--out", &place("other")]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(records(&copy), records(Path::new(&place("other"))));
}

#[test]
fn campaigns_in_two_places_become_one() {
    let scratch = tempfile::tempdir().unwrap();
    let register = register(&scratch.path().join("register"), 20, 4, FALLS);
    let place = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    let whole = ["reproduce", "AP05-F3", "--register", &register, "--out", &place("whole")];
    assert_eq!(meshpace(&whole).0, 0);
    let (scenario, one, two, merged) =
        (format!("{register}/ap05/F3.toml"), place("one"), place("two"), place("merged/AP05-F3"));
    assert_eq!(meshpace(&["run", &scenario, "--seeds", "2", "--out", &one]).0, 0);
    assert_eq!(meshpace(&["run", &scenario, "--seed", "3", "--seeds", "2", "--out", &two]).0, 0);
    let (status, _, stderr) = meshpace(&["campaign", "merge", &two, &one, "--out", &merged]);
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(records(&scratch.path().join("merged")), records(&scratch.path().join("whole")));
    // A merged campaign is complete like any other, so nothing is run again.
    let again = ["reproduce", "AP05-F3", "--register", &register, "--out", &place("merged")];
    let (status, _, stderr) = meshpace(&again);
    assert!(status == 0 && stderr.contains("complete"), "{stderr}");
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    let (status, _, stderr) = meshpace(&["reproduce", "AP05-F99"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("AP05-F99") && stderr.contains("did you mean AP05-F9?"), "{stderr}");
    assert!(stderr.contains("`meshpace scenarios`") && stderr.len() < 200, "{stderr}");
    let (status, _, stderr) = meshpace(&["reproduce", "ap05f14"]);
    assert!(status == 2 && stderr.contains("did you mean AP05-F14?"), "{stderr}");

    let scratch = tempfile::tempdir().unwrap();
    let (status, _, stderr) = meshpace(&["report", scratch.path().to_str().unwrap()]);
    assert_eq!(status, 2);
    assert!(stderr.contains("manifest.json"), "{stderr}");

    let (status, _, stderr) = meshpace(&["dev", "validate", "macro"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("macro") && stderr.contains("chain_static_routes"), "{stderr}");
}

#[test]
fn a_comparison_prints_every_point_and_writes_its_page() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().to_str().unwrap();
    let (status, stdout, stderr) = meshpace(&["dev", "validate", "chain_static_routes", "--seeds", "2", "--out", out]);
    assert_eq!(status, 0, "{stdout}{stderr}");
    let page = read(scratch.path(), "results.md");
    for hops in 1..=10 {
        for window in [1, 64] {
            assert!(page.contains(&format!("| {hops} hops, window {window} |")), "{hops} hops, window {window}");
        }
    }
    assert!(page.contains("meshpace dev validate chain_static_routes --seeds 2"));
    assert!(page.contains("| 20 of 20 |"), "{page}");
}

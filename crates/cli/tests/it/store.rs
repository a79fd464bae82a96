//! `run --out` under every condition that ends a program or damages a file: no record is lost,
//! duplicated or silently wrong.

use assert_cmd::cargo::cargo_bin;
use meshpace_testing::{Class, skipped};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const SCENARIO: &str = "title = 'Kept'\nduration = '60 s'\nwarmup = '1.1 s'\n[topology]\nhops = 4\n[[flow]]\nfrom = 0\nto = 4\n[sweep]\n\
    'flow.transport' = ['newreno', 'tcp-ap']\nseeds = 12\n";

fn arguments(scratch: &Path, out: &Path) -> Vec<String> {
    let file = scratch.join("kept.toml");
    fs::write(&file, SCENARIO).unwrap();
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    ["run", &text(&file), "--jobs", "2", "--format", "json", "--out", &text(out)].map(str::to_owned).to_vec()
}

fn meshpace(arguments: &[String]) -> (i32, String, String) {
    let output = Command::new(cargo_bin("meshpace")).args(arguments).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn records(directory: &Path) -> String {
    fs::read_to_string(directory.join("records.jsonl")).unwrap()
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process works meanwhile")]
fn killed_twenty_times_it_ends_as_if_undisturbed() {
    let scratch = tempfile::tempdir().unwrap();
    let undisturbed = scratch.path().join("undisturbed");
    let begun = std::time::Instant::now();
    let (status, printed, stderr) = meshpace(&arguments(scratch.path(), &undisturbed));
    assert_eq!(status, 0, "{stderr}");
    let whole = begun.elapsed();
    assert_eq!(records(&undisturbed), printed);

    let out = scratch.path().join("out");
    let (mut at_work, mut attempt) = (0, 0u32);
    while at_work < 24 {
        attempt += 1;
        assert!(attempt < 200, "only {at_work} of {attempt} starts were ended while at work");
        let mut child = Command::new(cargo_bin("meshpace"))
            .args(arguments(scratch.path(), &out))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The moments are spread by the golden ratio over a fifth of the run time, so that few
        // starts get far.
        let fraction = f64::from(attempt) * 0.618 % 1.0;
        std::thread::sleep(Duration::from_secs_f64(whole.as_secs_f64() / 5.0 * fraction));
        if child.try_wait().unwrap().is_some() {
            // The campaign ended by itself, because the earlier starts had left little work. The
            // next start begins a new campaign.
            assert_eq!(records(&out), printed);
            fs::remove_dir_all(&out).unwrap();
            continue;
        }
        at_work += 1;
        // Every sixth signal is SIGTERM, which the program answers with status 130. The others are
        // SIGKILL, twenty in all.
        if at_work % 6 == 0 {
            Command::new("kill").args(["-TERM", &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
        } else {
            child.kill().unwrap();
        }
        child.wait().unwrap();
    }
    let (status, again, stderr) = meshpace(&arguments(scratch.path(), &out));
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(records(&out), printed);
    assert_eq!(again, printed, "all that was asked for is printed, whoever made it");
    assert!(!out.join("unfinished.jsonl").exists());
}

#[test]
fn a_flipped_byte_is_named_and_its_run_made_again() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let arguments = arguments(scratch.path(), &out);
    let (status, printed, stderr) = meshpace(&arguments);
    assert_eq!(status, 0, "{stderr}");
    let mut bytes = printed.clone().into_bytes();
    let third = printed.match_indices('\n').nth(2).unwrap().0;
    bytes[third + 100] ^= 1;
    fs::write(out.join("records.jsonl"), &bytes).unwrap();
    let report = ["report", out.to_str().unwrap()].map(str::to_owned);
    let (status, _, stderr) = meshpace(&report);
    assert!(status == 2 && stderr.contains("records.jsonl:4: the record is damaged"), "{stderr}");
    let (status, again, stderr) = meshpace(&arguments);
    assert_eq!(status, 0, "{stderr}");
    assert!(stderr.contains("records.jsonl:4: the record is damaged") && stderr.lines().count() == 1, "{stderr}");
    assert_eq!((&again, &records(&out)), (&printed, &printed));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process works meanwhile")]
fn two_processes_do_not_work_in_one_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let mut long = arguments(scratch.path(), &out);
    long.extend(["--seeds", "100000"].map(str::to_owned));
    let mut first =
        Command::new(cargo_bin("meshpace")).args(&long).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while !out.join("unfinished.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let (status, stdout, stderr) = meshpace(&long);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(status == 2 && stdout.is_empty() && stderr.contains("another process is writing to"), "{stderr}");
    // The lock ends with the process.
    let (status, printed, stderr) = meshpace(&arguments(scratch.path(), &out));
    assert_eq!(status, 0, "{stderr}");
    assert_eq!(printed.lines().count(), 24);
}

/// The test needs a file system of a few kilobytes. Only root can create it, in a mount namespace
/// that ends with the test.
#[test]
fn a_full_disk_is_one_error_and_what_was_finished_is_kept() {
    let scratch = tempfile::tempdir().unwrap();
    let (disk, copy) = (scratch.path().join("disk"), scratch.path().join("copy"));
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=24k none '{disk}' || exit 77\n'{meshpace}' {arguments} >/dev/null\nstatus=$?\n\
         cp -r '{disk}/out' '{copy}'\nexit $status",
        disk = disk.display(),
        copy = copy.display(),
        meshpace = cargo_bin("meshpace").display(),
        arguments = arguments(scratch.path(), &disk.join("out")).join(" "),
    );
    let Ok(ended) = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output() else {
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
    let kept = fs::read_to_string(copy.join("unfinished.jsonl")).unwrap();
    assert!(kept.lines().count() > 2 && kept.ends_with("}\n"), "{kept}");
    // When there is room again, the campaign resumes and ends with the same records as an
    // undisturbed one.
    let (status, printed, stderr) = meshpace(&arguments(scratch.path(), &copy));
    assert_eq!(status, 0, "{stderr}");
    let (_, undisturbed, _) = meshpace(&arguments(scratch.path(), &scratch.path().join("undisturbed")));
    assert_eq!((&printed, &records(&copy)), (&undisturbed, &undisturbed));
}

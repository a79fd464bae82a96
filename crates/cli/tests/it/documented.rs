//! The commands of the README and of the pages: each command that begins with `meshpace` is passed
//! to the program as it is written.
//!
//! Commands that run a simulation are run for two simulated seconds; lists and `doctor` are run,
//! too. For commands that take long or need another host, only the arguments are checked. A build
//! without eBPF does not know the arguments of `meshpace kernel`; `./check` also runs this test
//! with a build that has it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Stand-in for `meshpace` in the search path, which changes each command into one that a test can
/// run.
const STAND_IN: &str = r#"case "$1 $2" in
  "run "*.toml) exec "$MESHPACE" "$@" --set 'duration="2 s"' --set 'warmup="0 s"' --set 'flow.start="0 s"';;
  "transports "* | "scenarios "* | "doctor "*) exec "$MESHPACE" "$@";;
  *) exec "$MESHPACE" "$@" --help;;
esac"#;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the commands in the code blocks of a page.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for line in page.replace("\\\n", " ").lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        }
        let Some(code) = line.strip_prefix("    ").or(is_fenced.then_some(line)) else { continue };
        let code = code
            .strip_prefix("cargo run --release --bin meshpace -- ")
            .map_or(code.to_owned(), |rest| format!("meshpace {rest}"));
        // The condition excludes output and synopses.
        if code.starts_with("meshpace ") && !code.contains("...") && !code.contains("[--") {
            found.push(code);
        }
    }
    found
}

#[test]
fn every_command_is_understood() {
    let directory = tempfile::tempdir().unwrap();
    let stand_in = directory.path().join("bin/meshpace");
    fs::create_dir(directory.path().join("bin")).unwrap();
    fs::write(&stand_in, format!("#!/bin/bash\n{STAND_IN}\n")).unwrap();
    fs::set_permissions(&stand_in, fs::Permissions::from_mode(0o755)).unwrap();
    // The files that the commands write go into this directory.
    let work = directory.path().join("work");
    fs::create_dir(&work).unwrap();
    for name in ["examples", "scenarios", "validation"] {
        symlink(fs::canonicalize(root().join(name)).unwrap(), work.join(name)).unwrap();
    }
    let mut pages: Vec<PathBuf> =
        fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    // `start.md` writes the scenario that it runs, so `book.rs` tests that page literally.
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("start.md"));
    pages.extend(["README.md", "CONTRIBUTING.md", "validation/ns3/README.md"].map(|name| root().join(name)));
    pages.sort();
    let (mut count, mut unknown, mut wrong) = (0, 0, Vec::new());
    for page in pages {
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            if !cfg!(feature = "kernel") && command.starts_with("meshpace kernel ") {
                unknown += 1;
                continue;
            }
            count += 1;
            let path = format!("{}:{}", stand_in.parent().unwrap().display(), std::env::var("PATH").unwrap());
            let output = Command::new("bash")
                .args(["-o", "pipefail", "-c", &command])
                .current_dir(&work)
                .env("PATH", path)
                .env("MESHPACE", assert_cmd::cargo::cargo_bin("meshpace"))
                .output()
                .unwrap();
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                wrong.push(format!("{}: {command}\n{said}", page.file_name().unwrap().display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 20, "only {count} commands were found");
    if unknown > 0 {
        let why = format!("{unknown} commands `meshpace kernel` of the pages want --features kernel and clang");
        meshpace_testing::skipped(meshpace_testing::Class::Tools, why);
    }
}

//! Helpers for the tests of several crates: reports of skipped tests, inputs of strangers
//! ([`fuzz`]), files that the program generates ([`generated`]), and ports that nobody else uses
//! ([`ports`]).
//!
//! A test that cannot run calls [`skipped`] and returns. The line is written to standard error,
//! which `cargo test` hides by default. It is also appended to the file that the environment
//! variable `MESHPACE_SKIPS` names. `./check` lists the lines of that file.

pub mod fuzz;
pub mod generated;
pub mod ports;

use std::fmt::Display;
use std::io::Write;
use std::panic::Location;
use std::process::{Command, Stdio};

/// Class of the reason for which a test is skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Something that could be installed is missing. As root on Debian `./check` installs it, and
    /// fails if it cannot.
    Tools,
    /// The machine does not allow it: no root privileges, no namespaces, or no such device.
    Rights,
    /// The test takes long. `./check slow` runs it.
    Slow,
}

impl Class {
    /// Name of the class in the line and in `./check`.
    pub fn name(self) -> &'static str {
        match self {
            Class::Tools => "tools",
            Class::Rights => "rights",
            Class::Slow => "slow",
        }
    }
}

/// Reports that the running test is skipped. The line is `SKIPPED class: file: test: reason`, the
/// reason without line breaks.
#[track_caller]
pub fn skipped(class: Class, reason: impl Display) {
    let line = line(class, Location::caller().file(), std::thread::current().name().unwrap_or("a test"), &reason);
    eprint!("{line}");
    let Some(path) = std::env::var_os("MESHPACE_SKIPS") else { return };
    // One write for one line, because tests of several processes append to the same file.
    let file = std::fs::OpenOptions::new().create(true).append(true).open(&path);
    if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        panic!("{}: {error}; a skip that nobody sees is a test that passed", path.display());
    }
}

fn line(class: Class, file: &str, test: &str, reason: &impl Display) -> String {
    let reason = reason.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    format!("SKIPPED {}: {file}: {test}: {reason}\n", class.name())
}

/// True if `program` can be started. If not, reports that the test is skipped because the Debian
/// package `package` is missing.
#[track_caller]
pub fn has(program: &str, package: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            let _ = child.wait();
            true
        }
        Err(_) => {
            skipped(Class::Tools, format_args!("{program} is not installed (apt-get install {package})"));
            false
        }
    }
}

/// True if slow tests are run, which `MESHPACE_SLOW=1` requests. If not, reports that this test is
/// skipped, with a description of it.
#[track_caller]
pub fn is_slow_run(what: &str) -> bool {
    let is_slow = std::env::var("MESHPACE_SLOW").is_ok_and(|value| value == "1");
    if !is_slow {
        skipped(Class::Slow, what);
    }
    is_slow
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_one_line_whatever_the_reason() {
        assert_eq!(line(Class::Rights, "a.rs", "b", &"no\nroot  here"), "SKIPPED rights: a.rs: b: no root here\n");
    }

    #[test]
    fn the_line_names_the_file_and_the_test_and_is_appended() {
        let path = std::env::temp_dir().join(format!("meshpace-skips-{}", std::process::id()));
        // Runs in a process of its own, because environment variables belong to the process. A slow
        // run skips no slow tests, so the variable is removed.
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "tests::skips_twice", "--ignored"]).stdout(Stdio::null());
        again.env("MESHPACE_SKIPS", &path).env_remove("MESHPACE_SLOW");
        assert!(again.status().unwrap().success());
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let expected = "SKIPPED tools: crates/testing/src/lib.rs: tests::skips_twice: no-such-program is not installed \
                        (apt-get install nothing)\n\
                        SKIPPED slow: crates/testing/src/lib.rs: tests::skips_twice: half an hour\n";
        assert_eq!(text, expected);
    }

    #[test]
    #[ignore = "part of the test before"]
    fn skips_twice() {
        assert!(!has("no-such-program", "nothing") && !is_slow_run("half an hour"));
    }
}

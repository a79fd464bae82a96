//! Tests `./check` on simulated machines: a directory of stand-ins for programs, some of them
//! missing, and for a package manager.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Programs that the script itself uses.
const REAL: [&str; 9] = ["bash", "cat", "dirname", "grep", "mktemp", "rm", "sort", "tail", "chmod"];
/// Programs that the script looks for, besides tshark.
const TOOLS: [&str; 17] = [
    "nft",
    "iperf3",
    "nc",
    "curl",
    "ip",
    "ping",
    "tcpdump",
    "python3",
    "cc",
    "valgrind",
    "clang",
    "busybox",
    "shellcheck",
    "pkg-config",
    "node",
    "npm",
    "chromium",
];

struct Machine {
    directory: tempfile::TempDir,
}

impl Machine {
    /// A machine that has everything but tshark. The user is root or not.
    fn new(is_root: bool) -> Machine {
        let machine = Machine { directory: tempfile::tempdir().unwrap() };
        for name in REAL {
            let places = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(name));
            symlink(places.iter().find(|place| place.exists()).unwrap(), machine.path(name)).unwrap();
        }
        TOOLS.iter().for_each(|name| machine.program(name, ""));
        machine.program("sleep", "");
        machine.program("id", if is_root { "echo 0" } else { "echo 1000" });
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn program(&self, name: &str, script: &str) {
        fs::write(self.path(name), format!("#!{}\n{script}\n", self.path("bash").display())).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A script that installs the stand-in for tshark.
    fn installs(&self) -> String {
        let tshark = self.path("tshark");
        format!("echo '#!/bin/sh' > {0}; chmod 755 {0}", tshark.display())
    }

    /// Runs `./check`. Returns its status and its output.
    fn check(&self, mode: &str) -> (Option<i32>, String) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut command = Command::new(self.path("bash"));
        command.args(["./check", mode]).current_dir(root).env_clear().env("PATH", self.directory.path());
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.code(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }
}

#[test]
fn as_root_a_tool_that_cannot_be_installed_is_a_failure() {
    let machine = Machine::new(true);
    machine.program("apt-get", "echo 'E: Unable to locate package' >&2; exit 100");
    let (status, said) = machine.check("tools");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("Unable to locate package") && said.contains("tshark cannot be installed"), "{said}");
}

#[test]
fn as_root_a_missing_tool_is_installed() {
    let machine = Machine::new(true);
    machine.program("apt-get", &format!("case \"$*\" in *install*tshark*) {};; esac", machine.installs()));
    let (status, said) = machine.check("tools");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("installing tshark") && !said.contains("SKIPPED"), "{said}");
}

#[test]
fn the_lock_of_the_package_manager_is_waited_for() {
    let machine = Machine::new(true);
    let counter = machine.path("counter");
    let script = format!(
        "echo x >> {0}\nif [ \"$(grep -c x {0})\" -lt 4 ]; then\n\
         echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1' >&2; exit 100; fi\n\
         case \"$*\" in *install*tshark*) {1};; esac",
        counter.display(),
        machine.installs()
    );
    machine.program("apt-get", &script);
    let (status, said) = machine.check("tools");
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(fs::read_to_string(counter).unwrap().lines().count(), 5, "three refusals, update, install");
}

#[test]
fn without_root_a_missing_tool_is_listed() {
    let machine = Machine::new(false);
    machine.program("apt-get", "exit 100");
    let (status, said) = machine.check("tools");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("SKIPPED tools: check: tshark: not installed (apt-get install tshark)"), "{said}");
}

#[test]
fn skips_of_tests_are_listed_once_and_those_for_want_of_tools_fail_where_they_could_have_been_installed() {
    for (is_root, class, expected) in [(true, "rights", 0), (true, "slow", 0), (true, "tools", 1), (false, "tools", 0)]
    {
        let machine = Machine::new(is_root);
        machine.program("apt-get", "exit 100");
        let line = format!("SKIPPED {class}: a.rs: test: because");
        machine.program("cargo", &format!("echo '{line}' >> \"$MESHPACE_SKIPS\""));
        let (status, said) = machine.check("fast");
        assert_eq!(status, Some(expected), "root {is_root}, {class}: {said}");
        assert_eq!(said.matches(&line).count(), 1, "{said}");
    }
}

#[test]
fn a_failed_step_is_a_failure_and_an_unknown_mode_is_refused() {
    let machine = Machine::new(true);
    machine.program("cargo", "exit 101");
    assert_eq!(machine.check("fast").0, Some(101));
    assert_eq!(machine.check("faster").0, Some(2));
}

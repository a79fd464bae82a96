//! Runs the end that is attacked in a process of its own, in a control group with a memory limit.
//! The kernel kills the process if it exceeds the limit.
#![allow(dead_code, reason = "each test uses its part")]
#![expect(clippy::disallowed_methods, reason = "a process that has just ended stays in its group for a while")]

use super::common::ms;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

/// Environment variable that marks the process that is attacked.
pub const ATTACKED: &str = "MESHPACE_TEST_ATTACKED";

/// A control group with a memory limit.
struct Group {
    path: PathBuf,
    limit: &'static str,
    usage: &'static str,
    peak: &'static str,
}

impl Group {
    /// Creates a group of either version of control groups.
    fn new() -> std::io::Result<Group> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("meshpace-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let [old, new] = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"].map(PathBuf::from);
        let group = if old.is_dir() {
            let (limit, usage) = ("memory.limit_in_bytes", "memory.usage_in_bytes");
            Group { path: old.join(name), limit, usage, peak: "memory.max_usage_in_bytes" }
        } else {
            Group { path: new.join(name), limit: "memory.max", usage: "memory.current", peak: "memory.peak" }
        };
        fs::create_dir(&group.path)?;
        // The file is also missing if the controller is not enabled for groups in the root.
        group.bytes(group.usage).map(|_| group)
    }

    fn bytes(&self, file: &str) -> std::io::Result<u64> {
        fs::read_to_string(self.path.join(file))?.trim().parse().map_err(std::io::Error::other)
    }

    /// Moves a process into the group. The limit is the memory that the process uses now plus
    /// `spare` bytes.
    fn confine(&self, process: u32, spare: u64) -> std::io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), process.to_string())?;
        let limit = self.bytes(self.usage)? + spare;
        fs::write(self.path.join(self.limit), limit.to_string())?;
        // Memory that is swapped out would not count, so swapping is disabled.
        for (file, text) in [("memory.memsw.limit_in_bytes", limit.to_string()), ("memory.swap.max", "0".to_owned())] {
            let _ = fs::write(self.path.join(file), text);
        }
        Ok(())
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that has just ended may still be in the group.
        let _ = (0..100).find(|_| fs::remove_dir(&self.path).is_ok() || (thread::sleep(ms(20)), false).1);
    }
}

/// The process that is attacked.
pub struct Confined {
    pub child: Child,
    /// The process exits when this is dropped.
    pub input: Option<ChildStdin>,
    pub output: BufReader<ChildStdout>,
    group: Group,
}

impl Confined {
    /// Runs the test `name` of this program in a process of its own, which may use `spare` bytes
    /// more than at its start. The process has to read a line before it does anything.
    ///
    /// # Errors
    ///
    /// This machine has no control group with a memory limit.
    pub fn new(name: &str, spare: u64) -> Result<Confined, String> {
        let group = Group::new().map_err(|error| format!("no control group for memory: {error}"))?;
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(ATTACKED, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut input = child.stdin.take().unwrap();
        if let Err(error) = group.confine(child.id(), spare) {
            drop(input);
            let _ = (child.kill(), child.wait());
            return Err(format!("no limit for a control group: {error}"));
        }
        input.write_all(b"go\n").unwrap();
        Ok(Confined { child, input: Some(input), output, group })
    }

    /// The rest of the first line that begins with `words`.
    pub fn told(&mut self, words: &str) -> Option<String> {
        let mut lines = (&mut self.output).lines().map_while(Result::ok);
        lines.find_map(|line| line.strip_prefix(words).map(str::to_owned))
    }

    /// Largest memory use so far, bytes.
    pub fn peak(&self) -> u64 {
        self.group.bytes(self.group.peak).unwrap_or(0)
    }

    /// True if the process has neither been killed by the kernel nor failed.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

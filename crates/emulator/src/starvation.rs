//! Time for which programs wait for a processor. If they wait long, their results say nothing about
//! the network.
//!
//! Source: the kernel's accounts, `/proc/PID/task/TID/schedstat`
//! (Documentation/scheduler/sched-stats.rst): time on a processor, time on a run queue, number of
//! times on a processor. They are read from time to time for every process of a program's group.
//! The time of a process after the last reading is not counted.

use rustix::process::Pid;
use std::collections::BTreeMap;
use std::fs;

/// Counts of the kernel for a thread, or their sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Share {
    /// Time on a processor, ns.
    pub ran: u64,
    /// Time on a run queue, ready to run, ns.
    pub waited: u64,
    /// Number of times that a processor was assigned.
    pub times: u64,
}

impl Share {
    /// Mean wait before a processor was assigned, seconds.
    pub fn mean_wait_s(&self) -> f64 {
        self.waited as f64 / 1e9 / self.times.max(1) as f64
    }
}

/// Counts of all programs, by number of the program and by thread.
#[derive(Clone, Debug, Default)]
pub struct Accounts(BTreeMap<(usize, i32), Share>);

impl Accounts {
    /// Reads the counts of all processes in the process groups that the programs lead.
    pub fn read(&mut self, leaders: &[Pid]) {
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
        for pid in processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
            let Some(program) =
                group(pid).and_then(|group| leaders.iter().position(|l| l.as_raw_nonzero().get() == group))
            else {
                continue;
            };
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            for task in tasks.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
                let text = fs::read_to_string(format!("/proc/{pid}/task/{task}/schedstat"));
                if let Some(share) = text.ok().as_deref().and_then(parse) {
                    self.0.insert((program, task), share);
                }
            }
        }
    }

    /// Counts of program `number` so far.
    pub fn of(&self, number: usize) -> Share {
        let tasks = self.0.range((number, i32::MIN)..=(number, i32::MAX));
        tasks.fold(Share::default(), |sum, (_, share)| Share {
            ran: sum.ran + share.ran,
            waited: sum.waited + share.waited,
            times: sum.times + share.times,
        })
    }
}

/// Process group of a process (proc(5), /proc/PID/stat, field 5).
fn group(pid: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in the second field may contain any character.
    let rest = &text[text.rfind(')')? + 1..];
    rest.split_ascii_whitespace().nth(2)?.parse().ok()
}

fn parse(text: &str) -> Option<Share> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    let mut next = || numbers.next()?.ok();
    Some(Share { ran: next()?, waited: next()?, times: next()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_program_that_ran_has_an_account() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo; read x"]);
        let mut child = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // The program has run once it has written a line.
        let mut line = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let mut accounts = Accounts::default();
        accounts.read(&[Pid::from_child(&child)]);
        child.kill().unwrap();
        child.wait().unwrap();
        let share = accounts.of(0);
        assert!(share.ran > 0 && share.times > 0, "{share:?}");
        assert_eq!(accounts.of(1), Share::default());
    }

    #[test]
    fn shares() {
        let share = Share { ran: 30, waited: 10, times: 5 };
        assert_eq!(share.mean_wait_s(), 2e-9);
        assert_eq!(Share::default().mean_wait_s(), 0.0);
        assert_eq!(parse("1 2 3\n"), Some(Share { ran: 1, waited: 2, times: 3 }));
        assert_eq!(parse("1 2"), None);
    }
}

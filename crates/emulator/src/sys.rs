//! What only the kernel's own interface offers: every `unsafe` of the crate, each with the reason why it is sound.
#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use nix::libc;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// The priority of the thread that is the mesh: above everything without real-time priority, below the kernel's own
/// threads for interrupts (50).
const PRIORITY: libc::c_int = 10;

/// Gives the calling thread real-time priority (sched(7), SCHED_FIFO): it runs as soon as it has something to do. Threads and
/// processes that it starts do not inherit it.
pub fn take_priority() -> io::Result<()> {
    // SAFETY: `sched_param` is a plain C structure of integers; all zero is a value of it.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = PRIORITY;
    // SAFETY: 0 is the calling thread, and the kernel reads one `sched_param`, which `parameter` is, for the length of the
    // call.
    let result =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameter) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets the kernel end the program of `command` when the thread that starts it ends, as it does when this process is killed.
pub fn die_with_parent(command: &mut Command) {
    // SAFETY: the closure runs in the child between fork and exec and makes one system call, prctl, which allocates nothing
    // and takes no lock.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

//! What exit(3) does for connections: the protocol runs in the process and ends with it.

use meshpace_live::tpa::finish_process;
use std::io::Write;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

/// Has exit(3), and the return from main, wait until what was sent has arrived.
pub(crate) fn register() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handler is a function without arguments that does not unwind. Should there be no memory for it, nothing waits.
        unsafe { libc::atexit(finish) };
    }
}

extern "C" fn finish() {
    if let Ok(Some(lost)) = catch_unwind(finish_process) {
        let _ = writeln!(std::io::stderr(), "meshpace: {lost}");
    }
}

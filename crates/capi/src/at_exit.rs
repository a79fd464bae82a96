//! Handler of exit(3): the protocol runs in the process and ends with it, so that the end of the process waits for what was sent.

use meshpace_live::tpa::finish_process;
use std::io::Write;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, Ordering};

/// Registers the handler, once for each process. It also runs when main returns.
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

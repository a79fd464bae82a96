//! Handling of Ctrl-C and SIGTERM.

use crate::INTERRUPTED;
use crate::output::complain;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Returns a flag that Ctrl-C and SIGTERM set, so that the line being written can be finished. A
/// second signal ends the process at once.
pub fn stop_on_interrupt() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    let handler = move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(INTERRUPTED));
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        complain(&format!("Ctrl-C will stop this at once, without finishing the current runs: {error}"));
    }
    stop
}

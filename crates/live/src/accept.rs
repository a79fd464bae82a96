//! Taking TCP connections, also where the process has no descriptor left for one.

use nix::libc;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time to wait for a descriptor, or for memory: the connection waits meanwhile, and asking again at once would be asking all the time.
const PAUSE: Duration = Duration::from_millis(50);

/// The next connection; none once the listener is closed, which whoever shuts it down says first. One that is gone already is passed over.
pub(crate) fn next(listener: &TcpListener, is_closed: &AtomicBool) -> Option<(TcpStream, SocketAddr)> {
    while !is_closed.load(Ordering::Acquire) {
        match listener.accept() {
            Ok(accepted) => return Some(accepted),
            Err(error) if lacks_room(&error) => pause(),
            Err(_) => {}
        }
    }
    None
}

/// True if the process or the system has no descriptor, or no memory, for another connection now.
pub(crate) fn lacks_room(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Waits a little for that to change.
#[expect(clippy::disallowed_methods, reason = "nothing tells when the system has room again")]
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

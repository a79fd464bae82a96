//! Accepting TCP connections, even while the process has no free descriptor.

use nix::libc;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time to wait until a descriptor or memory may be available. The connection waits in the kernel
/// meanwhile; retrying at once would be a busy loop.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits for the next connection. Returns `None` once `is_closed` is set, which has to happen
/// before the listener is shut down. Connections that the peer has already closed are skipped.
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

/// True if the process or the system currently has no descriptor or no memory for another
/// connection.
pub(crate) fn lacks_room(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Waits a short time for resources to become available.
#[expect(clippy::disallowed_methods, reason = "nothing tells when the system has room again")]
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

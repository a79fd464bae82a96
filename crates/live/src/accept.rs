//! Taking TCP connections, also where the process has no descriptor left for one.

use nix::libc;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// How long to wait for a descriptor, or for memory: the connection waits meanwhile, and asking again at once would be asking all the time.
const PAUSE: Duration = Duration::from_millis(50);

/// The next connection. One that is gone already is passed over.
pub(crate) fn next(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept() {
            Ok(accepted) => return accepted,
            Err(error) if lacks_room(&error) => pause(),
            Err(_) => {}
        }
    }
}

/// Whether the process or the system has no descriptor, or no memory, for another connection now.
pub(crate) fn lacks_room(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM))
}

/// Waits a little for that to change.
#[expect(clippy::disallowed_methods, reason = "nothing tells when the system has room again")]
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

//! Carries the bytes of one stream: a TCP connection here, a stream to the far end.

use super::block::Block;
use super::counters::{Counters, End};
use super::far::Far;
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::thread;

/// Stack of a thread that only carries.
pub(super) const STACK: usize = 256 << 10;

/// How often a thread whose TCP peer reads nothing looks whether the stream has been broken off.
const LOOK: std::time::Duration = std::time::Duration::from_secs(1);

/// A TCP peer that may read slowly or not at all. It is waited for without end, but not for bytes of a stream that has been broken off, by
/// the other direction or at the far end.
struct Reader<'a> {
    tcp: &'a TcpStream,
    far: &'a Far,
}

impl Write for Reader<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.tcp.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.far.is_wanted()?,
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}

/// Carries both ways until both are over. Each direction that ends is closed in order; a direction that fails breaks off
/// both, here and at the far end.
pub(super) fn carry(tcp: &TcpStream, far: &Arc<Far>, counters: &Counters) -> End {
    // What is small leaves at once: the tunnel is not to add to an echo's delay.
    let _ = tcp.set_nodelay(true);
    far.be_patient();
    let _ = tcp.set_write_timeout(Some(LOOK));
    let blocks = [0; 2].map(|_| Block::new(far.account()));
    let [Ok(mut there_block), Ok(mut back_block)] = blocks else { return break_off(tcp, far) };
    // Both threads use one descriptor.
    let [there, back] = thread::scope(|scope| {
        let carry_there = || match copy(tcp, &**far, &mut there_block, |bytes| counters.carried(bytes, 0)) {
            Ok(()) => far.shutdown().is_ok(),
            Err(_) => {
                break_off(tcp, far);
                false
            }
        };
        let there = thread::Builder::new().name("there".into()).stack_size(STACK).spawn_scoped(scope, carry_there);
        let Ok(there) = there else {
            break_off(tcp, far);
            return [false; 2];
        };
        let back = copy(&**far, Reader { tcp, far }, &mut back_block, |bytes| counters.carried(0, bytes));
        let back = back.and_then(|()| tcp.shutdown(Shutdown::Write)).is_ok();
        if !back {
            break_off(tcp, far);
        }
        [there.join().unwrap_or(false), back]
    });
    // The far end has everything, or it is an abort.
    if there && back && far.finish().is_ok() { End::Closed } else { End::Aborted }
}

/// Breaks both connections off, so that neither application takes what it has for everything.
pub(super) fn break_off(tcp: &TcpStream, far: &Far) -> End {
    far.abort();
    reset(tcp);
    End::Aborted
}

/// Has a connection end with a reset when its last handle goes.
pub(super) fn reset(tcp: &TcpStream) {
    // Closing with this sends a reset; shutting down wakes the thread that reads it.
    let _ = setsockopt(tcp, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
    let _ = tcp.shutdown(Shutdown::Read);
}

fn copy(mut from: impl Read, mut to: impl Write, block: &mut Block, mut carried: impl FnMut(usize)) -> io::Result<()> {
    loop {
        match from.read(block.bytes()) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                to.write_all(&block.bytes()[..length])?;
                block.fit(length);
                carried(length);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

//! A connection as a stream of bytes, in the manner of [`std::net::TcpStream`].

mod ending;
mod opening;
mod options;
mod reading;
mod writing;

use super::port::TpaPort;
use crate::Clock;
use crate::budget::Account;
use crate::tpa::runtime::shared::Shared;
use crate::tpa::runtime::wait::Patience;
use crate::tpa::session::failure::Failure;
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A TPA connection. Calls wait unless it is set non-blocking.
///
/// Dropping it closes both directions and waits, at most for the linger time, until everything written has arrived: the
/// protocol runs in this process and ends with it. Use [`TpaStream::close`] to learn whether it did. A stream set
/// non-blocking does not wait when dropped.
///
/// It belongs to the process that made it: [`TpaPort`] says what a child after `fork` may do.
#[derive(Debug)]
pub struct TpaStream {
    pub(super) shared: Arc<Shared>,
    /// Keeps the port open.
    _port: TpaPort,
    waiting: Mutex<Waiting>,
}

/// Settings of the calls that wait.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    nonblocking: bool,
    interruptible: bool,
    read: Option<Duration>,
    write: Option<Duration>,
}

impl TpaStream {
    pub(super) fn new(shared: Arc<Shared>, port: TpaPort) -> TpaStream {
        shared.lock().linger = port.options().linger;
        let waiting = Mutex::new(Waiting { nonblocking: false, interruptible: false, read: None, write: None });
        TpaStream { shared, _port: port, waiting }
    }

    /// Checks that this is the process that made it, and not its child after `fork`.
    ///
    /// # Errors
    ///
    /// EBADF in the child.
    pub fn check_process(&self) -> io::Result<()> {
        self.shared.check_process()
    }

    fn waiting(&self) -> io::Result<MutexGuard<'_, Waiting>> {
        self.check_process()?;
        Ok(self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How long a call waits that begins now, with the timeout that `choose` finds in the settings.
    fn patience(&self, choose: impl FnOnce(&Waiting) -> Option<Duration>) -> io::Result<Patience> {
        let waiting = self.waiting()?;
        let deadline = match waiting.nonblocking {
            true => Time::ZERO,
            false => choose(&waiting).map_or(Time::NEVER, |timeout| Clock.now().saturating_add(timeout)),
        };
        Ok(Patience { deadline, ends_with_signal: waiting.interruptible })
    }

    /// The memory of its buffers.
    pub(crate) fn account(&self) -> Account {
        self.shared.lock().exchange.account.clone()
    }

    /// A small message leaves by another connection to the same peer: trains make room for it on the way.
    pub(crate) fn make_room(&self) {
        // The connection looks at it before it sends anything: nobody need be woken.
        if let Ok(mut state) = self.shared.enter() {
            state.exchange.wishes.make_room = true;
        }
    }

    /// Since when the peer's address has said that nobody knows the connection there, as after a restart of the peer, without the peer having
    /// been heard. Whoever reads the packets can forge that, and the peer is asked: the connection goes on until it is sure. Whoever
    /// waits in [`TpaStream::poll_finished`] is woken.
    pub fn doubted(&self) -> Option<Time> {
        self.shared.enter().ok()?.exchange.doubted
    }

    /// Asks the peer for a sign of life, so that it hears from this end: after this host's address has changed, the peer learns the new one.
    pub fn probe(&self) {
        let Ok(mut state) = self.shared.enter() else { return };
        state.exchange.wishes.probe = true;
        self.shared.call(&mut state);
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.check_process()?;
        Ok(self.shared.local)
    }

    /// The address of the peer.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.check_process()?;
        Ok(self.shared.peer)
    }

    /// The public key of the peer, which has proved that it holds the private one; none without known keys, and until the connection is
    /// open.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn peer_key(&self) -> io::Result<Option<[u8; 32]>> {
        let is_opening = self.shared.enter()?.exchange.is_opening();
        Ok(self.shared.peer_key.filter(|_| !is_opening))
    }

    /// Why the connection failed, if it did.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.shared.enter()?.exchange.failure().map(Failure::error))
    }

    /// Hops that the peer's last packet seems to have come, if the kernel told.
    pub fn hops(&self) -> Option<u8> {
        self.shared.enter().ok()?.exchange.travelled
    }

    /// Longest IP packet that the path was found to carry, bytes. `None` while nothing shows that it drops any.
    pub fn narrowed(&self) -> Option<u32> {
        self.shared.enter().ok()?.exchange.narrowed
    }

    /// The counters of the transport.
    pub fn stats(&self) -> Stats {
        self.shared.enter().map(|state| state.exchange.stats).unwrap_or_default()
    }
}

pub(super) fn nanoseconds(span: std::time::Duration) -> Duration {
    Duration(span.as_nanos().try_into().unwrap_or(u64::MAX))
}

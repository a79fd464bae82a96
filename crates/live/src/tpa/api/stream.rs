//! A connection as a stream of bytes, similar to [`std::net::TcpStream`].

mod ending;
mod opening;
mod options;
mod reading;
mod writing;

use super::port::TpaPort;
use crate::Clock;
use crate::tpa::runtime::shared::Shared;
use crate::tpa::runtime::wait::Patience;
use meshpace_core::{Duration, Time};
use meshpace_session::budget::Account;
use meshpace_session::failure::Failure;
use meshpace_transport::Stats;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A TPA connection. Calls wait unless the stream is set non-blocking.
///
/// Dropping the stream closes both directions and waits until all written data have arrived, at
/// most for the linger time. It has to wait because the protocol runs in this process and ends with
/// it. Use [`TpaStream::close`] to learn whether everything arrived. A non-blocking stream does not
/// wait when it is dropped.
///
/// The stream belongs to the process that created it: [`TpaPort`] says what a child after `fork`
/// may do.
#[derive(Debug)]
pub struct TpaStream {
    pub(super) shared: Arc<Shared>,
    /// Keeps the port open.
    _port: TpaPort,
    waiting: Mutex<Waiting>,
}

/// Settings of the calls that may wait.
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

    /// Checks that the calling process created the stream and is not a child after `fork`.
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

    /// Limit of the waiting time of a call that begins now. `choose` selects the call's timeout
    /// from the settings.
    fn patience(&self, choose: impl FnOnce(&Waiting) -> Option<Duration>) -> io::Result<Patience> {
        let waiting = self.waiting()?;
        let deadline = match waiting.nonblocking {
            true => Time::ZERO,
            false => choose(&waiting).map_or(Time::NEVER, |timeout| Clock.now().saturating_add(timeout)),
        };
        Ok(Patience { deadline, ends_with_signal: waiting.interruptible })
    }

    /// Account for the memory of the stream's buffers.
    pub(crate) fn account(&self) -> Account {
        self.shared.lock().exchange.account.clone()
    }

    /// Informs the transport that another connection to the same peer is sending a small message.
    /// Quiet trains then leave room for the message on the path.
    pub(crate) fn make_room(&self) {
        // The connection reads this before it sends anything, so the runtime's thread need not be
        // woken.
        if let Ok(mut state) = self.shared.enter() {
            state.exchange.wishes.make_room = true;
        }
    }

    /// Time since which the peer's address has been reporting that it does not know the connection,
    /// for example after a restart of the peer. `None` if it has not, or if the peer has been heard
    /// since. An attacker who can read the packets can forge the report. The peer is therefore
    /// probed, and the connection continues until the result is certain. A task that waits in
    /// [`TpaStream::poll_finished`] is woken.
    pub fn doubted(&self) -> Option<Time> {
        self.shared.enter().ok()?.exchange.doubted
    }

    /// Sends a probe to the peer, which has to answer. After this host's address has changed, the
    /// peer learns the new address from the probe.
    pub fn probe(&self) {
        let Ok(mut state) = self.shared.enter() else { return };
        state.exchange.wishes.probe = true;
        self.shared.call(&mut state);
    }

    /// The local address.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.check_process()?;
        Ok(self.shared.local)
    }

    /// The peer's address.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.check_process()?;
        Ok(self.shared.peer)
    }

    /// The public key of the peer, which has proved that it holds the private key. `None` if the
    /// connection does not use known keys, and until the connection is open.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn peer_key(&self) -> io::Result<Option<[u8; 32]>> {
        let is_opening = self.shared.enter()?.exchange.is_opening();
        Ok(self.shared.peer_key.filter(|_| !is_opening))
    }

    /// Reason why the connection failed. `None` if it has not failed.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(self.shared.enter()?.exchange.failure().map(Failure::error))
    }

    /// Estimated number of hops that the peer's last packet travelled. `None` if the kernel did not
    /// report a time to live.
    pub fn hops(&self) -> Option<u8> {
        self.shared.enter().ok()?.exchange.travelled
    }

    /// Size in bytes of the longest IP packet that the path was found to carry. `None` while there
    /// is no sign that the path drops long packets.
    pub fn narrowed(&self) -> Option<u32> {
        self.shared.enter().ok()?.exchange.narrowed
    }

    /// Counters of the transport.
    pub fn stats(&self) -> Stats {
        self.shared.enter().map(|state| state.exchange.stats).unwrap_or_default()
    }
}

pub(super) fn nanoseconds(span: std::time::Duration) -> Duration {
    Duration(span.as_nanos().try_into().unwrap_or(u64::MAX))
}

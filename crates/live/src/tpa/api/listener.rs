//! Listener, which accepts the connections that peers open.

use super::port::TpaPort;
use super::stream::TpaStream;
use crate::Clock;
use crate::tpa::runtime::backlog::Backlog;
use crate::tpa::runtime::mailbox::Command;
use crate::tpa::runtime::shared::Shared;
use crate::tpa::runtime::wait::Patience;
use meshpace_core::{Duration, Time};
use meshpace_session::counters::PortCounters;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// Accepts TPA connections on a UDP port, as [`std::net::TcpListener`] does for TCP. Dropping the
/// listener resets the connections that have not been accepted. Accepted connections stay open.
#[derive(Debug)]
pub struct TpaListener {
    port: TpaPort,
    pub(super) backlog: Arc<Backlog>,
    nonblocking: AtomicBool,
    interruptible: AtomicBool,
    timeout: Mutex<Option<Duration>>,
}

/// Default number of connections that may wait to be accepted.
pub const BACKLOG: usize = 128;

impl TpaListener {
    /// Listens on an address and UDP port with default options.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::bind`].
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<TpaListener> {
        TpaPort::bind(address)?.listen(BACKLOG)
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] when the timeout expires, [`io::ErrorKind::NotConnected`] once
    /// the listener is closed. If no further connections can arrive, the reason for that. Also the
    /// errors of [`TpaPort::check_process`].
    pub fn accept(&self) -> io::Result<(TpaStream, SocketAddr)> {
        self.check_process()?;
        let timeout = *self.timeout.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = match self.nonblocking.load(Ordering::Relaxed) {
            true => Time::ZERO,
            false => timeout.map_or(Time::NEVER, |timeout| Clock.now().saturating_add(timeout)),
        };
        self.accept_until(Patience { deadline, ends_with_signal: self.interruptible.load(Ordering::Relaxed) })
    }

    /// Accepts a connection that is already waiting. Never waits itself, whatever the settings are.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaListener::accept`]; [`io::ErrorKind::WouldBlock`] if no connection is
    /// waiting.
    pub fn try_accept(&self) -> io::Result<(TpaStream, SocketAddr)> {
        self.accept_until(Time::ZERO.into())
    }

    fn accept_until(&self, patience: Patience) -> io::Result<(TpaStream, SocketAddr)> {
        self.check_process()?;
        self.backlog.next(patience).map(|shared| self.stream(shared))
    }

    fn stream(&self, shared: Arc<Shared>) -> (TpaStream, SocketAddr) {
        let peer = shared.peer;
        (TpaStream::new(shared, self.port.clone()), peer)
    }

    /// Returns the next connection, or has the context's waker called when there is one.
    ///
    /// # Errors
    /// The errors of [`TpaListener::accept`].
    pub fn poll_accept(&self, context: &Context<'_>) -> Poll<io::Result<(TpaStream, SocketAddr)>> {
        self.check_process()?;
        self.backlog.poll_next(context).map_ok(|shared| self.stream(shared))
    }

    /// Ready if accepting would not wait. Otherwise the context's waker is called as soon as
    /// accepting would no longer wait.
    pub fn poll_acceptable(&self, context: &Context<'_>) -> Poll<()> {
        if self.check_process().is_err() {
            return Poll::Ready(());
        }
        self.backlog.poll_ready(context)
    }

    /// Iterator over the connections in the order in which they arrive.
    ///
    /// # Errors
    /// Each item has the errors of [`TpaListener::accept`].
    pub fn incoming(&self) -> impl Iterator<Item = io::Result<TpaStream>> + '_ {
        std::iter::from_fn(|| Some(self.accept().map(|(stream, _)| stream)))
    }

    /// Sets whether [`TpaListener::accept`] returns [`io::ErrorKind::WouldBlock`] instead of
    /// waiting.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::check_process`].
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.check_process()?;
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }

    /// Sets whether a signal ends [`TpaListener::accept`], as described at
    /// [`TpaStream::set_interruptible`].
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::check_process`].
    pub fn set_interruptible(&self, interruptible: bool) -> io::Result<()> {
        self.check_process()?;
        self.interruptible.store(interruptible, Ordering::Relaxed);
        Ok(())
    }

    /// Sets the time after which [`TpaListener::accept`] stops waiting and returns
    /// [`io::ErrorKind::WouldBlock`]. With `None` it waits without limit.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::check_process`].
    pub fn set_timeout(&self, timeout: Option<std::time::Duration>) -> io::Result<()> {
        self.check_process()?;
        let timeout = timeout.map(|timeout| Duration(timeout.as_nanos().try_into().unwrap_or(u64::MAX)));
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
        Ok(())
    }

    /// Closes the listener and wakes every thread that waits in [`TpaListener::accept`].
    pub fn close(&self) {
        if self.check_process().is_ok() {
            self.backlog.close();
        }
    }

    /// Checks that the calling process created the listener and is not a child after `fork`.
    ///
    /// # Errors
    ///
    /// EBADF in the child.
    pub fn check_process(&self) -> io::Result<()> {
        self.port.check_process()
    }

    /// The local address that the listener is bound to.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaPort::check_process`].
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    /// Counters of the listener's port, such as datagrams that were received but not used.
    pub fn counters(&self) -> PortCounters {
        self.port.counters()
    }
}

impl Drop for TpaListener {
    fn drop(&mut self) {
        self.close();
        let _ = self.port.runtime().send(Command::Unlisten { port: self.port.id() });
    }
}

impl TpaPort {
    /// Accepts connections on this port. While `backlog` connections wait to be accepted, further
    /// requests are not answered.
    ///
    /// # Errors
    ///
    /// The runtime has ended.
    pub fn listen(&self, backlog: usize) -> io::Result<TpaListener> {
        let backlog = Arc::new(Backlog::new(backlog));
        self.runtime().send(Command::Listen { port: self.id(), backlog: Arc::clone(&backlog) })?;
        let (nonblocking, interruptible) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(TpaListener { port: self.clone(), backlog, nonblocking, interruptible, timeout: Mutex::new(None) })
    }
}

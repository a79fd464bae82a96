//! Connections that wait to be accepted, and the listener that hands them out.

use super::port::TpaPort;
use super::shared::{Failure, Shared, wait_until};
use super::sources::source_of;
use super::stream::TpaStream;
use crate::Clock;
use meshpace_core::{Duration, Time};
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// What the listener and the runtime share.
#[derive(Debug)]
pub(super) struct Backlog {
    limit: usize,
    queue: Mutex<Queue>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Arc<Shared>>,
    /// Nobody listens any more.
    closed: bool,
    /// Nobody brings connections any more.
    failure: Option<Failure>,
    /// Who is to be told instead of a waiting thread.
    waker: Option<Waker>,
}

impl Queue {
    fn tell(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Backlog {
    pub(super) fn new(limit: usize) -> Backlog {
        Backlog { limit: limit.max(1), queue: Mutex::default(), arrived: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another one may be opened by `address`, which may have half of the places. Those half open meanwhile may still
    /// join the queue: refusing them then would break what their peers believe to be open.
    pub(super) fn has_room(&self, address: IpAddr) -> bool {
        let queue = self.lock();
        let source = source_of(address);
        let own = queue.waiting.iter().filter(|shared| source_of(shared.peer.ip()) == source).count();
        !queue.closed && queue.waiting.len() < self.limit && own < self.limit.div_ceil(2)
    }

    /// Nothing will come any more, for this reason.
    pub(super) fn fail(&self, failure: &Failure) {
        let mut queue = self.lock();
        queue.failure = Some(failure.clone());
        queue.tell();
        self.arrived.notify_all();
    }

    /// An open connection waits from now on; false if nobody listens any more.
    pub(super) fn offer(&self, connection: Arc<Shared>) -> bool {
        let mut queue = self.lock();
        if !queue.closed {
            queue.waiting.push_back(connection);
            queue.tell();
            self.arrived.notify_one();
        }
        !queue.closed
    }

    /// Nobody will ask any more; what waits is reset.
    fn close(&self) {
        let waiting = {
            let mut queue = self.lock();
            queue.closed = true;
            queue.tell();
            std::mem::take(&mut queue.waiting)
        };
        self.arrived.notify_all();
        for shared in waiting {
            let mut state = shared.lock();
            state.abort = true;
            shared.call(&mut state);
        }
    }
}

/// What a port has received and not used.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) malformed: AtomicU64,
    pub(super) strays: AtomicU64,
    pub(super) challenges: AtomicU64,
    pub(super) crowded: AtomicU64,
    pub(super) forged: AtomicU64,
}

/// What a port has received and not used, since it was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortCounters {
    /// Datagrams that are no TPA segment, or a SYN without sensible terms.
    pub malformed: u64,
    /// Datagrams of no connection known.
    pub strays: u64,
    /// Connection requests answered with a cookie.
    pub challenges: u64,
    /// Connection requests that found no place, or whose source had enough.
    pub crowded: u64,
    /// Datagrams with the tag of a connection that its peer did not send, or that came a second time.
    pub forged: u64,
}

impl Counters {
    pub(super) fn read(&self) -> PortCounters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        PortCounters {
            malformed: get(&self.malformed),
            strays: get(&self.strays),
            challenges: get(&self.challenges),
            crowded: get(&self.crowded),
            forged: get(&self.forged),
        }
    }
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Accepts TPA connections on a UDP port, as [`std::net::TcpListener`] does TCP's. Dropping it resets connections that
/// nobody has accepted; accepted ones go on.
#[derive(Debug)]
pub struct TpaListener {
    port: TpaPort,
    backlog: Arc<Backlog>,
    nonblocking: AtomicBool,
    timeout: Mutex<Option<Duration>>,
}

/// Connections that may wait to be accepted where nothing else is said.
pub const BACKLOG: usize = 128;

impl TpaListener {
    /// Listens on an address and UDP port with default options.
    ///
    /// # Errors
    ///
    /// Those of [`TpaPort::bind`].
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<TpaListener> {
        TpaPort::bind(address)?.listen(BACKLOG)
    }

    pub(super) fn new(port: TpaPort, backlog: Arc<Backlog>) -> TpaListener {
        TpaListener { port, backlog, nonblocking: AtomicBool::new(false), timeout: Mutex::new(None) }
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] at the time-out, [`io::ErrorKind::NotConnected`] once it is closed, or why nothing will
    /// come any more.
    pub fn accept(&self) -> io::Result<(TpaStream, SocketAddr)> {
        let timeout = *self.timeout.lock().unwrap_or_else(PoisonError::into_inner);
        self.accept_until(match self.nonblocking.load(Ordering::Relaxed) {
            true => Time::ZERO,
            false => timeout.map_or(Time::NEVER, |timeout| Clock.now().saturating_add(timeout)),
        })
    }

    /// Takes a connection that waits, whatever else is set.
    ///
    /// # Errors
    ///
    /// As [`TpaListener::accept`]; [`io::ErrorKind::WouldBlock`] if none waits.
    pub fn try_accept(&self) -> io::Result<(TpaStream, SocketAddr)> {
        self.accept_until(Time::ZERO)
    }

    fn accept_until(&self, deadline: Time) -> io::Result<(TpaStream, SocketAddr)> {
        let mut queue = self.backlog.lock();
        loop {
            if let Some(taken) = self.take(&mut queue) {
                return taken;
            }
            self.port.check()?;
            let (guard, in_time) = wait_until(&self.backlog.arrived, queue, deadline);
            in_time?;
            queue = guard;
        }
    }

    /// What there is: a connection, or the reason why none will come.
    fn take(&self, queue: &mut Queue) -> Option<io::Result<(TpaStream, SocketAddr)>> {
        if let Some(shared) = queue.waiting.pop_front() {
            let peer = shared.peer;
            return Some(Ok((TpaStream::new(shared, self.port.clone()), peer)));
        }
        if queue.closed {
            return Some(Err(io::Error::new(io::ErrorKind::NotConnected, "the listener is closed")));
        }
        queue.failure.as_ref().map(|failure| Err(failure.error()))
    }

    /// The next connection, or the context's waker is called when there is one.
    ///
    /// # Errors
    /// As [`TpaListener::accept`].
    pub fn poll_accept(&self, context: &Context<'_>) -> Poll<io::Result<(TpaStream, SocketAddr)>> {
        let mut queue = self.backlog.lock();
        let taken = self.take(&mut queue);
        if taken.is_none() {
            queue.waker = Some(context.waker().clone());
        }
        taken.map_or(Poll::Pending, Poll::Ready)
    }

    /// Whether accepting would not wait, or the context's waker is called when that is so.
    pub fn poll_acceptable(&self, context: &Context<'_>) -> Poll<()> {
        let mut queue = self.backlog.lock();
        if !queue.waiting.is_empty() || queue.closed || queue.failure.is_some() {
            return Poll::Ready(());
        }
        queue.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// The connections as they come.
    ///
    /// # Errors
    /// Each item as [`TpaListener::accept`].
    pub fn incoming(&self) -> impl Iterator<Item = io::Result<TpaStream>> + '_ {
        std::iter::from_fn(|| Some(self.accept().map(|(stream, _)| stream)))
    }

    /// Whether [`TpaListener::accept`] returns [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    ///
    /// None: the result is that of `std::net`.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.nonblocking.store(nonblocking, Ordering::Relaxed);
        Ok(())
    }

    /// How long [`TpaListener::accept`] waits; none for ever. It then returns [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    ///
    /// None: the result is that of `std::net`.
    pub fn set_timeout(&self, timeout: Option<std::time::Duration>) -> io::Result<()> {
        let timeout = timeout.map(|timeout| Duration(timeout.as_nanos().try_into().unwrap_or(u64::MAX)));
        *self.timeout.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
        Ok(())
    }

    /// Wakes everybody who waits in [`TpaListener::accept`] for good.
    pub fn close(&self) {
        self.backlog.close();
    }

    /// The address it listens on.
    ///
    /// # Errors
    ///
    /// None: the result is that of `std::net`.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.port.local_addr()
    }

    /// What the port has received and not used.
    pub fn counters(&self) -> PortCounters {
        self.port.counters()
    }
}

impl Drop for TpaListener {
    fn drop(&mut self) {
        self.backlog.close();
        self.port.unlisten();
    }
}

//! A connection as a stream of bytes, in the manner of [`std::net::TcpStream`].

use super::closing::{let_go, wait_for_end};
use super::port::TpaPort;
use crate::Clock;
use crate::budget::Account;
use crate::tpa::runtime::shared::{Shared, State};
use crate::tpa::runtime::wait::Patience;
use crate::tpa::session::exchange::Phase;
use crate::tpa::session::failure::Failure;
use meshpace_core::{Duration, Time};
use meshpace_transport::Stats;
use nix::libc;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// A TPA connection. Calls wait unless it is set non-blocking.
///
/// Dropping it closes both directions and waits, at most for the linger time, until everything written has arrived: the
/// protocol runs in this process and ends with it. Use [`TpaStream::close`] to learn whether it did. A stream set
/// non-blocking does not wait when dropped.
///
/// It belongs to the process that made it: [`TpaPort`] says what a child after `fork` may do.
#[derive(Debug)]
pub struct TpaStream {
    shared: Arc<Shared>,
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

    /// Waits until it is open, or never will be.
    ///
    /// # Errors
    ///
    /// Those of [`TpaPort::connect`]; [`io::ErrorKind::Interrupted`] if a signal has ended the wait: it goes on being opened.
    pub fn wait_until_open(&self) -> io::Result<()> {
        let patience = Patience { deadline: Time::NEVER, ends_with_signal: self.waiting()?.interruptible };
        let mut state = self.shared.enter()?;
        while state.exchange.is_opening() {
            state = self.shared.wait_writable(state, patience)?;
        }
        match state.exchange.failure() {
            Some(failure) => Err(failure.error()),
            None => Ok(()),
        }
    }

    /// True if the handshake is over.
    ///
    /// # Errors
    ///
    /// The reason if the connection could not be opened, or has failed since.
    pub fn is_open(&self) -> io::Result<bool> {
        let exchange = &self.shared.enter()?.exchange;
        match exchange.failure() {
            Some(failure) => Err(failure.error()),
            None => Ok(!exchange.is_opening()),
        }
    }

    /// Why the peer refuses a connection that is being opened with a secret or with known keys, as somebody says who has not proved to
    /// be the peer: it goes on being opened until its time is up.
    pub fn refusal(&self) -> Option<io::Error> {
        match &self.shared.enter().ok()?.exchange.phase {
            Phase::Opening { refusal: Some(message) } => Some(Failure::new(libc::ECONNREFUSED, message).error()),
            _ => None,
        }
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

    /// Reads what is there, whatever else is set.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if nothing is; the reason if the connection has failed.
    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        self.read_into(into, Time::ZERO.into())
    }

    /// Writes what there is room for, whatever else is set.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::WouldBlock`] if there is none, [`io::ErrorKind::BrokenPipe`] once it is closed for writing; the reason if
    /// the connection has failed.
    pub fn try_write(&self, from: &[u8]) -> io::Result<usize> {
        self.write_from(from, Time::ZERO.into())
    }

    /// Reads what is there, or has the context's waker called when there is something.
    ///
    /// # Errors
    /// As a read without waiting; that it would block is `Pending`.
    pub fn poll_read(&self, context: &Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.enter()?;
        let got = self.take(&mut state, into);
        if got.is_none() {
            state.note_reader(context);
        }
        got.map_or(Poll::Pending, Poll::Ready)
    }

    /// Writes what there is room for, or has the context's waker called when there is some.
    ///
    /// # Errors
    /// As a write without waiting; that it would block is `Pending`.
    pub fn poll_write(&self, context: &Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.enter()?;
        let put = self.put(&mut state, from);
        if put.is_none() {
            state.note_writer(context);
        }
        put.map_or(Poll::Pending, Poll::Ready)
    }

    /// Ready if reading would not wait; otherwise the context's waker is called when that is so.
    pub fn poll_readable(&self, context: &Context<'_>) -> Poll<()> {
        let Ok(mut state) = self.shared.enter() else { return Poll::Ready(()) };
        if state.exchange.is_readable() {
            return Poll::Ready(());
        }
        state.note_reader(context);
        Poll::Pending
    }

    /// Ready if writing would not wait; otherwise the context's waker is called when that is so.
    pub fn poll_writable(&self, context: &Context<'_>) -> Poll<()> {
        let Ok(mut state) = self.shared.enter() else { return Poll::Ready(()) };
        if state.exchange.is_writable() {
            return Poll::Ready(());
        }
        state.note_writer(context);
        Poll::Pending
    }

    /// Ready if the handshake is over; otherwise the context's waker is called when it is.
    ///
    /// # Errors
    /// Why it could not be opened.
    pub fn poll_open(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.enter()?;
        match &state.exchange.phase {
            Phase::Failed(failure) => Poll::Ready(Err(failure.error())),
            Phase::Opening { .. } => {
                state.note_writer(context);
                Poll::Pending
            }
            Phase::Open | Phase::Done => Poll::Ready(Ok(())),
        }
    }

    /// Ready if everything written, and the end of it, has arrived; otherwise the context's waker is called when it has. To be asked after closing.
    ///
    /// # Errors
    /// Why it ended before everything had arrived.
    pub fn poll_finished(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.enter()?;
        match &state.exchange.phase {
            Phase::Done => Poll::Ready(Ok(())),
            _ if state.exchange.has_delivered() => Poll::Ready(Ok(())),
            Phase::Failed(failure) => Poll::Ready(Err(failure.error())),
            Phase::Opening { .. } | Phase::Open => {
                state.note_writer(context);
                Poll::Pending
            }
        }
    }

    /// The memory of its buffers.
    pub(crate) fn account(&self) -> Account {
        self.shared.lock().exchange.account.clone()
    }

    /// Reads what is there; none if that has to be waited for.
    fn take(&self, state: &mut State, into: &mut [u8]) -> Option<io::Result<usize>> {
        let got = state.exchange.read(into);
        if state.exchange.window_closed && matches!(got, Some(Ok(length)) if length > 0) {
            self.shared.call(state);
        }
        got
    }

    /// Writes what there is room for; none if that has to be waited for.
    fn put(&self, state: &mut State, from: &[u8]) -> Option<io::Result<usize>> {
        let put = state.exchange.write(from);
        let is_news = !state.exchange.busy && matches!(put, Some(Ok(_)));
        // Without memory the connection ends, of which the peer is to hear.
        if is_news || (state.exchange.wishes.abort && matches!(put, Some(Err(_)))) {
            self.shared.call(state);
        }
        put
    }

    fn read_into(&self, into: &mut [u8], patience: Patience) -> io::Result<usize> {
        let mut state = self.shared.enter()?;
        loop {
            if let Some(got) = self.take(&mut state, into) {
                return got;
            }
            state = self.shared.wait_readable(state, patience)?;
        }
    }

    fn write_from(&self, from: &[u8], patience: Patience) -> io::Result<usize> {
        let mut state = self.shared.enter()?;
        loop {
            if let Some(put) = self.put(&mut state, from) {
                return put;
            }
            state = self.shared.wait_writable(state, patience)?;
        }
    }

    /// Writes all, as send(2) does on a blocking socket: it waits until there has been room for everything. Returns how much was taken, which is less
    /// if the write timeout, a signal or a failure has ended it.
    ///
    /// # Errors
    ///
    /// Those of writing, if nothing was taken.
    pub fn send(&self, from: &[u8]) -> io::Result<usize> {
        let patience = self.patience(|waiting| waiting.write)?;
        let mut sent = 0;
        while sent < from.len() {
            match self.write_from(&from[sent..], patience) {
                Ok(more) => sent += more,
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    /// Closes one direction or both. What was written is still sent; what comes after closing for reading resets the
    /// connection.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotConnected`] while it is being opened.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let mut state = self.shared.enter()?;
        if state.exchange.is_opening() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        state.exchange.wishes.write_closed |= how != Shutdown::Read;
        state.exchange.wishes.read_closed |= how != Shutdown::Write;
        self.shared.call(&mut state);
        self.shared.wake_all(state);
        Ok(())
    }

    /// Closes both directions and waits, at most for the linger time, until the peer has everything that was written, or it
    /// is clear that it never will: a round trip after the last byte has arrived. The peer may close later.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::TimedOut`] if not everything arrived in time, or why it never will.
    pub fn close(self) -> io::Result<()> {
        self.finish()
    }

    /// The same for a stream that others hold too: their calls end with an error.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::close`].
    pub fn finish(&self) -> io::Result<()> {
        let linger = Clock.now().saturating_add(self.shared.enter()?.linger);
        let_go(&self.shared)?;
        let (state, over) = wait_for_end(&self.shared, linger)?;
        // Dropping need not wait once more.
        let _ = self.set_nonblocking(true);
        match state.exchange.failure() {
            Some(failure) if !state.exchange.has_delivered() => Err(failure.error()),
            _ if !over => Err(io::Error::new(io::ErrorKind::TimedOut, "what was written had not all arrived in time")),
            _ => Ok(()),
        }
    }

    /// Ends the connection at once; what has not arrived is lost, and the peer is told.
    pub fn abort(&self) {
        if self.check_process().is_ok() {
            self.shared.abort();
        }
    }

    /// The same, and waits until the word of it has left this host: for who ends the process next, and the thread that runs the connection
    /// with it.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::TimedOut`] if it has not left after `timeout`, or nobody runs the connection any more.
    pub fn abort_timeout(&self, timeout: std::time::Duration) -> io::Result<()> {
        if self.shared.abort_and_wait(timeout)? { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }

    /// Has the ACK of what the peer says wait up to `delay` for something to be written, on which it then rides: questions and answers take a
    /// packet less. For open connections whose peers do the same; trains acknowledge as before.
    pub fn hold_acks(&self, delay: std::time::Duration) {
        let Ok(mut state) = self.shared.enter() else { return };
        state.exchange.wishes.hold_acks = Some(nanoseconds(delay));
        self.shared.call(&mut state);
    }

    /// Sets whether what is written leaves as soon as the protocol lets it. With true, the default, a write leaves at once while nothing is
    /// unacknowledged; what is written meanwhile is collected until the acknowledgement comes. With false, the rule of TPA's paper, less
    /// than a block of twelve segments waits up to 100 ms for more, or until [`TpaStream::flush`]: a stream of small writes then takes
    /// fewer packets. Trains and BBR do not wait in either case.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        let mut state = self.shared.enter()?;
        state.exchange.waits_to_fill = !nodelay;
        state.exchange.wishes.waits_to_fill = Some(!nodelay);
        self.shared.call(&mut state);
        Ok(())
    }

    /// What [`TpaStream::set_nodelay`] has set.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(!self.shared.enter()?.exchange.waits_to_fill)
    }

    /// Has what was written leave although it does not fill a block. It does not wait for its arrival. Without effect unless
    /// [`TpaStream::set_nodelay`] is false, since nothing waits then.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn flush(&self) -> io::Result<()> {
        let mut state = self.shared.enter()?;
        if state.exchange.waits_to_fill {
            state.exchange.wishes.flush = true;
            self.shared.call(&mut state);
        }
        Ok(())
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

    /// Sets whether calls return [`io::ErrorKind::WouldBlock`] instead of waiting.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        self.waiting()?.nonblocking = nonblocking;
        Ok(())
    }

    /// Sets whether a signal ends calls that wait, with [`io::ErrorKind::Interrupted`], by the kernel's rule for sockets: unless its handler has
    /// SA_RESTART and the call no timeout. Default false: calls go on waiting.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn set_interruptible(&self, interruptible: bool) -> io::Result<()> {
        self.waiting()?.interruptible = interruptible;
        Ok(())
    }

    /// Sets the time for which reading waits before it returns [`io::ErrorKind::WouldBlock`]; none for ever. Zero is refused.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] for zero.
    pub fn set_read_timeout(&self, timeout: Option<std::time::Duration>) -> io::Result<()> {
        self.waiting()?.read = positive(timeout)?;
        Ok(())
    }

    /// Sets the time for which writing waits before it returns [`io::ErrorKind::WouldBlock`]; none for ever. Zero is refused.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidInput`] for zero.
    pub fn set_write_timeout(&self, timeout: Option<std::time::Duration>) -> io::Result<()> {
        self.waiting()?.write = positive(timeout)?;
        Ok(())
    }

    /// Sets the time for which closing and dropping wait for what was written to arrive.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn set_linger(&self, linger: std::time::Duration) -> io::Result<()> {
        self.shared.enter()?.linger = nanoseconds(linger);
        Ok(())
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

    /// Bytes written that have not left, and as many as are to be; none where BBR does not carry the connection.
    pub(crate) fn unsent(&self) -> Option<(usize, usize)> {
        self.shared.enter().ok()?.exchange.unsent()
    }

    /// Bytes written whose arrival is not known yet.
    pub fn unacknowledged(&self) -> usize {
        self.shared.enter().map_or(0, |state| state.exchange.send.len())
    }
}

impl Drop for TpaStream {
    fn drop(&mut self) {
        let Ok(waiting) = self.waiting().map(|waiting| *waiting) else { return };
        if !self.shared.lock().exchange.wishes.dropped {
            let _ = let_go(&self.shared);
        }
        if !waiting.nonblocking && !self.shared.lock().exchange.is_opening() {
            let _ = wait_for_end(&self.shared, {
                let linger = self.shared.lock().linger;
                Clock.now().saturating_add(linger)
            });
        }
    }
}

impl Read for TpaStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_into(into, self.patience(|waiting| waiting.read)?)
    }
}

impl Read for &TpaStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_into(into, self.patience(|waiting| waiting.read)?)
    }
}

impl Write for TpaStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_from(from, self.patience(|waiting| waiting.write)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        TpaStream::flush(self)
    }
}

impl Write for &TpaStream {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.write_from(from, self.patience(|waiting| waiting.write)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        TpaStream::flush(self)
    }
}

pub(super) fn nanoseconds(span: std::time::Duration) -> Duration {
    Duration(span.as_nanos().try_into().unwrap_or(u64::MAX))
}

fn positive(timeout: Option<std::time::Duration>) -> io::Result<Option<Duration>> {
    match timeout {
        Some(std::time::Duration::ZERO) => Err(io::Error::new(io::ErrorKind::InvalidInput, "a timeout of zero")),
        timeout => Ok(timeout.map(nanoseconds)),
    }
}

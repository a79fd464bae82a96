//! End of a stream: closing one direction or both, aborting the connection, dropping the stream.

use super::TpaStream;
use crate::Clock;
use crate::tpa::api::closing::{let_go, wait_for_end};
use meshpace_session::exchange::Phase;
use std::io;
use std::net::Shutdown;
use std::task::{Context, Poll};

impl TpaStream {
    /// Closes one direction or both. Written data are still sent. Data that arrive after closing
    /// for reading reset the connection.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::NotConnected`] while the connection is being opened.
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

    /// Closes both directions and waits until the peer has everything that was written, or until it
    /// is certain that it never will. The wait ends a round trip after the last byte has arrived,
    /// and lasts at most the linger time. The peer may close later.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::TimedOut`] if not everything arrived in time; the reason if it never will.
    pub fn close(self) -> io::Result<()> {
        self.finish()
    }

    /// Like [`TpaStream::close`], for a stream that has other holders: their calls end with an
    /// error.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::close`].
    pub fn finish(&self) -> io::Result<()> {
        let linger = Clock.now().saturating_add(self.shared.enter()?.linger);
        let_go(&self.shared)?;
        let (state, over) = wait_for_end(&self.shared, linger)?;
        // Dropping the stream need not wait again.
        let _ = self.set_nonblocking(true);
        match state.exchange.failure() {
            Some(failure) if !state.exchange.has_delivered() => Err(failure.error()),
            _ if !over => Err(io::Error::new(io::ErrorKind::TimedOut, "what was written had not all arrived in time")),
            _ => Ok(()),
        }
    }

    /// Ready if everything written, including the end of the stream, has arrived. Otherwise the
    /// context's waker is called when it has. To be polled after closing.
    ///
    /// # Errors
    /// The reason if the connection ended before everything had arrived.
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

    /// Closes both directions and does not wait: written data still arrive as long as the
    /// process lives. Calls of other holders of the stream end with an error.
    ///
    /// # Errors
    ///
    /// The errors of [`TpaStream::check_process`].
    pub fn let_go(&self) -> io::Result<()> {
        // Dropping the stream must not wait either.
        self.set_nonblocking(true)?;
        let_go(&self.shared)
    }

    /// Ends the connection at once. Data that have not arrived are lost, and the peer is informed.
    pub fn abort(&self) {
        if self.check_process().is_ok() {
            self.shared.abort();
        }
    }

    /// Like [`TpaStream::abort`], but waits until the message about it has left this host. Needed
    /// if the process ends next, because the thread that runs the connection ends with the process.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::TimedOut`] if the message has not left after `timeout`, or if the runtime
    /// has ended.
    pub fn abort_timeout(&self, timeout: std::time::Duration) -> io::Result<()> {
        if self.shared.abort_and_wait(timeout)? { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
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

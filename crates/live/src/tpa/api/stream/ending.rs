//! The end of a stream: closing one direction or both, ending it at once, dropping it.

use super::TpaStream;
use crate::Clock;
use crate::tpa::api::closing::{let_go, wait_for_end};
use crate::tpa::session::exchange::Phase;
use std::io;
use std::net::Shutdown;
use std::task::{Context, Poll};

impl TpaStream {
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

    /// Closes both directions and does not wait: what was written still arrives as long as the process lives. Calls of others that
    /// hold it, too, end with an error.
    ///
    /// # Errors
    ///
    /// Those of [`TpaStream::check_process`].
    pub fn let_go(&self) -> io::Result<()> {
        // Dropping does not wait either.
        self.set_nonblocking(true)?;
        let_go(&self.shared)
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

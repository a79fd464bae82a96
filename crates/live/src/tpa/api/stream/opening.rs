//! Waiting until a stream is open.

use super::TpaStream;
use crate::tpa::runtime::wait::Patience;
use meshpace_core::Time;
use meshpace_session::exchange::Phase;
use meshpace_session::failure::{Failure, Reason};
use std::io;
use std::task::{Context, Poll};

impl TpaStream {
    /// Waits until the stream is open or opening it has failed.
    ///
    /// # Errors
    ///
    /// The errors of [`connect`](crate::tpa::TpaPort::connect); [`io::ErrorKind::Interrupted`] if a
    /// signal has ended the wait, in which case opening continues.
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

    /// True if the handshake is complete.
    ///
    /// # Errors
    ///
    /// The reason if the connection could not be opened or has failed since.
    pub fn is_open(&self) -> io::Result<bool> {
        let exchange = &self.shared.enter()?.exchange;
        match exchange.failure() {
            Some(failure) => Err(failure.error()),
            None => Ok(!exchange.is_opening()),
        }
    }

    /// Ready if the handshake is complete. Otherwise the context's waker is called when it is.
    ///
    /// # Errors
    /// The reason if the connection could not be opened.
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

    /// Reason for which the peer refuses a connection that is being opened with a secret or with
    /// known keys. The sender of the refusal has not proved to be the peer, so opening continues
    /// until its timeout. `None` without such a refusal.
    pub fn refusal(&self) -> Option<io::Error> {
        match &self.shared.enter().ok()?.exchange.phase {
            Phase::Opening { refusal: Some(message) } => Some(Failure::new(Reason::Refused, message).error()),
            _ => None,
        }
    }
}
